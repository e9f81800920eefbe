"""Exponentials of the similarities between all rows of a matrix, computed one tile at a time."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from mario.contrast.rows import exponential_fits, through_unit_rows_, unit_rows, wide

# Sides of a tile, measured by benchmarks/tile_sizes.py. A tile of 384² float32 (0.6 MiB) stays in a core's second-level
# cache; with many rows, fewer and larger tiles are faster.
MANY, SMALL_TILE, LARGE_TILE = 2048, 384, 448
# The forward pass keeps its first tiles for the backward pass, up to this many bytes, and recomputes the others. If it
# could keep less than a quarter of them (float32: above 5,792 nodes), it keeps none: not worth the memory.
KEEP = 64 * 2**20


def tile_side(nodes: int) -> int:
    """The side of a tile for a contrast of this many nodes."""
    return SMALL_TILE if nodes < MANY else LARGE_TILE


def ranges(start: int, stop: int, side: int) -> list[slice]:
    """Ranges of at most ``side``, as even as multiples of 16 allow, so that each row of a tile starts a cache line."""
    if start == stop:
        return []
    even = math.ceil((stop - start) / math.ceil((stop - start) / side))
    step = min(side, math.ceil(even / 16) * 16)
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


def units(blocks: Iterable[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Unit rows of each block, transposed, and the factors that scaled them, also transposed."""
    made = [unit_rows(block) for block in blocks]
    return [unit.t().contiguous() for unit, _ in made], [factor.t() for _, factor in made]


def raw_gradients(out: list[Tensor], z: list[Tensor], factors: list[Tensor], times: Tensor) -> Iterator[Tensor]:
    """The gradient [rows, d] at each block of raw rows, from ``out``, the gradient at its unit rows (consumed)."""
    for unit, factor in zip(z, factors, strict=True):
        yield through_unit_rows_(out.pop(0), unit, factor, times, dim=0).t().to(unit.dtype)


