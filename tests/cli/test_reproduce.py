"""`mario reproduce` and `mario report` as a person types them, on studies of a second."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forked import mario
from lab import results
from lab.results import write
from mario.cli import main
from mario.cli.document import markers
from mario.cli.reproduce import recording
from mario.lab.launch import LaunchProgress
from mario.lab.studies.collect import Collected

TINY = """
title = "Tiny"
reference = "plain"
rows = [
  "random-init",
  { label = "plain", method = "grace" },
  { label = "thin", method = "grace", given = { hidden_channels = 4 } },
  "*",
]
seeds = 2
epochs = 1
checkpoints = 1
given = { hidden_channels = 8, num_layers = 1, probe_epochs = 2, roots = 20 }
cases = [
  { dataset = "good-cbas", shift = "concept", rows = ["random-init", "plain", "thin"] },
  { dataset = "good-cbas", shift = "covariate", rows = ["random-init"] },
  { dataset = "good-cora", domain = "word", rows = ["plain"] },
]
"""
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """Give a command in an empty folder; exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARIO_DATA", "")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")

    def given(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mario", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    (tmp_path / "tiny.toml").write_text(TINY)
    return given


def test_a_study_of_ones_own_is_run_shown_and_not_repeated(call: Call, tmp_path: Path) -> None:
    code, said, _ = call("reproduce", "tiny.toml", "--dry-run", "--out", "runs")
    assert code == 0
    assert "good-cbas-concept: 6 runs of random-init; plain; thin" in said
    assert "good-cora-word-concept: 2 runs of plain; left out, the files of good-cora are missing" in said
    assert "in all 8 runs, 8 to do, and no run in runs yet to estimate the time from" in said
    assert not (tmp_path / "runs").exists(), "a dry run writes nothing"

    code, said, errors = call("reproduce", "tiny.toml", "--out", "runs", "--datasets", "good-cbas-concept")
    assert code == 0, errors
    assert "left out: the files of good-cora" not in said, "nobody asked for it"
    assert "thin" in said
    assert (tmp_path / "runs" / "report.html").is_file()
    results = sorted((tmp_path / "runs").glob("*/result.json"))
    assert len(results) == 6

    code, said, errors = call("reproduce", "tiny.toml", "--out", "runs", "--seeds", "1", "--report", "page.html")
    assert code == 0, errors
    assert "left out: the files of good-cora are missing" in said
    assert (tmp_path / "page.html").is_file()
    assert {path: path.stat().st_mtime_ns for path in results}.items() <= {
        path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/result.json")
    }.items(), "runs that are done are not repeated"
    (path,) = (tmp_path / "runs" / "plans").glob("tiny.*.json")
    plan = json.loads(path.read_text())
    assert [(case["jobs"][0]["dataset"], case["case"]["shift"], len(case["jobs"])) for case in plan["cases"]] == [
        ("good-cbas", "concept", 6),
        ("good-cbas", "covariate", 1),
        ("good-cora", "concept", 1),
    ], "what was asked for before stays in the plan"
    assert plan["command"].startswith("mario reproduce tiny.toml")

    page = tmp_path / "page.md"
    page.write_text("\n".join(markers("study tiny")))
    code, said, errors = call("report", "runs", "--document", "page.md")
    assert code == 0, errors
    assert "tables written into page.md" in said
    assert "| thin |" in page.read_text()
    page.write_text("nothing")
    assert "has no place for the study tiny" in call("report", "runs", "--document", "page.md")[2]
    assert "no file absent.md" in call("report", "runs", "--document", "absent.md")[2]

    code, said, _ = call("reproduce", "tiny.toml", "--dry-run", "--out", "runs", "--seeds", "3")
    assert "good-cbas-concept: 9 runs of random-init; plain; thin; 6 done" in said
    assert "in all 12 runs, 5 to do, about" in said
    assert "s with 2 workers, estimated from the runs in runs" in said


def test_what_is_recorded_is_not_run_again_on_another_machine(call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "tiny.toml", "--datasets", "good-cbas", "--records", "runs.jsonl")
    code, _, errors = call(*words, "--out", "here", "--seeds", "1")
    assert code == 0, errors
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 4
    said = call(*words, "--out", "there", "--dry-run")[1]
    assert "good-cbas-concept: 6 runs of random-init; plain; thin; 3 done" in said
    assert "in all 8 runs, 4 to do" in said
    assert not (tmp_path / "there").exists(), "a dry run writes nothing"

    code, said, errors = call(*words, "--out", "there")
    assert code == 0, errors
    assert "4 runs are done in runs.jsonl" in said
    assert len(list((tmp_path / "there").glob("*/model.safetensors"))) == 4, "the other four were run"
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 8
    assert (tmp_path / "there" / "report.html").is_file()

    (tmp_path / "runs.jsonl").write_text("half a li")
    assert "line 1 of runs.jsonl is not valid JSON" in call(*words, "--out", "there")[2]


def test_results_are_recorded_while_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, records = tmp_path / "runs", tmp_path / "runs.jsonl"

    def launched() -> Iterator[LaunchProgress]:
        for seed in range(3):
            write(out, results.result(results.spec(seed)))
            yield LaunchProgress(seed + 1, 0, 3, [], 0, 0, None)

    def recorded() -> list[int]:
        counts = []
        for _ in recording(launched(), records, out):
            counts.append(len(records.read_text().splitlines()) if records.exists() else 0)
        return counts

    assert recorded() == [0, 0, 0], "not before its time"
    shutil.rmtree(out)
    monkeypatch.setattr("mario.cli.reproduce.EVERY", 0.0)
    assert recorded() == [0, 1, 2]


def test_two_studies_share_runs(call: Call, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(TINY.replace('"thin"', '"slim"'))
    code, said, _ = call("reproduce", "tiny.toml", "other.toml", "--dry-run", "--datasets", "good-cbas")
    assert code == 0
    assert "good-cbas-concept: 6 runs of random-init; plain; slim; 6 shared with tiny" in said
    assert "in all 8 runs" in said


def test_runs_and_trials_that_go_well_write_nothing_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY.replace("seeds = 2", "seeds = 1"))
    words = ("--datasets", "good-cbas-concept", "--methods", "plain", "--out", "runs")
    done = mario("reproduce", "tiny.toml", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    tiny = ("hidden_channels=8", "num_layers=1", "epochs=1", "steps_per_epoch=1", "probe_epochs=2", "checkpoints=1")
    fixed = [word for text in tiny for word in ("--set", text)]
    done = mario("tune", "good-cbas", "--method", "grace", *fixed, "--only", "lr", "--trials", "1", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failed_run_stops_no_other_and_is_retried_only_on_demand(call: Call, tmp_path: Path) -> None:
    study = TINY.replace("hidden_channels = 4", "hidden_channels = 4, lr = 1e30, epochs = 20").replace(
        "seeds = 2", "seeds = 1"
    )
    (tmp_path / "tiny.toml").write_text(study)
    words = ("reproduce", "tiny.toml", "--out", "runs", "--datasets", "good-cbas-concept")
    code, _, errors = call(*words)
    assert code == 1
    assert "1 of 3 runs failed" in errors
    assert "--retry-failed" in errors
    assert "Traceback" not in errors
    assert (tmp_path / "runs" / "report.html").is_file(), "what there is was shown before"
    assert len(list((tmp_path / "runs").glob("*/result.json"))) == 2
    failed = next((tmp_path / "runs").glob("*/error.txt"))
    before = failed.stat().st_mtime_ns
    assert call(*words)[0] == 1
    assert failed.stat().st_mtime_ns == before, "it was not tried again"
    said = call(*words, "--dry-run")[1]
    assert "1 failed before" in said
    assert "0 to do" in said
    assert "1 to do" in call(*words, "--dry-run", "--retry-failed")[1]
    assert call(*words, "--retry-failed")[0] == 1
    assert failed.stat().st_mtime_ns > before


def test_what_does_not_exist_is_named_with_what_does(call: Call, tmp_path: Path) -> None:
    (tmp_path / "pie.toml").write_text(f'show = ["pie"]\n{TINY}')
    for words, message in [
        (("nothing",), "there is no study 'nothing'; choose table-concept, table-covariate"),
        (("ablation", "--datasets", "good-cbas,cora"), "'cora'; choose from good-cora, good-cora-word-concept"),
        (("ablation", "--methods", "grace"), "no row of ablation is called 'grace'; choose from mario, mario w/o ad"),
        (("table-concept", "--methods", "graace"), "'graace'"),
        (("pie.toml",), "unknown show 'pie'; use one of table, "),
        (("photo", "graph-classification", "--datasets", "dd-200", "--methods", "dgi"), "no case has both"),
        (("tiny.toml", "--launcher", "carrier-pigeon"), "there is no launcher 'carrier-pigeon'"),
        (("tiny.toml", "--dry-run", "--launcher", "carrier-pigeon"), "there is no launcher 'carrier-pigeon'"),
        (("tiny.toml", "--dry-run", "--launcher-option", "time=3"), "the launcher local has no options, got time"),
        (("tiny.toml", "--launcher", "slurm", "--launcher-option", "1x=2"), "got '1x'"),
        (("tiny.toml", "--dry-run", "--datasets", "good-cora"), "nothing can run, all files are missing"),
        (("tiny.toml", "--out", "tiny.toml"), "cannot use tiny.toml/plans: Not a directory; choose another"),
        (("tiny.toml", "--launcher-option", "time"), "--launcher-option takes NAME=VALUE"),
        (("tiny.toml", "--document", "absent.md"), "there is no file absent.md"),
        (("tiny.toml", "--document", "absent.md", "--quick"), "leave out --quick or --document"),
    ]:
        code, _, errors = call("reproduce", *words)
        assert code == 2, (words, errors)
        assert message in errors, (words, errors)
        assert "Traceback" not in errors


def test_rows_and_datasets_are_chosen_with_commas_or_again(call: Call) -> None:
    _, said, _ = call(
        *("reproduce", "ablation", "--dry-run", "--datasets", "good-cbas,good-webkb-concept"),
        *("--methods", "mario w/o cmi, ad", "--methods", "mario w/o ad,mario w/o cmi", "--seeds", "2"),
    )
    assert "good-cbas-concept: 6 runs of mario w/o ad; mario w/o cmi; mario w/o cmi, ad" in said
    assert "good-webkb-concept: 6 runs" in said
    assert "good-twitch" not in said


def test_a_study_whose_data_is_not_at_hand_has_its_page_all_the_same(call: Call, tmp_path: Path) -> None:
    code, said, errors = call("reproduce", "elliptic", "label-rates", "--out", "runs")
    assert code == 0, errors
    assert said.count("left out: the files of elliptic are missing") == 1
    page = (tmp_path / "runs" / "report.html").read_text(encoding="utf-8")
    assert "Figure 4" in page
    assert "Figure 10" in page
    assert "are missing" in page


def test_every_study_of_the_paper_can_be_asked_for_at_once(call: Call) -> None:
    code, said, _ = call("reproduce", "all", "--quick", "--dry-run")
    assert code == 0
    assert "no run in runs/quick yet" in said
    for line in ("table-concept: ", "tsne-id-ood: ", "label-rates: "):
        assert line in said
    assert "elliptic-label: 0 runs; left out, the files of elliptic are missing" in said


def test_a_report_of_plans_and_of_runs_without_one(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("reproduce", "tiny.toml", "--out", "runs", "--datasets", "good-cbas-concept", "--seeds", "1")[0] == 0
    code, said, _ = call("report", "runs", "-o", "here/report.html")
    assert code == 0
    assert "thin" in said
    assert "thin" in (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    for path in (tmp_path / "runs" / "plans").glob("tiny.*.json"):
        path.unlink()
    shown: list[Collected] = []

    def write_nothing(path: Path, collected: list[Collected], **other: object) -> Path:
        shown.extend(collected)
        return path

    monkeypatch.setattr("mario.report.write_report", write_nothing)  # its maps and pictures take seconds
    assert call("report", "runs", "-o", "own.html")[0] == 0
    labels = {run.job.label for case in shown[0].cases for run in case.runs}
    assert labels == {"random-init", "grace, hidden_channels=4", "grace, hidden_channels=8"}, (
        "rows are named by what differs"
    )
    for folder, message in [("absent", "there is no folder absent"), ("here", "here holds no runs")]:
        code, _, errors = call("report", folder)
        assert code == 2
        assert message in errors
