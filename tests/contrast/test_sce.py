"""Scaled cosine error against its formula."""

import pytest
import torch
import torch.nn.functional as F

from mario.contrast import scaled_cosine_error
from mario.errors import MarioError


@pytest.mark.parametrize("exponent", [1, 2.0, 3.5])
def test_equals_the_formula(generator: torch.Generator, exponent: float) -> None:
    x, y = (torch.randn(5, 4, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    torch.testing.assert_close(
        scaled_cosine_error(x, y, exponent), ((1 - F.cosine_similarity(x, y)) ** exponent).sum() / 5
    )
    assert torch.autograd.gradcheck(lambda a, b: scaled_cosine_error(a, b, exponent), (x, y))


def test_length_does_not_count_and_zero_rows_cost_one(generator: torch.Generator) -> None:
    x = torch.rand(3, 4, generator=generator, requires_grad=True)
    torch.testing.assert_close(scaled_cosine_error(5 * x, 0.1 * x), torch.tensor(0.0), atol=1e-6, rtol=0)
    zero = torch.zeros(3, 4, requires_grad=True)
    loss = scaled_cosine_error(x, zero)
    loss.backward()
    assert loss.item() == 1
    assert not x.grad.any()
    assert not zero.grad.any()


def test_bad_arguments_are_named() -> None:
    with pytest.raises(MarioError, match=r"exponent must be a finite number of at least 1, got 0.5"):
        scaled_cosine_error(torch.ones(2, 2), torch.ones(2, 2), 0.5)
    with pytest.raises(MarioError, match="same nodes"):
        scaled_cosine_error(torch.ones(2, 2), torch.ones(3, 2))
