"""Sums over the pairs of nodes that share a cluster, in tiles of bounded size.

Separate from the InfoNCE kernel, which sums all pairs. With the full matrix of all pairs and a mask, in plain torch, a
step of MARIO takes 20 % longer at 700 nodes, 71 % at 4,000 and 77 % at 8,000 (benchmarks/kernels.py).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import exponential_fits, through_unit_rows_, unit_rows, wide

# The longest side of a tile of one cluster.
TILE = 1024
# Pairs of different clusters in a tile of several, times dimensions: as expensive as starting another tile.
APART = 2**20
# Similarities kept for the backward pass instead of recomputed, at most: 16 MiB in float32.
KEPT = 2**22

Term = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Pairs:
    """Per row i, with s_ij = cos(u_i, v_j)/τ: its own similarity, and the sum over its negatives j in the cluster.

    Only rows whose two views share a cluster are present. All vectors are differentiable and have one entry per row.
    """

    own: Tensor
    """s_ii."""
    sums: Tensor
    """log Σ_j e^{s_ij}; for an estimator with a ``term`` f, Σ_j f(s_ij)."""
    negatives: Tensor
    """Number of j."""
    cluster: Tensor
    """Cluster of the row, counted from 0."""

    def log_mean(self) -> Tensor:
        """log of the mean of e^{s_ij} over all pairs of the row's cluster (for estimators without a ``term``)."""
        clusters = int(self.cluster.max()) + 1
        top = self.sums.new_full((clusters,), -torch.inf).scatter_reduce(0, self.cluster, self.sums.detach(), "amax")
        shifted = (self.sums - top[self.cluster]).exp()
        total = torch.zeros_like(top).index_add(0, self.cluster, shifted).log() + top
        pairs = torch.zeros_like(top).index_add(0, self.cluster, self.negatives)
        return (total - pairs.log())[self.cluster]


def sum_pairs(u: Tensor, v: Tensor, blocks: "Blocks", tau: float, term: Term | None) -> Pairs:
    """The sums over the pairs in ``blocks``, which may not be empty; memory is linear in the number of nodes."""
    # Sorted here, so that the unit rows are freed before autograd restores the order of the gradients.
    left, right = u.index_select(0, blocks.rows), v.index_select(0, blocks.columns)
    sums, own = _SumPairs.apply(left, right, blocks, 1.0 / tau, term)
    negatives = blocks.width if blocks.own_pairs else blocks.width - 1
    return Pairs(own, sums, negatives[blocks.group].to(sums.dtype), blocks.group)


class _Tile(NamedTuple):
    """Sorted rows against sorted columns: a cluster, a part of one, or ``several`` small clusters."""

    rows: slice
    columns: slice
    several: bool = False
    own: bool = True  # holds the own pairs of all of its rows, or of none

    @property
    def pairs(self) -> int:
        return int((self.rows.stop - self.rows.start) * (self.columns.stop - self.columns.start))


class Blocks(NamedTuple):
    """Which similarities to compute: nodes sorted by cluster, so that a cluster is a rectangle of rows × columns."""

    rows: Tensor  # nodes whose views share a cluster, sorted by it
    columns: Tensor  # all nodes, sorted by the cluster that makes them negatives; in each, those in `rows` come first
    own: Tensor  # column [R, 1] of each row's own node, relative to the first column of the tile with that pair
    group: Tensor  # cluster of each row, counted from 0
    column_group: Tensor  # cluster of each column
    width: Tensor  # columns of each cluster
    tiles: list[_Tile]
    own_pairs: bool  # a row's own node is one of its columns

    @classmethod
    def of(cls, first: Tensor, second: Tensor, deciding: Tensor, dim: int, *, own_pairs: bool) -> "Blocks":
        _, cluster, width = deciding.unique(return_inverse=True, return_counts=True)
        rows = (first == second).nonzero().view(-1)
        if not own_pairs:
            # A row whose own node is the only column has no negatives.
            rows = rows[width[cluster[rows]] > 1]
        size = cluster[rows].bincount(minlength=width.numel())
        # Widest first: tiles of several clusters waste least if these are alike. Clusters without rows come last.
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
        return cls(rows, columns, own, cluster[rows], cluster[columns], width, tiles, own_pairs)

    @classmethod
    def everything(cls, nodes: int, dim: int, device: torch.device, *, own_pairs: bool) -> "Blocks":
        """One cluster that holds all nodes: the unconditional estimate."""
        one = torch.zeros(nodes, dtype=torch.long, device=device)
        return cls.of(one, one, one, dim, own_pairs=own_pairs)


def _inverse(order: Tensor) -> Tensor:
    return torch.empty_like(order).index_copy_(0, order, torch.arange(order.numel(), device=order.device))


def _tiles(size: list[int], width: list[int], dim: int) -> list[_Tile]:
    """Clusters wider than `TILE` in parts; as many of the others in one tile as `APART` allows."""
    tiles: list[_Tile] = []
    row = column = together = 0
    for n, m in zip(size, width, strict=True):
        end, column_end = row + n, column + m
        if m > TILE:
            tiles += [
                _Tile(slice(r, min(r + TILE, end)), slice(c, min(c + TILE, column_end)), own=r - row == c - column)
                for r in range(row, end, TILE)
                for c in range(column, column_end, TILE)
            ]
        else:
            together += n * m
            # The widest come first: if `together` counts an earlier cluster, the last tile is not a part.
            if together > n * m:
                start, column_start = tiles[-1].rows.start, tiles[-1].columns.start
                if ((end - start) * (column_end - column_start) - together) * dim <= APART:
                    tiles[-1] = _Tile(slice(start, end), slice(column_start, column_end), several=True)
                else:
                    together = n * m
            if together == n * m:
                tiles.append(_Tile(slice(row, end), slice(column, column_end)))
        row, column = end, column_end
    return tiles


