"""How far nodes are from those that a model learns from."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

BEYOND = 0.95
_MOST, _CHUNK = 3_000, 512


def share_beyond(
    reference: Array, unit: Array, others: Array, other_unit: Array | None = None, *, seed: int = 0
) -> tuple[float, float]:
    """The share of ``others`` that is farther from ``reference`` than 95 % of its own nodes are, and a ratio.

    The distance of a node is that to the nearest reference node of another unit, as its own unit holds its neighbors.
    The ratio is that of the median distance of the others to that of the reference nodes. Columns are scaled by their
    deviation in ``reference``.

    Args:
        reference: Rows of the nodes to learn from.
        unit: Their units.
        others: Rows of other nodes.
        other_unit: Their units, where they may be the same.
        seed: Of the draw of nodes.
    """
    draws = np.random.default_rng([seed, 19])
    reference, unit = _some(reference, unit, draws)
    others, other_unit = _some(others, np.full(len(others), -1) if other_unit is None else other_unit, draws)
    center, scale = reference.mean(0), reference.std(0)
    used = scale > 1e-9
    near = [(rows[:, used] - center[used]) / scale[used] for rows in (reference, others)]
    if not used.any() or len(np.unique(unit)) < 2:
        return 0.0, 1.0
    own = _nearest(near[0], unit, near[0], unit)
    theirs = _nearest(near[1], other_unit, near[0], unit)
    ratio = float(np.median(theirs) / max(np.median(own), 1e-12))
    return float((theirs > np.quantile(own, BEYOND) * (1 + 1e-9)).mean()), ratio


def _some(rows: Array, unit: Array, draws: np.random.Generator) -> tuple[Array, Array]:
    if len(rows) > _MOST:
        kept = np.sort(draws.permutation(len(rows))[:_MOST])
        rows, unit = rows[kept], unit[kept]
    return np.asarray(rows, dtype=np.float64), unit


def _nearest(rows: Array, unit: Array, to: Array, of: Array) -> Array:
    """The distance of each row to the nearest of ``to`` that is of another unit."""
    lengths = (to**2).sum(1)
    found = []
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        squares = (part**2).sum(1)[:, None] + lengths - 2 * part @ to.T
        squares[unit[start : start + _CHUNK][:, None] == of] = np.inf
        found.append(np.sqrt(np.maximum(squares.min(1), 0)))
    return np.concatenate(found) if found else np.zeros(0)
