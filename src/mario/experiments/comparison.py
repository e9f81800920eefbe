"""Methods side by side on the same graphs: the same steps, the same checkpoints, the same splits and seeds."""

import multiprocessing
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.experiments.run import Run, finish
from mario.experiments.settings import Evaluation, file_settings
from mario.files import read_json
from mario.methods import find

CONTROLS = ("raw-features", "random-init")


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A run before its graph is loaded. ``label`` names its row: a method, or a variant of one."""

    dataset: str
    method: str
    shift: str
    domain: str | None = None
    setting: str = "transductive"
    split_seed: int = 0
    seed: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def plan(self, root: Path | None = None) -> tuple[Run, Any]:
        return Run.plan(
            self.dataset,
            self.method,
            domain=self.domain,
            shift=self.shift,
            setting=self.setting,
            split_seed=self.split_seed,
            seed=self.seed,
            root=root,
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
    epochs: int,
    checkpoints: int,
    given: Mapping[str, Any] | None = None,
) -> list[Job]:
    """A job for every method and every pair of split seed and seed, on one schedule and with matched settings."""
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
                **matched_settings(method, dataset, domain, shift),
                **(given or {}),
                "epochs": epochs,
                "checkpoints": checkpoints,
            },
        )
        for split_seed, seed in pairs
        for method in methods
    ]


@dataclass
class Standing:
    """How far a batch of jobs is: steps done of all steps, runs finished, and the label of what runs now."""

    done_steps: int
    total_steps: int
    done_runs: int
    total_runs: int
    running: list[str]


def run_jobs(jobs: Sequence[Job], folder: Path, *, workers: int = 2, root: Path | None = None) -> Iterator[Standing]:
    """Carry all ``jobs`` to their end in ``folder/HASH``, ``workers`` at once with one thread each.

    Runs that are done are not repeated. A run that fails leaves ``error.txt`` in its folder and does not stop the
    others; after the last one a :class:`MarioError` names what failed.
    """
    planned = [(job, *_planned(job, root)) for job in jobs]
    total = sum(steps for _, _, steps in planned)
    folders = {job: folder / digest for job, digest, _ in planned}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        futures: dict[Job, Future[str | None]] = {
            job: pool.submit(_work, job, folders[job], root)
            for job, _, _ in planned
            if not (folders[job] / "result.json").exists()
        }
        try:
            while True:
                finished = [job for job, _, _ in planned if job not in futures or futures[job].done()]
                steps = sum(n if job in finished else _steps(folders[job]) for job, _, n in planned)
                running = [f"{job.label} {job.split_seed}/{job.seed}" for job in futures if futures[job].running()]
                yield Standing(steps, total, len(finished), len(planned), running[:workers])
                if len(finished) == len(planned):
                    break
                time.sleep(0.3)
        except BaseException:
            for process in list(pool._processes.values()):
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    failed = {job: future.result() for job, future in futures.items() if future.result()}
    if failed:
        job, error = next(iter(failed.items()))
        raise MarioError(
            f"{len(failed)} of {len(planned)} runs failed, the first {job.label} with split seed {job.split_seed} and "
            f"seed {job.seed} in {folders[job]}: {error}"
        )


def results(jobs: Sequence[Job], folder: Path, root: Path | None = None) -> list[dict[str, Any]]:
    """The results of ``jobs`` that are done, each with its row's ``label`` as ``method``."""
    found = []
    for job in jobs:
        path = folder / _planned(job, root)[0] / "result.json"
        if path.exists():
            found.append({**read_json(path), "method": job.label or job.method, "folder": str(path.parent)})
    return found


def _planned(job: Job, root: Path | None) -> tuple[str, int]:
    run, _ = job.plan(root)
    return run.digest(), run.settings["epochs"] * run.settings["steps_per_epoch"]


def _work(job: Job, folder: Path, root: Path | None) -> str | None:
    import torch

    torch.set_num_threads(1)
    try:
        run, data = job.plan(root)
        (folder / "error.txt").unlink(missing_ok=True)
        finish(run, data, folder, device="cpu")
        return None
    except Exception as error:  # whatever it is, it is told and the other runs go on
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        return f"{type(error).__name__}: {error}"


def _steps(folder: Path) -> int:
    try:
        with (folder / "log.jsonl").open("rb") as file:
            return sum(b'"loss"' in line for line in file)
    except OSError:
        return 0
