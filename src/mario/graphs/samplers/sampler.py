"""The base class of samplers, which draw training batches from a graph."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.paging import check_file, gather
from mario.graphs.sparse import select_rows
from mario.graphs.validation import check_structure


class Sampler(ABC):
    """Draws training batches from one graph; each batch is a ``Data``.

    ``sample`` draws one batch and keeps no state; ``epoch`` is a pass over the graph. Node-level and edge-level tensors
    (``edge_weight``, ``edge_attr``) are sliced, all other attributes are kept. ``n_id`` holds the node ids in ``data``,
    or, if ``data`` is a subgraph and has an ``n_id`` itself, those in the original graph. All randomness comes from
    ``generator`` (``None``: torch's default). Edge weights do not influence what is drawn. A sampler must be used by
    one thread only: batches share a scratch buffer.
    """

    def __init__(self, data: Data) -> None:
        self.data = data
        self.num_nodes = check_structure(data)
        if not self.num_nodes:
            raise MarioError("data has no nodes; a sampler needs at least one")
        if data.edge_index is None:
            raise MarioError("data has no edge_index; a sampler needs one of shape [2, edges]")
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
            dim = self.data.__cat_dim__(key, value)
            check_file(value)
            batch[key] = gather(value, edge_ids) if dim == 0 else value.index_select(dim, edge_ids)
        for key, value in self._whole.items():
            check_file(value)
            batch[key] = value
        if "n_id" not in batch:
            batch.n_id = nodes
        batch.num_nodes = nodes.numel()
        return batch
