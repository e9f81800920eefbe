"""``mario reproduce --dry-run``: what would run, and how long it would take."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mario.cli.progress import lasting
from mario.errors import MarioError
from mario.lab.launch.progress import Pace, Task, tasks_of
from mario.lab.runs import store

if TYPE_CHECKING:
    from mario.lab.studies.plan import Plan, PlannedCase


def forecast(
    plans: Sequence["Plan"],
    folders: Sequence[Path],
    *,
    workers: int,
    retry_failed: bool,
    recorded: Collection[str],
    changed: Collection[str] = (),
) -> Iterator[str]:
    """Lines about each study and case: what is done, what studies share, and the time that the rest will take.

    Args:
        folders: of the runs; the first is used, the others only help to estimate the time.
        recorded: digests of runs that are done elsewhere.
        changed: digests of runs that are done, on other data than there is now.
    """
    tasks = {task.folder.name: task for task in tasks_of((job for plan in plans for job in plan.jobs()), folders[0])}
    for digest, task in tasks.items():
        task.state = store.DONE if digest in recorded else task.state
        task.state = store.BROKEN if digest in changed else task.state
    seen: dict[str, str] = {}  # the first study that has the run
    for plan in plans:
        yield f"{plan.study}: {plan.title}{f' ({plan.paper})' if plan.paper else ''}"
        for case in plan.cases:
            labels = "; ".join(dict.fromkeys(job.label for job in case.jobs))
            line = f"  {case.name}: {len(case.jobs)} runs{f' of {labels}' if labels else ''}"
            remarks = [f"left out, {case.missing}"] if case.missing else _remarks(case, tasks, seen)
            for job in case.jobs:
                seen.setdefault(job.spec.digest, plan.study)
            yield "; ".join([line, *remarks])
    if retry_failed:
        for task in tasks.values():
            task.state = store.WAITING if task.state in (store.FAILED, store.BROKEN) else task.state
    if not tasks and any(case.missing for plan in plans for case in plan.cases):
        raise MarioError("nothing can run, all files are missing: use `mario data fetch NAME`, MARIO_DATA or --root")
    left = [task for task in tasks.values() if task.undone]
    yield f"in all {len(tasks)} runs, {len(left)} to do, {_duration(left, folders, workers)}"


def _remarks(case: "PlannedCase", tasks: Mapping[str, Task], seen: Mapping[str, str]) -> list[str]:
    digests = [job.spec.digest for job in case.jobs]
    states = [tasks[digest].state for digest in set(digests)]
    done = states.count(store.DONE)
    failed = states.count(store.FAILED) + states.count(store.BROKEN)
    others = [seen[digest] for digest in digests if digest in seen]
    return [
        *([f"{done} done"] if done else []),
        *([f"{failed} failed before"] if failed else []),
        *([f"{len(others)} shared with {', '.join(dict.fromkeys(others))}"] if others else []),
    ]


def _duration(left: Sequence[Task], folders: Sequence[Path], workers: int) -> str:
    if not left:
        return "nothing left"
    known = next((folder for folder in folders if any(folder.glob("*/result.json"))), None)
    if known is None:
        return f"and no run in {folders[0]} yet to estimate the time from"
    pace = Pace.of_folder(known)
    seconds = pace.seconds(left, workers) or 0.0
    guessed = sum(task.kind not in pace.measured for task in left)
    said = f"about {lasting(seconds)} with {workers} workers, estimated from the runs in {known}"
    return said + (f"; {guessed} have no run of their method and dataset there" if guessed else "")
