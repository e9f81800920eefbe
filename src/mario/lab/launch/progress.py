"""The progress of a launch, and an estimate of the time left from what was measured so far."""

import socket
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mario.errors import MarioError, RunFailedError
from mario.lab.result import RunResult
from mario.lab.runs import store
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec
from mario.untrusted import open_file, parse_json


@dataclass
class LaunchProgress:
    """The progress of a launch. A run that is listed twice counts once."""

    done_runs: int
    failed_runs: int
    total_runs: int
    running: list[str]
    """What runs now: label, dataset, split seed and seed, and the host if it is another one."""
    done_steps: int
    total_steps: int
    seconds_left: float | None
    """None until a first run was timed."""
    note: str = ""
    """A remark of the launcher, such as why nothing runs yet."""


@dataclass(eq=False)
class Task:
    """A job with its folder and its state."""

    job: Job
    folder: Path
    steps: int
    kind: tuple[str, str]
    """Method and dataset: such runs take about the same time per step."""
    state: str = store.WAITING
    reason: str = ""
    made: int = 0
    """Steps in its log."""
    began: tuple[float, int] | None = None
    """When this launch started it, and the steps in its log at that time."""
    mine: bool = False
    """Whether a process of this launch works on it."""
    interrupted_at: str | None = None
    """The newest checkpoint when its process was last killed in this launch."""

    def look(self, pace: "Pace | None" = None) -> None:
        """Update its state; ``pace`` learns from its result."""
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
    """One task per run of ``jobs``; two jobs with the same digest are one run."""
    tasks: dict[str, Task] = {}
    for job in jobs:
        spec = job.spec
        if spec.digest not in tasks:
            task = Task(job, folder / spec.digest, spec.steps, _kind(spec))
            tasks[spec.digest] = task
            if retry_failed:
                store.clear_for_retry(task.folder)
            task.look()
            if task.state == store.DONE:
                store.tidy(task.folder)
    return list(tasks.values())


@dataclass
class Pace:
    """Seconds per step for each kind of run, from results and from the runs of this launch."""

    measured: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    @classmethod
    def of_folder(cls, folder: Path) -> "Pace":
        """From every finished run in ``folder``, of any experiment."""
        pace = cls()
        for result in store.finished(folder):
            pace.learn(result)
        return pace

    def learn(self, result: RunResult) -> None:
        if result.seconds and result.steps:
            self.measured.setdefault(_kind(result.spec), []).append(result.seconds / result.steps)

    def rates(self, kinds: Iterable[tuple[str, str]]) -> dict[tuple[str, str], float | None]:
        """Seconds per step: the mean of the kind, or of all kinds on its dataset, or of all kinds."""
        means = {known: sum(rates) / len(rates) for known, rates in self.measured.items()}
        found: dict[tuple[str, str], float | None] = {}
        for kind in kinds:
            near = [means[kind]] if kind in means else [rate for known, rate in means.items() if known[1] == kind[1]]
            near = near or list(means.values())
            found[kind] = sum(near) / len(near) if near else None
        return found

    def seconds(self, tasks: Sequence[Task], workers: int) -> float | None:
        """The time ``workers`` need for the rest of ``tasks``; None if nothing was measured yet."""
        left = []
        rates = self.rates({task.kind for task in tasks if task.undone})  # once per kind: this is called often
        for task in tasks:
            if task.undone:
                known = rates[task.kind]
                rate = known if task.kind in self.measured else task.seconds_per_step() or known
                if rate is None:
                    return None
                left.append(max(task.steps - task.made, 0) * rate)
        return max(sum(left) / workers, max(left)) if left else 0.0


def progress_of(tasks: Sequence[Task], pace: Pace, workers: int) -> LaunchProgress:
    running = []
    for task in tasks:
        if task.state == store.RUNNING:
            task.made = steps_made(task.folder)
            host = "" if task.mine else task.reason.partition(" ")[0]
            elsewhere = f" on {host}" if host and host != socket.gethostname() else ""
            spec = task.job.spec
            running.append(f"{task.job.label} {spec.case.dataset} {spec.split_seed}/{spec.seed}{elsewhere}")
    return LaunchProgress(
        done_runs=sum(task.state == store.DONE for task in tasks),
        failed_runs=sum(task.state in (store.FAILED, store.BROKEN) for task in tasks),
        total_runs=len(tasks),
        running=running,
        done_steps=sum(task.made if task.undone else task.steps for task in tasks),
        total_steps=sum(task.steps for task in tasks),
        seconds_left=pace.seconds(tasks, workers),
    )


def _kind(spec: RunSpec) -> tuple[str, str]:
    return spec.method, spec.case.dataset


def steps_made(folder: Path) -> int:
    """The last step in the log of a run."""
    try:
        with open_file(folder / "log.jsonl") as file:
            file.seek(max(0, file.seek(0, 2) - 4096))
            lines = file.read().splitlines()
    except (OSError, MarioError):
        return 0
    for line in reversed(lines):
        try:
            return int(parse_json(line, "log.jsonl", finite=False)["step"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off by a kill, or by the start of our window
    return 0


def raise_failures(tasks: Sequence[Task]) -> None:
    """One error for all runs that failed or are broken, if any."""
    failed = [task for task in tasks if task.state in (store.FAILED, store.BROKEN)]
    if failed:
        first = failed[0]
        raise RunFailedError(
            f"{len(failed)} of {len(tasks)} runs failed, the first {first.job.name} in {first.folder}: {first.reason}; "
            "use --retry-failed to try again"
        )
