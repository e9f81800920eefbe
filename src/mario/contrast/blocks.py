"""Estimates over the pairs of nodes that share a cluster, in tiles of bounded size."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import exponential_fits, through_unit_rows_, unit_rows, wide

ESTIMATORS = ("info_nce", "donsker_varadhan", "jensen_shannon")

# The longest side of a tile of one cluster.
_TILE = 1024
# Pairs of different clusters in a tile of several, times dimensions: as dear as beginning another tile.
_APART = 2**20
# The most similarities that are kept for the backward pass instead of being computed again: 16 MiB in float32.
_KEPT = 2**22


def within_blocks(u: Tensor, v: Tensor, blocks: "Blocks", tau: float, estimator: str) -> Tensor:
    """The estimator's loss over the pairs in `blocks`, divided by all N nodes; `conditional_mi` has the formulas."""
    if not blocks.tiles:
        return (u.sum() + v.sum()).to(wide(u.dtype)) * 0.0
    # Sorted out here, so that the unit rows are freed before autograd puts the gradients back in order.
    left, right = u.index_select(0, blocks.rows), v.index_select(0, blocks.columns)
    return _WithinBlocks.apply(left, right, blocks, 1.0 / tau, estimator)


class _Tile(NamedTuple):
    """Sorted rows against sorted columns: a cluster or a part of it, or `several` small clusters."""

    rows: slice
    columns: slice
    several: bool = False
    own: bool = True  # holds the pairs of its rows' own nodes, all or none

    @property
    def pairs(self) -> int:
        return (self.rows.stop - self.rows.start) * (self.columns.stop - self.columns.start)


class Blocks(NamedTuple):
    """Which similarities exist: nodes sorted by cluster, so that a cluster is a rectangle of rows × columns."""

    rows: Tensor  # nodes whose views share a cluster, sorted by it
    columns: Tensor  # all nodes, sorted by the cluster that makes them negatives; in each, those in `rows` come first
    own: Tensor  # column [R, 1] of each row's own node, counted from the first of the tile that holds the pair
    group: Tensor  # cluster of each row, counted from 0
    column_group: Tensor  # cluster of each column
    size: Tensor  # rows of each cluster
    width: Tensor  # columns of each cluster
    tiles: list[_Tile]

    @classmethod
    def of(cls, first: Tensor, second: Tensor, deciding: Tensor, dim: int, estimator: str) -> "Blocks":
        _, cluster, width = deciding.unique(return_inverse=True, return_counts=True)
        rows = (first == second).nonzero().view(-1)
        if estimator != "info_nce":
            # If the row's own node is the only column, there is no pair from the product of marginals to average over.
            rows = rows[width[cluster[rows]] > 1]
        size = cluster[rows].bincount(minlength=width.numel())
        # Widest first, as tiles of several clusters waste least if these are alike; clusters without rows at the end.
        order = torch.where(size > 0, width, 0).argsort(descending=True, stable=True)
        cluster, size, width = _inverse(order)[cluster], size[order], width[order]
        absent = torch.ones_like(cluster).index_fill_(0, rows, 0)
        columns = (2 * cluster + absent).argsort(stable=True)
        rows = rows[cluster[rows].argsort(stable=True)]
        used = int((size > 0).sum())
        size, width = size[:used], width[:used]
        tiles = _tiles(size.tolist(), width.tolist(), dim)
        corners = [(tile.rows.stop - tile.rows.start, tile.columns.start) for tile in tiles if tile.own]
        height, start = torch.tensor(corners, dtype=torch.long, device=rows.device).view(-1, 2).t()
        own = (_inverse(columns)[rows] - start.repeat_interleave(height)).unsqueeze(1)
        return cls(rows, columns, own, cluster[rows], cluster[columns], size, width, tiles)

    @classmethod
    def everything(cls, nodes: int, dim: int, device: torch.device, estimator: str) -> "Blocks":
        """One cluster that holds all nodes: the unconditional estimate."""
        one = torch.zeros(nodes, dtype=torch.long, device=device)
        return cls.of(one, one, one, dim, estimator)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).index_copy_(0, order, torch.arange(order.numel(), device=order.device))


def _tiles(size: list[int], width: list[int], dim: int) -> list[_Tile]:
    """Clusters wider than `_TILE` in parts; of the others, as many in a tile as `_APART` lets."""
    tiles: list[_Tile] = []
    row = column = together = 0
    for n, m in zip(size, width, strict=True):
        end, column_end = row + n, column + m
        if m > _TILE:
            tiles += [
                _Tile(slice(r, min(r + _TILE, end)), slice(c, min(c + _TILE, column_end)), own=r - row == c - column)
                for r in range(row, end, _TILE)
                for c in range(column, column_end, _TILE)
            ]
        else:
            together += n * m
            # The widest come first: while `together` counts a cluster before this one, the last tile is not a part.
            if together > n * m:
                start, column_start = tiles[-1].rows.start, tiles[-1].columns.start
                if ((end - start) * (column_end - column_start) - together) * dim <= _APART:
                    tiles[-1] = _Tile(slice(start, end), slice(column_start, column_end), several=True)
                else:
                    together = n * m
            if together == n * m:
                tiles.append(_Tile(slice(row, end), slice(column, column_end)))
        row, column = end, column_end
    return tiles


