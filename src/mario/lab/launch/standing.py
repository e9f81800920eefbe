"""How far a batch of runs is, and how long the rest will take by what was measured so far."""

import json
import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mario.errors import RunFailedError
from mario.lab.runs import store
from mario.lab.runs.job import Job


@dataclass
class Standing:
    """How far a batch of jobs is. A job that is listed twice counts once."""

    done_runs: int
    failed_runs: int
    total_runs: int
    running: list[str]
    """What runs now: label, dataset, split seed and seed; and the host where that is another one."""
    done_steps: int
    total_steps: int
    seconds_left: float | None
    """None until a run of some kind has told how fast they are."""
    note: str = ""
    """Why nothing runs, where Slurm has said so."""


@dataclass(eq=False)
class Task:
    """A job with its folder and what is known of it."""

    job: Job
    folder: Path
    steps: int
    kind: tuple[str, str]
    """Method and dataset: runs that take about as long a step."""
    state: str = store.WAITING
    reason: str = ""
    made: int = 0
    """Steps that its log has."""
    began: tuple[float, int] | None = None
    """When it was started in this launch, and with how many steps made already."""
    mine: bool = False
    """Whether a process of this launch is at work on it."""
    interrupted_at: str | None = None
    """The newest checkpoint when its process was last killed in this launch."""

    def look(self, pace: "Pace | None" = None) -> None:
        """See what has become of it; ``pace`` learns from its result."""
        found = store.look(self.folder)
        self.state, self.reason = found.state, found.reason
        self.made = self.steps if found.state == store.DONE else steps_made(self.folder)
        if pace and found.result:
            pace.learn(found.result)

    @property
    def undone(self) -> bool:
        return self.state in (store.WAITING, store.RUNNING)

    def seconds_per_step(self) -> float | None:
        """As measured in this launch."""
        if self.began is None or self.made <= self.began[1]:
            return None
        return (time.monotonic() - self.began[0]) / (self.made - self.began[1])


def tasks_of(jobs: Iterable[Job], folder: Path, *, retry_failed: bool = False) -> list[Task]:
    """One task for each run of ``jobs``; two jobs with the same digest are one run."""
    tasks: dict[str, Task] = {}
    for job in jobs:
        run = job.plan()
        digest = run.digest()
        if digest not in tasks:
            steps = run.settings["epochs"] * run.settings["steps_per_epoch"]
            task = tasks[digest] = Task(job, folder / digest, steps, (run.method, run.dataset))
            if retry_failed:
                store.clear_for_retry(task.folder)
            task.look()
    return list(tasks.values())


@dataclass
class Pace:
    """Seconds a step by kind of run, from results and from what runs now."""

    measured: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    @classmethod
    def of_folder(cls, folder: Path) -> "Pace":
        """From every run that is done in ``folder``, whichever experiment it was of."""
        pace = cls()
        for path in sorted(folder.glob("*/result.json")):
            if ".broken-" in path.parent.name:
                continue
            if result := store.read_result(path.parent):
                pace.learn(result)
        return pace

    def learn(self, result: dict[str, Any]) -> None:
        if result.get("seconds") and result.get("steps"):
            kind = (result["method"], result["dataset"])
            self.measured.setdefault(kind, []).append(result["seconds"] / result["steps"])

    def rates(self, kinds: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float | None]:
        """Seconds a step: the mean of the kind; else of all kinds on its dataset; else of all kinds."""
        means = {known: sum(rates) / len(rates) for known, rates in self.measured.items()}
        found: dict[tuple[str, str], float | None] = {}
        for kind in kinds:
            near = [means[kind]] if kind in means else [rate for known, rate in means.items() if known[1] == kind[1]]
            near = near or list(means.values())
            found[kind] = sum(near) / len(near) if near else None
        return found

    def seconds(self, tasks: Sequence[Task], workers: int) -> float | None:
        """How long ``workers`` will take for what is left of ``tasks``; None as long as nothing was measured."""
        left = []
        rates = self.rates({task.kind for task in tasks if task.undone})  # once a kind: this is asked for all the time
        for task in tasks:
            if task.undone:
                known = rates[task.kind]
                rate = known if task.kind in self.measured else task.seconds_per_step() or known
                if rate is None:
                    return None
                left.append(max(task.steps - task.made, 0) * rate)
        return max(sum(left) / workers, max(left)) if left else 0.0


def standing_of(tasks: Sequence[Task], pace: Pace, workers: int) -> Standing:
    running = []
    for task in tasks:
        if task.state == store.RUNNING:
            task.made = steps_made(task.folder)
            host = "" if task.mine else task.reason.partition(" ")[0]
            elsewhere = f" on {host}" if host and host != socket.gethostname() else ""
            job = task.job
            running.append(f"{job.label or job.method} {job.dataset} {job.split_seed}/{job.seed}{elsewhere}")
    return Standing(
        done_runs=sum(task.state == store.DONE for task in tasks),
        failed_runs=sum(task.state in (store.FAILED, store.BROKEN) for task in tasks),
        total_runs=len(tasks),
        running=running,
        done_steps=sum(task.made if task.undone else task.steps for task in tasks),
        total_steps=sum(task.steps for task in tasks),
        seconds_left=pace.seconds(tasks, workers),
    )


def steps_made(folder: Path) -> int:
    """The step that the log of a run has reached."""
    try:
        with (folder / "log.jsonl").open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - 4096))
            lines = file.read().splitlines()
    except OSError:
        return 0
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # cut short by a kill, or by where we began to read
    return 0


def raise_failures(tasks: Sequence[Task]) -> None:
    """One error for all runs that failed or are broken, if any."""
    failed = [task for task in tasks if task.state in (store.FAILED, store.BROKEN)]
    if failed:
        first = failed[0]
        raise RunFailedError(
            f"{len(failed)} of {len(tasks)} runs failed, the first {first.job.name} in {first.folder}: {first.reason}; "
            "--retry-failed tries again"
        )
