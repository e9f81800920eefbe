"""InfoNCE between two views, exact or over a sample of anchors, with memory linear in the number of nodes."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice, product
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import check_pair, check_positive, exponential_fits, through_unit_rows_, unit_rows, wide
from mario.errors import MarioError
from mario.tuning import fastest

# The side of a tile of exponentials: 512² float32 are 1 MiB, which stays in a core's second-level cache.
_TILE = 512
# From this many nodes on the side is what this machine is quickest with. Below it bits are the same on all machines.
_TUNED, _SIDES = 2048, (256, 512, 1024)
# The first tiles are kept for the backward, up to this many bytes; others are computed again. Where less than a
# quarter of all could be kept (float32: more than 5,792 nodes), none is: a few percent are not worth the memory.
_KEEP = 64 * 2**20


def info_nce(
    u: Tensor,
    v: Tensor,
    tau: float = 0.5,
    *,
    anchors: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""InfoNCE as in `"Deep Graph Contrastive Representation Learning" <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    With s(a, b) = cos(a, b)/τ, ℓ(u_i) = −log( e^{s(u_i, v_i)} / (Σ_j e^{s(u_i, v_j)} + Σ_{j≠i} e^{s(u_i, u_j)}) ) and
    the loss is the mean over nodes of (ℓ(u_i) + ℓ(v_i))/2. A loss to minimise: log N − loss is a lower bound on
    I(U; V). It is exact, first-order differentiable, and holds no N × N tensor at any moment. Embeddings in bfloat16
    are multiplied in it and their gradient is bfloat16; sums, logarithms and the loss are float32.

    Args:
        u: embeddings [N, d] of the nodes in the first view; rows are scaled to unit length here.
        v: embeddings of the same nodes in the second view.
        tau: temperature.
        anchors: take the mean over this many nodes i, drawn anew at each call, each against all columns j. Loss and
            gradient have those over all nodes as expectation; the cost falls from N² to anchors · N. `None`, or N and
            more: all nodes.
        generator: source of the anchors; `None` is torch's default generator.

    Example:
        >>> import torch
        >>> from mario.contrast import info_nce
        >>> u = torch.eye(2, requires_grad=True)
        >>> loss = info_nce(u, torch.eye(2), tau=1.0)  # −log( e / (e + 1 + 1) )
        >>> loss.backward()
        >>> round(loss.item(), 4)
        0.5514
    """
    check_pair(u, v)
    check_positive("tau", tau)
    if anchors is not None and (not isinstance(anchors, int) or anchors < 1):
        raise MarioError(f"anchors must be a whole number of nodes above 0, or None for all, got {anchors!r}")
    order = None
    if anchors is not None and anchors < u.size(0):
        order = torch.randperm(u.size(0), generator=generator).to(u.device)
    return _InfoNCE.apply(u, v, 1.0 / tau, _parts(u.size(0), _side(u), order, anchors))


@dataclass(frozen=True)
class _Parts:
    """The nodes of the rows z, part by part: anchors in the first view, in the second, then the rest of both."""

    nodes: list[slice | Tensor]
    anchors: int  # how many parts hold anchors

    def views(self, u: Tensor, v: Tensor) -> list[Tensor]:
        """The view that each part is from."""
        first, rest = self.anchors // 2, (len(self.nodes) - self.anchors) // 2
        return [*[u] * first, *[v] * first, *[u] * rest, *[v] * rest]


def _parts(count: int, side: int, order: Tensor | None, anchors: int | None) -> _Parts:
    chosen = count if order is None or anchors is None else anchors
    first, rest = _ranges(0, chosen, side), _ranges(chosen, count, side)
    ranges = [*first, *first, *rest, *rest]
    return _Parts([part if order is None else order[part] for part in ranges], 2 * len(first))


def _ranges(start: int, stop: int, side: int) -> list[slice]:
    """Ranges of at most `side`, as even as multiples of 16 can be: a row of a tile then starts on a cache line."""
    if start == stop:
        return []
    even = math.ceil((stop - start) / math.ceil((stop - start) / side))
    step = min(side, math.ceil(even / 16) * 16)
    return [slice(at, min(at + step, stop)) for at in range(start, stop, step)]


