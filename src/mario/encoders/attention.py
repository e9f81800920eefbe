"""Attention over the edges that reach a node."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.utils import add_self_loops, remove_self_loops, softmax

from mario.errors import MarioError

# Numbers in the rows that are gathered at once for the gradient of the shares: a cache holds them.
_BLOCK = 2**18


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
        source, target = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=num_nodes)[0]
        self.target, order = target.sort(stable=True)
        self.source = source[order]
        self.starts = _starts(target, num_nodes)
        self.senders, self.first, self.receivers = num_nodes, 0, num_nodes
        self._back: tuple[Tensor, Tensor] | None = None

    def rows(self, start: int, stop: int) -> "Attended":
        """Only the edges that reach the nodes ``start`` to ``stop``."""
        low, high = int(self.starts[start]), int(self.starts[stop])
        block = object.__new__(Attended)
        block.source, block.target = self.source[low:high], self.target[low:high] - start
        block.starts = self.starts[start : stop + 1] - low
        block.senders, block.first, block.receivers, block._back = self.senders, start, stop - start, None
        return block

    def scores(self, to_source: Tensor, to_target: Tensor) -> Tensor:
        """One score an edge: the sum of what its two ends say."""
        own = to_target[self.first : self.first + self.receivers]
        return to_source.index_select(0, self.source) + own.index_select(0, self.target)

    def __call__(self, messages: Tensor, scores: Tensor) -> Tensor:
        share = softmax(scores, self.target, num_nodes=self.receivers).to(messages.dtype)
        out: Tensor = _Weighed.apply(messages, share, self)
        return out

    @property
    def back(self) -> tuple[Tensor, Tensor]:
        """The edges in the order of their sources, and where those of each source start: made once."""
        if self._back is None:
            self._back = self.source.argsort(stable=True), _starts(self.source, self.senders)
        return self._back


class _Weighed(torch.autograd.Function):
    # With P the matrix of shares, P x: a product of a sparse matrix and no row an edge. Its gradient at x is Pᵀ g, and
    # at the share of an edge the product of the rows at its ends.

    @staticmethod
    def forward(ctx: Any, messages: Tensor, share: Tensor, along: Attended) -> Tensor:
        ctx.save_for_backward(messages, share)
        ctx.along = along
        return _bags(messages, along.source, along.starts, share)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (messages, share), along = ctx.saved_tensors, ctx.along
        grad = grad.contiguous()
        d_messages = d_share = None
        if ctx.needs_input_grad[0]:
            order, starts = along.back
            d_messages = _bags(grad, along.target[order], starts, share[order])
        if ctx.needs_input_grad[1]:
            d_share = torch.empty_like(share)
            step = max(1, _BLOCK // max(1, messages.size(1)))
            for first in range(0, share.numel(), step):
                edges = slice(first, first + step)
                ends = grad.index_select(0, along.target[edges]), messages.index_select(0, along.source[edges])
                torch.linalg.vecdot(*ends, out=d_share[edges])
        return d_messages, d_share, None


def _bags(x: Tensor, rows: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
    """Sums of weighted rows of ``x``, one for each start."""
    return F.embedding_bag(rows, x, starts, mode="sum", per_sample_weights=weights, include_last_offset=True)


def _starts(ends: Tensor, nodes: int) -> Tensor:
    starts = torch.zeros(nodes + 1, dtype=torch.int64, device=ends.device)
    torch.cumsum(torch.bincount(ends, minlength=nodes), 0, out=starts[1:])
    return starts
