"""Appendix B: a small alignment loss allows a risk gap of ¼ between two augmentation domains."""

import pytest
import torch
from torch import Tensor

DRAWS = 400_000


def encoder(x: Tensor, t: float) -> Tensor:
    """g(x₁, x₂) = x₁ + t·x₂; it classifies by its sign."""
    return x[:, 0] + t * x[:, 1]


def augment(x: Tensor, c: Tensor | float) -> Tensor:
    return torch.stack([x[:, 0], c * x[:, 1]], 1)


@pytest.mark.parametrize("epsilon", [1.0, 1e-2, 1e-6])
def test_alignment_below_epsilon_and_a_risk_gap_of_a_quarter(generator: torch.Generator, epsilon: float) -> None:
    x = torch.randn(DRAWS, 2, generator=generator, dtype=torch.float64)
    label = x[:, 0] >= 0
    t = epsilon**0.5 / 2
    first, second = (torch.randn(DRAWS, generator=generator, dtype=torch.float64) for _ in range(2))
    distance = (encoder(augment(x, first), t) - encoder(augment(x, second), t)).square()

    def risk(c: float) -> float:
        return ((encoder(augment(x, c), t) >= 0) != label).double().mean().item()

    # L_align = 2t² = ε/2; the product of two squared normals has a standard deviation of a few means.
    assert distance.mean().item() == pytest.approx(epsilon / 2, rel=0.03)
    assert distance.mean() < epsilon
    assert risk(0.0) == 0
    # Five standard errors of a share of ¼ among the draws.
    assert risk(1 / t) - risk(0.0) == pytest.approx(0.25, abs=5 * (0.25 * 0.75 / DRAWS) ** 0.5)
    # The worst case sees what the mean hides: between those two domains the squared distance is E x₂² = 1 for every ε.
    assert (encoder(augment(x, 0.0), t) - encoder(augment(x, 1 / t), t)).square().mean().item() == pytest.approx(
        1, rel=0.02
    )
