"""A plan: a study made concrete, as a JSON file in the folder of the runs.

``RUNS/plans/NAME.json`` lists every run that was asked for, by the name of its folder. A report reads plans and run
folders and nothing else, so results of several machines are merged by copying folders.
"""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.experiments.comparison import Job
from mario.experiments.study import PAPER, PlannedJob, Study
from mario.files import read_json, write_json
from mario.graphs.catalogue import CATALOGUE
from mario.graphs.files import locate


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
    """A study with every run that it takes. ``command`` is how it was asked for."""

    study: str
    title: str
    paper: str = ""
    show: tuple[str, ...] = ("table",)
    reference: str | None = None
    subject: str | None = None
    note: str = ""
    quick: bool = False
    command: str = ""
    cases: tuple[PlannedCase, ...] = ()

    def jobs(self) -> list[Job]:
        """What can be run: all but the cases whose data is missing."""
        return [run.job for case in self.cases if not case.missing for run in case.runs]

    def write(self, folder: Path) -> Path:
        """Write ``folder/plans/NAME.json``."""
        path = folder / "plans" / f"{self.study}.json"
        write_json(path, self.as_dict())
        return path

    def as_dict(self) -> dict[str, Any]:
        return {
            **{f.name: getattr(self, f.name) for f in dataclasses.fields(self)},
            "show": list(self.show),
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
        return cls(**{**written, "show": tuple(written["show"]), "cases": tuple(cases)})


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
        >>> from mario.experiments.plan import make_plan
        >>> from mario.experiments.study_files import find_study
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=2)
        >>> [(case.name, case.asked, len(case.runs)) for case in plan.cases]
        [('good-cbas-concept', 2, 8)]
    """
    by_case: dict[str, list[PlannedJob]] = {case.name: [] for case in study.kept_cases(datasets)}
    for planned in study.jobs(seeds=seeds, datasets=datasets, methods=methods, quick=quick):
        by_case[planned.case.name].append(planned)
    cases = []
    for case in study.kept_cases(datasets):
        runs = [
            PlannedRun(
                label=planned.row.label,
                paper=planned.row.paper,
                digest=planned.job.plan().digest(),
                job=planned.job,
            )
            for planned in by_case[case.name]
        ]
        cases.append(
            PlannedCase(
                name=case.name,
                dataset=case.dataset,
                domain=case.domain,
                shift=case.shift,
                setting=case.setting,
                asked=len({(run.split_seed, run.seed) for run in runs}),
                missing=missing_data(case.dataset, root),
                runs=tuple(runs),
            )
        )
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
        cases=tuple(cases),
    )


def missing_data(dataset: str, root: str | os.PathLike[str] | None = None) -> str | None:
    """Why a dataset is not at hand, or None if it is; nothing is downloaded.

    Example:
        >>> from mario.experiments.plan import missing_data
        >>> missing_data("good-cbas") is None
        True
    """
    card = CATALOGUE[dataset]
    if not card.files or locate(card, root) is not None:
        return None
    named = card.files[0].path + (f" and {len(card.files) - 1} more" if len(card.files) > 1 else "")
    return f"the files of {dataset} are not at hand ({named}); `mario data fetch {dataset}` downloads them"


def read_plans(folder: Path) -> list[Plan]:
    """The plans in ``folder``, the paper's studies first and in its order."""
    plans = [_read_plan(path) for path in sorted((folder / "plans").glob("*.json"))]
    order = {name: rank for rank, name in enumerate(PAPER)}
    return sorted(plans, key=lambda plan: order.get(plan.study, len(order)))


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
            where = folder / run.digest
            if (where / "result.json").exists():
                try:
                    result = read_json(where / "result.json")
                except MarioError as error:
                    collected.failed.append((run.label, run.split_seed, run.seed, str(error)))
                    continue
                collected.results.append({**result, "label": run.label, "paper": run.paper, "folder": str(where)})
            elif (where / "error.txt").exists():
                lines = (where / "error.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
                collected.failed.append((run.label, run.split_seed, run.seed, lines[-1] if lines else "no reason"))
            else:
                collected.unfinished += 1
        cases.append(collected)
    return Collected(plan, cases)
