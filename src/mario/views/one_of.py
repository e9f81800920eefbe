"""A random choice of a view per graph."""

import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import GraphSet, count_graphs, select_graphs, stack_graphs
from mario.graphs.subgraph import count_nodes
from mario.graphs.validation import check_set
from mario.views.view import View


class OneOf(View):
    """Draws one of ``views`` uniformly for each graph of a set, as GraphCL's ``random2`` to ``random4``.

    Graphs keep their order. Without ``batch``, ``data`` is one graph.

    Example:
        >>> from mario.views import DropEdges, DropNodes
        >>> OneOf(DropNodes(0.2), DropEdges(0.2))
        OneOf(DropNodes(0.2), DropEdges(0.2))
    """

    def __init__(self, *views: View) -> None:
        if not views or not all(isinstance(view, View) for view in views):
            raise MarioError(f"views must be one or more views, got {views!r}")
        self.views = views

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        if "batch" in data:
            check_set(data)
        drawn = torch.randint(len(self.views), (count_graphs(data),), generator=generator)
        if "batch" not in data:
            return self.views[int(drawn)](data, generator)
        if "n_id" not in data:
            data.n_id = torch.arange(count_nodes(data), device=data.batch.device)
        graphs = GraphSet(data)
        parts, order = [], []
        for k, view in enumerate(self.views):
            chosen = (drawn == k).nonzero().view(-1)
            if chosen.numel():
                parts.append(view(graphs.select(chosen), generator))
                order.append(chosen)
        return select_graphs(stack_graphs(parts), torch.cat(order).argsort())

    def __repr__(self) -> str:
        return f"OneOf({', '.join(map(repr, self.views))})"
