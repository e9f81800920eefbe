"""InfoNCE of several first views in a row with a second view that stands still."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import check_pair, check_positive, exponential_fits, wide
from mario.contrast.tiles import Tiles, ranges, raw_gradients, side_of_tiles, units
from mario.errors import MarioError


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
        self.parts = ranges(0, v.size(0), side_of_tiles(v))
        self.z, self.factors = units(v.detach()[rows] for rows in self.parts)
        self.tiles = Tiles(self.z, len(self.z), self.inverse_tau)
        self.own_sums = self.tiles.log_sums([], 0)

    @staticmethod
    def fits(v: Tensor, tau: float) -> bool:
        return exponential_fits(1.0 / tau, wide(v.dtype))

    def __call__(self, u: Tensor) -> Tensor:
        check_pair(u, self.v)
        return _Repeated.apply(u, self.v, self)

    def take(self, shares: list[Tensor]) -> None:
        """Remember what a backward pass has for the similarities within the second view."""
        self._shares = [a + b for a, b in zip(self._shares, shares, strict=True)] if self._shares else shares

    @torch.no_grad()
    def finish(self) -> None:
        """Add to ``v.grad`` what all backward passes since the last `finish` have for the similarities within ``v``."""
        if not self._shares:
            return
        shares, self._shares = self._shares, []
        pulled = self.tiles.weighted_sums(shares)
        one = torch.ones((), dtype=self.tiles.wide, device=self.v.device)
        grad = torch.cat(list(raw_gradients(pulled, self.z, self.factors, one)))
        self.v.grad = grad if self.v.grad is None else self.v.grad.add_(grad)


class _FirstRows(Tiles):
    """The tiles in which the first half of the parts has a share: those within the second half are left out."""

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return ((a, b) for a in range(self.anchors // 2) for b in range(a, self.anchors))


class _Repeated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, fixed: RepeatedInfoNCE) -> Tensor:
        z, factors = units(u[rows] for rows in fixed.parts)
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
        raw = list(raw_gradients(out, [*z, *fixed.z], [*factors, *fixed.factors], times))
        return torch.cat(raw[:count]), torch.cat(raw[count:]), None
