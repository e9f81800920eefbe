"""Sparse CSR matrices and the tensors that they consist of."""

import warnings
from functools import cache

import torch
from torch import Tensor

from mario import ranks


def csr(crow: Tensor, col: Tensor, values: Tensor, size: tuple[int, int], *, check: bool = False) -> Tensor:
    """A sparse CSR matrix; ``check`` validates the indices, for parts that come from a file."""
    _hide_beta_remark()
    return torch.sparse_csr_tensor(crow, col, values, size, check_invariants=check)


@cache
def _hide_beta_remark() -> None:
    """Create the first CSR matrix of the process while warnings are off: torch then says that these are in beta."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1))


def select_rows(x: Tensor, rows: Tensor) -> Tensor:
    """Rows of a dense or sparse CSR matrix, in the given order."""
    if x.layout != torch.sparse_csr:
        return x[rows]
    starts = x.crow_indices()[rows]
    counts = x.crow_indices()[rows + 1] - starts
    crow = torch.zeros(rows.numel() + 1, dtype=starts.dtype, device=x.device)
    torch.cumsum(counts, 0, out=crow[1:])
    # Entry e of the result is (e - its row's first entry) past the start of that row in x.
    take = torch.arange(int(crow[-1]), device=x.device) + torch.repeat_interleave(starts - crow[:-1], counts)
    return csr(crow, x.col_indices()[take], x.values()[take], (rows.numel(), x.size(1)))


def row_of_entries(crow: Tensor) -> Tensor:
    """The row of each entry."""
    return torch.arange(crow.numel() - 1, device=crow.device).repeat_interleave(crow.diff())


def column_std(x: Tensor) -> Tensor:
    """The standard deviation of each column of a dense or sparse CSR matrix, over the rows of all ranks.

    It divides by the number of rows. A column whose values are all equal has 0, without rounding errors.

    Example:
        >>> column_std(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
        tensor([1., 0.])
    """
    x = x.detach()
    rows = torch.tensor(float(x.size(0)), dtype=torch.float64, device=x.device)
    mean = _column_sums(x, x.values() if x.layout == torch.sparse_csr else x)
    total = ranks.sum_(rows.clone())
    mean = ranks.sum_(mean) / total
    if x.layout != torch.sparse_csr:
        squares = (x - mean).square_().sum(0)
    else:
        columns = x.col_indices()
        zeros = rows - torch.bincount(columns, minlength=x.size(1))
        squares = _column_sums(x, (x.values() - mean[columns]).square_()) + zeros * mean.square()
    std = (ranks.sum_(squares) / total).sqrt()
    std[std <= 1e-7 * mean.abs()] = 0.0
    return std.to(x.dtype)


def _column_sums(x: Tensor, entries: Tensor) -> Tensor:
    """Sums in double precision of ``entries``: a matrix, or the values of the sparse CSR matrix ``x``."""
    if x.layout != torch.sparse_csr:
        return entries.sum(0, dtype=torch.float64)
    zeros = torch.zeros(x.size(1), dtype=torch.float64, device=x.device)
    return zeros.index_add_(0, x.col_indices(), entries.double())
