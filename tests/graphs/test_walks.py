from itertools import pairwise

import pytest
import torch

from mario.graphs.csr import CSR
from mario.graphs.walks import draw_distinct, random_step, random_walk


def test_every_step_follows_an_edge_or_stays_at_a_sink(generator: torch.Generator) -> None:
    edges = torch.randint(20, (2, 30), generator=generator)
    walks = random_walk(CSR(edges, num_nodes=20), torch.arange(20), 6, generator)
    pairs, sources = set(map(tuple, edges.t().tolist())), set(edges[0].tolist())
    assert walks.shape == (20, 7)
    assert walks[:, 0].tolist() == list(range(20))
    for walk in walks.tolist():
        for here, there in pairwise(walk):
            assert (here, there) in pairs if here in sources else here == there


def test_neighbors_are_equally_likely(generator: torch.Generator) -> None:
    csr = CSR(torch.tensor([[0, 0, 0, 0], [1, 2, 3, 3]]), num_nodes=4)
    counts = torch.bincount(random_step(csr, torch.zeros(40_000, dtype=torch.int64), generator), minlength=4)
    # Standard deviation 87 and 100: parallel edges count twice.
    assert counts[0] == 0
    assert counts[1:].tolist() == pytest.approx([10_000, 10_000, 20_000], abs=400)


def test_a_sink_at_the_end_of_the_rows_is_safe(generator: torch.Generator) -> None:
    csr = CSR(torch.tensor([[0], [1]]), num_nodes=3)
    assert random_walk(csr, torch.tensor([2, 0]), 2, generator).tolist() == [[2, 2, 2], [0, 1, 1]]


def test_walks_without_edges_or_steps(generator: torch.Generator) -> None:
    empty = CSR(torch.empty(2, 0, dtype=torch.int64), num_nodes=3)
    assert random_walk(empty, torch.tensor([1, 1]), 2, generator).tolist() == [[1, 1, 1], [1, 1, 1]]
    assert random_walk(empty, torch.tensor([1]), 0, generator).tolist() == [[1]]


@pytest.mark.parametrize(("population", "draws"), [(5, 5), (5, 9), (1000, 3), (1000, 240), (100_000, 10_000), (9, 0)])
def test_draws_are_distinct_and_in_range(population: int, draws: int, generator: torch.Generator) -> None:
    drawn = draw_distinct(population, draws, generator)
    assert drawn.numel() == min(draws, population) == drawn.unique().numel()
    assert ((drawn >= 0) & (drawn < population)).all()


def test_draws_are_uniform_over_ordered_pairs() -> None:
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(9, 9)
    for _ in range(7200):
        first, second = draw_distinct(9, 2, generator).tolist()
        counts[first, second] += 1
    off_diagonal = counts[~torch.eye(9, dtype=torch.bool)]
    assert off_diagonal.sum() == 7200
    # χ² with 71 degrees of freedom: mean 71, standard deviation 11.9
    assert float(((off_diagonal - 100) ** 2 / 100).sum()) < 120
