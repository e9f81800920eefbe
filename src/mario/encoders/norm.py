"""Batch norm over the rows of all ranks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from mario import ranks
from mario.errors import MarioError

ONE_ROW = "batch norm cannot be trained on one row, a graph of one node: set batch_norm=False"


class BatchNorm(nn.BatchNorm1d):
    """Batch normalization (Ioffe & Szegedy, ICML 2015) over the rows of all ranks.

    In a single process and in evaluation it is :class:`torch.nn.BatchNorm1d`. When several ranks train together, each
    with its own number of rows, the values, gradients and running statistics equal those of one process with all rows.
    Each rank exchanges 2 × features + 1 numbers in the forward pass and 2 × features in the backward pass.

    Attributes:
        everywhere: If ``False``, a rank normalizes by its own rows only, for methods whose passes differ between ranks.

    Example:
        >>> BatchNorm(2)(torch.tensor([[0.0, 1.0], [2.0, 5.0]])).detach().round()
        tensor([[-1., -1.],
                [ 1.,  1.]])
    """

    everywhere: bool = True
    told: list[tuple[Tensor, Tensor, int]] | None = None
    """Statistics of past passes, recorded or, if ``recalls``, replayed by :mod:`mario.encoders.recomputing`."""
    recalls: bool = False

    def forward(self, input: Tensor) -> Tensor:
        if not self.training or not self.everywhere or ranks.size() == 1:
            if self.training and input.size(0) == 1:
                raise MarioError(ONE_ROW)
            return super().forward(input)
        self._check_input_dim(input)
        if self.recalls and self.told:
            mean, variance, count = self.told.pop(0)
        else:
            mean, variance, count = shared_statistics(input, self.running_mean)
            if self.told is not None:
                self.told.append((mean, variance, count))
        if count < 2:
            raise MarioError(ONE_ROW)
        if self.track_running_stats:
            self._remember(mean, variance * (count / (count - 1)))
        # In reduced precision, both the running statistics and those that normalize keep full precision.
        inverse = (variance + self.eps).rsqrt()
        weight = self.weight if self.affine else torch.ones_like(mean)
        bias = self.bias if self.affine else torch.zeros_like(mean)
        return _normalize(input, weight, bias, mean, inverse, count)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        momentum = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(variance.to(self.running_var.dtype), momentum)


@torch.no_grad()
def shared_statistics(x: Tensor, about: Tensor | None = None) -> tuple[Tensor, Tensor, int]:
    """Mean and biased variance of each column over the rows of all ranks, and the number of those rows.

    Ranks sum deviations, and their squares, from ``about``, which is equal on all ranks. In double precision and with
    ``about`` near the mean, such as the running mean, no large numbers cancel. The size of a message does not depend on
    the number of ranks.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    own = torch.zeros(2, x.size(1) + 1, dtype=torch.float64, device=x.device)
    shift: Tensor | float = 0.0 if about is None else about.double()
    if x.size(0):
        # Takes a tenth of the time of var_mean over columns; without running statistics it updates nothing.
        mean, variance = torch.batch_norm_update_stats(x.detach().to(wide).contiguous(), None, None, 0.0)
        off = mean.double() - shift
        own[0, 1:], own[1, 1:] = off * x.size(0), (variance.double() + off.square()) * x.size(0)
    own[0, 0] = x.size(0)
    total, off, square = ranks.sum_(own)[0, :1], own[0, 1:] / own[0, 0], own[1, 1:] / own[0, 0]
    return (off + shift).to(wide), (square - off.square()).clamp_(min=0).to(wide), int(total)