class _InfoNCE(torch.autograd.Function):
    # Both directions are one problem: over the 2N rows z = [û; v̂] with log D_i = log Σ_{k≠i} e^{z_i·z_k/τ}, the loss is
    # the mean of log D_i − z_i·z_{partner(i)}/τ over the rows i of anchors.

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, inverse_tau: float, parts: _Parts) -> Tensor:
        z, factors = [], []
        for view, nodes in zip(parts.views(u, v), parts.nodes, strict=True):
            unit, factor = unit_rows(view[nodes])
            z.append(unit.t().contiguous())
            factors.append(factor)
        tiles = _Tiles(z, parts.anchors, inverse_tau)
        kept: list[Tensor] = []
        log_d = tiles.log_sums(kept, _KEEP if any(ctx.needs_input_grad) and tiles.bytes <= 4 * _KEEP else 0)
        half, rows = parts.anchors // 2, sum(part.numel() for part in log_d)
        pairs = zip(z[:half], z[half : parts.anchors], strict=True)
        positives = torch.stack([(p.to(tiles.wide) * q).sum() for p, q in pairs]).sum() * (2 * inverse_tau)
        ctx.save_for_backward(*z, *factors, *log_d, *kept)
        ctx.parts, ctx.inverse_tau, ctx.rows = parts, inverse_tau, rows
        return (torch.cat(log_d).sum() - positives) / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, parts = iter(ctx.saved_tensors), ctx.parts
        z, factors = list(islice(saved, len(parts.nodes))), list(islice(saved, len(parts.nodes)))
        log_d = list(islice(saved, parts.anchors))
        tiles = _Tiles(z, parts.anchors, ctx.inverse_tau)
        out = tiles.pull(log_d, list(saved))
        times = grad.to(tiles.wide) * (ctx.inverse_tau / ctx.rows)
        shape = (sum(part.size(1) for part in z) // 2, z[0].size(0))
        grads = z[0].new_empty(shape), z[0].new_empty(shape)
        for view, nodes, unit, factor in zip(parts.views(*grads), parts.nodes, z, factors, strict=True):
            view[nodes] = through_unit_rows_(out.pop(0), unit, factor.t(), times, dim=0).t().to(view.dtype)
        return *grads, None, None


@dataclass(frozen=True)
class _Tiles:
    """e^{z_i·z_k/τ} in tiles. z zᵀ is symmetric: with the anchors' rows first, those from its diagonal on are enough.

    Parts of z are transposed: where d is no multiple of 16, products are a fifth quicker into gradients [d, side] than
    into [side, d]. Parts in bfloat16 are multiplied in it; all else is float32.
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
        """τ times the gradient of Σ_i (log D_i − z_i·z_{partner(i)}/τ) at each part of z."""
        z, half = self.z, self.anchors // 2
        out = [z[(a + half) % self.anchors].to(self.wide) * -2 for a in range(self.anchors)]
        out += [torch.zeros_like(part, dtype=self.wide) for part in z[self.anchors :]]
        share = [(-part).exp_() for part in log_d]
        room = self._room(self.wide)
        for a, b, tile in self._each(kept):
            weight = room[: tile.numel()].view(tile.shape)
            if not self.direct:
                torch.sub(tile, log_d[a].unsqueeze(1), out=weight).exp_()
                if b < self.anchors:
                    weight.add_((tile - log_d[b]).exp_())
            elif b < self.anchors:
                torch.add(share[b], share[a].unsqueeze(1), out=weight).mul_(tile)
            else:
                torch.mul(tile, share[a].unsqueeze(1), out=weight)
            _add_product_(out[a], z[b], weight.t())
            if a != b:
                _add_product_(out[b], z[a], weight)
        return out

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return ((a, b) for a in range(self.anchors) for b in range(a, len(self.z)))

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
            torch.addmm(product, left, self.z[b], beta=0, alpha=self.inverse_tau, out=product)
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


def _side(u: Tensor) -> int:
    """The side of a tile for embeddings like these."""
    if u.size(0) < _TUNED:
        return _TILE
    width = min(512, max(32, 2 ** round(math.log2(u.size(1)))))
    ways = {str(side): partial(_Rectangle.work, side, u.new_empty(0), width) for side in _SIDES}
    return int(fastest(f"side of a tile in info_nce, {u.device.type}, {u.dtype}, width {width}", ways, str(_TILE)))


class _Rectangle(_Tiles):
    """Away from the diagonal: 1024 rows against 1024 others, the same work for a tile of any side."""

    @classmethod
    def work(cls, side: int, like: Tensor, width: int) -> None:
        parts = 2 * 1024 // side
        tiles = cls([like.new_full((width, side), width**-0.5) for _ in range(parts)], parts, 1.0)
        tiles.pull(tiles.log_sums([], 0), [])

    def _pairs(self) -> Iterable[tuple[int, int]]:
        half = self.anchors // 2
        return product(range(half), range(half, self.anchors))
