"""InfoNCE between two views, exact or over a sample of anchors, with memory linear in the number of nodes."""

from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario import ranks
from mario.arguments import check_positive
from mario.contrast.rows import check_pair, check_rows, exponential_fits, wide
from mario.contrast.tiles import Tiles, ranges, raw_gradients, tile_side, units
from mario.draws import check_generator
from mario.errors import MarioError

# Bytes of exponentials that `sums_within` keeps for its backward pass, in addition to those of `info_nce`: 2,800 nodes.
KEEP_WITHIN = 2**24


def info_nce(
    u: Tensor,
    v: Tensor,
    tau: float = 0.5,
    *,
    anchors: int | None = None,
    generator: torch.Generator | None = None,
    within_v: Tensor | None = None,
    across_ranks: bool = False,
) -> Tensor:
    r"""InfoNCE as in `"Deep Graph Contrastive Representation Learning" <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    With s(a, b) = cos(a, b)/τ, ℓ(u_i) = −log( e^{s(u_i, v_i)} / (Σ_j e^{s(u_i, v_j)} + Σ_{j≠i} e^{s(u_i, u_j)}) ) and
    the loss is the mean over nodes of (ℓ(u_i) + ℓ(v_i))/2. A loss to minimize: log N − loss is a lower bound on
    I(U; V). It is exact, first-order differentiable, and never allocates an N × N tensor. Embeddings in bfloat16
    are multiplied in bfloat16 and their gradient is bfloat16; sums, logarithms and the loss are float32.

    Args:
        u: embeddings [N, d] of the nodes in the first view; rows are scaled to unit length inside.
        v: embeddings of the same nodes in the second view.
        tau: temperature.
        anchors: average over this many nodes i, drawn at each call, each against all columns j. Loss and gradient are
            unbiased; the cost falls from N² to anchors · N. ``None``, or at least N, uses all nodes.
        generator: source of the anchors; ``None`` is torch's default generator.
        within_v: the result of :func:`sums_within` for the same ``v`` and ``tau``. If several ``u`` are contrasted with
            one ``v``, the pairs within ``v``, a quarter of all, are then computed once.
        across_ranks: use the nodes of all ranks as negatives. Every rank passes its own nodes (N may differ), and gets
            the loss of one process that holds all rows, with the gradient at its own; sum the gradients of
            parameters over ranks. No effect in a single process.

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
    check_generator(generator)
    if anchors is not None and (isinstance(anchors, bool) or not isinstance(anchors, int) or anchors < 1):
        raise MarioError(f"anchors must be a whole number of nodes above 0, or None for all, got {anchors!r}")
    if (anchors is not None) + (within_v is not None) + across_ranks > 1:
        raise MarioError("use only one of anchors, within_v and across_ranks")
    if within_v is not None:
        _check_within(v, tau)
        if not isinstance(within_v, Tensor) or within_v.shape != v.shape[:1]:
            given = tuple(within_v.shape) if isinstance(within_v, Tensor) else type(within_v).__name__
            raise MarioError(f"within_v must be sums_within(v, tau), shape [{v.size(0)}], got {given}")
    order = None
    if anchors is not None and anchors < u.size(0):
        order = torch.randperm(u.size(0), generator=generator).to(u.device)
    parts = _parts(u.size(0), order, anchors)
    loss: Tensor = _InfoNCE.apply(u, v, within_v, 1.0 / tau, parts, across_ranks and ranks.size() > 1)
    return loss


def sums_within(v: Tensor, tau: float = 0.5) -> Tensor:
    """Σ_{j≠i} e^{cos(v_i, v_j)/τ} for each row i, [N]: the part of :func:`info_nce` that depends on ``v`` alone.

    Example:
        >>> import torch
        >>> from mario.contrast import info_nce, sums_within
        >>> v = torch.eye(3)
        >>> within = sums_within(v, tau=1.0)
        >>> within
        tensor([2., 2., 2.])
        >>> [round(info_nce(u, v, tau=1.0, within_v=within).item(), 4) for u in (torch.eye(3), torch.ones(3, 3))]
        [0.9048, 1.6085]
    """
    check_rows("v", v)
    check_positive("tau", tau)
    _check_within(v, tau)
    sums: Tensor = _SumsWithin.apply(v, 1.0 / tau)
    return sums


def sums_fit(v: Tensor, tau: float) -> bool:
    """Whether :func:`sums_within` can represent its sums, which grow as e^{1/τ}, in the dtype of ``v``."""
    return exponential_fits(1.0 / tau, wide(v.dtype))


def _check_within(v: Tensor, tau: float) -> None:
    if not sums_fit(v, tau):
        raise MarioError(f"tau must be larger for sums of e^(1/tau) to fit {v.dtype}, got {tau}; omit within_v")


@dataclass(frozen=True)
class _Parts:
    """The nodes of the rows z, part by part: anchors in the first view, in the second, then the rest of both."""

    nodes: list[slice | Tensor]
    anchors: int  # number of parts that hold anchors

    def views(self, u: Tensor, v: Tensor) -> list[Tensor]:
        """The view that each part is taken from."""
        first, rest = self.anchors // 2, (len(self.nodes) - self.anchors) // 2
        return [*[u] * first, *[v] * first, *[u] * rest, *[v] * rest]


def _parts(count: int, order: Tensor | None, anchors: int | None) -> _Parts:
    chosen = count if order is None or anchors is None else anchors
    side = tile_side(count)
    first, rest = ranges(0, chosen, side), ranges(chosen, count, side)
    all_parts = [*first, *first, *rest, *rest]
    return _Parts([part if order is None else order[part] for part in all_parts], 2 * len(first))


class _InfoNCE(torch.autograd.Function):
    # Both directions are one problem: over the 2N rows z = [û; v̂] with log D_i = log Σ_{k≠i} e^{z_i·z_k/τ}, the loss is
    # the mean of log D_i − z_i·z_{partner(i)}/τ over the rows i of anchors. The gradient at z_i is
    # Σ_k (1/D_i + 1/D_k) e^{z_i·z_k/τ} z_k − 2 z_{partner(i)}, times 1/(2Nτ): given z and log D of the other ranks, it
    # needs nothing else from them.

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        v: Tensor,
        within_v: Tensor | None,
        inverse_tau: float,
        parts: _Parts,
        across_ranks: bool,
    ) -> Tensor:
        z, factors = units(view[nodes] for view, nodes in zip(parts.views(u, v), parts.nodes, strict=True))
        half = parts.anchors // 2
        others = _Others(z) if across_ranks else None
        known = [] if within_v is None else [within_v[nodes] for nodes in parts.nodes[half:]]
        tiles = Tiles([*z, *(others.z if others else [])], parts.anchors, inverse_tau, half if known else None)
        kept: list[Tensor] = []
        log_d = tiles.log_sums(kept, tiles.budget if any(ctx.needs_input_grad) else 0, known)
        pairs = zip(z[:half], z[half : parts.anchors], strict=True)
        positives = torch.stack([(p.to(tiles.wide) * q).sum() for p, q in pairs]).sum() * (2 * inverse_tau)
        total, rows = torch.cat(log_d).sum() - positives, sum(part.numel() for part in log_d)
        if others:
            log_d, total, rows = others.exchange(log_d, total)
        ctx.save_for_backward(*tiles.z, *factors, *log_d, *kept)
        ctx.parts, ctx.inverse_tau, ctx.rows, ctx.known = parts, inverse_tau, rows, bool(known)
        ctx.counts = len(tiles.z), len(factors), len(log_d)
        return total / rows

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved, parts = iter(ctx.saved_tensors), ctx.parts
        z, factors, log_d = (list(islice(saved, count)) for count in ctx.counts)
        half = parts.anchors // 2
        tiles = Tiles(z, parts.anchors, ctx.inverse_tau, half if ctx.known else None)
        out = tiles.pull(log_d, list(saved))
        own = z[: len(factors)]
        shape = (sum(part.size(1) for part in own) // 2, own[0].size(0))
        grads = own[0].new_empty(shape), own[0].new_empty(shape)
        raw = raw_gradients(out, own, factors, grad.to(tiles.wide) * (ctx.inverse_tau / ctx.rows))
        for view, nodes, part in zip(parts.views(*grads), parts.nodes, raw, strict=True):
            view[nodes] = part
        within = torch.cat(log_d[half:]).neg_().exp_().mul_(grad / ctx.rows) if ctx.needs_input_grad[2] else None
        return *grads, within, None, None, None


class _Others:
    """The unit rows of the other ranks, in both views, as parts of z."""

    def __init__(self, z: list[Tensor]) -> None:
        self.half = len(z) // 2
        both = torch.cat([torch.cat(z[: self.half], 1), torch.cat(z[self.half :], 1)]).t()  # [N, 2d]
        self.counts = ranks.row_counts(both.size(0))
        first, second = self._without_own(ranks.rows(both, self.counts)).chunk(2, 1)
        self.parts = ranges(0, first.size(0), tile_side(both.size(0)))
        self.z = [view[part].t().contiguous() for view in (first, second) for part in self.parts]

    def exchange(self, log_d: list[Tensor], total: Tensor) -> tuple[list[Tensor], Tensor, int]:
        """log D of own and others' parts; the total of all ranks, equal to the bit on each; their number of rows."""
        first, second = torch.cat(log_d[: self.half]), torch.cat(log_d[self.half :])
        everyone = ranks.rows(torch.stack([first, second, total.expand_as(first)], 1), self.counts)
        total = sum((part[0, 2] for part in everyone.split(self.counts)), torch.zeros_like(total))
        others = self._without_own(everyone)
        return [*log_d, *(others[part, view] for view in (0, 1) for part in self.parts)], total, 2 * sum(self.counts)

    def _without_own(self, rows: Tensor) -> Tensor:
        start = sum(self.counts[: ranks.rank()])
        return torch.cat([rows[:start], rows[start + self.counts[ranks.rank()] :]])


