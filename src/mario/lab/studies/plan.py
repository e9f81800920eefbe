"""A plan: a study made concrete, as a JSON file in the folder of the runs.

``RUNS/plans/NAME.ORIGIN.json`` lists every run that was asked for, by the name of its folder. A report reads plans and
run folders and nothing else, so results of several machines are merged by copying folders: each folder of runs has a
name of its own for its files, and what several files ask for one study is its plan.
"""

import dataclasses
import hashlib
import os
import re
import socket
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mario.datasets import find as find_dataset
from mario.errors import MarioError
from mario.files import cache_folder, read_json, write_json, write_text
from mario.lab.runs import store
from mario.lab.runs.execute import Run
from mario.lab.runs.job import Job
from mario.lab.studies.study import PAPER, Study


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run that was asked for: its row, the name of its folder, and the job that makes it.

    ``paper`` is the name of its row in the paper's tables, where it has one.
    """

    label: str
    paper: str | None
    digest: str
    job: Job

    @property
    def split_seed(self) -> int:
        return self.job.split_seed

    @property
    def seed(self) -> int:
        return self.job.seed


@dataclass(frozen=True, kw_only=True)
class PlannedCase:
    """The runs on one dataset under one shift: ``asked`` of each row. ``missing`` says why its data is not at hand."""

    name: str
    dataset: str
    domain: str
    shift: str
    setting: str
    asked: int
    missing: str | None = None
    runs: tuple[PlannedRun, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study with every run that it takes. ``rows`` are its labels in order; ``command`` is how it was asked for.

    ``order`` are the cases and rows of the whole study, of which a plan may be a part.
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
    order: tuple[str, ...] = ()

    def jobs(self) -> list[Job]:
        """What can be run: all but the cases whose data is missing."""
        return [run.job for case in self.cases if not case.missing for run in case.runs]

    def write(self, folder: Path) -> Path:
        """Write ``folder/plans/NAME.ORIGIN.json`` in the place of what this folder has asked for of the study before.

        What was copied here from elsewhere has another origin and stays.
        """
        path = folder / "plans" / f"{self.study}.{_origin(folder)}.json"
        write_json(path, self.as_dict())
        return path

    def as_dict(self) -> dict[str, Any]:
        return {
            **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)},
            "show": list(self.show),
            "rows": list(self.rows),
            "order": list(self.order),
            "cases": [
                {
                    **{f.name: getattr(case, f.name) for f in dataclasses.fields(case)},
                    "runs": [
                        {
                            "label": run.label,
                            "paper": run.paper,
                            "digest": run.digest,
                            "split_seed": run.split_seed,
                            "seed": run.seed,
                            "job": dataclasses.asdict(run.job),
                        }
                        for run in case.runs
                    ],
                }
                for case in self.cases
            ],
        }

    @classmethod
    def from_dict(cls, written: dict[str, Any]) -> "Plan":
        cases = (
            PlannedCase(
                **{
                    **case,
                    "runs": tuple(
                        PlannedRun(label=run["label"], paper=run["paper"], digest=run["digest"], job=Job(**run["job"]))
                        for run in case["runs"]
                    ),
                }
            )
            for case in written["cases"]
        )
        lists = {key: tuple(written[key]) for key in ("show", "rows", "order")}
        return cls(**{**written, **lists, "cases": tuple(cases)})


@dataclass
class CollectedCase:
    """What there is of a case. ``results`` are those of ``result.json`` with the run's ``label``, ``paper`` and
    ``folder``; ``failed`` has label, split seed, seed and reason."""

    name: str
    dataset: str
    domain: str
    shift: str
    setting: str
    asked: int
    missing: str | None
    results: list[dict[str, Any]] = field(default_factory=list)
    failed: list[tuple[str, int, int, str]] = field(default_factory=list)
    unfinished: int = 0


@dataclass
class Collected:
    """A plan and what its runs have come to so far."""

    plan: Plan
    cases: list[CollectedCase]


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
    """The plan of a study; the choice of runs is that of :meth:`Study.jobs`.

    Example:
        >>> from mario.lab.studies.plan import make_plan
        >>> from mario.lab.studies.read import find_study
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=2)
        >>> [(case.name, case.asked, len(case.runs)) for case in plan.cases]
        [('good-cbas-concept', 2, 8)]
    """
    runs: dict[str, list[PlannedRun]] = {}
    complete: dict[tuple[str, str], Run] = {}  # settings are made once a row: its runs differ in their seeds alone
    for planned in study.jobs(seeds=seeds, datasets=datasets, methods=methods, quick=quick):
        case, row, job = planned.case.name, planned.row, planned.job
        if (case, row.label) not in complete:
            complete[case, row.label] = job.plan()
        digest = replace(complete[case, row.label], split_seed=job.split_seed, seed=job.seed).digest()
        runs.setdefault(case, []).append(PlannedRun(label=row.label, paper=row.paper, digest=digest, job=job))
    cases = [
        PlannedCase(
            name=case.name,
            dataset=case.dataset,
            domain=case.domain,
            shift=case.shift,
            setting=case.setting,
            asked=_asked(runs.get(case.name, [])),
            missing=missing_data(case.dataset, root),
            runs=tuple(runs.get(case.name, [])),
        )
        for case in study.kept_cases(datasets)
        if case.name in runs or not study.rows
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
    """``plan``, and what of ``earlier``, another plan of its study, the study still asks for.

    So a study may be run in pieces, dataset by dataset, and its table is whole in the end. Runs on another schedule are
    not kept: a table has one.
    """
    before = {(case.name, run.label, run.digest): run for case in earlier.cases for run in case.runs} if earlier else {}
    if earlier is None or not before:
        return plan
    if earlier.quick != plan.quick:
        there, asked = ("quick form", "whole") if earlier.quick else ("whole", "quick form")
        raise MarioError(
            f"the runs there are of the {there} of {plan.study}: give its {asked} a folder of its own, --out"
        )
    again = make_plan(
        study,
        seeds=1 + max(run.seed for run in before.values()),
        datasets=[case.name for case in earlier.cases],
        methods=list(dict.fromkeys(run.label for run in before.values())),
        quick=plan.quick,
        root=root,
    )
    facts = {case.name: case for case in (*again.cases, *plan.cases)}
    runs: dict[str, dict[tuple[str, str], PlannedRun]] = {}
    for case in again.cases:
        kept = (run for run in case.runs if (case.name, run.label, run.digest) in before)
        runs.setdefault(case.name, {}).update({(run.label, run.digest): run for run in kept})
    for case in plan.cases:
        runs.setdefault(case.name, {}).update({(run.label, run.digest): run for run in case.runs})
    rank = {row.label: number for number, row in enumerate(study.rows)}
    cases = []
    for name in (case.name for case in study.cases):
        if name in facts and (runs[name] or not study.rows):
            merged = sorted(runs[name].values(), key=lambda run: (run.seed, rank.get(run.label, len(rank))))
            cases.append(replace(facts[name], asked=_asked(merged), runs=tuple(merged)))
    more = {run.digest for case in cases for run in case.runs} - {run.digest for c in plan.cases for run in c.runs}
    command = _both_commands(earlier.command, plan.command) if more else plan.command
    return replace(plan, command=command, rows=_labels(study, cases), cases=tuple(cases))


def _labels(study: Study, cases: Iterable[PlannedCase]) -> tuple[str, ...]:
    """The labels of all runs in the order of the study, then those of rows that it does not list."""
    there = dict.fromkeys(run.label for case in cases for run in case.runs)
    listed = [row.label for row in study.rows if row.label in there]
    return tuple(dict.fromkeys([*listed, *there]))


def _asked(runs: Iterable[PlannedRun]) -> int:
    return len({(run.split_seed, run.seed) for run in runs})


def missing_data(dataset: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """Why a dataset is not at hand, or None if it is; nothing is downloaded.

    Example:
        >>> from mario.lab.studies.plan import missing_data
        >>> missing_data("good-cbas") is None
        True
    """
    found = find_dataset(dataset)
    if found.where(root) != "absent":
        return None
    card = found.card
    named = card.files[0].path + (f" and {len(card.files) - 1} more" if len(card.files) > 1 else "")
    return f"the files of {dataset} are not at hand ({named}); `mario data fetch {dataset}` downloads them"


def _origin(folder: Path) -> str:
    """The name of this folder of runs in the names of its plans. A copy, here or on another machine, has another."""
    return hashlib.sha256(f"{_machine()} {folder.resolve()}".encode()).hexdigest()[:8]


def _machine() -> str:
    """What this machine drew once, and not in a folder that is copied; its name where nothing can be kept."""
    path = cache_folder() / "machine"
    with suppress(OSError, UnicodeDecodeError):
        if re.fullmatch("[0-9a-f]{32}", known := path.read_text(encoding="utf-8").strip()):
            return known
    drawn = uuid.uuid4().hex
    try:
        write_text(path, f"{drawn}\n")
    except MarioError:
        return socket.gethostname()
    return drawn


def read_plans(folder: Path) -> list[Plan]:
    """The plans in ``folder``, one a study, the paper's studies first and in its order."""
    plans: dict[str, Plan] = {}
    for path in sorted((folder / "plans").glob(f"*.{'[0-9a-f]' * 8}.json")):
        plan = _read_plan(path)
        known = plans.get(plan.study)
        plans[plan.study] = plan if known is None else _union(known, plan, folder)
    order = {name: rank for rank, name in enumerate(PAPER)}
    return sorted(plans.values(), key=lambda plan: order.get(plan.study, len(order)))