class _Normalize(torch.autograd.Function):
    # y = γ (x − μ)/σ + β with μ and σ of all rows, so that a row's gradient is
    # γ/σ (g − mean(g) − x̂ mean(g x̂)) with means over the rows of all ranks; those of γ and β are this rank's part.

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, inverse: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(x, weight, mean, inverse)
        ctx.count = count
        scale = inverse * weight
        return torch.addcmul(bias - mean * scale, x, scale).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, inverse = ctx.saved_tensors
        scale = inverse * weight
        d_x, d_weight, d_bias = _given_statistics(grad.to(mean.dtype), x.to(mean.dtype), weight, mean, inverse)
        parts = d_weight.to(weight.dtype), d_bias.to(weight.dtype), None, None, None
        if not ctx.needs_input_grad[0]:
            return None, *parts
        mean_gx, mean_g = ranks.sum_(torch.stack([d_weight, d_bias])) / ctx.count
        slope = scale * inverse * mean_gx
        d_x.sub_(torch.addcmul(scale * mean_g - mean * slope, x, slope))
        return d_x.to(x.dtype), *parts


_normalize: Callable[..., Tensor] = _Normalize.apply


def _given_statistics(
    grad: Tensor, x: Tensor, weight: Tensor, mean: Tensor, inverse: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """γ/σ g, Σ g x̂ and Σ g by torch's kernel, in half the time of separate passes."""
    if not x.size(0):  # the kernel would crash the process
        return torch.empty_like(x), torch.zeros_like(mean), torch.zeros_like(mean)
    grad, x, weight = grad.contiguous(), x.contiguous(), weight.to(mean.dtype)
    kept = (mean, inverse.pow(-2), mean, inverse)
    gradients: tuple[Tensor, Tensor, Tensor] = torch.ops.aten.native_batch_norm_backward(
        grad, x, weight, *kept, False, 0.0, [True, True, True]
    )
    return gradients


class NotedStatistics:
    """The effect of a pass on the running statistics of batch norm, which can be undone or repeated without a pass.

    Example:
        >>> norm, x = BatchNorm(1), torch.tensor([[0.0], [2.0]])
        >>> with NotedStatistics(norm) as noted:
        ...     _ = norm(x)
        >>> noted.again()  # as if x had passed twice
        >>> norm.running_mean  # 0.1 + 0.9 · 0.1
        tensor([0.1900])
    """

    def __init__(self, networks: nn.Module) -> None:
        norms = [module for module in networks.modules() if isinstance(module, nn.BatchNorm1d)]
        self.norms = [norm for norm in norms if norm.running_mean is not None and norm.momentum is not None]

    def __enter__(self) -> "NotedStatistics":
        self.before = [_statistics(norm) for norm in self.norms]
        self.passes_before = [_passes(norm) for norm in self.norms]
        return self

    def __exit__(self, *_: object) -> None:
        # A pass turns a statistic r into (1 − m)·r + m·s, so n passes turn it into (1 − m)ⁿ·r plus a term without r.
        self.passes = [_passes(norm) - n for norm, n in zip(self.norms, self.passes_before, strict=True)]
        self.shares = [(1 - float(norm.momentum or 0)) ** n for norm, n in zip(self.norms, self.passes, strict=True)]
        self.added = [
            _statistics(norm) - share * before
            for norm, share, before in zip(self.norms, self.shares, self.before, strict=True)
        ]

    def undo(self) -> None:
        """Restore the statistics from before the pass."""
        for norm, before, passes in zip(self.norms, self.before, self.passes_before, strict=True):
            _set_statistics(norm, before, passes)

    def again(self) -> None:
        """Apply the effect of the pass once more."""
        for norm, share, added, passes in zip(self.norms, self.shares, self.added, self.passes, strict=True):
            _set_statistics(norm, share * _statistics(norm) + added, _passes(norm) + passes)


def _statistics(norm: nn.BatchNorm1d) -> Tensor:
    """Running mean and variance, [2, width]."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    return torch.stack([norm.running_mean, norm.running_var])


def _passes(norm: nn.BatchNorm1d) -> int:
    assert norm.num_batches_tracked is not None
    return int(norm.num_batches_tracked)


def _set_statistics(norm: nn.BatchNorm1d, statistics: Tensor, passes: int) -> None:
    # Through .data: autograd saves the running statistics of a pass, although backward does not read them in training.
    for buffer, value in zip((norm.running_mean, norm.running_var), statistics, strict=True):
        assert buffer is not None
        buffer.data.copy_(value)
    assert norm.num_batches_tracked is not None
    norm.num_batches_tracked.data.fill_(passes)
