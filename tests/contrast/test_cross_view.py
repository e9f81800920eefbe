import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import nt_xent
from mario.errors import MarioError


def slow(u: Tensor, v: Tensor, tau: float) -> Tensor:
    """GraphCL's loss, pair by pair."""
    losses = []
    for i in range(len(u)):
        s = [F.cosine_similarity(u[i], v[j], dim=0) / tau for j in range(len(u))]
        others = torch.stack([s[j].exp() for j in range(len(u)) if j != i]).sum()
        losses.append(-torch.log(s[i].exp() / others))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("tau", [0.2, 0.5, 2.0])
def test_equals_the_formula(generator: torch.Generator, tau: float) -> None:
    u, v = torch.randn(2, 7, 5, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(nt_xent(u, v, tau), slow(u, v, tau))


def test_by_hand() -> None:
    u, v = torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    # cosines: u0·v0 = 1, u0·v1 = 1/√2, u1·v0 = 0, u1·v1 = 1/√2
    expected = ((1 / math.sqrt(2) - 1) + (0 - 1 / math.sqrt(2))) / 2
    assert nt_xent(u, v, 1.0).item() == pytest.approx(expected, abs=1e-6)


def test_gradients(generator: torch.Generator) -> None:
    u, v = (torch.randn(4, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda a, b: nt_xent(a, b, 0.5), (u, v))


def test_order_of_graphs_and_length_of_rows_do_not_matter_but_direction_does(generator: torch.Generator) -> None:
    u, v = torch.randn(2, 6, 4, generator=generator)
    order = torch.randperm(6, generator=generator)
    torch.testing.assert_close(nt_xent(u[order], v[order]), nt_xent(u, v))
    torch.testing.assert_close(nt_xent(3 * u, v / 7), nt_xent(u, v))
    assert not torch.allclose(nt_xent(v, u), nt_xent(u, v))


def test_a_zero_row_and_a_tiny_temperature_stay_finite() -> None:
    u = torch.zeros(3, 2, requires_grad=True)
    loss = nt_xent(u, torch.eye(3)[:, :2], 1e-3)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(u.grad).all()


def test_wrong_input_is_named() -> None:
    with pytest.raises(MarioError, match="at least 2 graphs"):
        nt_xent(torch.ones(1, 2), torch.ones(1, 2))
    with pytest.raises(MarioError, match="tau must be"):
        nt_xent(torch.ones(2, 2), torch.ones(2, 2), 0.0)
    with pytest.raises(MarioError, match="shapes"):
        nt_xent(torch.ones(2, 2), torch.ones(3, 2))
