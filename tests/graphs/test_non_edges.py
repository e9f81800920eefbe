"""Sampled non-edges: never an edge, never a node with itself, all others equally often."""

import pytest
import torch

from mario.errors import MarioError
from mario.graphs.non_edges import sample_non_edges

EDGES = torch.tensor([[0, 1, 1, 3, 3, 2, 2], [1, 0, 3, 1, 1, 2, 0]])  # one edge twice, one self-loop
LEFT = [(0, 2), (0, 3), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]


def test_all_pairs_that_are_left_are_equally_likely(generator: torch.Generator) -> None:
    drawn = sample_non_edges(EDGES, 4, 70_000, generator)
    pairs, counts = drawn.unique(dim=1, return_counts=True)
    assert [tuple(pair) for pair in pairs.t().tolist()] == LEFT
    assert ((counts / 10_000 - 1).abs() < 0.05).all()


@pytest.mark.parametrize("count", [0, 1, 5])
def test_without_edges_every_pair_of_two_nodes_is_one(generator: torch.Generator, count: int) -> None:
    drawn = sample_non_edges(torch.empty(2, 0, dtype=torch.long), 3, count, generator)
    assert drawn.shape == (2, count)
    assert (drawn[0] != drawn[1]).all()


def test_no_pair_is_left(generator: torch.Generator) -> None:
    complete = (1 - torch.eye(3)).nonzero().t()
    assert sample_non_edges(complete, 3, 5, generator).shape == (2, 0)
    assert sample_non_edges(torch.empty(2, 0, dtype=torch.long), 1, 5, generator).shape == (2, 0)


def test_codes_of_a_million_nodes_do_not_overflow(generator: torch.Generator) -> None:
    n = 4_000_000
    drawn = sample_non_edges(torch.tensor([[0, n - 1], [n - 1, 0]]), n, 1000, generator)
    assert 0 <= int(drawn.min()) <= int(drawn.max()) < n
    assert int(drawn.max()) > 0.99 * n


def test_the_generator_decides() -> None:
    draws = [sample_non_edges(EDGES, 4, 20, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_a_negative_count_is_named() -> None:
    with pytest.raises(MarioError, match="count must be at least 0, got -1"):
        sample_non_edges(EDGES, 4, -1)
