"""Checks of embedding matrices, and rows scaled to unit length."""

import math

import torch
from torch import Tensor

from mario.errors import MarioError

# Norms below this are computed from squares that have lost digits.
_SHORT = {dtype: torch.finfo(dtype).tiny ** 0.5 / torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64)}


def check_rows(name: str, z: Tensor) -> None:
    """A matrix of real numbers with at least one row and one column, or a `MarioError`."""
    if not isinstance(z, Tensor) or not z.is_floating_point():
        given = z.dtype if isinstance(z, Tensor) else type(z).__name__
        raise MarioError(f"{name} must be a floating-point tensor [nodes, dimensions], got {given}")
    if z.is_nested or z.is_quantized or z.layout != torch.strided or z.is_meta:
        kind = "on meta, without numbers" if z.is_meta else str(z.layout).removeprefix("torch.")
        raise MarioError(f"{name} must be a dense tensor, got one that is {kind}")
    if z.dim() != 2 or z.numel() == 0:
        raise MarioError(f"{name} must be a non-empty matrix [nodes, dimensions], got shape {tuple(z.shape)}")


def check_pair(u: Tensor, v: Tensor) -> None:
    """Two embedding matrices of the same nodes, or a `MarioError`."""
    check_rows("u", u)
    check_rows("v", v)
    if u.shape != v.shape:
        raise MarioError(f"u and v must embed the same nodes: got shapes {tuple(u.shape)} and {tuple(v.shape)}")
    if u.dtype != v.dtype or u.device != v.device:
        raise MarioError(
            f"u and v must share dtype and device: got {u.dtype} on {u.device} and {v.dtype} on {v.device}"
        )


def check_clusters(u: Tensor, clusters_u: Tensor, clusters_v: Tensor) -> None:
    """An integer for each row of ``u`` in both views, or a `MarioError`."""
    for name, clusters in (("clusters_u", clusters_u), ("clusters_v", clusters_v)):
        if not isinstance(clusters, Tensor) or clusters.dtype.is_floating_point or clusters.dtype.is_complex:
            given = clusters.dtype if isinstance(clusters, Tensor) else type(clusters).__name__
            raise MarioError(f"{name} must be a tensor of integers, got {given}")
        if clusters.shape != u.shape[:1]:
            raise MarioError(
                f"{name} must have one cluster per node, shape {tuple(u.shape[:1])}, got {tuple(clusters.shape)}"
            )


def directions(z: Tensor) -> Tensor:
    """Rows scaled to unit length, differentiable, and exact for rows of any size; a zero row has no gradient.

    Unlike ``F.normalize``, which makes a zero row of one of 1e19 (float32), shortens one of 1e-13, and divides the
    gradient of a zero row by 1e-12.

    Example:
        >>> directions(torch.tensor([[3e30, 4e30], [3e-30, 4e-30], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    z = in_range(z)
    norm: Tensor = torch.linalg.vector_norm(z, dim=1, keepdim=True)
    # A row too short to have a direction: dividing by ∞ makes its value and its gradient 0 instead of NaN.
    return z / norm.masked_fill(norm < torch.finfo(z.dtype).tiny, torch.inf)


def in_range(z: Tensor) -> Tensor:
    """``z``, or a copy in which rows whose squares overflow or lose digits are divided by their largest entry.

    The divisor is constant in the gradient, which is exact for whatever depends on the directions of rows only.
    """
    with torch.no_grad():
        norm = torch.linalg.vector_norm(z, dim=1, keepdim=True, dtype=wide(z.dtype))
        low, high = norm.aminmax()
        if low >= _SHORT[norm.dtype] and high < torch.inf:
            return z
        size = z.abs().amax(1, keepdim=True).to(norm.dtype)
        odd = (norm == torch.inf) | (norm < _SHORT[norm.dtype])
        odd &= (size >= torch.finfo(z.dtype).tiny) & (size < torch.inf)
        divisor = torch.where(odd, size, 1.0).to(z.dtype)
    return z / divisor


def unit_rows(z: Tensor, *, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Rows scaled to unit length, and their factors [N, 1]; a zero row stays zero (cosine 0 to all).

    Factors of bfloat16 rows are float32. Not differentiable: `through_unit_rows_` is the other half.
    """
    norm = torch.linalg.vector_norm(z, dim=1, keepdim=True, dtype=wide(z.dtype))
    # A row too short to divide by has no direction: factor 0 makes its value and its gradient 0 instead of NaN.
    factor = norm.reciprocal().masked_fill_(norm < torch.finfo(z.dtype).tiny, 0.0)
    unit = torch.mul(z, factor, out=z.new_empty(z.shape) if out is None else out)
    # Squares overflow from 1e19 on and lose digits below 1e-19 (float32): such rows are scaled by their largest entry.
    low, high = norm.aminmax()
    if high == torch.inf or low < _SHORT[wide(z.dtype)]:
        _rescale_(z, norm, unit, factor)
    return unit, factor


def _rescale_(z: Tensor, norm: Tensor, unit: Tensor, factor: Tensor) -> None:
    """Unit rows and factors where ``norm`` is too large or too small to be exact, in place."""
    rows = ((norm == torch.inf) | (norm < _SHORT[norm.dtype])).view(-1).nonzero().view(-1)
    part = z[rows].to(norm.dtype)
    size = part.abs().amax(1, keepdim=True)
    part = part / size.masked_fill(size == 0, 1.0)
    length = torch.linalg.vector_norm(part, dim=1, keepdim=True)
    short = size * length < torch.finfo(z.dtype).tiny
    unit[rows] = (part / length).masked_fill_(short, 0.0).to(unit.dtype)
    factor[rows] = (1 / length / size).masked_fill_(short, 0.0)


def through_unit_rows_(grad: Tensor, unit: Tensor, factor: Tensor, times: Tensor, dim: int = 1) -> Tensor:
    """Gradient at the raw rows from that at the unit rows, in place: times · (g − (g·ẑ) ẑ) / ‖z‖.

    Rows lie along ``dim``; with 0, all arguments are transposed, including ``factor``.
    """
    unit = unit.to(grad.dtype)
    along = torch.linalg.vecdot(grad, unit, dim=dim).unsqueeze(dim)
    return grad.addcmul_(unit, along, value=-1).mul_(factor * times)


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype for sums over numbers of ``dtype``: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def exponential_fits(inverse_tau: float, dtype: torch.dtype) -> bool:
    """Whether sums of e^s with |s| ≤ 1/τ stay far from overflow and underflow without a shift."""
    return inverse_tau < math.log(torch.finfo(dtype).max) / 2
