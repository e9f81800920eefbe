"""Sparse CSR matrices: rows in any order, and the row of each entry."""

import pytest
import torch

from mario.graphs.sparse import column_std, csr, row_of_entries, select_rows

X = torch.tensor([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 5]])


@pytest.mark.parametrize("rows", [[2, 0], [1], [1, 1], [3, 2, 1, 0], []])
def test_rows_are_those_of_the_dense_matrix(rows: list[int]) -> None:
    ids = torch.tensor(rows, dtype=torch.int64)
    assert torch.equal(select_rows(X.to_sparse_csr(), ids).to_dense(), X[ids])
    assert torch.equal(select_rows(X, ids), X[ids])


def test_the_row_of_each_entry() -> None:
    assert row_of_entries(X.to_sparse_csr().crow_indices()).tolist() == [0, 0, 2, 3, 3]


def test_parts_of_a_file_are_checked() -> None:
    crow, col, values = torch.tensor([0, 1]), torch.tensor([7]), torch.ones(1)
    with pytest.raises(RuntimeError):
        csr(crow, col, values, (1, 3), check=True)


def test_standard_deviations_of_columns_are_torchs_for_dense_and_sparse() -> None:
    for x in (X, X.double(), torch.randn(40, 7, generator=torch.Generator().manual_seed(0)) + 100):
        expected = x.double().std(0, correction=0)
        for form in (x, x.to_sparse_csr()):
            found = column_std(form)
            assert found.dtype == x.dtype
            torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=1e-5)


def test_a_constant_column_has_no_deviation() -> None:
    x = torch.tensor([[0.1, 0.0, 1e8], [0.1, 0.0, 1e8], [0.1, 0.0, 1e8]])
    assert column_std(x).tolist() == column_std(x.to_sparse_csr()).tolist() == [0, 0, 0]
