"""InfoNCE between two views, exact, with memory linear in the number of nodes."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import check_pair, check_positive, exponential_fits, through_unit_rows_, unit_rows

# A tile of exponentials and the rows that make it stay in a core's second-level cache (512² float32 are 1 MiB).
_TILE = 512
# Tiles that fit this many bytes together are kept for the backward; beyond it they are computed again.
_KEEP = 16 * 2**20


def info_nce(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    r"""InfoNCE as in `"Deep Graph Contrastive Representation Learning" <https://arxiv.org/abs/2006.04131>`_ (GRACE).

    With s(a, b) = cos(a, b)/τ, ℓ(u_i) = −log( e^{s(u_i, v_i)} / (Σ_j e^{s(u_i, v_j)} + Σ_{j≠i} e^{s(u_i, u_j)}) ) and
    the loss is the mean over nodes of (ℓ(u_i) + ℓ(v_i))/2. A loss to minimise: log N − loss is a lower bound on
    I(U; V). It is exact, first-order differentiable, and holds no N × N tensor at any moment.

    Args:
        u: embeddings [N, d] of the nodes in the first view; rows are scaled to unit length here.
        v: embeddings of the same nodes in the second view.
        tau: temperature.

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
    return _InfoNCE.apply(u, v, 1.0 / tau)


class _InfoNCE(torch.autograd.Function):
    # Both directions are one problem: over the 2N rows z = [û; v̂] with log D_i = log Σ_{k≠i} e^{z_i·z_k/τ}, the loss is
    # the mean of log D_i − z_i·z_{partner(i)}/τ. z zᵀ is symmetric, so tiles on and above its diagonal are enough.

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, inverse_tau: float) -> Tensor:
        (unit_u, factor_u), (unit_v, factor_v) = unit_rows(u), unit_rows(v)
        z = [*_split(unit_u), *_split(unit_v)]
        direct = exponential_fits(inverse_tau, u.dtype)
        keep = 2 * u.size(0) ** 2 * u.element_size() <= _KEEP
        tiles: list[Tensor] = []
        log_d = [part.new_full((part.size(0),), 0.0 if direct else -torch.inf) for part in z]
        for a, b, tile in _tiles(z, inverse_tau, direct, reuse=not keep):
            if direct:
                log_d[a] += tile.sum(1)
                if a != b:
                    log_d[b] += tile.sum(0)
            else:
                torch.logaddexp(log_d[a], tile.logsumexp(1), out=log_d[a])
                if a != b:
                    torch.logaddexp(log_d[b], tile.logsumexp(0), out=log_d[b])
            if keep:
                tiles.append(tile)
        if direct:
            for part in log_d:
                part.log_()
        positives = torch.linalg.vecdot(unit_u, unit_v).sum() * inverse_tau
        ctx.save_for_backward(unit_u, unit_v, factor_u, factor_v, *log_d, *tiles)
        ctx.inverse_tau, ctx.direct, ctx.parts = inverse_tau, direct, len(z)
        return (torch.cat(log_d).sum() / 2 - positives) / u.size(0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        unit_u, unit_v, factor_u, factor_v, *rest = ctx.saved_tensors
        log_d, tiles = rest[: ctx.parts], rest[ctx.parts :]
        grad_u, grad_v = unit_v * -2, unit_u * -2
        z, out = [*_split(unit_u), *_split(unit_v)], [*_split(grad_u), *_split(grad_v)]
        pairs = [(a, b) for a in range(len(z)) for b in range(a, len(z))]
        kept = ((a, b, tile) for (a, b), tile in zip(pairs, tiles, strict=True))
        share = [(-part).exp_() for part in log_d]
        room = torch.empty(0, dtype=unit_u.dtype, device=unit_u.device)
        for a, b, tile in kept if tiles else _tiles(z, ctx.inverse_tau, ctx.direct, reuse=True):
            if room.numel() < tile.numel():
                room = tile.new_empty(tile.numel())
            weight = room[: tile.numel()].view(tile.shape)
            if ctx.direct:
                torch.add(share[a].unsqueeze(1), share[b], out=weight).mul_(tile)
            else:
                torch.sub(tile, log_d[a].unsqueeze(1), out=weight).exp_().add_((tile - log_d[b]).exp_())
            out[a].addmm_(weight, z[b])
            if a != b:
                out[b].addmm_(weight.t(), z[a])
        times = grad * (ctx.inverse_tau / (2 * unit_u.size(0)))
        through_unit_rows_(grad_u, unit_u, factor_u, times)
        through_unit_rows_(grad_v, unit_v, factor_v, times)
        return grad_u, grad_v, None


def _split(rows: Tensor) -> tuple[Tensor, ...]:
    """Even parts of at most `_TILE` rows, as views."""
    return rows.tensor_split(-(-rows.size(0) // _TILE))


def _tiles(z: list[Tensor], inverse_tau: float, direct: bool, reuse: bool) -> Iterator[tuple[int, int, Tensor]]:
    """(a, b, e^{z_a z_bᵀ/τ}) for a ≤ b without the diagonal of z zᵀ; not `direct`: the exponents themselves."""
    room = z[0].new_empty(z[0].size(0) ** 2) if reuse else None
    for a, left in enumerate(z):
        for b in range(a, len(z)):
            shape = (left.size(0), z[b].size(0))
            tile = left.new_empty(shape) if room is None else room[: shape[0] * shape[1]].view(shape)
            torch.addmm(tile, left, z[b].t(), beta=0, alpha=inverse_tau, out=tile)
            if direct:
                tile.exp_()
            if a == b:
                tile.fill_diagonal_(0.0 if direct else -torch.inf)
            yield a, b, tile
