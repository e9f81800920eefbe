"""Units of a permutation test: what may be exchanged between domains if nothing shifts.

Nodes of a graph depend on each other: neighbors are alike, and a community is larger than a neighborhood. A test that
shuffles the domains of single nodes would find a shift between two halves of a graph without any. So domains are
shuffled over blocks of connected nodes, with one exception: where domains are dealt to nodes at random, whatever their
neighbors have, single nodes are exchangeable, and blocks are random groups of them.
"""

from typing import Any

import numpy as np
import torch
from scipy import sparse

from mario.graphs.partition import partition

Array = np.ndarray[Any, Any]

_LEAST = 6  # units of the smallest domain, where it has nodes for them
_UNITS, _MOST = 60, 400  # of the whole graph
_SMALLEST = 5  # nodes of a unit
_BEYOND = 3.0  # standard deviations of edges within domains, above which domains are not dealt at random


def unit_size(counts: Array) -> float:
    """Nodes of a unit, from the number of nodes of each domain.

    Example:
        >>> unit_size(np.array([300, 900])), unit_size(np.array([20, 900]))
        (20.0, 5.0)
    """
    counts = counts[counts > 0]
    wanted = min(counts.sum() / _UNITS, counts.min() / _LEAST)
    return float(max(wanted, counts.sum() / _MOST, _SMALLEST))


def units_of(
    adjacency: sparse.csr_matrix, domain: Array, size: float, draws: np.random.Generator
) -> tuple[Array, str]:
    """The unit of each node, -1 where the domain is; and whether units are ``nodes`` drawn at random or ``blocks``.

    A unit is of one domain and has about ``size`` nodes.
    """
    if len(np.unique(domain[domain >= 0])) > 1 and dealt_at_random(adjacency, domain):
        return group_of(np.arange(len(domain)), domain, size, draws), "nodes"
    unit, count = np.full(len(domain), -1), 0
    for one in np.unique(domain[domain >= 0]):
        here = (domain == one).nonzero()[0]
        inside = adjacency[here][:, here].tocoo()
        edges = torch.from_numpy(np.stack([inside.row, inside.col]).astype(np.int64))
        parts = max(1, round(len(here) / size))
        found = partition(edges, len(here), parts, method="bfs").numpy()
        unit[here] = count + np.unique(found, return_inverse=True)[1]
        count = int(unit.max()) + 1
    return unit, "blocks"


def dealt_at_random(adjacency: sparse.csr_matrix, domain: Array) -> bool:
    """Whether there are no more edges within domains than if domains were dealt to nodes at random.

    The number of such edges and its variance over all ways to deal are those of join counts (Cliff & Ord, 1981).
    """
    known = domain >= 0
    inside = adjacency[known][:, known].tocoo()
    codes = np.unique(domain[known], return_inverse=True)[1]
    shares = np.bincount(codes) / len(codes)
    upper = inside.row < inside.col
    source, target = inside.row[upper], inside.col[upper]
    edges = len(source)
    if edges == 0:
        return True
    same = float((codes[source] == codes[target]).sum())
    p2, p3 = float((shares**2).sum()), float((shares**3).sum())
    degree = np.bincount(np.r_[source, target], minlength=len(codes)).astype(np.float64)
    # Two edges that share a node: both within domains with probability p3.
    touching = float((degree * (degree - 1)).sum())
    variance = edges * p2 * (1 - p2) + touching * (p3 - p2**2)
    return same - edges * p2 <= _BEYOND * np.sqrt(max(variance, 1e-12))


def group_of(member: Array, domain: Array, size: float, draws: np.random.Generator) -> Array:
    """Units of whole members (nodes, or graphs of a set) of one domain, put together at random; -1 where it is unknown.

    Args:
        member: What each node belongs to.
        domain: The domain of each node.
        size: Nodes of a unit, about.
        draws: Of the order.
    """
    unit, count = np.full(len(domain), -1), 0
    for one in np.unique(domain[domain >= 0]):
        here = (domain == one).nonzero()[0]
        known, place, nodes = np.unique(member[here], return_inverse=True, return_counts=True)
        order = draws.permutation(len(known))
        parts = max(1, min(len(known), round(len(here) / size)))
        before = np.cumsum(nodes[order]) - nodes[order]
        of = np.empty(len(known), dtype=np.int64)
        of[order] = np.minimum(before * parts // max(1, len(here)), parts - 1)
        unit[here] = count + np.unique(of[place], return_inverse=True)[1]
        count = int(unit.max()) + 1
    return unit
