"""Losses over the rows of all ranks: every rank returns the same loss, with its gradient at the rank's own rows.

Sum the gradients of parameters over ranks; do not average them. In a single process these functions are no-ops.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from mario import ranks


def gathered(z: Tensor) -> Tensor:
    """The rows of all ranks, for a loss that is cheap enough for each rank to compute in full.

    The gradient at a rank's rows is its slice of the gradient at all rows, as every rank computes the same loss.

    Example:
        >>> gathered(torch.eye(2)).shape
        torch.Size([2, 2])
    """
    if ranks.size() == 1:
        return z
    rows: Tensor = _Gathered.apply(z)
    return rows


def summed(part: Tensor) -> Tensor:
    """The sum over ranks of the parts of a loss; the gradient is that of the rank's own part.

    Example:
        >>> summed(torch.tensor(2.0))
        tensor(2.)
    """
    if ranks.size() == 1:
        return part
    total: Tensor = _Summed.apply(part)
    return total


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
