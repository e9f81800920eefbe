"""Made-up specs and results: nothing is trained."""

import json
from pathlib import Path
from typing import Any

from mario.lab.case import Case
from mario.lab.result import CurvePoint, RunResult, Scores
from mario.lab.spec import RunSpec

CBAS = Case("good-cbas", "color", "concept", "transductive")


def spec(seed: int = 0, *, split_seed: int | None = None, method: str = "grace", **settings: Any) -> RunSpec:
    settings = {"encoder": "gcn", "lr": 0.01, "milestones": [150], **settings}
    return RunSpec(
        case=CBAS, method=method, settings=settings, split_seed=seed if split_seed is None else split_seed, seed=seed
    )


def result(made: RunSpec, score: float = 0.5, **other: Any) -> RunResult:
    facts: dict[str, Any] = {"metric": "accuracy", "steps": 10, "seconds": 1.0, "cpu_seconds": 1.0}
    facts |= {"scores": Scores(ood_test=score), "curve": (CurvePoint(10, {"ood_test": score}),)}
    return RunResult(spec=made, **{**facts, **other})


def write(folder: Path, *results: RunResult) -> None:
    """Folders of runs that are done."""
    for one in results:
        where = folder / one.spec.digest
        where.mkdir(parents=True)
        (where / "settings.json").write_text(json.dumps(one.spec.to_dict()))
        (where / "result.json").write_text(json.dumps(one.to_dict()))
