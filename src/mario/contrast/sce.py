"""Scaled cosine error."""

import torch
from torch import Tensor

from mario.arguments import check_number
from mario.contrast.rows import check_pair, directions
from mario.errors import MarioError


def scaled_cosine_error(x: Tensor, y: Tensor, exponent: float = 3.0) -> Tensor:
    r"""Reconstruction error of `GraphMAE <https://arxiv.org/abs/2205.10803>`_: mean over rows of (1 − cos(x_i, y_i))^γ.

    A row of zeros has cosine 0 to anything, and no gradient.

    Args:
        x: ``[nodes, features]``, the reconstruction.
        y: The target, of the same shape.
        exponent: γ ≥ 1; larger values reduce the weight of rows that are nearly right.

    Example:
        >>> import torch
        >>> scaled_cosine_error(torch.eye(2), torch.tensor([[2.0, 0.0], [1.0, 0.0]]), 2)  # (0² + 1²) / 2
        tensor(0.5000)
    """
    check_pair(x, y)
    check_number("exponent", exponent, low=1)
    if exponent > torch.finfo(x.dtype).max:
        raise MarioError(f"exponent must fit {x.dtype}, got {exponent}")
    return (1 - (directions(x) * directions(y)).sum(1)).pow(exponent).mean()
