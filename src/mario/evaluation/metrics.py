"""What a prediction is worth."""

import numpy as np
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import Tensor

from mario.errors import MarioError

METRICS = ("accuracy", "roc_auc", "f1")


def score(logits: Tensor, y: Tensor, metric: str = "accuracy") -> float:
    """The metric of ``logits`` ``[n, classes]`` against labels ``[n]``, a fraction in [0, 1].

    ``roc_auc`` is of the second class, or where there are more the mean, over the classes found in ``y``, of one
    against the rest; ``f1`` is of the second class where there are two and the macro average otherwise.

    Example:
        >>> import torch
        >>> score(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0]))
        0.5
    """
    if metric not in METRICS:
        raise MarioError(f"metric must be one of {', '.join(METRICS)}, got '{metric}'")
    if len(y) == 0:
        raise MarioError(f"there is no node to take the {metric} of")
    if torch.isnan(logits).any():
        raise MarioError("the predictions hold NaN: training diverged, try a lower lr")
    predicted, truth = logits.argmax(1).numpy(), y.numpy()
    classes = logits.size(1)
    if metric == "roc_auc" and truth.max() >= classes:
        raise MarioError(
            f"ROC-AUC needs a score for each class: {classes} were learned, the labels reach {truth.max()}"
        )
    if metric == "accuracy":
        return float((predicted == truth).mean())
    if metric == "f1":
        average = "binary" if classes == 2 else "macro"
        return float(f1_score(truth, predicted, average=average, zero_division=0.0))
    if len(np.unique(truth)) < 2:
        raise MarioError(f"ROC-AUC needs nodes of two classes, all {len(truth)} are of class {truth[0]}")
    probability = logits.double().softmax(1).numpy()
    if classes == 2:
        return float(roc_auc_score(truth, logits[:, 1].double().sub(logits[:, 0].double()).numpy()))
    return float(np.mean([roc_auc_score(truth == c, probability[:, c]) for c in np.unique(truth)]))
