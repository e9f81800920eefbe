"""The exponentials of all similarities of a set of rows, a tile at a time."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product

import torch
from torch import Tensor

from mario.contrast.rows import exponential_fits, through_unit_rows_, unit_rows, wide
from mario.tuning import fastest

# The side of a tile of exponentials: 384² float32 are 0.6 MiB, which stays in a core's second-level cache.
_TILE = 384
# From this many nodes on the side is what this machine is quickest with, the last of these where nothing is measured.
# Below it bits are the same on all machines.
_TUNED, _SIDES = 2048, (336, 672, 448)
# The first tiles are kept for the backward, up to this many bytes; others are computed again. Where less than a
# quarter of all could be kept (float32: more than 5,792 nodes), none is: a few percent are not worth the memory.
_KEEP = 64 * 2**20


def ranges(start: int, stop: int, side: int) -> list[slice]:
    """Ranges of at most `side`, as even as multiples of 16 can be: a row of a tile then starts on a cache line."""
    if start == stop:
        return []
    even = math.ceil((stop - start) / math.ceil((stop - start) / side))
    step = min(side, math.ceil(even / 16) * 16)
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


def units(blocks: Iterable[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Unit rows of each block of rows, transposed, and the factors that made them so, also transposed."""
    made = [unit_rows(block) for block in blocks]
    return [unit.t().contiguous() for unit, _ in made], [factor.t() for _, factor in made]


def raw_gradients(out: list[Tensor], z: list[Tensor], factors: list[Tensor], times: Tensor) -> Iterator[Tensor]:
    """The gradient at each block of raw rows, [rows, d], from ``out``, that at its unit rows, which is used up."""
    for unit, factor in zip(z, factors, strict=True):
        yield through_unit_rows_(out.pop(0), unit, factor, times, dim=0).t().to(unit.dtype)


