"""What frozen embeddings are worth under shift: probes, metrics and rules of selection."""

from mario.evaluation.evaluate import SETS, evaluate, report
from mario.evaluation.metrics import METRICS, score
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
    "report",
    "score",
    "select",
]
