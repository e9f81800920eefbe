"""What every sampler is: a graph whose training batches are graphs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.paging import extremes, gather
from mario.graphs.subgraph import count_nodes, select_rows


class Sampler(ABC):
    """Training batches of one graph; a batch is a ``Data`` of its own.

    ``sample`` draws one batch and remembers nothing; ``epoch`` is a pass over the graph. Node-level and edge-level
    tensors are sliced, all else is carried along. ``n_id`` holds the node ids in ``data``, or, if ``data`` was itself
    cut from a graph and has an ``n_id``, in that graph. All randomness comes from ``generator`` (``None``: torch's
    default). One sampler is for one thread: batches share a scratch buffer.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self.num_nodes = check_graph(data)
        tensors = [key for key, value in data if isinstance(value, Tensor) and value.dim() and key != "edge_index"]
        self._edge_keys = [key for key in tensors if data.is_edge_attr(key)]
        self._node_keys = [key for key in tensors if key not in self._edge_keys and data[key].size(0) == self.num_nodes]
        sliced = {"edge_index", "num_nodes", *self._edge_keys, *self._node_keys}
        self._whole = {key: value for key, value in data if key not in sliced}

    @abstractmethod
    def sample(self, generator: torch.Generator | None = None) -> Data:
        """One training batch."""

    @abstractmethod
    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        """The batches of one pass over the graph."""

    def batch(self, nodes: Tensor, edge_index: Tensor, edge_ids: Tensor) -> Data:
        """The batch of these nodes and (already relabeled) edges, with their attributes."""
        batch = Data(edge_index=edge_index)
        for key in self._node_keys:
            value = self.data[key]
            sparse = value.layout == torch.sparse_csr
            batch[key] = select_rows(value, nodes) if sparse else gather(value, nodes)
        for key in self._edge_keys:
            value = self.data[key]
            batch[key] = value.index_select(self.data.__cat_dim__(key, value), edge_ids)
        for key, value in self._whole.items():
            batch[key] = value
        if "n_id" not in batch:
            batch.n_id = nodes
        batch.num_nodes = nodes.numel()
        return batch


def check_graph(data: Data) -> int:
    """The number of nodes, if ``data`` is a graph that can be sampled."""
    num_nodes = count_nodes(data)
    if not num_nodes:
        raise MarioError("data has no nodes; a sampler needs a graph of one node or more")
    edge_index = data.get("edge_index")
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or edge_index.size(0) != 2:
        got = f"shape {tuple(edge_index.shape)}" if isinstance(edge_index, Tensor) else repr(edge_index)
        raise MarioError(f"data.edge_index must be an int64 tensor of shape [2, edges], got {got}")
    if edge_index.dtype != torch.int64:
        raise MarioError(f"data.edge_index must be int64, got {edge_index.dtype}")
    if edge_index.numel():
        low, high = extremes(edge_index)
        if low < 0 or high >= num_nodes:
            raise MarioError(f"data.edge_index must hold node ids in 0..{num_nodes - 1}, got {low}..{high}")
    return num_nodes


def check_count(name: str, value: int, low: int = 1) -> int:
    """``value``, if it is a whole number of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise MarioError(f"{name} must be a whole number of at least {low}, got {value!r}")
    return value
