"""InfoNCE of several first views in a row with a second view that stands still."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.nce import Tiles, ranges, side_of_tiles
from mario.contrast.rows import check_pair, check_positive, exponential_fits, through_unit_rows_, unit_rows, wide


class RepeatedInfoNCE:
    r"""`info_nce` with a second view that is the same in every call, as β is while MARIO's δ ascends.

    The similarities within the second view, a quarter of all, are summed once, at the start. Their part of the gradient
    is linear in the shares 1/D that the calls have of them, so it is added once, by `finish`, after the last backward.

    Args:
        v: embeddings [N, d] of the second view, a leaf whose ``grad`` the calls and `finish` add to.
        tau: temperature.

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
        self.v = v
        self.inverse_tau = 1.0 / tau
        self.parts = ranges(0, v.size(0), side_of_tiles(v))
        self.z, self.factors = transposed_units(v, self.parts)
        self.tiles = Tiles(self.z, len(self.z), self.inverse_tau)
        self.own_sums = self.tiles.log_sums([], 0)
        self.shares: list[Tensor] | None = None

    @staticmethod
    def suits(v: Tensor, tau: float) -> bool:
        """Whether e^{s/τ} needs no shift, so that sums of shares are all that has to be remembered."""
        return exponential_fits(1.0 / tau, wide(v.dtype))

    def __call__(self, u: Tensor) -> Tensor:
        check_pair(u, self.v)
        return _Repeated.apply(u, self.v, self)

    def take(self, log_d: list[Tensor], weight: Tensor) -> None:
        """Remember what a backward pass has for the similarities within the second view."""
        shares = [(-part).exp_().mul_(weight) for part in log_d]
        self.shares = shares if self.shares is None else [a.add_(b) for a, b in zip(self.shares, shares, strict=True)]

    @torch.no_grad()
    def finish(self) -> None:
        """Add to ``v.grad`` what all backward passes have for the similarities within the second view."""
        if self.shares is None or not self.v.requires_grad:
            return
        out = self.tiles.weighted_sums(self.shares)
        grad = torch.empty_like(self.v)
        for rows, unit, factor, pulled in zip(self.parts, self.z, self.factors, out, strict=True):
            pulled = pulled.t().contiguous()
            grad[rows] = through_unit_rows_(pulled, unit.t().to(pulled.dtype), factor, pulled.new_ones(())).to(grad.dtype)
        self.v.grad = grad if self.v.grad is None else self.v.grad.add_(grad)
        self.shares = None
