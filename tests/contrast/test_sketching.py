"""The sketch keeps covariance on average, is linear, and never holds all of P."""

import math
import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from mario.contrast import sketch
from mario.errors import MarioError

FILE = sys.modules[sketch.__module__]


def the_p(nodes: int, rows: int, seed: int, density: float = 1.0) -> Tensor:
    """P/√k itself: the sketch of the identity."""
    generator = torch.Generator().manual_seed(seed)
    return sketch(torch.eye(nodes, dtype=torch.float64), rows, density=density, generator=generator)


@pytest.mark.parametrize("density", [1.0, 0.3])
@pytest.mark.parametrize("rows", [3, 12])
def test_covariance_is_kept_on_average(density: float, rows: int, generator: torch.Generator) -> None:
    x = torch.randn(8, 3, generator=generator, dtype=torch.float64) + 1
    draws = 4000
    total = torch.zeros(3, 3, dtype=torch.float64)
    for _ in range(draws):
        small = sketch(x, rows, density=density, generator=generator)
        total += small.t() @ small
    covariance = x.t() @ x
    # An entry of X̃ᵀX̃ has a variance of at most (2 + 1/density)·‖x_a‖²‖x_b‖²/k: five standard errors.
    lengths = covariance.diagonal().sqrt()
    allowed = 5 * torch.outer(lengths, lengths) * math.sqrt((2 + 1 / density) / rows / draws)
    assert ((total / draws - covariance).abs() < allowed).all()


def test_error_shrinks_as_the_paper_bounds_it(generator: torch.Generator) -> None:
    """Lemma 4.6: ‖XᵀX − X̃ᵀX̃‖₂ ≤ ε·Tr(XᵀX) with probability at least 1 − e^{−ε²k/8}."""
    x = torch.randn(50, 4, generator=generator, dtype=torch.float64)
    covariance, rows, epsilon = x.t() @ x, 200, 0.3
    failed = 0
    for _ in range(300):
        small = sketch(x, rows, generator=generator)
        error = torch.linalg.matrix_norm(covariance - small.t() @ small, 2)
        failed += bool(error > epsilon * covariance.trace())
    assert failed / 300 <= math.exp(-(epsilon**2) * rows / 8)


def test_entries_are_those_of_appendix_b() -> None:
    p = the_p(200, 300, seed=0, density=0.1) * math.sqrt(300)
    size = 1 / math.sqrt(0.1)
    share = [(p - value).abs().lt(1e-9).double().mean().item() for value in (-size, 0.0, size)]
    assert sum(share) == pytest.approx(1)
    assert share == pytest.approx([0.05, 0.9, 0.05], abs=0.005)
    # Places are independent: no row or column is preferred.
    taken = (p != 0).double()
    assert taken.mean(0).std().item() == pytest.approx(math.sqrt(0.09 / 300), rel=0.2)
    assert taken.mean(1).std().item() == pytest.approx(math.sqrt(0.09 / 200), rel=0.2)


@pytest.mark.parametrize("density", [1.0, 0.4])
def test_it_is_multiplication_with_one_matrix(density: float, generator: torch.Generator) -> None:
    x = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    out = sketch(x, 5, density=density, generator=torch.Generator().manual_seed(7))
    torch.testing.assert_close(out, the_p(9, 5, 7, density) @ x)
    # Two matrices side by side have the same P.
    left, right = sketch(torch.cat([x, x], 1), 5, density=density, generator=generator).tensor_split(2, 1)
    assert torch.equal(left, right)


@pytest.mark.parametrize("density", [1.0, 0.4])
@pytest.mark.parametrize("tile", [2**22, 20])
def test_gradient_whether_p_was_kept_or_is_drawn_again(
    density: float, tile: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FILE, "_TILE", tile)
    x = torch.randn(9, 2, generator=generator, dtype=torch.float64, requires_grad=True)

    def small(z: Tensor) -> Tensor:
        return sketch(z, 7, density=density, generator=torch.Generator().manual_seed(3))

    assert torch.autograd.gradcheck(small, x)
    weights = torch.randn(7, 2, generator=generator, dtype=torch.float64)
    (small(x) * weights).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, the_p(9, 7, 3, density).t() @ weights)


def test_p_is_never_whole(largest_tensor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FILE, "_TILE", 4000)
    x = torch.randn(1000, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    with largest_tensor:
        sketch(x, 500, generator=torch.Generator().manual_seed(0)).sum().backward()
    assert largest_tensor.numel <= 4000  # P has 500,000


def test_draws_come_from_the_generator(generator: torch.Generator) -> None:
    x = torch.ones(5, 2)
    first, second = sketch(x, 3, generator=generator), sketch(x, 3, generator=generator)
    assert not torch.equal(first, second)
    again = [sketch(x, 3, generator=torch.Generator().manual_seed(4)) for _ in range(2)]
    assert torch.equal(*again)


def test_more_rows_than_nodes_and_one_row() -> None:
    assert sketch(torch.ones(3, 2), 7).shape == (7, 2)
    assert sketch(torch.ones(1, 2), 1, density=0.5).shape == (1, 2)


def test_wrong_input() -> None:
    with pytest.raises(MarioError, match="rows must be an integer of at least 1, got 0"):
        sketch(torch.ones(3, 2), 0)
    with pytest.raises(MarioError, match="density must be a finite number above 0, got 0"):
        sketch(torch.ones(3, 2), 2, density=0)
    with pytest.raises(MarioError, match="x must be a non-empty matrix"):
        sketch(torch.ones(3), 2)
