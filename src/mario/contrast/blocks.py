"""Estimates over the pairs of nodes that share a cluster, in padded blocks of bounded size."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import exponential_fits, through_unit_rows_, unit_rows, wide

ESTIMATORS = ("info_nce", "donsker_varadhan", "jensen_shannon")

# The longest side of a block of similarities, and the most numbers one batch of padded blocks may hold.
_TILE = 1024
_BATCH = 2**20
# Pairs that exist only to fill a group up: as dear as beginning another group.
_PADDING = 2**12


def within_blocks(u: Tensor, v: Tensor, blocks: "Blocks", tau: float, estimator: str) -> Tensor:
    """The estimator's loss over the pairs in `blocks`, divided by all N nodes; `conditional_mi` has the formulas."""
    if not blocks.batches:
        return (u.sum() + v.sum()).to(wide(u.dtype)) * 0.0
    return _WithinBlocks.apply(u, v, blocks, 1.0 / tau, estimator)


@dataclass(frozen=True)
class _Batch:
    """Blocks computed together: for each, rows `row` to `row_end` against columns `column` to `column_end`."""

    row: Tensor
    row_end: Tensor
    column: Tensor
    column_end: Tensor
    rows: int
    columns: int


@dataclass(frozen=True)
class Blocks:
    """Which similarities exist: nodes sorted by cluster, so that a cluster is a rectangle of rows × columns."""

    rows: Tensor  # nodes whose views share a cluster, sorted by it
    columns: Tensor  # all nodes, sorted by the cluster that makes them negatives
    own: Tensor  # position in `columns` of each row's own node
    group: Tensor  # cluster of each row, counted from 0
    size: Tensor  # rows of each cluster
    width: Tensor  # columns of each cluster
    batches: list[_Batch]

    @classmethod
    def of(cls, first: Tensor, second: Tensor, deciding: Tensor, dim: int, estimator: str) -> "Blocks":
        sorted_clusters, columns = deciding.sort(stable=True)
        rows = (first == second).nonzero().view(-1)
        labels, order = first[rows].sort(stable=True)
        rows = rows[order]
        names, group, size = labels.unique_consecutive(return_inverse=True, return_counts=True)
        start = torch.searchsorted(sorted_clusters, names)
        width = torch.searchsorted(sorted_clusters, names, right=True) - start
        if estimator != "info_nce" and bool((width == 1).any()):
            # The row's own node is the only column: there is no pair from the product of marginals to average over.
            paired = width > 1
            rows, size, width, start = rows[paired[group]], size[paired], width[paired], start[paired]
            group = torch.arange(size.numel(), device=size.device).repeat_interleave(size)
        position = torch.empty_like(columns)
        position[columns] = torch.arange(columns.numel(), device=columns.device)
        batches = _batches((size.cumsum(0) - size).tolist(), size.tolist(), start.tolist(), width.tolist(), dim)
        return cls(rows, columns, position[rows], group, size, width, [_batch(b, rows.device) for b in batches])

    @classmethod
    def everything(cls, nodes: int, dim: int, device: torch.device, estimator: str) -> "Blocks":
        """One cluster that holds all nodes: the unconditional estimate."""
        one = torch.zeros(nodes, dtype=torch.long, device=device)
        return cls.of(one, one, one, dim, estimator)


_Rectangle = tuple[int, int, int, int]


def _batches(row: list[int], size: list[int], column: list[int], width: list[int], dim: int) -> list[list[_Rectangle]]:
    """Rectangles of at most `_TILE` a side, widest first, in padded groups of at most `_BATCH` with little padding."""
    rectangles = [
        (r, min(r + _TILE, r0 + n), c, min(c + _TILE, c0 + m))
        for r0, n, c0, m in zip(row, size, column, width, strict=True)
        for r in range(r0, r0 + n, _TILE)
        for c in range(c0, c0 + m, _TILE)
    ]
    rectangles.sort(key=lambda block: block[2] - block[3])
    groups: list[list[_Rectangle]] = []
    tallest = widest = filled = 0
    for block in rectangles:
        height, breadth = block[1] - block[0], block[3] - block[2]
        tallest, widest, filled = max(tallest, height), max(widest, breadth), filled + height * breadth
        count = len(groups[-1]) + 1 if groups else 1
        padding = count * tallest * widest - filled
        if not groups or count * max(tallest * widest, (tallest + widest) * dim) > _BATCH or padding > _PADDING:
            groups.append([])
            tallest, widest, filled = height, breadth, height * breadth
        groups[-1].append(block)
    return groups


def _batch(blocks: list[_Rectangle], device: torch.device) -> _Batch:
    corners = torch.tensor(blocks, device=device).t().unsqueeze(2)
    rows, columns = max(b[1] - b[0] for b in blocks), max(b[3] - b[2] for b in blocks)
    return _Batch(corners[0], corners[1], corners[2], corners[3], rows, columns)


