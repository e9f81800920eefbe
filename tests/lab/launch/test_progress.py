"""How far runs are and how long the rest takes: on made-up folders, nothing is trained."""

from pathlib import Path
from typing import Any

import pytest

from lab.launch.tiny import job, write
from mario.lab.launch.progress import Pace, Task, progress_of, steps_made, tasks_of
from mario.lab.runs import lock, store
from mario.lab.runs.job import Job


def expected(jobs: list[Job], folder: Path, workers: int = 2) -> float | None:
    return Pace.of_folder(folder).seconds(tasks_of(jobs, folder), workers)


def runs(*seeds: int, method: str = "grace", **given: Any) -> list[Job]:
    return [job(method, seed, **{"epochs": 100, **given}) for seed in seeds]


def test_what_is_done_failed_and_left(tmp_path: Path) -> None:
    jobs = runs(0, 1, 2, 3)
    write(tmp_path, jobs[0], seconds=50.0)
    (write(tmp_path, jobs[1]) / "error.txt").write_text("it failed")
    write(tmp_path, jobs[2], steps=40)
    with lock.alone_in(tmp_path / jobs[2].spec.digest):
        now = progress_of(tasks_of(jobs, tmp_path), Pace.of_folder(tmp_path), 2)
    assert (now.done_runs, now.failed_runs, now.total_runs) == (1, 1, 4)
    assert now.running == ["grace good-cbas 0/2"]
    assert (now.done_steps, now.total_steps) == (100 + 100 + 40, 400)
    assert now.seconds_left == pytest.approx(50.0), "60 and 100 steps of half a second by two workers: the longer one"


def test_time_is_not_known_until_something_was_measured(tmp_path: Path) -> None:
    jobs = runs(0, 1)
    assert expected(jobs, tmp_path) is None
    tasks = tasks_of(jobs, tmp_path)
    tasks[0].state, tasks[0].began = store.RUNNING, (0.0, 0)
    assert progress_of(tasks, Pace(), 2).seconds_left is None, "begun, and not a step made"
    write(tmp_path, jobs[0], seconds=10.0)
    assert expected(jobs, tmp_path, workers=1) == pytest.approx(10.0)
    assert expected(jobs[:1], tmp_path) == 0.0


def test_the_nearest_kind_of_run_tells(tmp_path: Path) -> None:
    write(tmp_path, runs(0)[0], seconds=100.0)
    write(tmp_path, job("erm", epochs=100), seconds=10.0)
    rates = {("grace", "good-cbas"): 1.0, ("dgi", "good-cbas"): 0.55, ("dgi", "webkb"): 0.55}
    assert Pace.of_folder(tmp_path).rates(rates) == pytest.approx(rates)
    assert Pace().rates(rates) == dict.fromkeys(rates)
    assert expected(runs(7, 8, 9, 10), tmp_path, workers=2) == pytest.approx(200.0)


def test_a_run_at_work_tells_of_itself_where_none_of_its_kind_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task(job(), Path("none"), steps=100, kind=("grace", "good-cbas"), state=store.RUNNING, made=30)
    task.began = (1000.0, 10)
    monkeypatch.setattr("time.monotonic", lambda: 1040.0)
    assert Pace().seconds([task], 1) == pytest.approx(70 * 2.0)
    assert Pace({("grace", "good-cbas"): [1.0]}).seconds([task], 1) == pytest.approx(70.0)


def test_a_log_that_is_cut_short_or_garbled_still_tells_the_step(tmp_path: Path) -> None:
    assert steps_made(tmp_path) == 0
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f'{{"step": {i}, "loss": 1.{"1" * 88}}}\n' for i in range(200)) + '{"step": 2')
    assert steps_made(tmp_path) == 199
    log.write_bytes(log.read_bytes() + b"\xff\xfe\n7\n")
    assert steps_made(tmp_path) == 199


def test_broken_results_are_passed_over(tmp_path: Path) -> None:
    jobs = runs(0, 1)
    write(tmp_path, jobs[0], seconds=10.0)
    (write(tmp_path, jobs[1], seconds=10.0) / "result.json").write_text("{")
    now = progress_of(tasks_of(jobs, tmp_path), Pace.of_folder(tmp_path), 2)
    assert (now.done_runs, now.failed_runs) == (1, 1)