class _WithinBlocks(torch.autograd.Function):
    # Rows and columns are sorted as in `blocks`. Each estimator is, per row r of cluster y, a coefficient on s_rr and
    # one on what its pairs sum to:
    # InfoNCE: log Σ over the row; Donsker-Varadhan: log Σ over the cluster; Jensen-Shannon: Σ softplus, no log.
    # Rows in bfloat16 are multiplied in it; all else is float32.

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, blocks: Blocks, inverse_tau: float, estimator: str) -> Tensor:
        (left, factor_u), (right, factor_v) = unit_rows(u), unit_rows(v)
        dtype, group = wide(u.dtype), blocks.group
        ctx.inputs = (blocks, inverse_tau, estimator)
        shift = None
        if estimator != "jensen_shannon" and not exponential_fits(inverse_tau, dtype):
            shift = left.new_full((left.size(0),), -torch.inf, dtype=dtype)
            for tile, s, _ in _similarities(left, right, *ctx.inputs):
                shift[tile.rows] = torch.maximum(shift[tile.rows], s.amax(1))
            if estimator == "donsker_varadhan":
                shift = shift.new_full(blocks.size.shape, -torch.inf).scatter_reduce_(0, group, shift, "amax")[group]
        own = left.new_empty(left.size(0), dtype=dtype)
        # A cluster of 20,000 nodes sums 4·10⁸ terms, too many for float32.
        total = torch.zeros_like(own, dtype=torch.float64)
        keeps, kept = sum(tile.pairs for tile in blocks.tiles) <= _KEPT, []
        for tile, s, own_s in _similarities(left, right, *ctx.inputs):
            if own_s is not None:
                own[tile.rows] = own_s
            terms = _terms_(s, tile, shift, estimator)
            total[tile.rows] += (F.softplus(s) if estimator == "jensen_shannon" else terms).sum(1)
            if keeps:
                kept.append(terms)
        # by_row: d loss / d s_ij = by_row_i · e^{s_ij − shift_i}, or by_row_i · sigmoid(s_ij)
        pull = torch.ones_like(own)
        if estimator == "info_nce":
            loss = (total.log().to(dtype) - own).sum()
            by_row = total.reciprocal().to(dtype)
        else:
            # n_y rows against all columns but their own.
            size, others = blocks.size.to(dtype), (blocks.width - 1).to(dtype)
            total = torch.zeros_like(size, dtype=torch.float64).index_add_(0, group, total)
            if estimator == "donsker_varadhan":
                loss = (size * (total.log().to(dtype) - (size * others).log())).sum() - own.sum()
                by_row = (size / total).to(dtype)[group]
            else:
                loss = F.softplus(-own).sum() + (total.to(dtype) / others).sum()
                by_row, pull = others.reciprocal()[group], torch.sigmoid(-own)
        if shift is not None:
            loss += shift.sum()
        ctx.save_for_backward(left, right, factor_u, factor_v, by_row, pull, shift, *kept)
        return loss / right.size(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        left, right, factor_u, factor_v, by_row, pull, shift, *kept = ctx.saved_tensors
        blocks, inverse_tau, estimator = ctx.inputs
        again = ((t, _terms_(s, t, shift, estimator)) for t, s, _ in _similarities(left, right, *ctx.inputs))
        grad_u, grad_v = torch.zeros_like(left), torch.zeros_like(right)
        for tile, terms in zip(blocks.tiles, kept, strict=True) if kept else again:
            rows, columns = tile.rows, tile.columns
            weight = (terms.sigmoid() if estimator == "jensen_shannon" else terms) * by_row[rows].unsqueeze(1)
            if tile.own:
                weight.scatter_add_(1, blocks.own[rows], -pull[rows].unsqueeze(1))
            weight = weight.to(left.dtype)
            grad_u[rows].addmm_(weight, right[columns])
            grad_v[columns].addmm_(weight.t(), left[rows])
        times = grad.to(pull.dtype) * (inverse_tau / right.size(0))
        through_unit_rows_(grad_u, left, factor_u, times)
        through_unit_rows_(grad_v, right, factor_v, times)
        return grad_u, grad_v, None, None, None


def _similarities(
    left: Tensor, right: Tensor, blocks: Blocks, inverse_tau: float, estimator: str
) -> Iterator[tuple[_Tile, Tensor, Tensor | None]]:
    """Tile by tile (tile, s [R, C], s of the rows' own nodes [R] if the tile holds them).

    s is −∞ for pairs of different clusters and, but in InfoNCE, at each row's own node.
    """
    for tile in blocks.tiles:
        s = torch.mm(left[tile.rows], right[tile.columns].t()).to(wide(left.dtype)).mul_(inverse_tau)
        own_s = None
        if tile.own:
            own = blocks.own[tile.rows]
            own_s = s.gather(1, own).squeeze(1)
            if estimator != "info_nce":
                s.scatter_(1, own, -torch.inf)
        if tile.several:
            s.masked_fill_(blocks.group[tile.rows].unsqueeze(1) != blocks.column_group[tile.columns], -torch.inf)
        yield tile, s, own_s


def _terms_(s: Tensor, tile: _Tile, shift: Tensor | None, estimator: str) -> Tensor:
    """e^{s − shift} in place of s, where the estimator sums that."""
    if estimator == "jensen_shannon":
        return s
    return (s if shift is None else s.sub_(shift[tile.rows].unsqueeze(1))).exp_()
