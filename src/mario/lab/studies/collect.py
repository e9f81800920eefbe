"""The results of a plan's runs so far."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mario.lab.anonymous import without_machine, without_paths
from mario.lab.case import Case
from mario.lab.frame import frame
from mario.lab.result import RunResult
from mario.lab.runs import store
from mario.lab.runs.job import Job
from mario.lab.runs.other_data import disagreeing
from mario.lab.studies.plan import Plan, PlannedCase

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class FinishedRun:
    """A job of a study and its result."""

    study: str
    job: Job
    result: RunResult


@dataclass(frozen=True)
class FailedRun:
    """A job that failed, whose folder is broken, or that was done on other data, and why."""

    job: Job
    reason: str
    state: str = store.FAILED


@dataclass(frozen=True)
class CollectedCase:
    """The runs of one case: finished, failed, and how many have yet to finish."""

    planned: PlannedCase
    runs: Sequence[FinishedRun] = ()
    failed: Sequence[FailedRun] = ()
    unfinished: int = 0

    @property
    def case(self) -> Case:
        return self.planned.case

    @property
    def name(self) -> str:
        return self.planned.name

    @property
    def asked(self) -> int:
        return self.planned.asked

    @property
    def missing(self) -> str | None:
        """Why the data is missing; ``None`` if it is there, or if no run needs it any more."""
        done = self.runs and not (self.unfinished or self.failed)
        return None if done else self.planned.missing

    @cached_property
    def frame(self) -> "DataFrame":
        """One row per finished run: see :func:`labeled_frame`."""
        return labeled_frame(self.runs)


@dataclass(frozen=True)
class Collected:
    """A plan and the results of its runs so far."""

    plan: Plan
    cases: Sequence[CollectedCase]

    @cached_property
    def frame(self) -> "DataFrame":
        """One row per finished run of all cases: see :func:`labeled_frame`."""
        return labeled_frame(run for case in self.cases for run in case.runs)

    def anonymous(self) -> "Collected":
        """The same without the platform of the runs, and with paths cut to their last part."""
        cases = [
            replace(
                case,
                planned=replace(case.planned, missing=case.planned.missing and without_paths(case.planned.missing)),
                runs=[
                    replace(run, result=replace(run.result, environment=without_machine(run.result.environment)))
                    for run in case.runs
                ],
                failed=[replace(run, reason=without_paths(run.reason)) for run in case.failed],
            )
            for case in self.cases
        ]
        return Collected(replace(self.plan, command=without_paths(self.plan.command)), cases)


def labeled_frame(runs: Iterable[FinishedRun]) -> "DataFrame":
    """:func:`mario.lab.frame.frame` with the columns ``study``, ``case``, ``label`` and ``paper`` in front.

    ``case`` is the name of the case, ``label`` the name of the row, and ``paper`` its name in the paper's tables.
    """
    listed = list(runs)
    made = frame(run.result for run in listed)
    made.insert(0, "study", [run.study for run in listed])
    made.insert(1, "case", [run.job.spec.case.name for run in listed])
    made.insert(2, "label", [run.job.label for run in listed])
    made.insert(3, "paper", [run.job.paper for run in listed])
    return made


def collect(plan: Plan, folder: Path, left_out: Mapping[str, str] | None = None) -> Collected:
    """The results of the runs of ``plan`` in ``folder``.

    ``left_out`` has the digests of runs that count as failed, and why, such as those on other data.
    """
    return Collected(plan, [_collect_case(plan.study, case, folder, left_out or {}) for case in plan.cases])


def collect_all(plans: Sequence[Plan], folder: Path, left_out: Mapping[str, str] | None = None) -> list[Collected]:
    """:func:`collect` for each plan. Runs whose data is not that of the others on their case and split are left out."""
    left_out = dict(left_out or {})
    found = [store.read_result(folder / name) for name in dict.fromkeys(_folder_names(plans))]
    done = [result for result in found if result is not None and result.spec.digest not in left_out]
    return [collect(plan, folder, {**disagreeing(done), **left_out}) for plan in plans]


def _folder_names(plans: Iterable[Plan]) -> Iterator[str]:
    return (job.folder_name for plan in plans for case in plan.cases for job in case.jobs)


def _collect_case(study: str, case: PlannedCase, folder: Path, left_out: Mapping[str, str]) -> CollectedCase:
    runs, failed, unfinished = [], [], 0
    for job in case.jobs:
        found = store.look(folder / job.folder_name)
        if found.result is not None and job.spec.digest in left_out:
            failed.append(FailedRun(job, left_out[job.spec.digest], found.state))
        elif found.result is not None:
            runs.append(FinishedRun(study, job, found.result))
        elif found.state in (store.FAILED, store.BROKEN):
            failed.append(FailedRun(job, found.reason))
        else:
            unfinished += 1
    return CollectedCase(case, runs, failed, unfinished)
