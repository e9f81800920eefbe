"""A classifier that reads the domain of a node, fast enough to be repeated for every way to deal the domains."""

from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

Array = np.ndarray[Any, Any]

MOST = 4_000
"""Nodes that a classifier sees, as many from each unit."""
_WIDE = 48  # columns up to which their squares take part
_FAR = 5.0  # standard deviations at which numbers are cut


class Reader:
    """Linear discriminants between domains, fitted on half of the units and scored on the other half, both ways round.

    All that does not depend on the domains is computed once: means of domains are sums over units. So a whole test
    with a thousand dealings costs little more than one fit. Domains weigh the same. The covariance is shrunk as Ledoit
    & Wolf (2004) do. Nodes of a unit are never on both sides: otherwise an accuracy would say that neighbors are alike.

    Args:
        name: What it reads.
        rows: [nodes, columns].
        unit: The unit of each node, from 0 without gaps.
        seed: Of halves and of nodes, if there are more than `MOST`.
    """

    def __init__(self, name: str, rows: Array, unit: Array, *, seed: int = 0) -> None:
        self.name = name
        draws = np.random.default_rng([seed, 17])
        count = int(unit.max()) + 1
        some = _drawn(unit, count, draws)
        rows, unit = _scaled(rows[some]), unit[some]
        half = np.zeros(count, dtype=bool)
        half[draws.permutation(count)[: count // 2]] = True
        self.sides = [_Side(rows, unit, count, half), _Side(rows, unit, count, ~half)]
        self.units = count

    def accuracy(self, members: Array) -> Array:
        """The mean over domains of the share of nodes whose domain is read, for members [dealings, domains, units]."""
        right, nodes = (sum(parts) for parts in zip(*(side.right(members) for side in self.sides), strict=True))
        with np.errstate(invalid="ignore"):
            found: Array = np.nanmean(np.where(nodes > 0, right / np.maximum(nodes, 1), np.nan), 1)
        return found


class _Side:
    """Learns from some units and is scored on the others."""

    def __init__(self, rows: Array, unit: Array, count: int, learned: Array) -> None:
        mine = learned[unit]
        train, self.unit = rows[mine], unit[~mine]
        self.count = count
        center = train.mean(0) if len(train) else np.zeros(rows.shape[1])
        train = train - center
        sums = np.zeros((count, rows.shape[1]))
        np.add.at(sums, unit[mine], train)
        self.nodes = np.bincount(unit[mine], minlength=count).astype(np.float32)
        factor = cho_factor(_covariance(train))
        solved = cho_solve(factor, sums.T)
        self.scores = ((rows[~mine] - center) @ solved).astype(np.float32)
        self.inner = (sums @ solved).astype(np.float32)

    def right(self, members: Array) -> tuple[Array, Array]:
        """Per dealing and domain: nodes whose domain is read, and all nodes."""
        dealings, domains, _ = members.shape
        flat = members.reshape(-1, self.count)
        sizes = np.maximum(flat @ self.nodes, 1e-9)
        weights = flat / sizes[:, None]
        bias = 0.5 * ((weights @ self.inner) * weights).sum(1)
        bias[flat @ self.nodes == 0] = np.inf  # nothing was learned of this domain
        scores = (self.scores @ weights.T - bias).reshape(len(self.unit), dealings, domains)
        guess = scores.argmax(2)
        truth = members.argmax(1)[:, self.unit].T
        right, nodes = np.zeros((dealings, domains)), np.zeros((dealings, domains))
        for one in range(domains):
            nodes[:, one] = (truth == one).sum(0)
            right[:, one] = ((truth == one) & (guess == one)).sum(0)
        return right, nodes


def _drawn(unit: Array, count: int, draws: np.random.Generator) -> Array:
    if len(unit) <= MOST:
        return np.arange(len(unit))
    order = draws.permutation(len(unit))
    order = order[np.argsort(unit[order], kind="stable")]
    starts = np.searchsorted(unit[order], np.arange(count))
    place = np.arange(len(order)) - starts[unit[order]]
    found: Array = np.sort(order[place < max(1, MOST // count)])
    return found


def _scaled(rows: Array) -> Array:
    rows = np.asarray(rows, dtype=np.float64)
    spread = rows.std(0)
    rows = rows[:, spread > 1e-12]
    rows = np.clip((rows - rows.mean(0)) / rows.std(0), -_FAR, _FAR) if rows.shape[1] else np.zeros((len(rows), 1))
    return np.hstack([rows, (rows**2 - 1) / np.sqrt(2)]) if rows.shape[1] <= _WIDE else rows


def _covariance(rows: Array) -> Array:
    from sklearn.covariance import ledoit_wolf_shrinkage

    width = rows.shape[1]
    if len(rows) < 2:
        return np.eye(width)
    found = rows.T @ rows / len(rows)
    mean = float(np.trace(found)) / width
    share = max(float(ledoit_wolf_shrinkage(rows, assume_centered=True)), 1e-3)
    shrunk: Array = (1 - share) * found + share * max(mean, 1e-12) * np.eye(width)
    return shrunk