class _SumsWithin(torch.autograd.Function):
    # Only v is saved: its unit rows are cheap to compute again.

    @staticmethod
    def forward(ctx: Any, v: Tensor, inverse_tau: float) -> Tensor:
        tiles, _, _ = _SumsWithin.tiles(v, inverse_tau)
        kept: list[Tensor] = []
        sums = tiles.sums(kept, KEEP_WITHIN if ctx.needs_input_grad[0] and tiles.bytes <= KEEP_WITHIN else 0)
        ctx.save_for_backward(v, *kept)
        ctx.inverse_tau = inverse_tau
        return torch.cat(sums)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        v, *kept = ctx.saved_tensors
        tiles, factors, parts = _SumsWithin.tiles(v, ctx.inverse_tau)
        out = tiles.weighted_sums([grad[nodes] for nodes in parts], kept)
        times = torch.full((), ctx.inverse_tau, dtype=tiles.wide, device=v.device)
        return torch.cat(list(raw_gradients(out, tiles.z, factors, times))), None

    @staticmethod
    def tiles(v: Tensor, inverse_tau: float) -> tuple[Tiles, list[Tensor], list[slice]]:
        parts = ranges(0, v.size(0), tile_side(v.size(0)))
        z, factors = units(v[nodes] for nodes in parts)
        return Tiles(z, len(z), inverse_tau), factors, parts