def _union(one: Plan, other: Plan, folder: Path) -> Plan:
    """What two machines asked for of one study."""
    if one.quick != other.quick:
        raise MarioError(
            f"{folder / 'plans'} has the quick form of {one.study} and the whole: remove the file of one of them"
        )
    cases = {case.name: case for case in one.cases}
    for case in other.cases:
        known = cases.get(case.name)
        if known is None:
            cases[case.name] = case
            continue
        runs = {(run.label, run.split_seed, run.seed): run for run in known.runs}
        for run in case.runs:
            same = runs.setdefault((run.label, run.split_seed, run.seed), run)
            if same.digest != run.digest:
                raise MarioError(
                    f"two plans of {one.study} in {folder / 'plans'} have other settings for {run.label} on "
                    f"{case.name}: a table has one schedule, so remove the file of one of them"
                )
        merged = sorted(runs.values(), key=lambda run: (run.seed, run.split_seed, _place(one, run.label)))
        missing = known.missing and case.missing
        cases[case.name] = replace(known, asked=_asked(merged), missing=missing, runs=tuple(merged))
    return replace(
        one,
        command=_both_commands(one.command, other.command),
        rows=tuple(sorted({*one.rows, *other.rows}, key=lambda label: _place(one, label))),
        cases=tuple(sorted(cases.values(), key=lambda case: _place(one, case.name))),
    )


