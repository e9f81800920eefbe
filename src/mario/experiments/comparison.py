"""Methods side by side on the same graphs: the same steps, the same checkpoints, the same splits and seeds."""

import multiprocessing
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from mario.errors import RunFailedError
from mario.experiments.run import Run, finish
from mario.experiments.settings import Evaluation, complete_settings, file_settings
from mario.files import read_json
from mario.methods import find

CONTROLS = ("raw-features", "random-init")
STEPS = 10  # optimiser steps an epoch, the same for all


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A run before its graph is loaded. ``label`` names its row: a method, or a variant of one."""

    dataset: str
    method: str
    shift: str
    domain: str | None = None
    setting: str | None = None
    split_seed: int = 0
    seed: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def plan(self) -> Run:
        return Run.plan(
            self.dataset,
            self.method,
            domain=self.domain,
            shift=self.shift,
            setting=self.setting,
            split_seed=self.split_seed,
            seed=self.seed,
            given=self.given,
        )


def matched_settings(method: str, dataset: str, domain: str, shift: str, reference: str = "mario") -> dict[str, Any]:
    """The settings of ``reference`` as far as ``method`` has them, so that only what the method adds differs.

    A supervised method keeps its own: it has another loss and needs another learning rate.
    """
    cls = find(method)
    if cls.supervised:
        return file_settings(method, dataset, domain, shift)
    known = {f.name for f in cls.fields()} | set(Evaluation.__dataclass_fields__)
    return {k: v for k, v in file_settings(reference, dataset, domain, shift).items() if k in known}


def side_by_side(
    dataset: str,
    methods: Sequence[str],
    *,
    domain: str,
    shift: str,
    pairs: Sequence[tuple[int, int]],
    epochs: int | None,
    checkpoints: int,
    given: Mapping[str, Any] | None = None,
    matched: bool = True,
) -> list[Job]:
    """A job for every method and every pair of split seed and seed, on one schedule (``epochs`` None is each its own).

    Settings are matched to those of MARIO, or each method's own.
    """
    return [
        Job(
            dataset=dataset,
            method=method,
            domain=domain,
            shift=shift,
            split_seed=split_seed,
            seed=seed,
            label=method,
            given={
                **(matched_settings(method, dataset, domain, shift) if matched else {}),
                **(given or {}),
                "checkpoints": checkpoints,
                **({} if epochs is None else {"epochs": epochs, "steps_per_epoch": STEPS}),
                **({} if matched or epochs is None else _rescaled(method, dataset, domain, shift, epochs)),
            },
        )
        for split_seed, seed in pairs
        for method in methods
    ]


def _rescaled(method: str, dataset: str, domain: str, shift: str, epochs: int) -> dict[str, Any]:
    """A warm-up that takes the same share of the run as in the method's own schedule."""
    own = complete_settings(method, dataset, domain, shift)
    steps = own["epochs"] * own["steps_per_epoch"]
    return {"warmup": own["warmup"] * epochs * STEPS // steps} if own["warmup"] else {}


@dataclass
class Standing:
    """How far a batch of jobs is: steps done of all steps, runs finished, and the label of what runs now."""

    done_steps: int
    total_steps: int
    done_runs: int
    total_runs: int
    running: list[str]


def run_jobs(jobs: Sequence[Job], folder: Path, *, workers: int = 2, root: Path | None = None) -> Iterator[Standing]:
    """Carry all ``jobs`` to their end in ``folder/HASH``, ``workers`` at once, each in a process with one thread.

    Runs that are done are not repeated. A run that fails, or whose process is killed, leaves ``error.txt`` in its
    folder and does not stop the others; after the last one a :class:`RunFailedError` names what failed. The processes
    end with this one, in whatever way it ends.
    """
    planned = [(job, *_planned(job, folder)) for job in jobs]
    total = sum(steps for _, _, steps in planned)
    waiting = [(job, where) for job, where, _ in planned if not (where / "result.json").exists()]
    running: dict[Job, tuple[Path, BaseProcess]] = {}
    failed: list[tuple[Job, Path]] = []
    context = multiprocessing.get_context("spawn")
    try:
        while True:
            for job, (where, process) in list(running.items()):
                if not process.is_alive():
                    del running[job]
                    if process.exitcode != 0:
                        failed.append((job, where))
                        _say_killed(where, process.exitcode)
            while waiting and len(running) < workers:
                job, where = waiting.pop(0)
                process = context.Process(target=_work, args=(job, where, root), daemon=True)
                process.start()
                running[job] = (where, process)
            undone = {job for job, _ in waiting} | running.keys()
            steps = sum(_steps(where) if job in undone else n for job, where, n in planned)
            names = [f"{job.label} {job.split_seed}/{job.seed}" for job in running]
            yield Standing(steps, total, len(planned) - len(undone), len(planned), names)
            if not undone:
                break
            time.sleep(0.2)
    finally:
        for _, process in running.values():
            process.terminate()
    if failed:
        job, where = failed[0]
        reason = (where / "error.txt").read_text(encoding="utf-8").strip().splitlines()[-1]
        raise RunFailedError(
            f"{len(failed)} of {len(planned)} runs failed, the first {job.label} with split seed {job.split_seed} and "
            f"seed {job.seed} in {where}: {reason}"
        )


def results(jobs: Sequence[Job], folder: Path) -> list[dict[str, Any]]:
    """The results of ``jobs`` that are done, each with its row's ``label`` as ``method``."""
    found = []
    for job in jobs:
        where, _ = _planned(job, folder)
        if (where / "result.json").exists():
            result = read_json(where / "result.json")
            found.append({**result, "method": job.label or job.method, "folder": str(where)})
    return found


def _planned(job: Job, folder: Path) -> tuple[Path, int]:
    run = job.plan()
    return folder / run.digest(), run.settings["epochs"] * run.settings["steps_per_epoch"]


def _work(job: Job, folder: Path, root: Path | None) -> None:
    import torch

    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    try:
        (folder / "error.txt").unlink(missing_ok=True)
        run = job.plan()
        finish(run, run.load(root), folder, device="cpu")
    except Exception:  # whatever it is, it is told and the other runs go on
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        sys.exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _say_killed(folder: Path, exitcode: int | None) -> None:
    if exitcode is not None and exitcode < 0:
        folder.mkdir(parents=True, exist_ok=True)
        text = f"killed by signal {-exitcode}; signal 9 may mean that memory ran out"
        (folder / "error.txt").write_text(text, encoding="utf-8")


def _steps(folder: Path) -> int:
    try:
        with (folder / "log.jsonl").open("rb") as file:
            return sum(b'"loss"' in line for line in file)
    except OSError:
        return 0
