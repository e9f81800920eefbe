"""What a study has come to, made up: plans and results without a run."""

from collections.abc import Mapping, Sequence
from typing import Any

from mario.lab.runs.job import Job
from mario.lab.studies.plan import Collected, CollectedCase, Plan, PlannedCase, PlannedRun

DOMAINS = {"good-cbas": "color", "good-webkb": "university", "webkb": "university", "good-twitch": "language"}
DOMAINS |= {
    "amazon-photo": "environment",
    "elliptic": "time",
    "proteins-25": "size",
    "dd-200": "size",
    "dd-300": "size",
}

Scores = Mapping[str, Mapping[str, Sequence[float | None]]]


def result(label: str, case: Mapping[str, str], seed: int, ood: float, **other: Any) -> dict[str, Any]:
    """A result as ``collect`` gives it; ID is five points above OOD."""
    method, _, rest = label.partition(" ")
    encoder = rest.strip("()") if rest.startswith("(") else "gcn"
    return {
        **case, "label": label, "method": method, "encoder": encoder, "metric": "accuracy", "split_seed": seed,
        "seed": seed, "steps": 200, "checkpoints": 10, "seconds": 1.5, "folder": f"runs/{abs(hash((label, seed))):x}",
        "scores": {
            "id_test": ood + 0.05, "ood_test": ood, "ood_test_by_id_val": ood - 0.01, "id_val": 0.9, "ood_val": 0.8,
            "chosen_on": {"id_test": "id_val", "ood_test": "ood_val", "ood_test_by_id_val": "id_val"},
            "last": {"id_test": 0.1111, "ood_test": 0.2222}, "oracle": {"id_test": 0.3333, "ood_test": 0.9999},
        },
        "curve": [{"step": 100, "id_val": 0.8, "ood_val": 0.8}, {"step": 200, "id_val": 0.9, "ood_val": 0.7}],
    } | other  # fmt: skip


def collected(
    scores: Scores,
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
    **other: Any,
) -> Collected:
    """A study from the OOD scores of each label in each case (``good-cbas-concept``); None is a run that is not there.

    Run i has split seed i and seed i. ``missing`` says why a case has no data, ``failed`` why runs that are not there
    failed; ``other`` goes into each result.
    """
    planned, cases = [], []
    for name, rows in scores.items():
        dataset, _, shift = name.rpartition("-")
        place = {"dataset": dataset, "domain": DOMAINS[dataset], "shift": shift, "setting": setting}
        runs, case = [], CollectedCase(name=name, **place, asked=0, missing=(missing or {}).get(name))
        for label, values in rows.items():
            method, _, rest = label.partition(" ")
            given = {"encoder": rest.strip("()")} if rest.startswith("(") else {}
            printed = method if given else label
            for seed, value in enumerate(values):
                job = Job(method=method, label=label, split_seed=seed, seed=seed, given=given, **place)
                runs.append(PlannedRun(label=label, paper=printed, digest=f"{len(runs):016x}", job=job))
                if value is not None:
                    case.results.append(result(label, place, seed, value, **other))
                elif (name, label) in (failed or {}):
                    case.failed.append((label, seed, seed, (failed or {})[name, label]))
                else:
                    case.unfinished += 1
        case.asked = max((len(values) for values in rows.values()), default=0)
        planned.append(PlannedCase(name=name, **place, asked=case.asked, missing=case.missing, runs=tuple(runs)))
        cases.append(case)
    plan = Plan(
        study=study, title=title, paper=paper, reference=reference, subject=subject, quick=quick, cases=tuple(planned)
    )
    return Collected(plan, cases)