def _place(plan: Plan, name: str) -> tuple[int, str]:
    return plan.order.index(name) if name in plan.order else len(plan.order), name


def _both_commands(one: str, other: str) -> str:
    return "\n".join(sorted({*one.splitlines(), *other.splitlines()}))


def _read_plan(path: Path) -> Plan:
    written = read_json(path)
    try:
        return Plan.from_dict(written)
    except (KeyError, TypeError, AttributeError) as error:
        raise MarioError(f"{path} is no plan, or one of another version of mario ({error}): remove it") from None


def collect(plan: Plan, folder: Path) -> Collected:
    """What the runs of ``plan`` in ``folder`` have come to."""
    cases = []
    for case in plan.cases:
        facts = {f.name: getattr(case, f.name) for f in dataclasses.fields(case) if f.name != "runs"}
        collected = CollectedCase(**facts)
        for run in case.runs:
            found = store.look(folder / run.digest)
            if found.result is not None:
                told = {"label": run.label, "paper": run.paper, "folder": str(folder / run.digest)}
                collected.results.append({**found.result, **told})
            elif found.state in (store.FAILED, store.BROKEN):
                collected.failed.append((run.label, run.split_seed, run.seed, found.reason))
            else:
                collected.unfinished += 1
        if collected.results and not (collected.unfinished or collected.failed):
            collected.missing = None  # its data is elsewhere, and nothing is left to do
        cases.append(collected)
    return Collected(plan, cases)
