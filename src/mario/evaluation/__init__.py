"""What frozen embeddings are worth under shift: probes, metrics and selection rules.

Names are loaded on first use, so that :mod:`mario.evaluation.metrics` can be imported without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mario.evaluation.alignment import invariance
    from mario.evaluation.metrics import METRICS, Metric, score
    from mario.evaluation.optimum import logistic_optimum
    from mario.evaluation.probe import LinearProbe, LogisticProbe, Probe
    from mario.evaluation.scoring import SETS, evaluate, evaluate_many, report
    from mario.evaluation.selection import ALLOWED_FOR_CLAIMS, RULES, select

__all__ = [
    "ALLOWED_FOR_CLAIMS",
    "METRICS",
    "RULES",
    "SETS",
    "LinearProbe",
    "LogisticProbe",
    "Metric",
    "Probe",
    "evaluate",
    "evaluate_many",
    "invariance",
    "logistic_optimum",
    "report",
    "score",
    "select",
]

_FILES = ("metrics", "selection", "probe", "optimum", "scoring", "alignment")


def __getattr__(name: str) -> Any:
    for file in _FILES if name in __all__ else ():
        module = import_module(f"{__name__}.{file}")
        if name in vars(module):
            return getattr(module, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
