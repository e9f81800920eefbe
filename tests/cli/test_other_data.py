"""Data that changed under finished runs: they are named, never counted silently, and run again on demand."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from forked import mario
from lab import results
from mario.cli import main
from mario.datasets import load_dataset, save_dataset
from mario.lab import anonymous, load_runs
from mario.lab.runs import store

Call = Callable[..., tuple[int, str, str]]
STUDY = """
title = "Mine"
rows = ["random-init", "raw-features"]
seeds = 2
epochs = 1
checkpoints = 1
given = { probe_epochs = 2 }
cases = [{ dataset = "FOLDER", shift = "concept" }]
"""
TUNE = ("--method", "raw-features", "--only", "probe_lr", "--set", "epochs=1", "--set", "checkpoints=1")
TUNE = (*TUNE, "--set", "probe_epochs=2", "--sampler", "random", "--workers", "1")


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """Give a command in an empty folder; exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARIO_DATA", "")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv(anonymous.VARIABLE, "")

    def given(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mario", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    (tmp_path / "mine.toml").write_text(STUDY.replace("FOLDER", str(tmp_path / "mine")))
    save(tmp_path, 0.0)
    return given


def save(home: Path, more: float) -> None:
    """Write a dataset, with features that are larger by ``more``."""
    shutil.rmtree(home / "mine", ignore_errors=True)
    data = load_dataset("good-cbas")
    data.x = data.x + more
    save_dataset(data, home / "mine")


def test_finished_runs_on_other_data_are_named_and_run_again_on_demand(call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "mine.toml", "--out", "runs")
    assert call(*words)[0] == 0
    before = load_runs(tmp_path / "runs")
    assert len(before) == 4
    assert before.data.notna().all()
    save(tmp_path, 1.0)
    code, said, errors = call(*words)
    assert code == 1
    assert "4 finished runs are of other data than there is now; use --retry-failed to run them again" in errors
    assert "random-init on" in said
    assert said.count("is left out: it was done on other data: the fingerprint of") == 4
    assert load_runs(tmp_path / "runs").equals(before), "nothing was removed"
    page = (tmp_path / "runs/report.html").read_text()
    assert "4 failed" in page
    assert "it was done on other data" in page
    said = call(*words, "--dry-run")[1]
    assert "4 failed before" in said
    assert "0 to do" in said
    assert "4 to do" in call(*words, "--dry-run", "--retry-failed")[1]

    code, said, errors = call(*words, "--retry-failed")
    assert code == 0, errors
    assert "4 runs were done on other data than there is now; they are kept as *.broken-* and run again" in said
    after = load_runs(tmp_path / "runs")
    assert len(after) == 4
    assert set(after.data).isdisjoint(before.data)
    assert len(list((tmp_path / "runs").glob("*.broken-1/result.json"))) == 4
    assert call(*words)[0] == 0


def test_runs_of_an_absent_dataset_stay_done(call: Call, tmp_path: Path) -> None:
    assert call("reproduce", "mine.toml", "--out", "runs")[0] == 0
    before = load_runs(tmp_path / "runs")
    shutil.rmtree(tmp_path / "mine")
    assert call("report", "runs")[0] == 0
    assert load_runs(tmp_path / "runs").equals(before)


def test_a_report_does_not_mix_runs_on_other_data(call: Call, tmp_path: Path) -> None:
    runs = [results.result(results.spec(seed, split_seed=0), score, data=data) for seed, score, data in SCORES]
    results.write(tmp_path / "runs", *runs)
    code, said, errors = call("report", "runs")
    assert code == 0, errors
    assert "with split seed 0 and seed 2 is left out: it was done on other data than 2 of 3 runs on split 0" in said
    assert "the fingerprint is bb and theirs aa" in said
    page = (tmp_path / "report.html").read_text()
    assert "60.00" in page  # the mean of the two on the same data
    assert "63.33" not in page
    assert "it was done on other data than 2 of 3 runs" in page


SCORES = ((0, 0.55, "aa"), (1, 0.65, "aa"), (2, 0.70, "bb"))


def test_the_same_run_twice_on_other_data_is_said(call: Call, tmp_path: Path) -> None:
    for name, data in (("one", "aa"), ("two", "bb")):
        results.write(tmp_path / name, results.result(results.spec(0), data=data))
        made = next((tmp_path / name).iterdir())
        made.rename(tmp_path / "runs" / name) if (tmp_path / "runs").mkdir(exist_ok=True) is None else None
    said = call("report", "runs")[1]
    assert "runs/two is left out: it is the run of runs/one, on other data" in said


def test_a_tuning_does_not_mix_trials_on_other_data(call: Call, tmp_path: Path) -> None:
    words = ("tune", str(tmp_path / "mine"), "--shift", "concept", *TUNE)
    code, _, errors = call(*words, "--trials", "1")
    assert code == 0, errors
    save(tmp_path, 1.0)
    code, _, errors = call(*words, "--trials", "2")
    assert code == 2
    assert "are of other data: the fingerprint of" in errors
    assert "choose another --study-name" in errors
    # The runs of the first study are not those of another study either, if it finds them.
    code, _, errors = call(*words, "--trials", "1", "--study-name", "again")
    assert code == 1
    assert "all of 1 trials failed, the last: MarioError" in errors
    assert "holds a run on other data" in errors


def test_one_damaged_plan_is_left_out_and_kept(call: Call, tmp_path: Path) -> None:
    words = ("reproduce", "mine.toml", "--out", "runs")
    assert call(*words)[0] == 0
    (plan,) = (tmp_path / "runs/plans").glob("mine.*.json")
    sound = plan.read_text()
    for damaged in (sound[:100], "[]", '{"a":' * 100_000, json.dumps({**json.loads(sound), "study": "../x"}), ""):
        plan.with_name("other.00000000.json").write_text(damaged)
        code, said, errors = call("report", "runs")
        assert code == 0, errors
        assert "other.00000000.json is left out: " in said
        assert "random-init" in said, "the other plan is shown"
    plan.with_name("other.00000000.json").unlink()
    # A second plan that contradicts the first.
    contrary = sound.replace('"probe_lr": ', '"probe_lr": 9')
    plan.with_name("mine.ffffffff.json").write_text(contrary)
    code, said, errors = call("report", "runs")
    assert code == 0, errors
    assert "is left out: runs/plans has two plans of mine" in said
    assert "random-init" in said
    plan.with_name("mine.ffffffff.json").unlink()
    # The only plan: runs are shown by case and method, and the next launch keeps the file under another name.
    plan.write_text(sound[:100])
    code, said, errors = call("report", "runs")
    assert code == 0, errors
    assert "is left out" in said
    assert "random-init" in said
    code, said, errors = call(*words)
    assert code == 0, errors
    assert "is left out" in said
    assert plan.read_text() == sound
    assert plan.with_name(f"{plan.name}.broken-1").read_text() == sound[:100]


def test_an_anonymous_tuning_names_no_machine(call: Call, tmp_path: Path) -> None:
    words = ("tune", "good-cbas", *TUNE, "--trials", "1")
    done = mario(*words, "--anonymous", cwd=tmp_path)  # a process whose workers are its own
    assert done.returncode == 0, done.stderr
    system = os.uname()
    host, facts = f"{system.nodename} [0-9]".encode(), (system.release.encode(), str(tmp_path).encode())
    files = [path for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    (trials,) = (path for path in files if path.suffix == ".db")
    assert re.search(rb"worker [0-9a-f]{8}", trials.read_bytes())
    for path in files:
        assert not re.search(host, path.read_bytes())
        assert not any(fact in path.read_bytes() for fact in facts)
    assert mario(*words, "--study-name", "again", cwd=tmp_path).returncode == 0
    assert re.search(host, (tmp_path / "runs/tune/again.db").read_bytes()), "it is what was looked for"
    code, _, errors = call("tune", str(tmp_path / "mine"), *TUNE, "--trials", "1", "--anonymous")
    assert code == 2
    assert "--anonymous: the dataset" in errors


def test_states_of_folders_do_not_depend_on_the_data(call: Call, tmp_path: Path) -> None:
    assert call("reproduce", "mine.toml", "--out", "runs")[0] == 0
    save(tmp_path, 1.0)
    assert {store.state(folder) for folder in store.run_folders(tmp_path / "runs")} == {store.DONE}
