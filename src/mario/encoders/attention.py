"""Attention over the incoming edges of a node."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.utils import add_self_loops, remove_self_loops, softmax

from mario.graphs.sparse import row_of_entries
from mario.graphs.validation import check_edges

# Numbers gathered at once for the gradient of the shares, few enough for the CPU's cache.
_BLOCK = 2**18


class Attended:
    """The edges of a graph with one self-loop per node; a softmax over incoming edges weights the messages along them.

    Args:
        edge_index: int64 [2, E].
        num_nodes: Number of nodes.
        edge_attr: Float [E, D]. As in :class:`torch_geometric.nn.GATConv`, given self-loops are removed, and the
            self-loop of a node has the mean of the attributes of its incoming edges.

    Attributes:
        source, target: int64 [E']; both ends of each edge, sorted by target.
        edge_attr: Float [E', D] in the same order, or ``None``.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, edge_attr: Tensor | None = None) -> None:
        check_edges(edge_index, num_nodes)
        edge_index, edge_attr = remove_self_loops(edge_index, edge_attr)
        (source, target), edge_attr = add_self_loops(edge_index, edge_attr, "mean", num_nodes)
        self.target, order = target.sort(stable=True)
        self.source = source[order]
        self.edge_attr = None if edge_attr is None else edge_attr[order]
        self.starts = _starts(target, num_nodes)
        self.senders, self.first, self.receivers = num_nodes, 0, num_nodes
        self._back: tuple[Tensor, Tensor] | None = None

    @classmethod
    def of_rows(cls, starts: Tensor, source: Tensor, senders: int, first: int) -> "Attended":
        """The edges into the nodes from ``first`` on, self-loops included: ``starts`` has the first edge of each."""
        block = object.__new__(cls)
        block.source, block.starts = source.long(), starts.long()
        block.target = row_of_entries(block.starts)
        block.edge_attr = None
        block.senders, block.first, block.receivers, block._back = senders, first, starts.numel() - 1, None
        return block

    def rows(self, start: int, stop: int) -> "Attended":
        """Only the edges into nodes ``start`` to ``stop - 1``."""
        low, high = int(self.starts[start]), int(self.starts[stop])
        block = object.__new__(Attended)
        block.source, block.target = self.source[low:high], self.target[low:high] - start
        block.edge_attr = None if self.edge_attr is None else self.edge_attr[low:high]
        block.starts = self.starts[start : stop + 1] - low
        block.senders, block.first, block.receivers, block._back = self.senders, start, stop - start, None
        return block

    def scores(self, to_source: Tensor, to_target: Tensor) -> Tensor:
        """One score per edge: the sum of the scores of its two ends."""
        own = to_target[self.first : self.first + self.receivers]
        return to_source.index_select(0, self.source) + own.index_select(0, self.target)

    def __call__(self, messages: Tensor, scores: Tensor) -> Tensor:
        """For each node the sum of incoming messages, weighted by a softmax of the scores of their edges."""
        share = softmax(scores, self.target, num_nodes=self.receivers).to(messages.dtype)
        return _weighed(messages, share, self)

    @property
    def back(self) -> tuple[Tensor, Tensor]:
        """The order of the edges by source, and the start of each source in it; computed once."""
        if self._back is None:
            self._back = self.source.argsort(stable=True), _starts(self.source, self.senders)
        return self._back


class _Weighed(torch.autograd.Function):
    # P x with P the matrix of shares: a sparse product, without one row per edge. The gradient of x is Pᵀ g; that of
    # an edge's share is the inner product of the rows at its ends.

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


_weighed: Callable[..., Tensor] = _Weighed.apply


def _bags(x: Tensor, rows: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
    """Sums of weighted rows of ``x``, one per start."""
    return F.embedding_bag(rows, x, starts, mode="sum", per_sample_weights=weights, include_last_offset=True)


def _starts(ends: Tensor, nodes: int) -> Tensor:
    starts = torch.zeros(nodes + 1, dtype=torch.int64, device=ends.device)
    torch.cumsum(torch.bincount(ends, minlength=nodes), 0, out=starts[1:])
    return starts
