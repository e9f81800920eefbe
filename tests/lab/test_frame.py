"""The frame: one row per run, one line per column."""

import subprocess
import sys
from pathlib import Path

import pytest

import mario
from lab import results
from lab.results import write
from lab.test_result import FULL
from mario.errors import MarioError
from mario.lab import frame as frame_module
from mario.lab.frame import COLUMNS, Column, frame
from mario.lab.runs.records import write_records


def test_one_row_per_run_with_scores_as_fractions() -> None:
    made = frame([FULL, results.result(results.spec(1))])
    assert made.columns.tolist() == [column.name for column in COLUMNS]
    first, second = made.iloc[0], made.iloc[1]
    assert first[["dataset", "domain", "shift"]].tolist() == ["good-cbas", "color", "concept"]
    assert (first.setting, first.method, first.seed) == ("transductive", "grace", 3)
    assert (first.id_test, first.ood_test, first.gap) == (0.9, 0.8, pytest.approx(0.1))
    assert (first.ood_test_chosen_on, first.ood_test_step, first.oracle_ood_test) == ("ood_val", 20, 0.9)
    assert (first.groups, first.curve[1].scores["ood_val"], first.settings["lr"]) == ({"T1": 0.4}, 0.5, 0.01)
    assert second[["id_test", "gap", "id_test_step", "id_test_chosen_on", "folder"]].isna().all()
    assert (second.groups, second.faults) == ({}, ())
    assert made.ood_test.mean() == pytest.approx(0.65)


def test_no_runs_are_a_frame_without_rows() -> None:
    assert frame([]).columns.tolist() == [column.name for column in COLUMNS]
    assert len(frame([])) == 0


def test_another_column_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    more = [*COLUMNS, Column("lr", lambda r: r.spec.settings["lr"], "learning rate")]
    monkeypatch.setattr(frame_module, "COLUMNS", more)
    assert frame([FULL]).lr.tolist() == [0.01]


def test_load_runs_reads_a_folder_or_a_file_of_records(tmp_path: Path) -> None:
    done = [results.result(results.spec(seed), score=seed / 10) for seed in range(3)]
    write(tmp_path / "runs", *done)
    (tmp_path / "runs" / done[2].spec.digest / "result.json").write_text("{")
    write_records(tmp_path / "runs.jsonl", tmp_path / "runs")
    loaded = mario.lab.load_runs(tmp_path / "runs")
    assert loaded.set_index("seed").ood_test.to_dict() == {0: 0.0, 1: 0.1}, "the broken one is left out"
    assert loaded.folder.map(lambda folder: Path(folder).parent.name).unique().tolist() == ["runs"]
    recorded = mario.lab.load_runs(str(tmp_path / "runs.jsonl"))
    assert recorded.drop(columns="folder").equals(loaded.drop(columns="folder"))
    for wrong in (tmp_path / "nothing", tmp_path / "runs" / done[0].spec.digest / "result.json"):
        with pytest.raises(MarioError, match=r"path must be a folder of runs or a \.jsonl file"):
            mario.lab.load_runs(wrong)


def test_neither_torch_nor_pandas_is_imported_before_it_is_needed() -> None:
    code = "import sys, mario.lab.frame, mario.lab.launch; mario.lab.launch.launchers(); "
    code += "print({'torch', 'pandas', 'mario.methods'} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "set()"
