"""Studies that were never run: plans and results made up."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mario.lab.case import Case
from mario.lab.result import CurvePoint, RunResult, Scores, TestScores
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec
from mario.lab.studies.collect import Collected, CollectedCase, FailedRun, FinishedRun
from mario.lab.studies.plan import Plan, PlannedCase

DOMAINS = {"good-cbas": "color", "good-webkb": "university", "webkb": "university", "good-twitch": "language"}
DOMAINS |= {
    "amazon-photo": "environment",
    "elliptic": "time",
    "proteins-25": "size",
    "dd-200": "size",
    "dd-300": "size",
}

OodScores = Mapping[str, Mapping[str, Sequence[float | None]]]
CURVE = ({"step": 100, "id_val": 0.8, "ood_val": 0.8}, {"step": 200, "id_val": 0.9, "ood_val": 0.7})


def points(curve: Sequence[Mapping[str, Any]]) -> tuple[CurvePoint, ...]:
    return tuple(CurvePoint.from_dict(dict(point), "curve") for point in curve)


def job(label: str, case: Case, seed: int, *, split_seed: int | None = None, **settings: Any) -> Job:
    """The job of a row called METHOD, METHOD (ENCODER) or METHOD VARIANT."""
    method, _, rest = label.partition(" ")
    encoder = rest.strip("()") if rest.startswith("(") else "gcn"
    given = {"encoder": encoder, **({"variant": rest} if rest and not rest.startswith("(") else {}), **settings}
    split = seed if split_seed is None else split_seed
    spec = RunSpec(case=case, method=method, settings=given, split_seed=split, seed=seed)
    return Job(spec=spec, label=label, paper=method if rest.startswith("(") else label)


def result(planned: Job, ood: float, **other: Any) -> RunResult:
    """A result; ID is five points above OOD. ``other`` replaces fields of the result or of its scores."""
    scores = Scores(
        id_test=ood + 0.05,
        ood_test=ood,
        ood_test_by_id_val=ood - 0.01,
        id_val=0.9,
        ood_val=0.8,
        chosen_on={"id_test": "id_val", "ood_test": "ood_val", "ood_test_by_id_val": "id_val"},
        last=TestScores(0.1111, 0.2222),
        oracle=TestScores(0.3333, 0.9999, allowed_for_claims=False),
    )
    names = {f.name for f in dataclasses.fields(Scores)}
    scores = dataclasses.replace(scores, **{name: other[name] for name in other if name in names})
    fields = {name: value for name, value in other.items() if name not in names}
    facts = {"metric": "accuracy", "steps": 200, "seconds": 1.5, "cpu_seconds": 1.5, "curve": points(CURVE)}
    folder = Path("runs") / planned.spec.digest
    return RunResult(**{"spec": planned.spec, "scores": scores, "folder": folder, **facts, **fields})


def collected(
    scores: OodScores,
    *,
    study: str = "table-concept",
    title: str = "All methods under concept shift",
    paper: str = "Table 2",
    reference: str | None = "grace",
    subject: str | None = "mario",
    missing: Mapping[str, str] | None = None,
    failed: Mapping[tuple[str, str], str] | None = None,
    quick: bool = False,
    setting: str = "transductive",
    split_seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
    plan: Mapping[str, Any] | None = None,
    **other: Any,
) -> Collected:
    """A study from the OOD scores of each label in each case (``good-cbas-concept``); None is a run that is not there.

    Run i has split seed i and seed i, unless ``split_seed`` is given. ``missing`` says why a case has no data,
    ``failed`` why runs that are not there failed; ``plan`` replaces fields of the plan, and ``other`` of each result.
    """
    planned, cases = [], []
    for name, rows in scores.items():
        dataset, _, shift = name.rpartition("-")
        case = Case(dataset, DOMAINS[dataset], shift, setting)
        jobs, runs, failures, unfinished = [], [], [], 0
        for label, values in rows.items():
            for seed, value in enumerate(values):
                jobs.append(job(label, case, seed, split_seed=split_seed, **(settings or {})))
                if value is not None:
                    runs.append(FinishedRun(study, jobs[-1], result(jobs[-1], value, **other)))
                elif (name, label) in (failed or {}):
                    failures.append(FailedRun(jobs[-1], (failed or {})[name, label]))
                else:
                    unfinished += 1
        planned.append(PlannedCase(case=case, jobs=tuple(jobs), missing=(missing or {}).get(name)))
        cases.append(CollectedCase(planned[-1], runs, failures, unfinished))
    facts = {"study": study, "title": title, "paper": paper, "reference": reference, "subject": subject}
    return Collected(Plan(**{**facts, "quick": quick, "cases": tuple(planned), **(plan or {})}), cases)


def changed(study: Collected, change: Callable[[Job, RunResult], Mapping[str, Any]]) -> Collected:
    """``study`` with fields of its results replaced: of the result, of its scores, or of its spec."""
    cases = [
        dataclasses.replace(case, runs=[_changed(run, change(run.job, run.result)) for run in case.runs])
        for case in study.cases
    ]
    return Collected(study.plan, cases)


def _changed(run: FinishedRun, new: Mapping[str, Any]) -> FinishedRun:
    def of(kind: Any) -> dict[str, Any]:
        return {f.name: new[f.name] for f in dataclasses.fields(kind) if f.name in new}

    spec = dataclasses.replace(run.job.spec, **of(RunSpec))
    scores = dataclasses.replace(run.result.scores, **of(Scores))
    fields = {name: value for name, value in of(RunResult).items() if name not in ("spec", "scores")}
    planned = dataclasses.replace(run.job, spec=spec)
    return FinishedRun(
        run.study, planned, dataclasses.replace(run.result, **{"spec": spec, "scores": scores, **fields})
    )
