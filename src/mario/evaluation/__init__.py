"""What frozen embeddings are worth under shift: probes, metrics and selection rules.

Names are loaded on first use, so that :mod:`mario.evaluation.metrics` can be imported without torch.
"""

from typing import TYPE_CHECKING

from mario.lazy import lazy

if TYPE_CHECKING:
    from mario.evaluation.alignment import invariance
    from mario.evaluation.block_classifier import BlockClassifier
    from mario.evaluation.calibration import calibration_error, fit_temperature
    from mario.evaluation.choosing import Selection, rank_me, select
    from mario.evaluation.controls import CONTROLS, score_controls
    from mario.evaluation.metrics import METRICS, Metric, score
    from mario.evaluation.optimum import logistic_optimum
    from mario.evaluation.probe import LiblinearProbe, LinearProbe, LogisticProbe, Probe
    from mario.evaluation.scoring import SETS, evaluate, evaluate_many, predict, report
    from mario.evaluation.selection import ALLOWED_FOR_CLAIMS, RULES, select_checkpoint

__all__ = [
    "ALLOWED_FOR_CLAIMS",
    "CONTROLS",
    "METRICS",
    "RULES",
    "SETS",
    "BlockClassifier",
    "LiblinearProbe",
    "LinearProbe",
    "LogisticProbe",
    "Metric",
    "Probe",
    "Selection",
    "calibration_error",
    "evaluate",
    "evaluate_many",
    "fit_temperature",
    "invariance",
    "logistic_optimum",
    "predict",
    "rank_me",
    "report",
    "score",
    "score_controls",
    "select",
    "select_checkpoint",
]

_HOME = {
    "invariance": "mario.evaluation.alignment",
    "BlockClassifier": "mario.evaluation.block_classifier",
    "calibration_error": "mario.evaluation.calibration",
    "fit_temperature": "mario.evaluation.calibration",
    "METRICS": "mario.evaluation.metrics",
    "Metric": "mario.evaluation.metrics",
    "score": "mario.evaluation.metrics",
    "logistic_optimum": "mario.evaluation.optimum",
    "LiblinearProbe": "mario.evaluation.probe",
    "LinearProbe": "mario.evaluation.probe",
    "LogisticProbe": "mario.evaluation.probe",
    "Probe": "mario.evaluation.probe",
    "SETS": "mario.evaluation.scoring",
    "evaluate": "mario.evaluation.scoring",
    "evaluate_many": "mario.evaluation.scoring",
    "predict": "mario.evaluation.scoring",
    "report": "mario.evaluation.scoring",
    "ALLOWED_FOR_CLAIMS": "mario.evaluation.selection",
    "RULES": "mario.evaluation.selection",
    "select_checkpoint": "mario.evaluation.selection",
    "Selection": "mario.evaluation.choosing",
    "select": "mario.evaluation.choosing",
    "CONTROLS": "mario.evaluation.controls",
    "score_controls": "mario.evaluation.controls",
    "rank_me": "mario.evaluation.choosing",
}

__getattr__, __dir__ = lazy(__name__, _HOME)
