"""InfoNCE of several first views in a row with a second view that stands still, less their conditional term."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario.contrast.rows import check_clusters, check_pair, check_positive, exponential_fits, wide
from mario.contrast.tiles import Tiles, ranges, raw_gradients, side_of_tiles, units
from mario.errors import MarioError

_Pairs = tuple[Tensor, Tensor, Tensor]  # of a tile, those that count: how many a row has, their places, e^{exponent}

# The most bytes of similarities within the second view to keep for `finish`, beside those of a call: 2,800 nodes.
_KEEP = 2**24


@dataclass(frozen=True)
class Conditional:
    """γ · `conditional_mi` of the two views, InfoNCE's with negatives in the cluster of the second.

    Args:
        clusters_u: the cluster [N] of each node in the first view.
        clusters_v: the same for the second view.
        tau: temperature; e^{1/τ} has to be a number, which `RepeatedInfoNCE.fits` tells.
        gamma: its weight γ.

    Example:
        >>> import torch
        >>> from mario.contrast import Conditional, RepeatedInfoNCE
        >>> contrast = RepeatedInfoNCE(torch.eye(2), tau=1.0)
        >>> alike = torch.zeros(2, dtype=torch.long)
        >>> round(contrast(torch.eye(2), Conditional(alike, alike, tau=1.0, gamma=0.5)).item(), 4)
        0.3948
    """

    clusters_u: Tensor
    clusters_v: Tensor
    tau: float = 1.0
    gamma: float = 0.1

    def check(self, u: Tensor) -> None:
        """Clusters of the rows of ``u`` and a temperature that sums without a shift bear, or a `MarioError`."""
        check_positive("tau", self.tau)
        if not RepeatedInfoNCE.fits(u, self.tau):
            raise MarioError(f"tau must be larger for sums of e^(1/tau) to fit {u.dtype}, got {self.tau}")
        check_clusters(u, self.clusters_u, self.clusters_v)


class RepeatedInfoNCE:
    r"""`info_nce` with a second view that is the same in every call, as β is while MARIO's δ ascends.

    The similarities within the second view, a quarter of all, are summed once, at the start. Their part of the gradient
    is linear in the shares 1/D that the calls have of them, so it is added once, by `finish`, after the last backward.
    A call with a `Conditional` gives InfoNCE less that: its pairs are among those of InfoNCE, with which they share all
    products, forward and backward.

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
        self._kept: list[Tensor] = []
        keep = v.requires_grad and self.tiles.bytes <= _KEEP
        self.own_sums = self.tiles.log_sums(self._kept, _KEEP if keep else 0)

    @staticmethod
    def fits(v: Tensor, tau: float) -> bool:
        return exponential_fits(1.0 / tau, wide(v.dtype))

    def __call__(self, u: Tensor, conditional: Conditional | None = None) -> Tensor:
        check_pair(u, self.v)
        if conditional is not None:
            conditional.check(u)
        return _Repeated.apply(u, self.v, self, conditional)

    def take(self, shares: list[Tensor]) -> None:
        """Remember what a backward pass has for the similarities within the second view."""
        self._shares = [a + b for a, b in zip(self._shares, shares, strict=True)] if self._shares else shares

    @torch.no_grad()
    def finish(self) -> None:
        """Add to ``v.grad`` what all backward passes since the last `finish` have for the similarities within ``v``."""
        if not self._shares:
            return
        shares, self._shares = self._shares, []
        pulled = self.tiles.weighted_sums(shares, self._kept)
        one = torch.ones((), dtype=self.tiles.wide, device=self.v.device)
        grad = torch.cat(list(raw_gradients(pulled, self.z, self.factors, one)))
        self.v.grad = grad if self.v.grad is None else self.v.grad.add_(grad)


