"""The subgraph of nodes visited by random walks."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import MOST_DRAWN, check_count, check_probability
from mario.errors import MarioError
from mario.graphs.csr import CSR
from mario.graphs.walks import random_step, random_walk
from mario.views.induced import graph_of_nodes, induced_view
from mario.views.view import View, edges_of

# Steps without a new node after which walkers restart elsewhere.
_PATIENCE = 16


class RandomWalkSubgraph(View):
    """The subgraph of the nodes that random walks visit, as in `"Graph Contrastive Learning with Augmentations"
    <https://arxiv.org/abs/2010.13902>`_ (GraphCL).

    Works on one graph and on a batch of graphs, each walked separately. Walks follow outgoing edges, drawn uniformly.
    The remaining edges keep their weights and attributes. ``n_id`` holds the ids of the remaining nodes. Pass either
    ``ratio``, or both ``roots`` and ``length``.

    Args:
        ratio: Keep ⌈ratio · nodes⌉ nodes of every graph, in (0, 1]. ⌈√(nodes to keep)⌉ walkers start from one random
            node and walk until they have visited that many nodes; after 16 steps without a new node they continue from
            unvisited nodes, so that a small component does not trap them.
        roots: Walks per graph, from nodes drawn uniformly with replacement.
        length: Steps per walk.

    Example:
        >>> ring = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]))
        >>> RandomWalkSubgraph(0.5)(ring, torch.Generator().manual_seed(0)).n_id.tolist()
        [0, 1, 5]
    """

    def __init__(self, ratio: float | None = None, *, roots: int | None = None, length: int | None = None) -> None:
        if (ratio is None) == (roots is None and length is None):
            raise MarioError(f"pass either ratio, or roots and length, got {ratio=}, {roots=}, {length=}")
        if ratio is not None and check_probability("ratio", ratio) == 0:
            raise MarioError("ratio must be above 0, got 0")
        if ratio is None:
            for name, value, low in (("roots", roots, 1), ("length", length, 0)):
                check_count(name, value, low, high=MOST_DRAWN)
        self.ratio, self.roots, self.length = ratio, roots, length

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        edge_index, graph = edges_of(self, data), graph_of_nodes(data)
        csr = CSR(edge_index, graph.numel())
        if not graph.numel():
            nodes = graph
        elif self.roots is not None and self.length is not None:
            roots = _draw_roots(graph, self.roots, generator)
            nodes = random_walk(csr, roots, self.length, generator).unique()
        else:
            nodes = _walk_until(csr, graph, self.ratio or 1.0, generator)
        return induced_view(data, nodes)

    def __repr__(self) -> str:
        if self.ratio is not None:
            return f"RandomWalkSubgraph({self.ratio:g})"
        return f"RandomWalkSubgraph(roots={self.roots}, length={self.length})"


def _draw_roots(graph: Tensor, roots: int, generator: torch.Generator | None) -> Tensor:
    """``roots`` nodes of every graph that has any, drawn uniformly with replacement."""
    by_graph = graph.argsort(stable=True)
    sizes = torch.bincount(graph)
    starts = (sizes.cumsum(0) - sizes)[sizes > 0]
    draws = torch.rand((roots, starts.numel()), dtype=torch.float64, generator=generator).to(graph.device)
    return by_graph[starts + (draws * sizes[sizes > 0]).long()].view(-1)


def _walk_until(csr: CSR, graph: Tensor, ratio: float, generator: torch.Generator | None) -> Tensor:
    """Ascending ids of the first ⌈ratio · n⌉ nodes that the walkers of each graph visit."""
    sizes = torch.bincount(graph)
    # The small offset prevents 0.1 · 30 from being rounded up to 4.
    goal = (ratio * sizes.double() - 1e-9).ceil().long().clamp_(min=1).minimum(sizes)
    walkers = goal.double().sqrt().ceil().long()
    owner = torch.repeat_interleave(torch.arange(sizes.numel(), device=graph.device), walkers)
    root = torch.zeros_like(sizes)
    roots = _draw_roots(graph, 1, generator)
    root[graph[roots]] = roots

    seen = torch.zeros_like(graph, dtype=torch.bool)
    seen[roots] = True
    found, count, idle = [roots], torch.bincount(graph[roots], minlength=sizes.numel()), torch.zeros_like(sizes)
    at = root[owner]
    while bool((count < goal).any()):
        walking = (count < goal)[owner]
        owner, at = owner[walking], random_step(csr, at[walking], generator)
        stuck = (idle >= _PATIENCE)[owner]
        if bool(stuck.any()):
            at[stuck] = _unseen(graph, seen, owner[stuck], generator)
        fresh = at[~seen[at]].unique()
        # In random order, because the goal may cut off the last nodes of a step.
        fresh = fresh[torch.randperm(fresh.numel(), generator=generator).to(fresh.device)]
        seen[fresh] = True
        found.append(fresh)
        gained = torch.bincount(graph[fresh], minlength=sizes.numel())
        count, idle = count + gained, torch.where(gained > 0, 0, idle + 1)
    nodes = torch.cat(found)
    nodes = nodes[graph[nodes].argsort(stable=True)]
    return nodes[_rank(graph[nodes]) < goal[graph[nodes]]].sort().values


def _unseen(graph: Tensor, seen: Tensor, owner: Tensor, generator: torch.Generator | None) -> Tensor:
    """For each walker an unvisited node of its graph, distinct as long as there are enough."""
    nodes = (~seen).nonzero().view(-1)
    nodes = nodes[torch.randperm(nodes.numel(), generator=generator).to(nodes.device)]
    nodes = nodes[graph[nodes].argsort(stable=True)]
    left = torch.bincount(graph[nodes], minlength=int(graph.max()) + 1)
    first = left.cumsum(0) - left
    return nodes[first[owner] + _rank(owner) % left[owner]]


def _rank(groups: Tensor) -> Tensor:
    """Position of each element within its group; ``groups`` is sorted."""
    sizes = torch.bincount(groups)
    return torch.arange(groups.numel(), device=groups.device) - (sizes.cumsum(0) - sizes)[groups]
