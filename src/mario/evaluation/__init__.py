"""What frozen embeddings are worth under shift: probes, metrics and rules of selection."""

from mario.evaluation.alignment import invariance
from mario.evaluation.evaluate import SETS, evaluate, evaluate_many, report
from mario.evaluation.metrics import METRICS, score
from mario.evaluation.optimum import logistic_optimum
from mario.evaluation.probe import LinearProbe, LogisticProbe, Probe
from mario.evaluation.selection import ALLOWED_FOR_CLAIMS, RULES, select

__all__ = [
    "ALLOWED_FOR_CLAIMS",
    "METRICS",
    "RULES",
    "SETS",
    "LinearProbe",
    "LogisticProbe",
    "Probe",
    "evaluate",
    "evaluate_many",
    "invariance",
    "logistic_optimum",
    "report",
    "score",
    "select",
]
