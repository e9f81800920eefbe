"""Many graphs as one: side by side in a single ``Data``, with the graph of each node in ``batch``."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.paging import check_file
from mario.graphs.sparse import csr, select_rows
from mario.graphs.subgraph import as_ids, count_nodes

_MADE = ("edge_index", "batch", "ptr", "num_nodes", "num_graphs")


def count_graphs(data: Data) -> int:
    """The number of graphs in ``data``; 1 if it has no ``batch``."""
    if "batch" not in data:
        return 1
    if "ptr" in data:
        return int(data.ptr.numel()) - 1
    stated = data.get("num_graphs")
    return int(stated) if stated is not None else int(data.batch.max()) + 1


def stack_graphs(graphs: Sequence[Data]) -> Data:
    """Graphs, or sets of graphs, side by side in one set: ``batch`` [nodes], ``ptr`` [graphs + 1] and ``num_graphs``.

    Tensors that all of them have are concatenated; a plain attribute is taken from the first.

    Example:
        >>> one = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0]))
        >>> both = stack_graphs([one, one])
        >>> both.batch.tolist(), both.edge_index.tolist(), both.y.tolist()
        ([0, 0, 1, 1], [[0, 2], [1, 3]], [0, 0])
    """
    if not graphs:
        raise MarioError("graphs is empty; a set needs at least one graph")
    sizes = torch.cat([graph_sizes(graph) for graph in graphs])
    nodes = [count_nodes(graph) for graph in graphs]
    starts = np.cumsum([0, *nodes[:-1]]).tolist()
    edges = [graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)]
    stacked = Data(edge_index=torch.cat(edges, dim=1))
    for key, value in graphs[0]:
        if key in _MADE or not all(key in graph for graph in graphs):
            continue
        if isinstance(value, Tensor) and value.dim():
            parts = [graph[key] for graph in graphs]
            if all(part.layout == torch.sparse_csr for part in parts):
                stacked[key] = _stack_sparse(parts)
            else:  # one dense part, such as features filled with noise, makes the whole dense
                parts = [part.to_dense() if part.layout == torch.sparse_csr else part for part in parts]
                stacked[key] = torch.cat(parts, dim=graphs[0].__cat_dim__(key, value))
        else:
            stacked[key] = value
    return _finish(stacked, sizes)


def select_graphs(data: Data, which: Tensor) -> Data:
    """The graphs of a set that ``which`` (int64 ids, in the order wanted, or a bool mask) names, as a set.

    ``y``, masks and all other tensors with one row per graph are selected too. ``n_id`` holds the node ids in the
    original set.

    Example:
        >>> two = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]), batch=torch.tensor([0, 0, 1]))
        >>> select_graphs(two, torch.tensor([1])).n_id.tolist()
        [2]
    """
    return GraphSet(data).select(which)


class GraphSet:
    """A set of graphs to select from repeatedly: the places of each graph's nodes and edges are computed once.

    Example:
        >>> data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 2], [1, 2]]), batch=torch.tensor([0, 0, 1]))
        >>> [part.edge_index.tolist() for part in GraphSet(data).chunks(nodes=2)]
        [[[0], [1]], [[0], [0]]]
    """

    def __init__(self, data: Data) -> None:
        if "batch" not in data:
            raise MarioError("data has no batch, so it is a single graph; a set of graphs comes from stack_graphs")
        self.data = data
        self.num_graphs = count_graphs(data)
        self.sizes = graph_sizes(data)
        self.starts = self.sizes.cumsum(0) - self.sizes
        owner = data.batch[data.edge_index[0]]
        self.edges = torch.bincount(owner, minlength=self.num_graphs)
        self.edge_starts = self.edges.cumsum(0) - self.edges
        grouped = bool((owner[1:] >= owner[:-1]).all())
        self.edge_order = None if grouped else owner.argsort(stable=True)
        self.rows = {key: self._rows(key, value) for key, value in data if isinstance(value, Tensor)}

    def select(self, which: Tensor) -> Data:
        """See :func:`select_graphs`."""
        for _, value in self.data:
            check_file(value)
        which = self._ids(which)
        nodes = _ranges(self.starts[which], self.sizes[which])
        edges = _ranges(self.edge_starts[which], self.edges[which])
        if self.edge_order is not None:
            edges = self.edge_order[edges]
        sizes = self.sizes[which]
        # A node keeps its place in its graph, so all nodes of a graph move by the same number.
        move = torch.repeat_interleave(sizes.cumsum(0) - sizes - self.starts[which], self.edges[which])
        cut = Data(edge_index=self.data.edge_index.index_select(1, edges) + move)
        places = {"node": nodes, "edge": edges, "graph": which}
        for key, value in self.data:
            if key in _MADE:
                continue
            kind = self.rows.get(key)
            if kind is None:
                cut[key] = value
            elif value.layout == torch.sparse_csr:
                cut[key] = select_rows(value, places[kind])
            else:
                cut[key] = value.index_select(self.data.__cat_dim__(key, value) if kind == "edge" else 0, places[kind])
        if "n_id" not in cut:
            cut.n_id = nodes
        return _finish(cut, sizes)

    def chunks(self, nodes: int) -> Iterator[Data]:
        """The set in order, in parts of at most ``nodes`` nodes, or of one graph that has more."""
        ends, first = self.sizes.cumsum(0), 0
        while first < self.num_graphs:
            reach = int(self.starts[first]) + nodes
            last = max(first + 1, int(torch.searchsorted(ends, reach, right=True)))
            yield self.select(torch.arange(first, last, device=ends.device))
            first = last

    def _rows(self, key: str, value: Tensor) -> str | None:
        """Whether a tensor has a row for each node, each edge or each graph."""
        if key in _MADE or not value.dim():
            return None
        nodes, edges = int(self.sizes.sum()), self.data.edge_index.size(1)
        if "edge" in key and value.size(self.data.__cat_dim__(key, value)) == edges:
            return "edge"
        # If every graph has one node, both are the same.
        return {edges: "edge", self.num_graphs: "graph", nodes: "node"}.get(value.size(0))

    def _ids(self, which: Tensor) -> Tensor:
        which = as_ids("which", which, self.num_graphs, "the set has {} graphs")
        if not which.numel():
            raise MarioError("which names no graph; a set needs at least one")
        return which.to(self.sizes.device)


def graph_sizes(data: Data) -> Tensor:
    """The number of nodes of each graph."""
    if "batch" not in data:
        return torch.tensor([count_nodes(data)])
    return torch.bincount(data.batch, minlength=count_graphs(data))


def _finish(data: Data, sizes: Tensor) -> Data:
    data.batch = torch.repeat_interleave(torch.arange(sizes.numel(), device=sizes.device), sizes)
    data.ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    data.num_nodes, data.num_graphs = data.batch.numel(), sizes.numel()
    return data


def _ranges(starts: Tensor, counts: Tensor) -> Tensor:
    """starts[0], starts[0] + 1, … counts[0] of them, then those of starts[1], and so on."""
    shift = torch.repeat_interleave(starts - (counts.cumsum(0) - counts), counts)
    return torch.arange(shift.numel(), device=shift.device) + shift


def _stack_sparse(parts: Sequence[Tensor]) -> Tensor:
    before = np.cumsum([0, *(part.values().numel() for part in parts[:-1])]).tolist()
    crow = [part.crow_indices()[1:] + start for part, start in zip(parts, before, strict=True)]
    return csr(
        torch.cat([crow[0].new_zeros(1), *crow]),
        torch.cat([part.col_indices() for part in parts]),
        torch.cat([part.values() for part in parts]),
        (sum(part.size(0) for part in parts), parts[0].size(1)),
    )
