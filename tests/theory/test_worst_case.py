"""L_align ≤ L_align* for any encoder, and what L_align* bounds (Theorem 3.1)."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from mario.contrast import alignment, worst_case_alignment


def random_encoder(seed: int, generator: torch.Generator) -> nn.Module:
    width = [4, 16, 16, 5]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(width):
        layer = nn.Linear(inputs, outputs)
        nn.init.normal_(layer.weight, generator=generator)
        nn.init.normal_(layer.bias, std=10.0 ** (seed % 4 - 2), generator=generator)
        layers += [layer, [nn.ReLU, nn.Tanh, nn.Identity][seed % 3]()]
    return nn.Sequential(*layers[:-1])


def embedded_views(seed: int, views: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(30, 4, generator=generator)
    encoder = random_encoder(seed, generator)
    size = 10.0 ** (seed % 5 - 3)
    with torch.no_grad():
        return [encoder(x + size * torch.randn(30, 4, generator=generator)) for _ in range(views)]


@pytest.mark.parametrize("seed", range(30))
def test_mean_is_below_worst_case(seed: int) -> None:
    z = embedded_views(seed, views=2 + seed % 4)
    mean, worst = alignment(z), worst_case_alignment(z)
    assert 0 <= mean <= worst * (1 + 1e-6) <= 4.001
    if len(z) == 2:
        torch.testing.assert_close(mean, worst)
    else:
        assert mean < worst
    # More views can only make the worst case worse.
    assert worst_case_alignment(z[:2]) <= worst


@pytest.mark.parametrize("seed", range(20))
def test_risk_varies_between_domains_by_at_most_the_root_of_the_worst_case(seed: int) -> None:
    # With |Y| ≤ 1, squared loss and a linear p on unit rows, as in the paper's proof:
    # |R(τ) − R(τ')| ≤ E|p(g − g')| · |p(g + g') − 2Y| ≤ ‖p‖ (2‖p‖ + 2) E‖g − g'‖ ≤ ‖p‖ (2‖p‖ + 2) √L_align*.
    generator = torch.Generator().manual_seed(100 + seed)
    z = [nn.functional.normalize(view) for view in embedded_views(seed, views=4)]
    p = torch.randn(5, generator=generator) * 10.0 ** (seed % 3 - 1)
    y = torch.randint(0, 2, (30,), generator=generator) * 2.0 - 1
    risks = torch.stack([(view @ p - y).square().mean() for view in z])
    bound = p.norm() * (2 * p.norm() + 2) * worst_case_alignment(z).sqrt()
    assert risks.max() - risks.min() <= bound


def test_the_bound_as_printed_lacks_the_root() -> None:
    # The paper's last step replaces E‖g − g'‖ by L_align*, a mean of squares: no constant c can make that hold.
    p, y = torch.tensor([1.0, 0.0], dtype=torch.float64), 0.0
    ratios = []
    for angle in (1e-1, 1e-2, 1e-3):
        z = [torch.tensor([[a.cos(), a.sin()]]) for a in torch.tensor([0.7, 0.7 + angle], dtype=torch.float64)]
        gap = ((z[0] @ p - y).square() - (z[1] @ p - y).square()).abs().mean()
        ratios.append((gap / worst_case_alignment(z)).item())
    assert ratios[1] > 9 * ratios[0]
    assert ratios[2] > 9 * ratios[1]
