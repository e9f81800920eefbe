"""Edge perturbation."""

import torch
from torch_geometric.data import Data

from mario.arguments import check_probability
from mario.views.induced import graph_of_nodes
from mario.views.view import View, edges_of


class PerturbEdges(View):
    """Drops each edge with probability ``p`` and adds as many at random, as in `"Graph Contrastive Learning with
    Augmentations" <https://arxiv.org/abs/2010.13902>`_ (GraphCL).

    An added edge takes the place, weight and attributes of a dropped one, so that neither the number of edges nor the
    distribution of their weights changes. Its ends are drawn uniformly from the nodes of the same graph; it may be a
    self-loop or repeat another edge, as in the authors' code for semi-supervised learning. Their code for unsupervised
    learning only drops edges; use :class:`DropEdges` for that.

    Args:
        p: Probability that an edge is replaced.

    Example:
        >>> data = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3)
        >>> PerturbEdges(0.5)(data, torch.Generator().manual_seed(0)).edge_index.tolist()
        [[0, 1, 0], [0, 2, 0]]
    """

    def __init__(self, p: float) -> None:
        self.p = check_probability("p", p)

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        edge_index = edges_of(self, data)
        if self.p == 0 or not edge_index.size(1):
            return data
        graph = graph_of_nodes(data)
        dropped = (torch.rand(edge_index.size(1), generator=generator) < self.p).nonzero().view(-1)
        dropped = dropped.to(edge_index.device)
        owner = graph[edge_index[0, dropped]]
        # The nodes of a graph need not be consecutive: `members` lists them graph by graph.
        members = graph.argsort(stable=True)
        sizes = torch.bincount(graph)
        draws = torch.rand((2, dropped.numel()), dtype=torch.float64, generator=generator).to(edge_index.device)
        added = members[(sizes.cumsum(0) - sizes)[owner] + (draws * sizes[owner]).long()]
        data.edge_index = edge_index.index_copy(1, dropped, added)
        return data

    def __repr__(self) -> str:
        return f"PerturbEdges({self.p:g})"
