"""Runs of a second, made-up ones, and a process that launches runs and can be killed."""

import json
import multiprocessing
import time
from collections.abc import Callable, Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lab.results import result
from mario.lab.case import Case
from mario.lab.launch import launch
from mario.lab.runs.job import Job
from mario.lab.runs.processes import context, one_thread
from mario.lab.spec import RunSpec

TINY = {"hidden_channels": 8, "num_layers": 1, "epochs": 1, "steps_per_epoch": 1, "probe_epochs": 2}


def job(method: str = "random-init", seed: int = 0, **given: Any) -> Job:
    spec = RunSpec.plan(Case.find("good-cbas", shift="concept"), method, seed=seed, given={**TINY, **given})
    return Job(spec=spec, label=method)


def long(seed: int = 0) -> Job:
    """About two seconds, with checkpoints on the way."""
    return job("grace", seed, epochs=60, steps_per_epoch=4, checkpoints=20, roots=20)


def endless(seed: int = 0) -> Job:
    return job("grace", seed, epochs=100_000, checkpoints=1)


def write(folder: Path, job: Job, *, seconds: float | None = None, steps: int = 0) -> Path:
    """A run that is done, in so many seconds, or has made so many steps."""
    where = folder / job.spec.digest
    where.mkdir(parents=True)
    (where / "settings.json").write_text(json.dumps(job.spec.to_dict()))
    (where / "log.jsonl").write_text("".join(f'{{"step": {i + 1}, "loss": 1.0}}\n' for i in range(steps)))
    if seconds is not None:
        done = result(job.spec, seconds=seconds, steps=job.spec.settings["epochs"])
        (where / "result.json").write_text(json.dumps(done.to_dict()))
    return where


def _launch(jobs: Sequence[Job], folder: Path, workers: int) -> None:
    # The server that this process was forked by would do, but Python starts another, which imports everything again.
    vars(forkserver._forkserver)["ensure_running"] = lambda: None  # type: ignore[attr-defined]
    for _ in launch(jobs, folder, workers=workers):
        pass


def launching(jobs: Sequence[Job], folder: Path, workers: int = 2) -> BaseProcess:
    """A process that launches ``jobs`` and shares the fork server of this one, so that it costs nothing to start."""
    assert "forkserver" in multiprocessing.get_all_start_methods()
    with one_thread():
        server = context("mario.lab.runs.worker")
        process: BaseProcess = server.Process(target=_launch, args=(jobs, folder, workers))
        process.start()
    return process


def until(true: Callable[[], Any], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)
