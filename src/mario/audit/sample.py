"""What of a graph takes part in an audit: a draw of its nodes, with features, neighbors and place in the graph."""

import dataclasses
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Data

from mario.audit.units import group_of, units_of
from mario.embedder.facts import labeled_rows
from mario.graphs import Block

Array = np.ndarray[Any, Any]

MOST = 20_000
"""Nodes of a graph that take part; of larger graphs they are drawn, the same number from each unit."""
EDGES = 20_000_000
"""Edges that are looked at; of more, the same share of both graphs is drawn."""
_WIDTH = 64  # of the projection that means over neighbors are made of
_REACH = 400_000  # rows of features that two hops may need
_SMALL = 10  # nodes of a component that is not small
_TRIANGLES = 40_000_000  # pairs of neighbors up to which triangles are counted


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """Nodes of one graph, one entry or row per node that takes part.

    Attributes:
        nodes: Their ids.
        x: Their features, dense or sparse CSR.
        hops: Features of the node and means over one and two hops, projected.
        structure: Numbers of the place in the graph, by name.
        degree, homophily: The number of neighbors, and the share of labeled neighbors of the same class (NaN without).
        label: The class, -1 without a label that may be read.
        labeled: Whether there is a label, to be read or not.
        domain: The domain, -1 if it is unknown.
        small: Whether a node is in a connected component of fewer than ten nodes.
        unit: The unit that a node is exchanged with: see :mod:`mario.audit.units`.
        scheme: How units were made: ``nodes``, ``blocks`` or ``graphs``.
        totals: The number of all nodes of each domain.
        components: The number of connected components that have nodes of a domain.
    """

    nodes: Array
    x: Any
    hops: Array
    structure: dict[str, Array]
    degree: Array
    homophily: Array
    label: Array
    labeled: Array
    domain: Array
    small: Array
    unit: Array
    scheme: str
    totals: Array
    components: Array

    def __len__(self) -> int:
        return len(self.nodes)


def sample(data: Data, domain: Array | None, size: float, *, keep: float = 1.0, seed: int = 0) -> Sample:
    """The nodes of ``data`` that take part.

    Args:
        data: A graph that `check_graph` has passed.
        domain: The domain of each node, -1 for unknown; ``None`` for one domain.
        size: Nodes of a unit, about.
        keep: The share of the edges that is looked at.
        seed: Of all draws.
    """
    draws = np.random.default_rng([seed, 11])
    count = int(data.x.size(0))
    codes = np.zeros(count, dtype=np.int64) if domain is None else domain
    adjacency = _adjacency(data, keep, draws)
    if "batch" in data:
        unit, scheme = group_of(data.batch.cpu().numpy(), codes, size, draws), "graphs"
    else:
        unit, scheme = units_of(adjacency, codes, size, draws)
    nodes = _draw(unit, codes, draws)
    component = connected_components(adjacency, directed=False)[1]
    domains = int(codes.max()) + 1
    pairs = np.unique(np.stack([codes, component])[:, codes >= 0], axis=1)
    label = np.full(count, -1)
    known = labeled_rows(data)
    if known is not None and "batch" not in data:
        label = np.where(known.cpu().numpy(), data.y.cpu().numpy(), -1)
    labeled = np.zeros(count, dtype=bool)
    if "batch" not in data and data.get("y") is not None:
        labeled = data.y.cpu().numpy() >= 0
    structure = _structure(adjacency)
    features = Block(data.x).rows(torch.from_numpy(nodes))
    return Sample(
        nodes=nodes,
        x=features.numpy().tocsr() if features.is_sparse else features.dense().numpy(),
        hops=_hops(data.x, adjacency, nodes),
        structure={name: values[nodes] for name, values in structure.items()},
        degree=np.diff(adjacency.indptr)[nodes].astype(np.float64),
        homophily=_homophily(adjacency, label)[nodes],
        label=label[nodes],
        labeled=labeled[nodes],
        domain=codes[nodes],
        small=(np.bincount(component) < _SMALL)[component[nodes]],
        unit=unit[nodes],
        scheme=scheme,
        totals=np.bincount(codes[codes >= 0], minlength=domains),
        components=np.bincount(pairs[0], minlength=domains),
    )


