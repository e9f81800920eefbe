"""Numbers of nodes that a split can go by: degree, words, size, PageRank, locality and clustering."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.declared import QUANTITIES
from mario.graphs.graph_sets import count_graphs, graph_sizes
from mario.graphs.paging import blocks, release
from mario.graphs.rules import choose
from mario.graphs.sparse import row_of_entries
from mario.graphs.subgraph import count_nodes

_DAMPING, _TOLERANCE, _ITERATIONS = 0.85, 1e-10, 200
_PATHS = 20_000_000  # entries of a product of adjacency matrices at a time
_EDGES = 4_000_000  # at a time


def quantity(data: Data, name: str) -> Tensor:
    """One number for each node, or for each graph of a set: the mean over its nodes, but ``size``, its nodes.

    - ``degree``: edges that begin at the node. An undirected edge counts at both ends.
    - ``word``: the row sum of ``x``; for a bag of words the number of words.
    - ``size``: the nodes of its connected component.
    - ``pagerank``: its share of a random walk that starts anew with probability 0.15.
    - ``locality``: the same, if the walk always starts anew at the node of the highest degree: how near it is to that
      node (Bazhenov et al., NeurIPS 2023).
    - ``clustering``: of the pairs of its neighbors, the share with an edge; edges have no direction.

    Args:
        data: A graph or a set of graphs with ``x`` and ``edge_index``.
        name: One of the six.

    Example:
        >>> path = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> quantity(path, "degree").tolist(), quantity(path, "size").tolist()
        ([1, 2, 1], [3, 3, 3])
    """
    choose("quantity", name, QUANTITIES)
    if name == "size" and "batch" in data:
        return graph_sizes(data)
    values = _OF[name](data)
    if "batch" not in data:
        return values
    total = torch.zeros(count_graphs(data), dtype=torch.float64)
    return total.index_add_(0, data.batch.cpu(), values.double()) / graph_sizes(data).cpu()


def word_counts(x: Tensor) -> Tensor:
    """Row sums of dense or sparse CSR features: a paper's number of words."""
    if x.layout != torch.sparse_csr:
        return torch.cat([block.sum(dim=1) for block in blocks(x)]) if x.size(0) else x.sum(dim=1)
    rows = row_of_entries(x.crow_indices())
    return torch.zeros(x.size(0), dtype=x.dtype, device=x.device).index_add_(0, rows, x.values())


def degrees(data: Data) -> Tensor:
    """The number of edges that begin at each node."""
    nodes = count_nodes(data)
    found = torch.zeros(nodes, dtype=torch.int64)
    for source, _ in edge_blocks(data.edge_index):
        found += torch.bincount(source, minlength=nodes)
    return found


def edge_blocks(edge_index: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The sources and targets of the edges, some millions at a time, so that a mapped file is not held in memory."""
    for start in range(0, edge_index.size(1), _EDGES):
        block = edge_index[:, start : start + _EDGES].cpu()
        yield block[0], block[1]
        release(edge_index)


def _words(data: Data) -> Tensor:
    return word_counts(data.x).cpu()


def _component_sizes(data: Data) -> Tensor:
    _, labels = sparse.csgraph.connected_components(_adjacency(data), directed=False)
    return torch.from_numpy(np.bincount(labels)[labels].astype(np.int64))


def _page_rank(data: Data) -> Tensor:
    nodes = count_nodes(data)
    return _walk(data, np.full(nodes, 1 / max(nodes, 1)))


def _locality(data: Data) -> Tensor:
    home = np.zeros(count_nodes(data))
    if home.size:
        home[int(degrees(data).argmax())] = 1
    return _walk(data, home)


def _walk(data: Data, home: np.ndarray) -> Tensor:
    """Where a walk along the edges is in the long run, if it returns home with probability 0.15 and at dead ends."""
    adjacency = _adjacency(data)
    degree = np.asarray(adjacency.sum(axis=1)).ravel()
    onward = (sparse.diags_array(np.divide(1, degree, where=degree > 0, out=np.zeros_like(degree))) @ adjacency).T
    onward, dead = onward.tocsr(), degree == 0
    here = home
    for _ in range(_ITERATIONS):
        back = 1 - _DAMPING + _DAMPING * here[dead].sum()
        then = _DAMPING * (onward @ here) + back * home
        moved = float(np.abs(then - here).sum())
        here = then
        if moved < _TOLERANCE:
            break
    # Nodes in the same place of a graph differ in the last bits, which must not decide the order.
    digits = 10.0 ** (7 - np.floor(np.log10(np.where(here > 0, here, 1.0))))
    return torch.from_numpy(np.round(here * digits) / digits)


def _clustering(data: Data) -> Tensor:
    adjacency = _adjacency(data)
    adjacency = (adjacency + adjacency.T).tocsr()
    adjacency.setdiag(0)
    adjacency.eliminate_zeros()
    adjacency.data[:] = 1
    degree = np.diff(adjacency.indptr).astype(np.float64)
    paths = np.asarray(adjacency @ degree).ravel().cumsum()  # what a row of the product costs, at most
    closed, nodes, start = np.zeros_like(degree), len(degree), 0
    while start < nodes:
        before = paths[start - 1] if start else 0.0
        end = max(start + 1, int(np.searchsorted(paths, before + _PATHS, side="right")))
        rows = adjacency[start:end]
        closed[start:end] = np.asarray((rows @ adjacency).multiply(rows).sum(axis=1)).ravel()
        start = end
    pairs = degree * (degree - 1)
    return torch.from_numpy(np.divide(closed, pairs, where=pairs > 0, out=np.zeros_like(closed)))


def _adjacency(data: Data) -> sparse.csr_array:
    """Each edge as a one; the weight of several edges between two nodes is their number."""
    nodes, edge_index = count_nodes(data), data.edge_index.cpu().numpy()
    return sparse.csr_array((np.ones(edge_index.shape[1]), (edge_index[0], edge_index[1])), shape=(nodes, nodes))


_OF: dict[str, Callable[[Data], Tensor]] = {
    "degree": degrees,
    "word": _words,
    "size": _component_sizes,
    "pagerank": _page_rank,
    "locality": _locality,
    "clustering": _clustering,
}
