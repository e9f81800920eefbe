"""Blocks of columns against the matrices that they stand for."""

import numpy as np
import pytest
import torch
from torch import Tensor

from mario.errors import MarioError
from mario.graphs import Block, BlockMatrix


def slow(values: Tensor, scale: float, centers: Tensor, group: Tensor) -> Tensor:
    return torch.stack([(row.double() - centers[g].double()) * scale for row, g in zip(values, group, strict=True)])


@pytest.fixture(params=["dense", "sparse", "uncentered"])
def case(request: pytest.FixtureRequest) -> tuple[Block, Tensor]:
    draws = torch.Generator().manual_seed(0)
    values = torch.randn(30, 7, generator=draws) * (torch.rand(30, 7, generator=draws) < 0.4)
    centers, group = torch.randn(3, 7, generator=draws), torch.arange(30) % 3
    if request.param == "uncentered":
        return Block(values, 0.3), values.double() * 0.3
    given = values.to_sparse_csr() if request.param == "sparse" else values
    return Block(given, 0.3, centers, group), slow(values, 0.3, centers, group)


class TestBlock:
    def test_dense_is_the_matrix(self, case: tuple[Block, Tensor]) -> None:
        block, due = case
        torch.testing.assert_close(block.dense(torch.float64), due)
        assert block.dense().dtype == torch.float32
        assert block.shape == (30, 7)

    def test_products_are_those_of_the_matrix(self, case: tuple[Block, Tensor]) -> None:
        block, due = case
        weight, errors = torch.randn(7, 4, dtype=torch.float64), torch.randn(30, 4, dtype=torch.float64)
        torch.testing.assert_close(block.to(torch.float64).matmul(weight), due @ weight)
        torch.testing.assert_close(block.to(torch.float64).back(errors), due.T @ errors)

    @pytest.mark.parametrize("index", [torch.tensor([5, 0, 5]), torch.arange(30) > 20])
    def test_rows_are_rows_of_the_matrix(self, case: tuple[Block, Tensor], index: Tensor) -> None:
        block, due = case
        torch.testing.assert_close(block.rows(index).dense(torch.float64), due[index])

    def test_nothing_given_is_changed(self, case: tuple[Block, Tensor]) -> None:
        block, _ = case
        before = block.values.to_dense().clone() if block.is_sparse else block.values.clone()
        block.dense().zero_()
        block.matmul(torch.ones(7, 1))
        assert torch.equal(block.values.to_dense() if block.is_sparse else block.values, before)


class TestBlockMatrix:
    def test_columns_name_the_blocks_of_the_dense_matrix(self) -> None:
        x, g = torch.randn(4, 2), torch.randn(4, 3)
        z = BlockMatrix.of({"x": x, "graph": g})
        assert z.shape == (4, 5)
        assert list(z) == ["x", "graph"]
        assert torch.equal(z.dense()[:, z.columns["graph"]], g)
        assert np.array_equal(np.asarray(z), torch.cat([x, g], 1).numpy())
        assert torch.equal(z.rows(torch.tensor([2])).dense(), torch.cat([x, g], 1)[2:3])
        assert BlockMatrix.of(z) is z

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({}, "at least one block"),
            ({"x": torch.ones(2, 1), "graph": torch.ones(3, 1)}, "same number"),
            (torch.ones(3), "must be a matrix"),
            (torch.ones(3, 2, dtype=torch.long), "floating-point"),
            (torch.tensor([[float("nan")]]), "NaN"),
            ([["a"]], "must be a matrix of numbers"),
        ],
    )
    def test_what_is_no_matrix_is_refused(self, given: object, message: str) -> None:
        with pytest.raises(MarioError, match=message):
            BlockMatrix.of(given)