class _Among:
    """The sums of a `Conditional` over tiles of the first view's rows and the second view's columns.

    Only pairs within a cluster are looked at, of rows whose node is in one cluster in both views.
    """

    def __init__(self, given: Conditional, parts: list[slice], inverse_tau: float) -> None:
        self.ratio = 1 / (given.tau * inverse_tau)  # times InfoNCE's exponent is the exponent here
        self.times = 2 * given.gamma * self.ratio  # its part of a weight, in which InfoNCE's is 1
        self.gamma = given.gamma
        first, second = given.clusters_u.long(), given.clusters_v.long()
        self.first, self.second = ([clusters[rows] for rows in parts] for clusters in (first, second))
        self.ordered = [(part.values, part.indices.int()) for part in (clusters.sort() for clusters in self.second)]
        self.own: list[Tensor] = []  # exponent of each row's own pair
        self.totals: list[Tensor] = []  # Σ e^{exponent} of each row
        self.agree = [a == b for a, b in zip(self.first, self.second, strict=True)]
        self.shares: list[Tensor] = []  # times 1/Σ where both views of the node are in one cluster, else 0
        self.kept: dict[tuple[int, int], _Pairs] = {}
        self.last: tuple[tuple[int, int], _Pairs] | None = None

    def meet(self, a: int, b: int, exponents: Tensor, kept: bool) -> None:
        rows, counts, places = self._within_clusters(a, b)
        terms = exponents.view(-1).index_select(0, places).mul_(self.ratio).exp_()
        if kept:
            self.kept[a, b] = (counts, places, terms)
        else:
            self.last = (a, b), (counts, places, terms)
        if self.shares:  # the sums are known, this is the backward
            return
        if len(self.totals) == a:
            self.totals.append(exponents.new_zeros(exponents.size(0)))
        self.totals[a].index_add_(0, rows, terms)
        if a == b:
            self.own.append(exponents.diagonal() * self.ratio)

    def _within_clusters(self, a: int, b: int) -> tuple[Tensor, Tensor, Tensor]:
        """Of the pairs of a tile that count: their rows, how many a row has, their places in the tile."""
        clusters, columns = self.ordered[b]
        # Columns of a row's cluster stand together, from its start on.
        start = torch.searchsorted(clusters, self.first[a])
        counts = torch.searchsorted(clusters, self.first[a], right=True).sub_(start).mul_(self.agree[a])
        rows = torch.repeat_interleave(counts)
        start.add_(counts).sub_(counts.cumsum(0))  # less the pairs of the rows before
        order = torch.arange(rows.numel(), device=rows.device).add_(start.index_select(0, rows))
        return rows, counts, columns.index_select(0, order).add_(rows, alpha=columns.numel())

    def loss(self) -> Tensor:
        """Σ_i [both views of i in one cluster] (log Σ_j e^{s_ij} − s_ii)."""
        sums = zip(self.totals, self.agree, strict=True)
        self.shares = [(self.times / total).masked_fill_(~same, 0) for total, same in sums]
        rows = zip(self.totals, self.own, self.agree, strict=True)
        return torch.cat([(total.log() - own).masked_fill_(~same, 0) for total, own, same in rows]).sum()

    def weigh(self, a: int, b: int, weight: Tensor) -> None:
        found = self.kept.get((a, b))
        if found is None:
            assert self.last is not None
            assert self.last[0] == (a, b)
            found = self.last[1]
        counts, places, terms = found
        pull = self.shares[a].repeat_interleave(counts, output_size=terms.numel()).mul_(terms)
        weight.view(-1).index_add_(0, places, pull, alpha=-1)
        if a == b:
            weight.diagonal().add_(self.agree[a].to(weight.dtype), alpha=self.times)


@dataclass(frozen=True)
class _FirstRows(Tiles):
    """The tiles in which the first half of the parts has a share: those within the second half are left out."""

    among: _Among | None = None

    def _pairs(self) -> Iterable[tuple[int, int]]:
        return ((a, b) for a in range(self.anchors // 2) for b in range(a, self.anchors))

    def _meet(self, a: int, b: int, exponents: Tensor, kept: bool) -> None:
        if self.among is not None and b >= self.anchors // 2:
            self.among.meet(a, b - self.anchors // 2, exponents, kept)

    def _weigh(self, a: int, b: int, weight: Tensor) -> None:
        if self.among is not None and b >= self.anchors // 2:
            self.among.weigh(a, b - self.anchors // 2, weight)


class _Repeated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, fixed: RepeatedInfoNCE, conditional: Conditional | None) -> Tensor:
        z, factors = units(u[rows] for rows in fixed.parts)
        among = None if conditional is None else _Among(conditional, fixed.parts, fixed.inverse_tau)
        tiles = _FirstRows([*z, *fixed.z], 2 * len(z), fixed.inverse_tau, among)
        kept: list[Tensor] = []
        log_d = tiles.log_sums(kept, tiles.budget if any(ctx.needs_input_grad) else 0)
        for part, own in zip(log_d[len(z) :], fixed.own_sums, strict=True):
            torch.logaddexp(part, own, out=part)
        pairs = zip(z, fixed.z, strict=True)
        positives = torch.stack([(p.to(tiles.wide) * q).sum() for p, q in pairs]).sum() * (2 * fixed.inverse_tau)
        ctx.save_for_backward(*z, *factors, *log_d, *kept)
        ctx.fixed, ctx.among = fixed, among
        loss = (torch.cat(log_d).sum() - positives) / (2 * u.size(0))
        return loss if among is None else loss - among.loss() * (among.gamma / u.size(0))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        fixed, saved, count = ctx.fixed, list(ctx.saved_tensors), len(ctx.fixed.z)
        z, factors, log_d, kept = (
            saved[:count],
            saved[count : 2 * count],
            saved[2 * count : 4 * count],
            saved[4 * count :],
        )
        tiles = _FirstRows([*z, *fixed.z], 2 * count, fixed.inverse_tau, ctx.among)
        out = tiles.pull(log_d, kept)
        times = grad.to(tiles.wide) * (fixed.inverse_tau / (2 * fixed.parts[-1].stop))
        if ctx.needs_input_grad[1]:
            fixed.take([(-part).exp_().mul_(times) for part in log_d[count:]])
        raw = list(raw_gradients(out, [*z, *fixed.z], [*factors, *fixed.factors], times))
        return torch.cat(raw[:count]), torch.cat(raw[count:]), None, None
