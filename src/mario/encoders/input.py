"""Checks of what an encoder, a projector or a readout is given."""

from typing import Any

import torch
from torch import Tensor

from mario.errors import MarioError
from mario.graphs.features import Features, Perturbed, SelectedRows


def check_input(
    name: str, x: Any, width: int | None = None, dtype: torch.dtype | None = None, *, dense: bool = False
) -> None:
    """Raise `MarioError` unless ``x`` is a matrix of real numbers, of ``width`` columns and of ``dtype``.

    It may be dense, or, unless it has to be ``dense``, sparse CSR or features in parts.

    Example:
        >>> check_input("x", torch.ones(3, 2), 4)
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: x must be a [rows, 4] matrix, got torch.float32 of shape (3, 2)
    """
    if not dense and isinstance(x, Features | Perturbed | SelectedRows):
        return
    columns = "columns" if width is None else width
    if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point() or width not in (None, x.size(-1)):
        given = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
        raise MarioError(f"{name} must be a [rows, {columns}] matrix, got {given}")
    if x.layout not in (torch.strided, *(() if dense else (torch.sparse_csr,))) or x.is_meta:
        given = "on meta, without numbers" if x.is_meta else str(x.layout).removeprefix("torch.")
        raise MarioError(f"{name} must be dense{'' if dense else ' or sparse CSR'}, got one that is {given}")
    if dtype is not None and x.dtype != dtype:
        raise MarioError(f"{name} is {x.dtype} and the weights are {dtype}; use {name}.to({dtype})")
