"""Neighbors: exact against a plain sort, an index against exact."""

import pytest
import torch
import torch.nn.functional as F

from mario.embedder.neighbors import nearest, recall
from mario.errors import MarioError


def clouds(rows: int, width: int = 16) -> torch.Tensor:
    draws = torch.Generator().manual_seed(0)
    centers = torch.randn(20, width, generator=draws)
    return F.normalize(centers[torch.arange(rows) % 20] + 0.5 * torch.randn(rows, width, generator=draws))


def test_exact_is_a_plain_sort_of_all_cosines() -> None:
    z = clouds(300)
    queries = torch.tensor([0, 17, 299])
    rows, cosines = nearest(z, queries, 7, approximate=False)
    every = z[queries] @ z.T
    every[torch.arange(3), queries] = -9
    order = every.sort(dim=1, descending=True, stable=True)
    assert rows.tolist() == order.indices[:, :7].tolist()
    torch.testing.assert_close(cosines, order.values[:, :7])


def test_of_equal_rows_the_first_come_first() -> None:
    z = F.normalize(torch.ones(6, 2))
    rows, cosines = nearest(z, torch.tensor([2, 5]), 3, approximate=False)
    assert rows.tolist() == [[0, 1, 3], [0, 1, 2]]
    torch.testing.assert_close(cosines, torch.ones(2, 3))


def test_an_index_finds_nearly_all_of_them() -> None:
    pytest.importorskip("usearch")
    z = clouds(3000)
    found, _ = recall(z, 10, sample=200)
    assert found > 0.98
    queries = torch.arange(50)
    rows, cosines = nearest(z, queries, 5, approximate=True)
    assert not bool((rows == queries[:, None]).any())
    assert bool((cosines[:, 1:] <= cosines[:, :-1]).all())
    again, _ = nearest(z, queries, 5, approximate=True)
    assert rows.equal(again)


def test_more_neighbors_than_rows_are_all_of_them() -> None:
    z = clouds(4)
    assert nearest(z, torch.tensor([1]), 10)[0].shape == (1, 3)
    for k, rows in ((0, z), (3, z[:1])):
        with pytest.raises(MarioError, match=r"k must be at least 1|no neighbors"):
            nearest(rows, torch.tensor([0]), k)
