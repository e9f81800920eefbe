"""Contrasts over the rows of all ranks. Every rank returns the same loss, with that loss's gradient at its own rows.

Gradients of parameters are then to be summed over ranks and not averaged. In a single process nothing is gathered.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario import ranks
from mario.contrast.nce import info_nce
from mario.contrast.rows import check_pair, check_positive, exponential_fits, through_unit_rows_, unit_rows

_TILE = 512


def gathered(z: Tensor) -> Tensor:
    """The rows of all ranks, for a loss that is cheap enough to be computed by each of them.

    The gradient at a rank's rows is its slice of the gradient at all rows, as every rank computes the same loss.

    Example:
        >>> gathered(torch.eye(2)).shape
        torch.Size([2, 2])
    """
    return z if ranks.size() == 1 else _Gathered.apply(z)


def summed(part: Tensor) -> Tensor:
    """The sum over ranks of each one's part of a loss; the gradient is that of its own part.

    Example:
        >>> summed(torch.tensor(2.0))
        tensor(2.)
    """
    return part if ranks.size() == 1 else _Summed.apply(part)


def gathered_info_nce(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    """:func:`info_nce` with the nodes of all ranks as negatives, exactly: the loss of one process that holds all rows.

    A rank computes its own rows against all columns in tiles. It holds the embeddings of all ranks, but no square
    matrix; two exchanges in the forward pass, none in the backward.

    Args:
        u: embeddings [N, d] of this rank's nodes in the first view; N may differ between ranks.
        v: embeddings of the same nodes in the second view.
        tau: temperature.

    Example:
        >>> round(gathered_info_nce(torch.eye(2), torch.eye(2), tau=1.0).item(), 4)
        0.5514
    """
    if ranks.size() == 1:
        return info_nce(u, v, tau)
    check_pair(u, v)
    check_positive("tau", tau)
    return _GatheredInfoNCE.apply(u, v, 1.0 / tau)


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        counts = ranks.row_counts(z.size(0))
        ctx.start = sum(counts[: ranks.rank()])
        ctx.count = z.size(0)
        return ranks.rows(z, counts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad[ctx.start : ctx.start + ctx.count]


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor) -> Tensor:
        return ranks.sum_(part.clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class _GatheredInfoNCE(torch.autograd.Function):
    # As in `info_nce` both directions are one problem over z = [û; v̂]: the mean over all 2N rows of
    # log D_i − z_i·z_{partner(i)}/τ. The gradient at z_i is
    # Σ_k (1/D_i + 1/D_k) e^{z_i·z_k/τ} z_k − 2 z_{partner(i)}, times 1/(2Nτ): with the z and log D of all ranks it
    # needs nothing more from them.

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, inverse_tau: float) -> Tensor:
        own, factor = unit_rows(torch.cat([u, v]))
        counts = ranks.row_counts(own.size(0))
        everyone = ranks.rows(own, counts).split(counts)
        others = torch.cat([z for r, z in enumerate(everyone) if r != ranks.rank()])
        direct = exponential_fits(inverse_tau, u.dtype)
        z, far = _split(own), _split(others)
        log_d = [part.new_full((part.size(0),), 0.0 if direct else -torch.inf) for part in z]
        for a, b, tile in _tiles(z, far, inverse_tau, direct):
            _add(log_d[a], tile, 1, direct)
            if a < b < len(z):  # the tile on the other side of the diagonal is this one transposed
                _add(log_d[b], tile, 0, direct)
        own_log_d = torch.cat(log_d)
        if direct:
            own_log_d.log_()
        log_ds = ranks.rows(own_log_d, counts).split(counts)
        far_log_d = torch.cat([part for r, part in enumerate(log_ds) if r != ranks.rank()])
        total, positives = sum(counts), own.new_zeros(())
        for rows in everyone:
            first, second = rows.chunk(2)
            positives += torch.linalg.vecdot(first, second).sum()
        ctx.save_for_backward(own, others, factor, own_log_d, far_log_d)
        ctx.inverse_tau, ctx.direct, ctx.total = inverse_tau, direct, total
        # All ranks sum the same numbers in the same order: the loss is the same to the bit.
        return (torch.cat(log_ds).sum() - 2 * inverse_tau * positives) / total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        own, others, factor, own_log_d, far_log_d = ctx.saved_tensors
        z, far = _split(own), _split(others)
        columns = [*z, *far]
        log_d = [*_split(own_log_d), *_split(far_log_d)]
        share = [(-part).exp() for part in log_d]
        half = own.size(0) // 2
        out = torch.cat([own[half:], own[:half]]).mul_(-2)
        parts = _split(out)
        room = own.new_empty(max(part.size(0) for part in columns) * z[0].size(0))
        for a, b, tile in _tiles(z, far, ctx.inverse_tau, ctx.direct):
            weight = room[: tile.numel()].view(tile.shape)
            if ctx.direct:
                torch.add(share[a].unsqueeze(1), share[b], out=weight).mul_(tile)
            else:
                torch.sub(tile, log_d[a].unsqueeze(1), out=weight).exp_().add_((tile - log_d[b]).exp_())
            parts[a].addmm_(weight, columns[b])
            if a < b < len(z):
                parts[b].addmm_(weight.t(), z[a])
        through_unit_rows_(out, own, factor, grad * (ctx.inverse_tau / ctx.total))
        return out[:half], out[half:], None


def _split(rows: Tensor) -> tuple[Tensor, ...]:
    """Even parts of at most `_TILE` rows, as views."""
    return rows.tensor_split(max(1, -(-rows.size(0) // _TILE)))


def _tiles(
    z: tuple[Tensor, ...], far: tuple[Tensor, ...], inverse_tau: float, direct: bool
) -> Iterator[tuple[int, int, Tensor]]:
    """(a, b, e^{z_a z_bᵀ/τ}) for own parts a ≤ b without their diagonal, and for all others b, counted on from own.

    Not `direct`: the exponents themselves. A tile is valid until the next is taken.
    """
    columns = [*z, *far]
    room = z[0].new_empty(z[0].size(0) * max(part.size(0) for part in columns))
    for a, left in enumerate(z):
        for b in range(a, len(columns)):
            shape = (left.size(0), columns[b].size(0))
            tile = room[: shape[0] * shape[1]].view(shape)
            torch.addmm(tile, left, columns[b].t(), beta=0, alpha=inverse_tau, out=tile)
            if direct:
                tile.exp_()
            if a == b:
                tile.fill_diagonal_(0.0 if direct else -torch.inf)
            yield a, b, tile


def _add(total: Tensor, tile: Tensor, dim: int, direct: bool) -> None:
    if direct:
        total += tile.sum(dim)
    else:
        torch.logaddexp(total, tile.logsumexp(dim), out=total)
