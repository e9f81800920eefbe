"""Balanced partitions of a graph that cut few edges."""

import importlib.util

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from mario.errors import MarioError

METHODS = ("auto", "metis", "bfs")
# For "bfs": rounds of label propagation, and the relative deviation of a part's size from the mean.
_ROUNDS, _TOLERANCE = 10, 0.1


def choose_method(method: str) -> str:
    """``"metis"`` or ``"bfs"``; ``"auto"`` is METIS if ``pymetis`` is installed."""
    if method not in METHODS:
        raise MarioError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
    installed = importlib.util.find_spec("pymetis") is not None
    if method == "metis" and not installed:
        raise MarioError(
            "method='metis' needs pymetis, which is not installed: "
            "pip install 'mario-gcl[clusters]', or use method='bfs'"
        )
    return ("metis" if installed else "bfs") if method == "auto" else method


def partition(edge_index: Tensor, num_nodes: int, parts: int, method: str = "auto") -> Tensor:
    """The part of each node, int64 [N]; the direction of edges, self-loops and parallel edges are ignored.

    ``"metis"`` is METIS (Karypis & Kumar, 1998), which may leave a part empty if ``parts`` is close to ``num_nodes``.
    ``"bfs"`` needs only scipy: nodes in breadth-first order (reverse Cuthill-McKee) are divided into equal pieces, then
    ten rounds of label propagation move nodes to the part of most of their neighbors, as long as sizes stay within
    10 % of the mean. It cuts more edges: of Coauthor-CS in 50 parts 47 %, METIS 31 %, a random partition 98 %. Both are
    deterministic.

    Example:
        >>> partition(torch.tensor([[0, 2, 4], [4, 3, 1]]), num_nodes=5, parts=1).tolist()
        [0, 0, 0, 0, 0]
    """
    method = choose_method(method)
    if parts == 1:
        return torch.zeros(num_nodes, dtype=torch.int64)
    neighbors = _undirected(edge_index, num_nodes)
    return _metis(neighbors, parts) if method == "metis" else _breadth_first(neighbors, parts)


def _undirected(edge_index: Tensor, num_nodes: int) -> csr_matrix:
    source, target = edge_index.cpu().numpy()
    loop = source == target
    source, target = source[~loop], target[~loop]
    ones = np.ones(source.size, dtype=np.int8)
    adjacency = csr_matrix((ones, (source, target)), shape=(num_nodes, num_nodes))
    adjacency.data[:] = 1  # the constructor adds up parallel edges, beyond int8 if there are many
    return adjacency + adjacency.T


def _metis(neighbors: csr_matrix, parts: int) -> Tensor:
    import pymetis

    adjacency = pymetis.CSRAdjacency(adj_starts=neighbors.indptr, adjacent=neighbors.indices)
    _, labels = pymetis.part_graph(parts, adjacency=adjacency)
    return torch.as_tensor(labels, dtype=torch.int64)


def _breadth_first(neighbors: csr_matrix, parts: int) -> Tensor:
    num_nodes = neighbors.shape[0]
    order = torch.from_numpy(reverse_cuthill_mckee(neighbors, symmetric_mode=True).astype(np.int64))
    labels = torch.empty(num_nodes, dtype=torch.int64)
    labels[order] = torch.arange(num_nodes) * parts // num_nodes
    source = torch.repeat_interleave(torch.arange(num_nodes), torch.from_numpy(np.diff(neighbors.indptr)))
    target = torch.from_numpy(neighbors.indices).long()
    for turn in range(_ROUNDS):
        # Only half of the nodes may move in a round; otherwise two neighbors could swap parts forever.
        labels = _propagate(source, target, labels, parts, may_move=torch.arange(num_nodes) % 2 == turn % 2)
    return labels


def _propagate(source: Tensor, target: Tensor, labels: Tensor, parts: int, may_move: Tensor) -> Tensor:
    """One round of balanced label propagation."""
    pairs, count = torch.unique(source * parts + labels[target], return_counts=True)
    node, label = pairs // parts, pairs % parts
    at_home = torch.zeros_like(labels)
    stays = label == labels[node]
    at_home[node[stays]] = count[stays]
    gain = count - at_home[node]
    best = torch.zeros_like(labels).scatter_reduce(0, node, gain, "amax")
    wanted = (gain > 0) & (gain == best[node]) & may_move[node]
    node, label, gain = node[wanted], label[wanted], gain[wanted]
    # Pairs are sorted by node: the first of equally good parts wins.
    first = torch.ones_like(node, dtype=torch.bool)
    first[1:] = node[1:] != node[:-1]
    node, label, gain = node[first], label[first], gain[first]

    mean, sizes = labels.numel() / parts, torch.bincount(labels, minlength=parts)
    room = (int((1 + _TOLERANCE) * mean + 1) - sizes).clamp_(min=0)
    surplus = (sizes - max(int((1 - _TOLERANCE) * mean), 1)).clamp_(min=0)
    by_gain = gain.argsort(descending=True, stable=True)
    node, label = node[by_gain], label[by_gain]
    moves = (_rank(labels[node]) < surplus[labels[node]]) & (_rank(label) < room[label])
    labels = labels.clone()
    labels[node[moves]] = label[moves]
    return labels


def _rank(groups: Tensor) -> Tensor:
    """The number of earlier elements in the same group."""
    ordered, order = groups.sort(stable=True)
    sizes = torch.bincount(groups)
    rank = torch.empty_like(groups)
    rank[order] = torch.arange(groups.numel()) - (sizes.cumsum(0) - sizes)[ordered]
    return rank
