"""Metrics of a prediction, each declared once: its name, its title and its function.

This module does not import torch, so that tables can show titles without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mario.errors import MarioError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Metric:
    """A metric, a fraction in [0, 1]; higher is better.

    Attributes:
        title: How tables and sentences call it.
        of: From logits ``[n, classes]`` and labels ``[n]`` to the score. Nothing is NaN, and ``n`` is at least 1.
        needs_two_classes: Whether it is undefined if all labels are the same.
    """

    title: str
    of: Callable[[Tensor, Tensor], float]
    needs_two_classes: bool = False


def accuracy(logits: Tensor, y: Tensor) -> float:
    """The share of nodes whose largest logit is that of their class."""
    return float((logits.argmax(1).numpy() == y.numpy()).mean())


def roc_auc(logits: Tensor, y: Tensor) -> float:
    """Of the second class; with more than two, the mean of one class against the rest, over the classes in ``y``."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    truth, classes = y.numpy(), logits.size(1)
    if truth.max() >= classes:
        raise MarioError(
            f"ROC-AUC needs a score for each class: {classes} were learned, the labels reach {truth.max()}"
        )
    if classes == 2:
        # In double precision: as probabilities, large logits would all be 1.
        odds = logits[:, 1].double().sub(logits[:, 0].double())
        if odds.isnan().any():  # infinity minus infinity
            raise MarioError("the predictions are infinite: training diverged, try a lower lr")
        return float(roc_auc_score(truth, odds.numpy()))
    probability = logits.double().softmax(1).numpy()
    return float(np.mean([roc_auc_score(truth == c, probability[:, c]) for c in np.unique(truth)]))


def f1(logits: Tensor, y: Tensor) -> float:
    """Of the second class if there are two, else the macro average."""
    from sklearn.metrics import f1_score

    if logits.size(1) == 2 and int(y.max()) > 1:
        raise MarioError(
            f"F1 of the second class needs labels 0 and 1, the labels reach {int(y.max())}; "
            "set data.num_classes for the macro average, or remove these nodes from the masks"
        )
    average = "binary" if logits.size(1) == 2 else "macro"
    return float(f1_score(y.numpy(), logits.argmax(1).numpy(), average=average, zero_division=0.0))


METRICS: dict[str, Metric] = {
    "accuracy": Metric("accuracy", accuracy),
    "roc_auc": Metric("ROC-AUC", roc_auc, needs_two_classes=True),
    "f1": Metric("F1", f1),
}
"""All metrics by name. A new one is a line here; datasets name it, and all tables show its title."""


def find_metric(name: str) -> Metric:
    """The metric called ``name``; if there is none, an error that lists them."""
    if not isinstance(name, str) or name not in METRICS:
        raise MarioError(f"metric must be one of {', '.join(METRICS)}, got '{name}'")
    return METRICS[name]


def score(logits: Tensor, y: Tensor, metric: str = "accuracy") -> float:
    """The metric of ``logits`` ``[n, classes]`` against labels ``[n]``, a fraction in [0, 1].

    Args:
        logits: One row per node.
        y: One class per node.
        metric: A name in :data:`METRICS`.

    Example:
        >>> import torch
        >>> score(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 0]))
        0.5
    """
    found = find_metric(metric)
    _check(logits, y)
    if len(y) == 0:
        raise MarioError(f"there is no node to compute the {metric} of")
    if logits.isnan().any():
        raise MarioError("the predictions hold NaN: training diverged, try a lower lr")
    if int(y.min()) < 0:
        raise MarioError(f"labels must be 0 or more, got {int(y.min())}; leave out the nodes without a label")
    if not is_defined(y, metric):
        raise MarioError(f"{found.title} needs nodes of two classes, all {len(y)} are of class {int(y[0])}")
    return found.of(logits, y)


def _check(logits: Tensor, y: Tensor) -> None:
    import torch

    right = isinstance(logits, torch.Tensor) and logits.is_floating_point() and logits.layout == torch.strided
    if not right or logits.is_meta or logits.dim() != 2 or not logits.size(1):
        raise MarioError(f"logits must be a dense [nodes, classes] matrix of real numbers, got {_kind(logits)}")
    if not isinstance(y, torch.Tensor) or y.dim() != 1 or y.dtype.is_floating_point or y.dtype == torch.bool:
        raise MarioError(f"y must hold one class per node, whole numbers, got {_kind(y)}")
    if len(logits) != len(y):
        raise MarioError(f"there are {len(logits)} rows of logits for {len(y)} labels")


def _kind(value: object) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{value.dtype} of shape {tuple(shape)}"  # type: ignore[attr-defined]


def is_defined(y: Tensor, metric: str) -> bool:
    """Whether the metric has a value for these labels."""
    return len(y) > 0 and not (find_metric(metric).needs_two_classes and bool((y == y[0]).all()))
