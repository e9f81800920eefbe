"""Units of a permutation test: what may be exchanged between domains if nothing shifts.

Nodes of a graph depend on each other: neighbors are alike, and a community is larger than a neighborhood. A test that
shuffles the domains of single nodes would find a shift between two halves of a graph without any. So domains are
shuffled over communities, with one exception: where domains are dealt to nodes at random, whatever their neighbors
have, single nodes are exchangeable, and units are random groups of them.
"""

from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]

_LEAST = 6  # units of the smallest domain, where it has nodes for them
_UNITS, _MOST = 60, 400  # of the whole graph
_SMALLEST = 5  # nodes of a unit
_ROUNDS = 30  # of moves
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


def units_of(adjacency: sparse.csr_matrix, domain: Array, size: float, draws: np.random.Generator) -> tuple[Array, str]:
    """The unit of each node, -1 where the domain is; and whether units are ``nodes`` drawn at random or ``blocks``.

    A block is a community within a domain. If there are very many, they are put together to about ``size`` nodes.
    """
    if len(np.unique(domain[domain >= 0])) > 1 and dealt_at_random(adjacency, domain):
        return group_of(np.arange(len(domain)), domain, size, draws), "nodes"
    community = np.full(len(domain), -1)
    for one in np.unique(domain[domain >= 0]):
        here = (domain == one).nonzero()[0]
        found = communities(adjacency[here][:, here], draws)
        community[here] = community.max() + 1 + found
    sizes = np.bincount(community[community >= 0], minlength=1)
    if len(sizes) <= _MOST:
        return community, "blocks"
    return group_of(community, domain, size, draws), "blocks"


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
    return bool(same - edges * p2 <= _BEYOND * np.sqrt(max(variance, 1e-12)))


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


def communities(adjacency: sparse.csr_matrix, draws: np.random.Generator) -> Array:
    """The community of each node by the Louvain method (Blondel et al., 2008), where half of the nodes move at once.

    Args:
        adjacency: Symmetric, without loops.
        draws: Of which half moves.

    Example:
        >>> clique = np.ones((4, 4)) - np.eye(4)
        >>> two = sparse.block_diag([clique, clique], "csr")
        >>> communities(two, np.random.default_rng(0)).tolist()
        [0, 0, 0, 0, 1, 1, 1, 1]
    """
    weights = sparse.csr_matrix(adjacency, dtype=np.float64)
    found = np.arange(weights.shape[0])
    while weights.nnz:
        label = _moved(weights, draws)
        count = int(label.max()) + 1
        found = label[found]
        if count == weights.shape[0]:
            break
        onto = sparse.csr_matrix((np.ones(len(label)), (label, np.arange(len(label)))), (count, len(label)))
        weights = (onto @ weights @ onto.T).tocsr()
    _, first, place = np.unique(found, return_index=True, return_inverse=True)
    order: Array = np.argsort(np.argsort(first))[place]
    return order


def _moved(weights: sparse.csr_matrix, draws: np.random.Generator) -> Array:
    """The label of each node after moves that each raise the modularity, from 0 without gaps."""
    count = weights.shape[0]
    strength = np.asarray(weights.sum(1)).ravel()
    total = strength.sum()
    others = weights.copy()
    others.setdiag(0)
    others.eliminate_zeros()
    label = np.arange(count)
    for _ in range(_ROUNDS):
        onto = sparse.csr_matrix((np.ones(count), (np.arange(count), label)), (count, count))
        near = (others @ onto).tocsr()
        sums = np.bincount(label, weights=strength, minlength=count)
        row = np.repeat(np.arange(count), np.diff(near.indptr))
        at_home = near.indices == label[row]
        gain = near.data - strength[row] * (sums[near.indices] - at_home * strength[row]) / total
        stay = -strength * (sums[label] - strength) / total
        stay[row[at_home]] = gain[at_home]
        best = np.full(count, -np.inf)
        np.maximum.at(best, row, gain)
        better = (gain >= best[row]) & (gain > stay[row] + 1e-9) & (draws.random(count) < 0.5)[row]
        if not (best > stay + 1e-9).any():
            break
        label[row[better]] = near.indices[better]
    found: Array = np.unique(label, return_inverse=True)[1]
    return found
