"""A plan: a study with every run that it takes."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mario.datasets import find as find_dataset
from mario.errors import MarioError
from mario.from_json import from_json, without_nulls
from mario.lab.case import Case
from mario.lab.runs.job import Job
from mario.lab.studies.study import Study
from mario.untrusted import safe_name


@dataclass(frozen=True, kw_only=True)
class PlannedCase:
    """The runs on one case. ``missing`` says why its data is missing, if it is."""

    case: Case
    jobs: tuple[Job, ...] = ()
    missing: str | None = None

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def asked(self) -> int:
        """The number of runs that were requested per row."""
        labels = [job.label for job in self.jobs]
        return max((labels.count(label) for label in set(labels)), default=0)

    def to_dict(self) -> dict[str, Any]:
        return {"case": asdict(self.case), "missing": self.missing, "jobs": [job.to_dict() for job in self.jobs]}

    @classmethod
    def from_dict(cls, written: Any, where: str = "the case") -> "PlannedCase":
        """Read what :meth:`to_dict` wrote; ``where`` names the file in errors."""
        return from_json(cls, without_nulls(written), where)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study with every run that it takes.

    Attributes:
        study: name of the study; ``title``, ``paper``, ``show``, ``reference``, ``subject`` and ``note`` are its own.
        quick: whether it is the quick form.
        command: the command that made it.
        rows: labels in order.
        order: the names of all cases and rows of the study, of which a plan may be a part.
    """

    study: str
    title: str
    paper: str = ""
    show: tuple[str, ...] = ("table",)
    reference: str | None = None
    subject: str | None = None
    note: str = ""
    quick: bool = False
    command: str = ""
    rows: tuple[str, ...] = ()
    cases: tuple[PlannedCase, ...] = ()
    order: tuple[str, ...] = field(default=())

    def jobs(self) -> list[Job]:
        """Everything that can be run: all cases except those whose data is missing."""
        return [job for case in self.cases if not case.missing for job in case.jobs]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "cases": [case.to_dict() for case in self.cases]}

    @classmethod
    def from_dict(cls, written: Any, where: str = "the plan") -> "Plan":
        """Read what :meth:`to_dict` wrote; ``where`` names the file in errors."""
        plan = from_json(cls, without_nulls(written), where)
        safe_name(plan.study, f"{where}: 'study'")
        return plan


def make_plan(
    study: Study,
    *,
    seeds: int | None = None,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    quick: bool = False,
    root: str | os.PathLike[str] | None = None,
    command: str = "",
) -> Plan:
    """The plan of a study; the arguments choose runs as in :meth:`Study.jobs`.

    Example:
        >>> from mario.lab.studies.read import find_study
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=2)
        >>> [(case.name, case.asked, len(case.jobs)) for case in plan.cases]
        [('good-cbas-concept', 2, 8)]
    """
    jobs: dict[Case, list[Job]] = {}
    for job in study.jobs(seeds=seeds, datasets=datasets, methods=methods, quick=quick):
        jobs.setdefault(job.spec.case, []).append(job)
    cases = [
        PlannedCase(case=case, jobs=tuple(jobs.get(case, ())), missing=missing_data(case, root))
        for case in (kept.case for kept in study.kept_cases(datasets))
        if case in jobs or not study.rows
    ]
    return Plan(
        study=study.name,
        title=study.title,
        paper=study.paper,
        show=study.show,
        reference=study.reference,
        subject=study.subject,
        note=study.note,
        quick=quick,
        command=command,
        rows=_labels(study, cases),
        cases=tuple(cases),
        order=(*(case.name for case in study.cases), *(row.label for row in study.rows)),
    )


def with_earlier(plan: Plan, study: Study, earlier: Plan | None, root: str | os.PathLike[str] | None = None) -> Plan:
    """``plan`` plus the runs of ``earlier``, another plan of the same study, that the study still contains.

    So a study can be run in pieces, for example one dataset at a time, and its table is complete in the end. Runs on
    another schedule are dropped: a table has one schedule.
    """
    if earlier is None or not (before := {(job.label, job.spec) for case in earlier.cases for job in case.jobs}):
        return plan
    if earlier.quick != plan.quick:
        there, asked = ("quick form", "full form") if earlier.quick else ("full form", "quick form")
        raise MarioError(f"the folder has runs of the {there} of {plan.study}: give the {asked} its own folder, --out")
    again = make_plan(
        study,
        seeds=1 + max(spec.seed for _, spec in before) - min(case.schedule.first_seed for case in study.cases),
        datasets=[case.name for case in earlier.cases],
        methods=list(dict.fromkeys(label for label, _ in before)),
        quick=plan.quick,
        root=root,
        command=earlier.command,
    )
    now = {(job.label, job.spec) for case in plan.cases for job in case.jobs}
    kept = [
        replace(case, jobs=tuple(job for job in case.jobs if (job.label, job.spec) in before - now))
        for case in again.cases
    ]
    more = tuple(case for case in kept if case.jobs or not study.rows)
    return union(plan, replace(again, cases=more, rows=_labels(study, more))) if more else plan


def union(one: Plan, other: Plan) -> Plan:
    """The runs of two plans of one study, for example from two machines."""
    if one.quick != other.quick:
        raise MarioError(f"the plans are of the quick form of {one.study} and of the full form")
    cases = {case.name: case for case in one.cases}
    for case in other.cases:
        known = cases.get(case.name)
        cases[case.name] = case if known is None else _union_case(one, known, case)
    return replace(
        one,
        command="\n".join(sorted({*one.command.splitlines(), *other.command.splitlines()})),
        rows=tuple(sorted({*one.rows, *other.rows}, key=lambda label: _place(one, label))),
        cases=tuple(sorted(cases.values(), key=lambda case: _place(one, case.name))),
    )


def _union_case(plan: Plan, one: PlannedCase, other: PlannedCase) -> PlannedCase:
    jobs = {(job.label, job.spec.split_seed, job.spec.seed): job for job in one.jobs}
    for job in other.jobs:
        same = jobs.setdefault((job.label, job.spec.split_seed, job.spec.seed), job)
        if same.spec != job.spec:
            raise MarioError(
                f"the plans have different settings for {job.label} on {one.name}, but a table has one schedule"
            )
    merged = sorted(jobs.values(), key=lambda job: (job.spec.seed, job.spec.split_seed, _place(plan, job.label)))
    return replace(one, jobs=tuple(merged), missing=one.missing and other.missing)


def _labels(study: Study, cases: Iterable[PlannedCase]) -> tuple[str, ...]:
    """The labels of all jobs in the order of the study, then those of rows that it does not list."""
    there = dict.fromkeys(job.label for case in cases for job in case.jobs)
    listed = [row.label for row in study.rows if row.label in there]
    return tuple(dict.fromkeys([*listed, *there]))


def _place(plan: Plan, name: str) -> tuple[int, str]:
    return plan.order.index(name) if name in plan.order else len(plan.order), name


def missing_data(case: Case, root: str | os.PathLike[str] | None = None) -> str | None:
    """Why the data of a case is missing, or None if it is there; nothing is downloaded.

    Example:
        >>> missing_data(Case.find("good-cbas")) is None
        True
    """
    found = find_dataset(case.dataset)
    if found.where(root) != "absent":
        return None
    card = found.card
    named = card.files[0].path + (f" and {len(card.files) - 1} more" if len(card.files) > 1 else "")
    return f"the files of {card.name} are missing ({named}); `mario data fetch {card.name}` downloads them"
