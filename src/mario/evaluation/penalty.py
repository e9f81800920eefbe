"""Logistic regression on blocks of columns with the penalty that is best on validation rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from mario.errors import MarioError
from mario.evaluation.calibration import fit_temperature
from mario.evaluation.metrics import is_defined, score
from mario.evaluation.optimum import LogisticPath
from mario.graphs import BlockMatrix
from mario.graphs.paging import count_not_finite

GRID = tuple(4.0**k for k in range(-3, 6))
"""The values of C that are tried, times the mean square norm of a centered training row."""
GAP = 1e-7
"""The loss is at most this far from its minimum."""
LARGEST = 1e-5
"""Largest norm of the gradient, relative to the root mean square norm of a row."""
PATIENCE = 3
"""After this many values of C that are each worse than the best so far, larger ones are not tried."""


@dataclass(frozen=True)
class Regression:
    """A logistic regression: weights ``[classes, d]`` and biases ``[classes]`` in double precision.

    ``C`` is scikit-learn's. Calibrated probabilities are softmax(logits / temperature).
    """

    weight: Tensor
    bias: Tensor
    C: float
    temperature: float = 1.0

    def logits(self, z: BlockMatrix) -> Tensor:
        """Logits ``[n, classes]``; the blocks of ``z`` are only multiplied with."""
        parts = [z[name].matmul(self.weight[:, some].T.contiguous()) for name, some in z.columns.items()]
        return sum(parts[1:], parts[0]).add_(self.bias)


def fit_regression(z: BlockMatrix, y: Tensor, classes: int, C: float, *, start: Regression | None = None) -> Regression:
    """The regression of ``y`` on ``z`` with penalty ``C``, from ``start`` if one is given."""
    path = LogisticPath(z, y, classes, start=None if start is None else (start.weight, start.bias))
    return _at(path, y, C)


def choose_penalty(
    z: BlockMatrix,
    y: Tensor,
    classes: int,
    validations: Sequence[tuple[BlockMatrix, Tensor]],
    *,
    metric: str = "accuracy",
    grid: Sequence[float] | None = None,
) -> list[Regression]:
    """For each validation set, the regression that is best on it by ``metric``, calibrated on it.

    All values of C are on one path from the strongest penalty to the weakest, each optimum from the ones before. If
    several are best, the strongest penalty wins. The path ends early when the score on every validation set has been
    below its best ``PATIENCE`` times in a row.

    Args:
        z: Training rows.
        y: Their labels ``[n]``, from 0 to ``classes`` - 1.
        classes: Number of classes.
        validations: Rows and labels of each validation set. Rows of a class without training rows are left out.
        metric: A name in :data:`mario.evaluation.METRICS`; accuracy where it is undefined.
        grid: Values of C; by default :data:`GRID` for rows of unit mean square norm.
    """
    path = LogisticPath(z, y, classes)
    known = y.unique()
    judged = [(rows, labels, torch.isin(labels, known)) for rows, labels in validations]
    best: list[tuple[float, Regression] | None] = [None] * len(judged)
    worse = [0] * len(judged)
    for C in grid_of(path, grid):
        found = _at(path, y, C)
        for i, (rows, labels, kept) in enumerate(judged):
            reached = _score(found.logits(rows)[kept], labels[kept], metric)
            before = best[i]
            if before is None or reached > before[0]:
                best[i] = reached, found
            worse[i] = worse[i] + 1 if before is not None and reached < before[0] else 0
        if min(worse) >= PATIENCE:
            break
    chosen = [entry[1] for entry in best if entry is not None]
    return [
        replace(one, temperature=fit_temperature(one.logits(rows)[kept], labels[kept]))
        for one, (rows, labels, kept) in zip(chosen, judged, strict=True)
    ]


def choose_on_held_out(
    z: BlockMatrix,
    y: Tensor,
    classes: int,
    *,
    metric: str = "accuracy",
    grid: Sequence[float] | None = None,
    held_out: float = 0.2,
    seed: int = 0,
) -> Regression:
    """:func:`choose_penalty` with a share of the training rows for validation; then fitted to all of them."""
    fitted, held = split_rows(y, held_out, seed)
    rows = z.rows(held), y[held]
    (chosen,) = choose_penalty(z.rows(fitted), y[fitted], classes, [rows], metric=metric, grid=grid)
    return replace(fit_regression(z, y, classes, chosen.C, start=chosen), temperature=chosen.temperature)


def split_rows(y: Tensor, held_out: float, seed: int) -> tuple[Tensor, Tensor]:
    """Row ids to fit to and to hold out, the same share of each class; at least one of a class with two rows.

    If no class has two rows, all rows are in both.
    """
    if not 0 < held_out < 1:
        raise MarioError(f"held_out must be a share of the rows between 0 and 1, got {held_out}")
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(y)))
    held = torch.zeros(len(y), dtype=torch.bool)
    for label in y.unique():
        of_class = order[y[order] == label]
        count = min(len(of_class) - 1, max(1, round(held_out * len(of_class))))
        held[of_class[:count]] = True
    if not bool(held.any()):
        return order.sort().values, order.sort().values
    return (~held).nonzero().view(-1), held.nonzero().view(-1)


def check_blocks(z: BlockMatrix) -> None:
    """Raise a :class:`MarioError` unless all entries are finite numbers."""
    for name, block in z.items():
        values = block.values.values() if block.is_sparse else block.values
        if bad := count_not_finite(values) + (0 if block.centers is None else count_not_finite(block.centers)):
            raise MarioError(f"block '{name}' holds {bad} NaN or infinite entries")


def grid_of(path: LogisticPath, grid: Sequence[float] | None) -> list[float]:
    """The values of C in ascending order, the strongest penalty first."""
    if grid is None:
        return [C / (path.spread or 1.0) for C in GRID]
    if len(grid) == 0 or not all(C > 0 and np.isfinite(C) for C in grid):
        raise MarioError(f"grid must hold values of C above 0, got {grid}")
    return sorted({float(C) for C in grid})


def _at(path: LogisticPath, y: Tensor, C: float) -> Regression:
    # For two classes scikit-learn's one row of weights is the difference of our two.
    l2 = (2 if len(y.unique()) == 2 else 1) / (C * len(y))
    # At a gradient g, the loss is within ‖g‖² / 2 l2 of its minimum.
    tolerance = (2 * GAP * l2 / (path.spread or 1.0)) ** 0.5
    return Regression(*path.at(l2, min(tolerance, LARGEST)), C)


def _score(logits: Tensor, y: Tensor, metric: str) -> float:
    if len(y) == 0:
        return 0.0
    return score(logits, y, metric if is_defined(y, metric) else "accuracy")
