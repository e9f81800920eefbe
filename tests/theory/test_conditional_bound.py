"""Each conditional estimate stays below a conditional mutual information known in closed form."""

import math

import pytest
import torch
from torch import Tensor

from mario.contrast import conditional_mi

DIM, CLUSTERS, PER_CLUSTER, SEEDS = 2, 4, 300, 6


def toy(rho: float, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """U, V | Y: Gaussian around Y's mean with correlation ρ in every dimension, I(U; V | Y) = −½ d log(1 − ρ²)."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(CLUSTERS).repeat_interleave(PER_CLUSTER)
    a, b = (torch.randn(len(y), DIM, generator=generator, dtype=torch.float64) for _ in range(2))
    return a, rho * a + math.sqrt(1 - rho**2) * b, y


def closed_form(rho: float) -> float:
    return -0.5 * DIM * math.log(1 - rho**2)


def as_unit_rows(u: Tensor, v: Tensor, rho: float) -> tuple[Tensor, Tensor, float]:
    """Embeddings whose cosine over τ is the best critic, log p(u, v | y)/(p(u | y) p(v | y)), at every pair.

    It is α u·v − β(‖u‖² + ‖v‖²) + I, a dot product of two rows; a last column of each, orthogonal to the other's, pads
    the rows to one length, and τ undoes the lengths.
    """
    alpha, beta = rho / (1 - rho**2), rho**2 / (2 * (1 - rho**2))
    one, zero = torch.ones(len(u), 1, dtype=u.dtype), torch.zeros(len(u), 1, dtype=u.dtype)
    left = torch.cat([alpha * u, -beta * one, closed_form(rho) - beta * u.square().sum(1, keepdim=True)], 1)
    right = torch.cat([v, v.square().sum(1, keepdim=True), one], 1)
    long_left, long_right = left.norm(dim=1).max(), right.norm(dim=1).max()
    pad_left = (long_left**2 - left.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    pad_right = (long_right**2 - right.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    tau = 1 / (long_left * long_right).item()
    return torch.cat([left, pad_left, zero], 1), torch.cat([right, zero, pad_right], 1), tau


CONSTANT = {"info_nce": math.log(PER_CLUSTER), "donsker_varadhan": 0.0, "jensen_shannon": 2 * math.log(2)}


def estimates(estimator: str, rho: float) -> Tensor:
    """One estimate a seed, with the best critic."""
    found = []
    for seed in range(SEEDS):
        u, v, y = toy(rho, seed)
        left, right, tau = as_unit_rows(u, v, rho)
        found.append(CONSTANT[estimator] - conditional_mi(left, right, y, y, tau, estimator=estimator))
    return torch.stack(found)


@pytest.mark.parametrize("estimator", list(CONSTANT))
def test_with_the_best_critic_the_estimate_is_below_and_grows_with_dependence(estimator: str) -> None:
    means = []
    for rho in (0.1, 0.3, 0.6, 0.8):
        found = estimates(estimator, rho)
        noise = found.std().item() / math.sqrt(SEEDS)
        assert found.mean().item() <= closed_form(rho) + 3 * noise
        means.append(found.mean().item())
    assert means == sorted(means)
    # Far below log n InfoNCE and Donsker-Varadhan come close; Jensen-Shannon saturates at 2 log 2.
    assert means[2] > (0.3 if estimator == "jensen_shannon" else 0.9) * closed_form(0.6)


@pytest.mark.parametrize("estimator", list(CONSTANT))
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_any_critic_stays_below(estimator: str, rho: float) -> None:
    for tau in (2.0, 0.5, 0.1):
        found = torch.stack(
            [
                CONSTANT[estimator] - conditional_mi(u, v, y, y, tau, estimator=estimator)
                for u, v, y in (toy(rho, seed) for seed in range(SEEDS))
            ]
        )
        assert found.mean().item() <= closed_form(rho) + 3 * found.std().item() / math.sqrt(SEEDS)


def test_without_the_condition_the_cluster_counts_as_shared_information() -> None:
    rho = 0.6
    u, v, y = toy(rho, 0)
    # Clusters on a circle far apart: both views tell Y, so I(U; V) = I(U; V | Y) + log 4.
    angle = y * (2 * math.pi / CLUSTERS)
    center = 40 * torch.stack([angle.cos(), angle.sin()], 1)
    everyone = torch.zeros_like(y)
    apart = math.log(len(y)) - conditional_mi(u + center, v + center, everyone, everyone, tau=0.05)
    within = math.log(PER_CLUSTER) - conditional_mi(u + center, v + center, y, y, tau=0.05)
    assert (apart - within).item() == pytest.approx(math.log(CLUSTERS), abs=0.01)
    assert within <= closed_form(rho) < apart
