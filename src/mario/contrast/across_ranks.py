"""Contrasts over the rows of all ranks. Every rank returns the same loss, with that loss's gradient at its own rows.

Gradients of parameters are then to be summed over ranks and not averaged. In a single process nothing is gathered.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario import ranks
from mario.contrast.nce import info_nce
from mario.contrast.rows import check_pair, check_positive
from mario.contrast.tiles import Tiles, ranges, raw_gradients, side_of_tiles, units


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
        side, counts = side_of_tiles(u), ranks.row_counts(u.size(0))
        rows = ranges(0, u.size(0), side)
        z, factors = units(view[part] for view in (u, v) for part in rows)
        everyone = ranks.rows(torch.cat([part.t() for part in z]), [2 * count for count in counts])
        far = _of_others(everyone, counts)
        columns = [far[part].t().contiguous() for part in ranges(0, far.size(0), side)]
        tiles = Tiles([*z, *columns], len(z), inverse_tau)
        log_d = tiles.log_sums([], 0)
        log_ds = ranks.rows(torch.cat(log_d), [2 * count for count in counts])
        log_d += _of_others(log_ds, counts).split([part.size(1) for part in columns])
        positives = log_ds.new_zeros(())
        for both in everyone.split([2 * count for count in counts]):
            first, second = both.to(tiles.wide).chunk(2)
            positives += torch.linalg.vecdot(first, second).sum()
        ctx.save_for_backward(*tiles.z, *log_d, *factors)
        ctx.own, ctx.rows, ctx.inverse_tau, ctx.total = len(z), rows, inverse_tau, 2 * sum(counts)
        # All ranks sum the same numbers in the same order: the loss is the same to the bit.
        return (log_ds.sum() - 2 * inverse_tau * positives) / ctx.total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        saved = list(ctx.saved_tensors)
        factors, saved = saved[-ctx.own :], saved[: -ctx.own]
        z, log_d = saved[: len(saved) // 2], saved[len(saved) // 2 :]
        out = Tiles(z, ctx.own, ctx.inverse_tau).pull(log_d, [])
        raw = list(raw_gradients(out, z[: ctx.own], factors, grad * (ctx.inverse_tau / ctx.total)))
        return torch.cat(raw[: len(ctx.rows)]), torch.cat(raw[len(ctx.rows) :]), None


def _of_others(rows: Tensor, counts: list[int]) -> Tensor:
    """``rows``, of which each rank has twice its count, without those of this rank."""
    start, own = 2 * sum(counts[: ranks.rank()]), 2 * counts[ranks.rank()]
    return torch.cat([rows[:start], rows[start + own :]])
