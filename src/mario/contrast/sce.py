"""Scaled cosine error."""

import torch
from torch import Tensor

from mario.contrast.rows import check_pair, check_positive
from mario.errors import MarioError


def scaled_cosine_error(x: Tensor, y: Tensor, exponent: float = 3.0) -> Tensor:
    r"""Reconstruction error of `GraphMAE <https://arxiv.org/abs/2205.10803>`_: mean over rows of (1 − cos(x_i, y_i))^γ.

    A row of zeros has cosine 0 to anything, and no gradient.

    Args:
        x: ``[nodes, features]``, the reconstruction.
        y: The target, of the same shape.
        exponent: γ ≥ 1; larger values reduce the weight of rows that are nearly right.

    Example:
        >>> scaled_cosine_error(torch.eye(2), torch.tensor([[2.0, 0.0], [1.0, 0.0]]), 2)  # (0² + 1²) / 2
        tensor(0.5000)
    """
    check_pair(x, y)
    check_positive("exponent", exponent)
    if exponent < 1:
        raise MarioError(f"exponent must be at least 1, got {exponent}")
    if exponent > torch.finfo(x.dtype).max:
        raise MarioError(f"exponent must fit {x.dtype}, got {exponent}")
    return (1 - (_directions(x) * _directions(y)).sum(1)).pow(exponent).mean()


def _directions(z: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(z, dim=1, keepdim=True)
    # F.normalize would divide such a row, and its gradient, by 1e-12: one masked node among masked neighbors would
    # drown the gradient of the decoder's bias.
    return z / norm.masked_fill(norm < torch.finfo(z.dtype).tiny, torch.inf)
