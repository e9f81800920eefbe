"""Edge dropping."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_probability
from mario.graphs.subgraph import count_nodes
from mario.views.view import View, edges_of


class DropEdges(View):
    """Drops each edge with probability ``p``, as in `"Deep Graph Contrastive Representation Learning"
    <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    The remaining edges keep their order, weights and attributes.

    Args:
        p: Probability that an edge is dropped.
        undirected: Decide once for all edges between two nodes, so that a symmetric graph stays symmetric. The default
            decides for each direction separately, as GRACE's released code does.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
        >>> view = DropEdges(0.5, undirected=True)(data, torch.Generator().manual_seed(0))
        >>> view.edge_index.tolist(), data.num_edges
        ([[1, 2], [2, 1]], 4)
    """

    def __init__(self, p: float, *, undirected: bool = False) -> None:
        self.p = check_probability("p", p)
        self.undirected = undirected

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        edge_index = edges_of(self, data)
        if self.p == 0:
            return data
        if self.undirected:
            low, high = edge_index.aminmax(dim=0)
            _, pair = torch.unique(low * (int(high.max()) + 1 if high.numel() else 1) + high, return_inverse=True)
            pairs = int(pair.max()) + 1 if pair.numel() else 0
            kept = self._kept(pairs, edge_index.device, generator)[pair]
        else:
            kept = self._kept(edge_index.size(1), edge_index.device, generator)
        kept = kept.nonzero().view(-1)
        if "num_nodes" not in data:
            data.num_nodes = count_nodes(data)  # otherwise PyG would infer it from the remaining edges
        # Collected before the first is sliced: PyG recognizes an edge attribute by the number of edges. In a batch,
        # there may be as many graphs, and the name decides.
        keys = [
            key
            for key in data.keys()  # noqa: SIM118
            if isinstance(data[key], Tensor) and data.is_edge_attr(key) and ("batch" not in data or "edge" in key)
        ]
        for key in keys:
            value = data[key]
            data[key] = value.index_select(data.__cat_dim__(key, value), kept)
        return data

    def _kept(self, draws: int, device: torch.device, generator: torch.Generator | None) -> Tensor:
        return (torch.rand(draws, generator=generator) >= self.p).to(device)

    def __repr__(self) -> str:
        return f"DropEdges({self.p:g}{', undirected=True' if self.undirected else ''})"