@dataclass(frozen=True)
class Tiles:
    """e^{z_i·z_k/τ} in tiles; z zᵀ is symmetric, so tiles on and above its diagonal are enough.

    The first ``anchors`` parts of z hold the rows i whose sum D_i is computed: the first half of them from the first
    view, the second half from the second. Parts of z are transposed: if d is not a multiple of 16, products into
    gradients [d, side] are a fifth faster than into [side, d]. Parts in bfloat16 are multiplied in bfloat16; everything
    else is float32.
    """

    z: list[Tensor]  # [d, side] each
    anchors: int
    inverse_tau: float
    rows: int | None = None  # compute only the tiles of this many parts, by default of all anchors

    @cached_property
    def wide(self) -> torch.dtype:
        return wide(self.z[0].dtype)

    @cached_property
    def direct(self) -> bool:
        return exponential_fits(self.inverse_tau, self.wide)

    @property
    def bytes(self) -> int:
        sides = [part.size(1) for part in self.z]
        return sum(sides[a] * sides[b] for a, b in self._pairs()) * self.wide.itemsize

    @property
    def budget(self) -> int:
        """Bytes of tiles to keep from the forward pass for the backward pass."""
        return KEEP if self.bytes <= 4 * KEEP else 0

    def sums(self, kept: list[Tensor], keep: int) -> list[Tensor]:
        """D of each part of anchors, or log D if not ``direct``; the first ``keep`` bytes of tiles go to ``kept``."""
        start = 0.0 if self.direct else -torch.inf
        sums = [part.new_full(part.shape[1:], start, dtype=self.wide) for part in self.z[: self.anchors]]
        for a, b, tile in self._each(kept, keep):
            if self.direct:
                sums[a] += tile.sum(1)
                if a < b < self.anchors:
                    sums[b] += tile.sum(0)
            else:
                torch.logaddexp(sums[a], tile.logsumexp(1), out=sums[a])
                if a < b < self.anchors:
                    torch.logaddexp(sums[b], tile.logsumexp(0), out=sums[b])
        return sums

    def log_sums(self, kept: list[Tensor], keep: int, known: Sequence[Tensor] = ()) -> list[Tensor]:
        """log D of each part of anchors; ``known`` are sums to add to those of the last parts (``direct`` only)."""
        sums = self.sums(kept, keep)
        for part, more in zip(sums[len(sums) - len(known) :], known, strict=True):
            part += more
        return [part.log_() for part in sums] if self.direct else sums

    def pull(self, log_d: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
        """τ times the gradient of Σ_i (log D_i − z_i·z_{partner(i)}/τ) at each part of z.

        If ``log_d`` continues past the anchors, the other parts belong to other ranks: the sum is over all of them, the
        gradient is at the anchors only.
        """
        z, half = self.z, self.anchors // 2
        out = [z[(a + half) % self.anchors].to(self.wide) * -2 for a in range(self.anchors)]
        if len(log_d) == self.anchors:
            out += [torch.zeros_like(part, dtype=self.wide) for part in z[self.anchors :]]
        return self._spread(out, [(-part).exp_() for part in log_d], log_d, kept)

    def weighted_sums(self, share: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
        """Σ_k (share_i + share_k) e^{z_i·z_k/τ} z_k at each part of z (``direct`` only)."""
        assert self.direct
        out = [torch.zeros_like(part, dtype=self.wide) for part in self.z]
        return self._spread(out, share, [], kept)

    def _spread(self, out: list[Tensor], share: list[Tensor], log_d: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
        z, room = self.z, self._room(self.wide)
        for a, b, tile in self._each(kept):
            weight = room[: tile.numel()].view(tile.shape)
            if not self.direct:
                torch.sub(tile, log_d[a].unsqueeze(1), out=weight).exp_()
                if b < len(log_d):
                    weight.add_((tile - log_d[b]).exp_())
            elif b < len(share):
                torch.add(share[b], share[a].unsqueeze(1), out=weight).mul_(tile)
            else:
                torch.mul(tile, share[a].unsqueeze(1), out=weight)
            _add_product_(out[a], z[b], weight.t())
            if a < b < len(out):
                _add_product_(out[b], z[a], weight)
        return out

    def _multiply(self, left: Tensor, right: Tensor, out: Tensor, *, symmetric: bool) -> None:
        """``out`` = ``left`` ``right``/τ. If the product is symmetric, a quarter is copied instead of computed."""
        half = left.size(0) // 32 * 16 if symmetric else 0
        parts = ((slice(None), slice(half, None)), (slice(half), slice(half))) if half else ((slice(None),) * 2,)
        for rows, columns in parts:
            part = out[rows, columns]
            torch.addmm(part, left[rows], right[:, columns], beta=0, alpha=self.inverse_tau, out=part)
        if half:
            out[half:, :half] = out[:half, half:].t()

    def _pairs(self) -> Iterator[tuple[int, int]]:
        rows = self.anchors if self.rows is None else self.rows
        return ((a, b) for a in range(rows) for b in range(a, len(self.z)))

    def _room(self, dtype: torch.dtype) -> Tensor:
        return torch.empty(max(part.size(1) for part in self.z) ** 2, dtype=dtype, device=self.z[0].device)

    def _each(self, kept: list[Tensor], keep: int = 0) -> Iterator[tuple[int, int, Tensor]]:
        """(a, b, e^{z_a z_bᵀ/τ}) with 0 on the diagonal of z zᵀ; if not ``direct``, the exponents with −∞ there.

        The first tiles are those in ``kept``, which is extended up to ``keep`` bytes; all others share one buffer.
        """
        room, done = self._room(self.wide), len(kept)
        narrow = room if self.wide == self.z[0].dtype else self._room(self.z[0].dtype)
        rows, left = -1, room
        for count, (a, b) in enumerate(self._pairs()):
            if count < done:
                yield a, b, kept[count]
                continue
            if a != rows:
                rows, left = a, self.z[a].t().contiguous()
            shape = (left.size(0), self.z[b].size(1))
            size = shape[0] * shape[1]
            keep -= size * room.element_size()
            tile = (room[:size] if keep < 0 else room.new_empty(size)).view(shape)
            product = tile if narrow is room else narrow[:size].view(shape)
            self._multiply(left, self.z[b], product, symmetric=a == b)
            if product is not tile:
                tile.copy_(product)
            if self.direct:
                tile.exp_()
            if a == b:
                tile.fill_diagonal_(0.0 if self.direct else -torch.inf)
            if keep >= 0:
                kept.append(tile)
            yield a, b, tile


def _add_product_(total: Tensor, left: Tensor, right: Tensor) -> None:
    if total.dtype == left.dtype:
        total.addmm_(left, right)
    else:
        total.add_(left @ right.to(left.dtype))