class _WithinBlocks(torch.autograd.Function):
    # Each estimator is, per row r of cluster y, a coefficient on s_rr and one on what its pairs sum to:
    # InfoNCE: log Σ over the row; Donsker-Varadhan: log Σ over the cluster; Jensen-Shannon: Σ softplus, no log.
    # Rows in bfloat16 are multiplied in it; all else is float32.

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, blocks: Blocks, inverse_tau: float, estimator: str) -> Tensor:
        (unit_u, factor_u), (unit_v, factor_v) = unit_rows(u), unit_rows(v)
        dtype = wide(u.dtype)
        own = torch.linalg.vecdot(unit_u.to(dtype), unit_v.to(dtype))[blocks.rows] * inverse_tau
        if estimator == "info_nce":
            group, share = torch.arange(blocks.rows.numel(), device=u.device), torch.ones_like(own)
            pairs = share
        else:
            # n_y rows against all columns but their own.
            group, share = blocks.group, blocks.size.to(dtype)
            pairs = share * (blocks.width - 1).to(dtype)
        ctx.inputs = (blocks, inverse_tau, estimator != "info_nce")
        # A cluster of 20,000 nodes sums 4·10⁸ terms, too many for float32.
        total = torch.zeros_like(share, dtype=torch.float64)
        if estimator == "jensen_shannon":
            for rows, _, s, _, _ in _similarities(unit_u, unit_v, *ctx.inputs):
                total.index_add_(0, group[rows], F.softplus(s).sum(2).view(-1).double())
            loss = F.softplus(-own).sum() + (share / pairs * total.to(dtype)).sum()
            # d loss / d s_ij = coefficient of row i · sigmoid(s_ij)
            coefficient, pull = (share / pairs)[group], torch.sigmoid(-own)
        else:
            shift = torch.zeros_like(share)
            if not exponential_fits(inverse_tau, dtype):
                shift.fill_(-torch.inf)
                for rows, _, s, _, _ in _similarities(unit_u, unit_v, *ctx.inputs):
                    shift.scatter_reduce_(0, group[rows], s.amax(2).view(-1), "amax")
            for rows, _, s, _, _ in _similarities(unit_u, unit_v, *ctx.inputs):
                powers = s.sub_(shift[group[rows]].view(s.size(0), -1, 1)).exp_()
                total.index_add_(0, group[rows], powers.sum(2).view(-1).double())
            log_sum = total.log_().to(dtype) + shift
            loss = (share * (log_sum - pairs.log())).sum() - own.sum()
            # d loss / d s_ij = exp(s_ij − coefficient of row i)
            coefficient, pull = (log_sum - share.log())[group], torch.ones_like(own)
        ctx.save_for_backward(unit_u, unit_v, factor_u, factor_v, coefficient, pull)
        ctx.estimator = estimator
        return loss / u.size(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        unit_u, unit_v, factor_u, factor_v, coefficient, pull = ctx.saved_tensors
        blocks, inverse_tau, _ = ctx.inputs
        by_node = pull.new_zeros(unit_u.size(0), 1).index_copy_(0, blocks.rows, -pull.unsqueeze(1))
        grad_u, grad_v = unit_v * by_node, unit_u * by_node
        for rows, columns, s, left, right in _similarities(unit_u, unit_v, *ctx.inputs):
            by_row = coefficient[rows].view(s.size(0), -1, 1)
            weight = s.sigmoid_().mul_(by_row) if ctx.estimator == "jensen_shannon" else s.sub_(by_row).exp_()
            weight = weight.to(left.dtype)
            grad_u.index_add_(0, blocks.rows[rows], torch.bmm(weight, right).flatten(0, 1).to(grad_u.dtype))
            grad_v.index_add_(0, columns, torch.bmm(weight.mT, left).flatten(0, 1).to(grad_v.dtype))
        times = grad.to(pull.dtype) * (inverse_tau / unit_u.size(0))
        through_unit_rows_(grad_u, unit_u, factor_u, times)
        through_unit_rows_(grad_v, unit_v, factor_v, times)
        return grad_u.to(unit_u.dtype), grad_v.to(unit_v.dtype), None, None, None


def _similarities(
    unit_u: Tensor, unit_v: Tensor, blocks: Blocks, inverse_tau: float, skip_own: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]]:
    """Batch by batch (rows [B·R], nodes of the columns [B·C], s [B, R, C], û [B, R, d], v̂ [B, C, d]).

    s is −∞ where a block is padded and, if `skip_own`, at each row's own node.
    """
    for batch in blocks.batches:
        rows = batch.row + torch.arange(batch.rows, device=unit_u.device)
        columns = batch.column + torch.arange(batch.columns, device=unit_u.device)
        absent = (columns >= batch.column_end).unsqueeze(1) | (rows >= batch.row_end).unsqueeze(2)
        rows.clamp_(max=blocks.rows.numel() - 1)
        if skip_own:
            absent |= columns.unsqueeze(1) == blocks.own[rows].unsqueeze(2)
        rows, columns = rows.view(-1), blocks.columns[columns.clamp_(max=blocks.columns.numel() - 1).view(-1)]
        left, right = _take(unit_u, blocks.rows[rows], len(batch.row)), _take(unit_v, columns, len(batch.row))
        s = torch.bmm(left, right.mT).to(wide(left.dtype)).mul_(inverse_tau)
        yield rows, columns, s.masked_fill_(absent, -torch.inf), left, right


def _take(matrix: Tensor, nodes: Tensor, batch: int) -> Tensor:
    # index_select copies whole rows; indexing with [] goes number by number and is many times slower.
    return matrix.index_select(0, nodes).view(batch, -1, matrix.size(1))
