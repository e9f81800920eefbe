"""Slurm, as far as it goes without one: `tests/integration/test_slurm.py` has the rest."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.launch.tiny import job, write
from mario.errors import MarioError, RunFailedError
from mario.lab.launch import launch, slurm
from mario.lab.launch.slurm import parameters
from mario.lab.runs import lock
from mario.lab.runs.job import Job

KNOWN = {"partition", "time", "mem", "cpus_per_task", "job_name"}


def test_options_of_sbatch() -> None:
    assert parameters({}, KNOWN) == {"time": None, "cpus_per_task": 1}
    given = {"partition": "cpu", "time": "60", "memory": "4G", "cpus": "2", "mail-type": "END"}
    assert parameters(given, KNOWN) == {
        "partition": "cpu",
        "time": 60,
        "mem": "4G",
        "cpus_per_task": 2,
        "additional_parameters": {"mail-type": "END"},
    }
    with pytest.raises(MarioError, match="NAME=VALUE such as partition=cpu"):
        parameters({"--time 3": ""}, KNOWN)
    with pytest.raises(MarioError, match="mario sets it from the runs"):
        parameters({"job-name": "mine"}, KNOWN)


def test_what_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MarioError, match=r"pip install 'mario-gcl\[slurm\]'"):
        list(launch([job()], tmp_path, launcher="slurm"))
    monkeypatch.setitem(sys.modules, "submitit", sys)  # any module
    with pytest.raises(MarioError, match="sbatch is not installed"):
        list(launch([job()], tmp_path, launcher="slurm"))


class Pretended(slurm.Array):
    """A Slurm whose tasks are there for one question and do what ``does`` says when they are submitted."""

    def __init__(self, does: Callable[[int], None], queue: dict[str, tuple[str, str]]) -> None:
        super().__init__("mario-pretended", Path("logs"), ("", "", None), None)
        self.does, self.queue, self.submitted = does, queue, []

    def _states(self) -> dict[str, tuple[str, str]]:
        shown = dict(self.queue)
        self.queue = dict.fromkeys(self.queue, ("COMPLETED", ""))
        return shown

    def submit(self, tasks: int) -> bool:
        if tasks > 0:
            self.submitted.append(tasks)
            self.queue |= {f"{len(self.submitted)}_{i}": ("RUNNING", "") for i in range(tasks)}
            self.does(len(self.submitted))
        return tasks > 0


@pytest.fixture
def pretend(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Pretended]:
    monkeypatch.setattr(slurm, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(slurm, "ASK_EVERY", 0.0)

    def make(does: Callable[[int], None], **queue: tuple[str, str]) -> Pretended:
        array = Pretended(does, queue)
        monkeypatch.setattr(slurm.Array, "prepare", lambda *_: array)
        return array

    return make


def watch(jobs: list[Job], folder: Path, workers: int = 2) -> list:
    return list(launch(jobs, folder, launcher="slurm", workers=workers))


def test_no_more_workers_are_submitted_than_there_are_runs_and_none_if_all_is_done(
    tmp_path: Path, pretend: Any
) -> None:
    jobs = [job(seed=seed) for seed in range(3)]
    array = pretend(lambda _: [write(tmp_path, each, seconds=1.0) for each in jobs])
    assert watch(jobs, tmp_path, workers=10)[-1].done_runs == 3
    assert array.submitted == [3]
    assert watch(jobs, tmp_path, workers=10)[-1].done_runs == 3
    assert array.submitted == [3]


def test_workers_that_wait_already_are_enough(tmp_path: Path, pretend: Any) -> None:
    jobs = [job(seed=seed) for seed in range(3)]
    array = pretend(lambda _: [write(tmp_path, each, seconds=1.0) for each in jobs], a=("PENDING", "Resources"))
    told = watch(jobs, tmp_path, workers=2)
    assert told[0].note == "in Slurm's queue: 1 (Resources)"
    assert array.submitted == [1], "one is there already"


def test_what_the_workers_of_an_earlier_launch_leave_is_submitted(tmp_path: Path, pretend: Any) -> None:
    array = pretend(lambda _: write(tmp_path, job(), seconds=1.0), a=("RUNNING", ""))
    assert watch([job()], tmp_path, workers=1)[-1].done_runs == 1
    assert array.submitted == [1], "once the other has ended without this run, which it did not know of"


def test_workers_that_end_are_followed_by_others_as_long_as_runs_get_further(tmp_path: Path, pretend: Any) -> None:
    one = job(epochs=100)
    folder = tmp_path / one.spec.digest

    def until_the_time_limit(time: int) -> None:
        if time < 3:
            (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
            (folder / "settings.json").write_text(json.dumps(one.spec.to_dict()))
            (folder / "checkpoint" / f"{time:09d}.safetensors").touch()

    array = pretend(until_the_time_limit)
    with pytest.raises(RunFailedError, match="ended and left 1 runs unfinished; their logs are in logs"):
        watch([one], tmp_path)
    assert array.submitted == [1, 1, 1], "twice it got further, the third time not"


def test_nothing_is_submitted_for_a_run_that_somebody_else_is_at_work_on(tmp_path: Path, pretend: Any) -> None:
    theirs = job()
    array = pretend(lambda _: None)
    with lock.alone_in(tmp_path / theirs.spec.digest):
        watched = launch([theirs], tmp_path, launcher="slurm")
        for _ in range(4):
            assert next(watched).running == ["random-init good-cbas 0/0"]
    watched.close()
    assert array.submitted == []


def test_canceled_workers_are_not_replaced(tmp_path: Path, pretend: Any, capsys: pytest.CaptureFixture[str]) -> None:
    array = pretend(lambda _: None)
    watched = launch([job()], tmp_path, launcher="slurm")
    next(watched)
    next(watched)
    array.queue = dict.fromkeys(array.queue, ("CANCELLED", ""))
    with pytest.raises(RunFailedError, match="1 of Slurm's workers were canceled"):
        next(watched)

    array.queue, array.seen = {}, set()
    watched = launch([job()], tmp_path, launcher="slurm")
    next(watched)
    watched.close()
    assert "cancel them with scancel --name=mario-pretended" in capsys.readouterr().err
