"""Node dropping."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_probability
from mario.errors import MarioError
from mario.graphs.subgraph import as_ids
from mario.views.induced import graph_of_nodes, induced_view
from mario.views.view import View


class DropNodes(View):
    """Removes each node and its edges with probability ``p``, as in `"Graph Contrastive Learning with Augmentations"
    <https://arxiv.org/abs/2010.13902>`_ (GraphCL).

    Works on one graph and on a batch of graphs. At least one node of every graph remains, so that it has an embedding.
    The remaining edges keep their weights and attributes. ``n_id`` holds the ids of the remaining nodes.

    Args:
        p: Probability that a node is dropped.
        keep_ids: int64 ids of nodes that are never dropped.

    Example:
        >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> view = DropNodes(1.0, keep_ids=torch.tensor([0, 1]))(data, torch.Generator().manual_seed(1))
        >>> view.n_id.tolist(), view.edge_index.tolist()
        ([0, 1], [[0], [1]])
    """

    def __init__(self, p: float, *, keep_ids: Tensor | None = None) -> None:
        self.p = check_probability("p", p)
        if keep_ids is not None and not isinstance(keep_ids, Tensor):
            raise MarioError(f"keep_ids must be a tensor of int64 ids, got {type(keep_ids).__name__}")
        if keep_ids is not None and (keep_ids.dtype != torch.int64 or keep_ids.dim() != 1):
            got = f"{keep_ids.dtype} of shape {tuple(keep_ids.shape)}"
            raise MarioError(f"keep_ids must be int64 ids with one dimension, got {got}")
        self.keep_ids = keep_ids

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        graph = graph_of_nodes(data)
        # Float64, because two nodes with the same draw would both remain.
        draws = torch.rand(graph.numel(), dtype=torch.float64, generator=generator).to(graph.device)
        kept = draws >= self.p
        if self.keep_ids is not None:
            kept[as_ids("keep_ids", self.keep_ids, graph.numel()).to(graph.device)] = True
        if graph.numel():
            draws[kept] += 1  # a graph that already keeps a node needs no other
            highest = draws.new_zeros(int(graph.max()) + 1).scatter_reduce(0, graph, draws, "amax")
            kept |= draws == highest[graph]
        return induced_view(data, kept.nonzero().view(-1))

    def __repr__(self) -> str:
        return f"DropNodes({self.p:g}{'' if self.keep_ids is None else f', keep_ids=<{self.keep_ids.numel()} nodes>'})"
