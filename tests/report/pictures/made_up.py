"""Results that were never run, for pictures."""

from collections.abc import Mapping, Sequence
from typing import Any

from made_up import points
from mario.lab.case import Case
from mario.lab.result import RunResult, Scores
from mario.lab.spec import RunSpec

SETS = ("train", "id_val", "id_test", "ood_val", "ood_test")
CASE = Case("good-cbas", "color", "concept", "inductive")


def run(
    method: str,
    seed: int,
    ood: float,
    *,
    groups: int = 0,
    case: Case = CASE,
    settings: Mapping[str, Any] | None = None,
    curve: Sequence[Mapping[str, Any]] | None = None,
    **other: Any,
) -> RunResult:
    """A run whose scores follow from ``ood``: ID is 0.1 above, group Tk is k/100 above."""
    made = [{"step": 10 * (i + 1)} | dict.fromkeys(SETS, ood - 0.1 + 0.05 * i) for i in range(3)]
    scores = Scores(id_test=ood + 0.1, ood_test=ood, ood_val=ood - 0.02)
    if groups:
        scores = Scores(ood_test=ood, groups={f"T{k}": ood + k / 100 for k in range(1, groups + 1)})
    facts = {"metric": "accuracy", "steps": 30, "seconds": 1.0, "cpu_seconds": 1.0, "scores": scores}
    spec = RunSpec(case=case, method=method, settings=settings or {"encoder": "gcn"}, split_seed=seed, seed=seed)
    return RunResult(**{"spec": spec, "curve": points(made if curve is None else curve), **facts, **other})


def texts(figure: Any) -> set[str]:
    """Everything that is written in a figure."""
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()}
