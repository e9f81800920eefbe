"""Attention over the edges that reach a node."""

import torch
from torch import Tensor
from torch_geometric.utils import add_self_loops, remove_self_loops, softmax

from mario.errors import MarioError
from mario.graphs.csr import CSR


class Attended:
    """The edges of a graph, one self-loop a node among them, along which a softmax over incoming edges weighs messages.

    Args:
        edge_index: [2, E].
        num_nodes: number of nodes that send and that receive.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < num_nodes:
            low, high = int(edge_index.min()), int(edge_index.max())
            raise MarioError(f"edge_index must hold nodes 0 to {num_nodes - 1}, got {low} to {high}")
        looped, _ = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=num_nodes)
        self.source, self.target = looped
        self.first, self.receivers, self._nodes = 0, num_nodes, num_nodes
        self._by_target: CSR | None = None

    def rows(self, start: int, stop: int) -> "Attended":
        """Only the edges that reach the nodes ``start`` to ``stop``."""
        if self._by_target is None:
            self._by_target = CSR(torch.stack([self.source, self.target]), self._nodes, by="target")
        slots, owner = self._by_target.slots(torch.arange(start, stop, device=self.source.device))
        block = object.__new__(Attended)
        block.source, block.target = self._by_target.others.index_select(0, slots), owner
        block.first, block.receivers, block._nodes = start, stop - start, self._nodes
        return block

    def scores(self, to_source: Tensor, to_target: Tensor) -> Tensor:
        """One score an edge: the sum of what its two ends say."""
        own = to_target[self.first : self.first + self.receivers]
        return to_source.index_select(0, self.source) + own.index_select(0, self.target)

    def __call__(self, messages: Tensor, scores: Tensor) -> Tensor:
        share = softmax(scores, self.target, num_nodes=self.receivers).unsqueeze(1)
        out = messages.new_zeros(self.receivers, messages.size(1))
        return out.index_add(0, self.target, messages.index_select(0, self.source) * share)