class _SumPairs(torch.autograd.Function):
    # Rows and columns are sorted as in `blocks`. Without a term f the sums are log Σ_j e^{s_ij}, whose derivative is
    # e^{s_ij − log Σ}; with one they are Σ_j f(s_ij). Rows in bfloat16 are multiplied in bfloat16.

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, v: Tensor, blocks: Blocks, inverse_tau: float, term: Term | None
    ) -> tuple[Tensor, Tensor]:
        (left, factor_u), (right, factor_v) = unit_rows(u), unit_rows(v)
        dtype = wide(u.dtype)
        ctx.inputs = (blocks, inverse_tau, term)
        shift = None
        if term is None and not exponential_fits(inverse_tau, dtype):
            shift = left.new_full((left.size(0),), -torch.inf, dtype=dtype)
            for tile, s in _similarities(left, right, blocks, inverse_tau):
                top = _leave_out_(s, tile, blocks, -torch.inf).amax(1)
                shift[tile.rows] = torch.maximum(shift[tile.rows], top)
        own = left.new_empty(left.size(0), dtype=dtype)
        # A cluster of 20,000 nodes has 4·10⁸ pairs, too many to sum in float32.
        total = torch.zeros_like(own, dtype=torch.float64)
        keeps, kept = sum(tile.pairs for tile in blocks.tiles) <= KEPT and any(ctx.needs_input_grad), []
        for tile, s in _similarities(left, right, blocks, inverse_tau):
            if tile.own:
                own[tile.rows] = s.gather(1, blocks.own[tile.rows]).squeeze(1)
            terms = _terms_(s, tile, blocks, shift, term)
            total[tile.rows] += (terms if term is None else _values(term, terms)).sum(1)
            if keeps:
                kept.append(terms)
        ctx.save_for_backward(left, right, factor_u, factor_v, total, shift, *kept)
        sums = total if term is not None else total.log() if shift is None else total.log() + shift
        return sums, own

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_sums: Tensor, grad_own: Tensor) -> tuple[Tensor | None, ...]:
        left, right, factor_u, factor_v, total, shift, *kept = ctx.saved_tensors
        blocks, inverse_tau, term = ctx.inputs
        by_row = (grad_sums if term is not None else grad_sums / total).to(grad_own.dtype)
        grad_u, grad_v = torch.zeros_like(left), torch.zeros_like(right)
        for tile, terms in zip(blocks.tiles, kept, strict=True) if kept else _again(left, right, shift, *ctx.inputs):
            rows, columns = tile.rows, tile.columns
            weight = (terms if term is None else _slopes(term, terms)) * by_row[rows].unsqueeze(1)
            if tile.own:
                weight.scatter_add_(1, blocks.own[rows], grad_own[rows].unsqueeze(1))
            weight = weight.to(left.dtype)
            grad_u[rows].addmm_(weight, right[columns])
            grad_v[columns].addmm_(weight.t(), left[rows])
        times = torch.full((), inverse_tau, dtype=grad_own.dtype, device=left.device)
        through_unit_rows_(grad_u, left, factor_u, times)
        through_unit_rows_(grad_v, right, factor_v, times)
        return grad_u, grad_v, None, None, None


def _similarities(left: Tensor, right: Tensor, blocks: Blocks, inverse_tau: float) -> Iterator[tuple[_Tile, Tensor]]:
    """s [R, C] of each tile, including pairs that are no pairs: see `_leave_out_`."""
    for tile in blocks.tiles:
        yield tile, torch.mm(left[tile.rows], right[tile.columns].t()).to(wide(left.dtype)).mul_(inverse_tau)


def _leave_out_(s: Tensor, tile: _Tile, blocks: Blocks, value: float) -> Tensor:
    """``s`` with ``value`` for pairs of different clusters, and for each row's own pair unless that counts."""
    if tile.own and not blocks.own_pairs:
        s.scatter_(1, blocks.own[tile.rows], value)
    if tile.several:
        s.masked_fill_(blocks.group[tile.rows].unsqueeze(1) != blocks.column_group[tile.columns], value)
    return s


def _terms_(s: Tensor, tile: _Tile, blocks: Blocks, shift: Tensor | None, term: Term | None) -> Tensor:
    """In place: e^{s − shift}, or with a ``term`` s itself, with 0 or −∞ for what is left out."""
    if term is not None:
        return _leave_out_(s, tile, blocks, -torch.inf)
    exponent = s if shift is None else s.sub_(shift[tile.rows].unsqueeze(1))
    return _leave_out_(exponent.exp_(), tile, blocks, 0.0)  # e^{−∞} takes four times as long as other exponentials


def _again(
    left: Tensor, right: Tensor, shift: Tensor | None, blocks: Blocks, inverse_tau: float, term: Term | None
) -> Iterator[tuple[_Tile, Tensor]]:
    for tile, s in _similarities(left, right, blocks, inverse_tau):
        yield tile, _terms_(s, tile, blocks, shift, term)


def _values(term: Term, s: Tensor) -> Tensor:
    left_out = s == -torch.inf
    return term(s.masked_fill(left_out, 0.0)).masked_fill(left_out, 0.0)


def _slopes(term: Term, s: Tensor) -> Tensor:
    """The derivative of ``term`` at each entry."""
    with torch.enable_grad():
        s = s.detach().requires_grad_()
        (slopes,) = torch.autograd.grad(_values(term, s).sum(), s)
    return slopes
