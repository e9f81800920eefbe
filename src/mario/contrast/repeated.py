"""InfoNCE of several first views in a row with a second view that stands still."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import check_pair, check_positive, exponential_fits, through_unit_rows_, unit_rows, wide
from mario.contrast.tiles import Tiles, ranges, side_of_tiles
from mario.errors import MarioError

# Up to this many nodes a square matrix takes 4 MiB and whole products are quicker than tiles.
_SMALL = 1024


class RepeatedInfoNCE:
    r"""`info_nce` with a second view that is the same in every call, as β is while MARIO's δ ascends.

    The similarities within the second view, a quarter of all, are summed once, at the start. Their part of the gradient
    is linear in the shares 1/D that the calls have of them, so it is added once, by `finish`, after the last backward.

    Args:
        v: embeddings [N, d] of the second view; a leaf, to whose ``grad`` the backward passes and `finish` add.
        tau: temperature; e^{1/τ} has to be a number, which `fits` tells.

    Example:
        >>> import torch
        >>> v = torch.eye(2, requires_grad=True)
        >>> contrast = RepeatedInfoNCE(v, tau=1.0)
        >>> loss = contrast(torch.eye(2))
        >>> loss.backward()
        >>> contrast.finish()
        >>> round(loss.item(), 4)
        0.5514
    """

    def __init__(self, v: Tensor, tau: float = 0.5) -> None:
        check_pair(v, v)
        check_positive("tau", tau)
        if not self.fits(v, tau):
            raise MarioError(f"tau must be larger for sums of e^(1/tau) to fit {v.dtype}, got {tau}: use info_nce")
        self.v = v
        self.inverse_tau = 1.0 / tau
        self._shares: list[Tensor] = []
        if v.size(0) <= _SMALL:
            self.unit, self.factor = unit_rows(v.detach())
            self.within = exponentials(self.unit, self.unit, self.inverse_tau).fill_diagonal_(0.0)
            self.sums = self.within.sum(1)
            return
        self.parts = ranges(0, v.size(0), side_of_tiles(v))
        self.z, self.factors = units(v.detach(), self.parts)
        self.tiles = Tiles(self.z, len(self.z), self.inverse_tau)
        self.own_sums = self.tiles.log_sums([], 0)

    @staticmethod
    def fits(v: Tensor, tau: float) -> bool:
        return exponential_fits(1.0 / tau, wide(v.dtype))

    def __call__(self, u: Tensor) -> Tensor:
        check_pair(u, self.v)
        return (_RepeatedWhole if u.size(0) <= _SMALL else _Repeated).apply(u, self.v, self)

    def take(self, shares: list[Tensor]) -> None:
        """Remember what a backward pass has for the similarities within the second view."""
        self._shares = [a + b for a, b in zip(self._shares, shares, strict=True)] if self._shares else shares

    @torch.no_grad()
    def finish(self) -> None:
        """Add to ``v.grad`` what all backward passes since the last `finish` have for the similarities within ``v``."""
        if not self._shares:
            return
        shares, self._shares = self._shares, []
        if self.v.size(0) <= _SMALL:
            grad = weighted(self.within, shares[0], shares[0]) @ self.unit
            through_unit_rows_(grad, self.unit, self.factor, grad.new_ones(()))
        else:
            pulled = self.tiles.weighted_sums(shares)
            grad = gradient(pulled, self.z, self.factors, self.parts, torch.tensor(1.0, dtype=self.tiles.wide))
        self.v.grad = grad if self.v.grad is None else self.v.grad.add_(grad)


def units(v: Tensor, parts: list[slice]) -> tuple[list[Tensor], list[Tensor]]:
    """Unit rows of each part, transposed, and the factors that made them so."""
    made = [unit_rows(v[rows]) for rows in parts]
    return [unit.t().contiguous() for unit, _ in made], [factor for _, factor in made]


def gradient(out: list[Tensor], z: list[Tensor], factors: list[Tensor], parts: list[slice], times: Tensor) -> Tensor:
    """The gradient at the raw rows from those at the unit rows of each part."""
    grad = z[0].new_empty(parts[-1].stop, z[0].size(0))
    for rows, pulled, unit, factor in zip(parts, out, z, factors, strict=True):
        grad[rows] = through_unit_rows_(pulled, unit, factor.t(), times.to(pulled.device), dim=0).t().to(grad.dtype)
    return grad


def exponentials(a: Tensor, b: Tensor, inverse_tau: float) -> Tensor:
    return torch.mm(a, b.t()).mul_(inverse_tau).exp_()


def weighted(exponential: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    return torch.add(rows.unsqueeze(1), columns).mul_(exponential)


class _RepeatedWhole(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, fixed: RepeatedInfoNCE) -> Tensor:
        unit, factor = unit_rows(u)
        within = exponentials(unit, unit, fixed.inverse_tau).fill_diagonal_(0.0)
        between = exponentials(unit, fixed.unit, fixed.inverse_tau)
        d_u, d_v = within.sum(1).add_(between.sum(1)), between.sum(0).add_(fixed.sums)
        ctx.save_for_backward(unit, factor, within, between, d_u.reciprocal(), d_v.reciprocal())
        ctx.fixed = fixed
        positives = torch.sum(unit * fixed.unit) * (2 * fixed.inverse_tau)
        return (d_u.log_().sum() + d_v.log_().sum() - positives) / (2 * u.size(0))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        unit, factor, within, between, share_u, share_v = ctx.saved_tensors
        fixed, times = ctx.fixed, grad * (ctx.fixed.inverse_tau / (2 * unit.size(0)))
        if ctx.needs_input_grad[1]:
            fixed.take([share_v * times])
        across = weighted(between, share_u, share_v)
        grad_u = torch.add(fixed.unit * -2, weighted(within, share_u, share_u) @ unit).addmm_(across, fixed.unit)
        grad_v = (unit * -2).addmm_(across.t(), unit)
        through_unit_rows_(grad_u, unit, factor, times)
        return grad_u, through_unit_rows_(grad_v, fixed.unit, fixed.factor, times), None


class _FirstRows(Tiles):
    """The tiles in which the first half of the parts has a share: those within the second half are left out."""

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return ((a, b) for a in range(self.anchors // 2) for b in range(a, self.anchors))


class _Repeated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, fixed: RepeatedInfoNCE) -> Tensor:
        z, factors = units(u, fixed.parts)
        tiles = _FirstRows([*z, *fixed.z], 2 * len(z), fixed.inverse_tau)
        kept: list[Tensor] = []
        log_d = tiles.log_sums(kept, tiles.budget if any(ctx.needs_input_grad) else 0)
        for part, own in zip(log_d[len(z) :], fixed.own_sums, strict=True):
            torch.logaddexp(part, own, out=part)
        pairs = zip(z, fixed.z, strict=True)
        positives = torch.stack([(p.to(tiles.wide) * q).sum() for p, q in pairs]).sum() * (2 * fixed.inverse_tau)
        ctx.save_for_backward(*z, *factors, *log_d, *kept)
        ctx.fixed = fixed
        return (torch.cat(log_d).sum() - positives) / (2 * u.size(0))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        fixed, saved, count = ctx.fixed, list(ctx.saved_tensors), len(ctx.fixed.z)
        z, factors, log_d, kept = (
            saved[:count],
            saved[count : 2 * count],
            saved[2 * count : 4 * count],
            saved[4 * count :],
        )
        tiles = _FirstRows([*z, *fixed.z], 2 * count, fixed.inverse_tau)
        out = tiles.pull(log_d, kept)
        times = grad.to(tiles.wide) * (fixed.inverse_tau / (2 * fixed.parts[-1].stop))
        if ctx.needs_input_grad[1]:
            fixed.take([(-part).exp_().mul_(times) for part in log_d[count:]])
        grad_u = gradient(out[:count], z, factors, fixed.parts, times)
        return grad_u, gradient(out[count:], fixed.z, fixed.factors, fixed.parts, times), None