def _draw(unit: Array, codes: Array, draws: np.random.Generator) -> Array:
    """Up to `MOST` nodes with a domain, as many from each unit; ascending."""
    known = (codes >= 0).nonzero()[0]
    if len(known) <= MOST:
        return known
    order = draws.permutation(known)
    order = order[np.argsort(unit[order], kind="stable")]
    ordered = unit[order]
    starts = np.r_[0, (np.diff(ordered) != 0).nonzero()[0] + 1]
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return np.sort(order[place < max(1, MOST // len(starts))])


def _adjacency(data: Data, keep: float, draws: np.random.Generator) -> sparse.csr_matrix:
    """Neighbors without direction, loops and repeats."""
    count = int(data.x.size(0))
    source, target = (row.cpu().numpy() for row in data.edge_index)
    if keep < 1:
        # An edge and its reverse are kept together.
        low, high = np.minimum(source, target).astype(np.uint64), np.maximum(source, target).astype(np.uint64)
        mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xC2B2AE3D27D4EB4F))
        kept = (mixed >> np.uint64(11)).astype(np.float64) / 2**53 < keep
        source, target = source[kept], target[kept]
    other = source != target
    source, target = source[other], target[other]
    found = sparse.csr_matrix((np.ones(len(source), dtype=np.float32), (source, target)), (count, count))
    found = found + found.T
    found.data[:] = 1
    return found.tocsr()


def _structure(adjacency: sparse.csr_matrix) -> dict[str, Array]:
    degree = np.diff(adjacency.indptr).astype(np.float64)
    least = np.maximum(degree, 1)
    mean = adjacency @ degree / least
    found = {"degree": np.log1p(degree), "degree of neighbors": np.log1p(mean)}
    spread = adjacency @ degree**2 / least - mean**2
    found["spread of degrees of neighbors"] = np.log1p(np.sqrt(np.maximum(spread, 0)))
    if float(np.square(degree).sum()) <= _TRIANGLES:
        triangles = np.asarray((adjacency @ adjacency).multiply(adjacency).sum(1)).ravel()
        pairs = degree * (degree - 1)
        found["clustering"] = np.divide(triangles, pairs, out=np.zeros_like(degree), where=pairs > 0)
    return found


def _homophily(adjacency: sparse.csr_matrix, label: Array) -> Array:
    """The share of labeled neighbors that are of the node's class; NaN without them."""
    known = label >= 0
    if not known.any():
        return np.full(len(label), np.nan)
    of = sparse.csr_matrix((np.ones(known.sum()), (known.nonzero()[0], label[known])), (len(label), label.max() + 1))
    near = adjacency @ of
    count = np.asarray(near.sum(1)).ravel()
    same = np.asarray(near.multiply(of).sum(1)).ravel()
    return np.where(known & (count > 0), same / np.maximum(count, 1), np.nan)


def _hops(x: torch.Tensor, adjacency: sparse.csr_matrix, nodes: Array) -> Array:
    """The features of nodes, and the means over one and two hops, side by side."""
    signs = np.random.default_rng(x.size(1)).choice(np.array([-1, 1], np.float32), (x.size(1), _WIDTH))
    signs /= np.float32(_WIDTH**0.5)

    def rows(some: Array) -> Array:
        block = Block(x).rows(torch.from_numpy(some.astype(np.int64)))
        if x.size(1) <= _WIDTH:
            return block.dense(torch.float32).numpy()
        found: Array = block.matmul(torch.from_numpy(signs)).numpy()
        return found

    first = adjacency[nodes]
    near = np.unique(first.indices)
    second = adjacency[near]
    beyond = np.unique(second.indices)
    if len(beyond) > _REACH:
        return np.hstack([rows(nodes), _means(first[:, near], rows(near))])
    held = rows(np.union1d(beyond, near))
    place = np.union1d(beyond, near)
    means = _means(second[:, place], held)
    ones = held[np.searchsorted(place, near)]
    return np.hstack([rows(nodes), _means(first[:, near], ones), _means(first[:, near], means)])


def _means(adjacency: sparse.csr_matrix, rows: Array) -> Array:
    count = np.maximum(np.diff(adjacency.indptr), 1).astype(np.float32)
    found: Array = np.asarray(adjacency @ rows) / count[:, None]
    return found