@dataclass(frozen=True)
class Tiles:
    """e^{z_i·z_k/τ} in tiles. z zᵀ is symmetric: with the anchors' rows first, those from its diagonal on are enough.

    Anchors are the rows i whose D_i is asked for: the first half of their parts are of the first view, the others of
    the second. Parts of z are transposed: where d is no multiple of 16, products are a fifth quicker into gradients
    [d, side] than into [side, d]. Parts in bfloat16 are multiplied in it; all else is float32.
    """

    z: list[Tensor]  # [d, side] each
    anchors: int
    inverse_tau: float

    @cached_property
    def wide(self) -> torch.dtype:
        return wide(self.z[0].dtype)

    @cached_property
    def direct(self) -> bool:
        return exponential_fits(self.inverse_tau, self.wide)

    @property
    def bytes(self) -> int:
        sides = [part.size(1) for part in self.z]
        return sum(sides[a] * sum(sides[a:]) for a in range(self.anchors)) * self.wide.itemsize

    @property
    def budget(self) -> int:
        """Bytes of tiles to keep from the forward for the backward."""
        return _KEEP if self.bytes <= 4 * _KEEP else 0

    def log_sums(self, kept: list[Tensor], keep: int) -> list[Tensor]:
        """log D of each part of anchors. The first tiles are appended to `kept`, as many as fit into `keep` bytes."""
        start = 0.0 if self.direct else -torch.inf
        log_d = [part.new_full(part.shape[1:], start, dtype=self.wide) for part in self.z[: self.anchors]]
        for a, b, tile in self._each(kept, keep):
            if self.direct:
                log_d[a] += tile.sum(1)
                if a < b < self.anchors:
                    log_d[b] += tile.sum(0)
            else:
                torch.logaddexp(log_d[a], tile.logsumexp(1), out=log_d[a])
                if a < b < self.anchors:
                    torch.logaddexp(log_d[b], tile.logsumexp(0), out=log_d[b])
        return [part.log_() for part in log_d] if self.direct else log_d

    def pull(self, log_d: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
        """τ times the gradient of Σ_i (log D_i − z_i·z_{partner(i)}/τ) at each part of z.

        Where ``log_d`` goes on after the anchors, the other parts have a D too but are held by somebody else: the sum
        is over all of them, the gradient at the anchors.
        """
        z, half = self.z, self.anchors // 2
        out = [z[(a + half) % self.anchors].to(self.wide) * -2 for a in range(self.anchors)]
        if len(log_d) == self.anchors:
            out += [torch.zeros_like(part, dtype=self.wide) for part in z[self.anchors :]]
        return self._spread(out, [(-part).exp_() for part in log_d], log_d, kept)

    def weighted_sums(self, share: list[Tensor], kept: list[Tensor]) -> list[Tensor]:
        """Σ_k (share_i + share_k) e^{z_i·z_k/τ} z_k at each part of z, where exponentials need no shift."""
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
            self._weigh(a, b, weight)
            _add_product_(out[a], z[b], weight.t())
            if a < b < len(out):
                _add_product_(out[b], z[a], weight)
        return out

    def _multiply(self, left: Tensor, right: Tensor, out: Tensor, *, symmetric: bool) -> None:
        """``out`` = ``left`` ``right``/τ. Where that is symmetric, a quarter of it is copied and not multiplied."""
        half = left.size(0) // 32 * 16 if symmetric else 0
        parts = ((slice(None), slice(half, None)), (slice(half), slice(half))) if half else ((slice(None),) * 2,)
        for rows, columns in parts:
            part = out[rows, columns]
            torch.addmm(part, left[rows], right[:, columns], beta=0, alpha=self.inverse_tau, out=part)
        if half:
            out[half:, :half] = out[:half, half:].t()

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return ((a, b) for a in range(self.anchors) for b in range(a, len(self.z)))

    def _meet(self, a: int, b: int, exponents: Tensor, kept: bool) -> None:
        """Called with the exponents of a tile before they are exponentiated, and whether the tile is kept."""

    def _weigh(self, a: int, b: int, weight: Tensor) -> None:
        """Called with the weights of a tile before they are multiplied; it may change them."""

    def _room(self, dtype: torch.dtype) -> Tensor:
        return torch.empty(max(part.size(1) for part in self.z) ** 2, dtype=dtype, device=self.z[0].device)

    def _each(self, kept: list[Tensor], keep: int = 0) -> Iterator[tuple[int, int, Tensor]]:
        """(a, b, e^{z_a z_bᵀ/τ}) without the diagonal of z zᵀ; not `direct`: the exponents themselves.

        The first are those in `kept`. It takes in more up to `keep` bytes; all others share one piece of memory.
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
            self._meet(a, b, tile, keep >= 0)
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


def side_of_tiles(u: Tensor) -> int:
    """The side of a tile for embeddings like these."""
    if u.size(0) < _TUNED:
        return _TILE
    width = min(512, max(32, 2 ** round(math.log2(u.size(1)))))
    ways = {str(side): partial(_Rectangle.work, side, u.new_empty(0), width) for side in _SIDES}
    return int(fastest(f"side of a tile in info_nce, {u.device.type}, {u.dtype}, width {width}", ways, str(_SIDES[-1])))


class _Rectangle(Tiles):
    """Away from the diagonal: 1344 rows against 1344 others, the same work for a tile of any side.

    They are more than a second-level cache holds, as all rows are: where they fit, large tiles look better than they
    are.
    """

    @classmethod
    def work(cls, side: int, like: Tensor, width: int) -> None:
        parts = 2 * 1344 // side
        tiles = cls([like.new_full((width, side), width**-0.5) for _ in range(parts)], parts, 1.0)
        tiles.pull(tiles.log_sums([], 0), [])

    def _pairs(self) -> Iterable[tuple[int, int]]:
        half = self.anchors // 2
        return product(range(half), range(half, self.anchors))
