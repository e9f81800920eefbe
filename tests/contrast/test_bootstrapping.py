"""Bootstrapping against the formula, by gradient, and at its edges."""

import math

import pytest
import torch

from mario.contrast import bootstrap
from mario.errors import MarioError


def test_by_hand() -> None:
    prediction = torch.tensor([[1.0, 1.0], [0.0, -2.0], [3.0, 4.0]])
    target = torch.tensor([[5.0, 0.0], [0.0, 7.0], [0.3, 0.4]])
    # cosines 1/√2, −1 and 1
    assert bootstrap(prediction, target).item() == pytest.approx(1 - math.sqrt(0.5) / 3)


def test_equals_loops_and_its_gradient_is_right(generator: torch.Generator) -> None:
    q, y = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64)
    total = 0.0
    for a, b in zip(q.tolist(), y.tolist(), strict=True):
        dot = sum(i * j for i, j in zip(a, b, strict=True))
        total += dot / math.hypot(*a) / math.hypot(*b)
    assert bootstrap(q, y).item() == pytest.approx(1 - total / 6)
    assert torch.autograd.gradcheck(lambda x: bootstrap(x, y), q.requires_grad_())


def test_lengths_do_not_matter_and_order_does_not(generator: torch.Generator) -> None:
    q, y = torch.randn(2, 6, 4, generator=generator, dtype=torch.float64)
    order = torch.randperm(6, generator=generator)
    torch.testing.assert_close(bootstrap(q * 10, y / 7), bootstrap(q, y))
    torch.testing.assert_close(bootstrap(q[order], y[order]), bootstrap(q, y))


def test_the_target_gets_no_gradient() -> None:
    q, y = torch.tensor([[1.0, 2.0]], requires_grad=True), torch.tensor([[2.0, 1.0]], requires_grad=True)
    bootstrap(q, y).backward()
    assert y.grad is None
    assert q.grad is not None


def test_a_zero_target_pulls_nowhere() -> None:
    q = torch.tensor([[1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    loss = bootstrap(q, torch.tensor([[0.0, 0.0], [3.0, 1.0]]))
    loss.backward()
    assert loss.item() == pytest.approx(0.5)
    assert q.grad is not None
    torch.testing.assert_close(q.grad, torch.zeros(2, 2))


def test_wrong_input() -> None:
    with pytest.raises(MarioError, match="must embed the same nodes"):
        bootstrap(torch.ones(3, 2), torch.ones(2, 2))
