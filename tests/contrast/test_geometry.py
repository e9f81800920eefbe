"""Alignment, worst-case alignment, uniformity and their sum against their formulas."""

import math
from itertools import combinations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import (
    alignment,
    alignment_uniformity,
    blocks,
    conditional_mi,
    uniformity,
    worst_case_alignment,
)
from mario.errors import MarioError

EAST, NORTH, WEST = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 0.5]]), torch.tensor([[-1.0, 0.0]])


def test_alignments_by_hand() -> None:
    # Squared distances on the circle: a right angle 2, opposite points 4.
    assert alignment([EAST, NORTH]).item() == pytest.approx(2)
    assert alignment([EAST, NORTH, WEST]).item() == pytest.approx((2 + 4 + 2) / 3)
    assert worst_case_alignment([EAST, NORTH, WEST]).item() == pytest.approx(4)
    # The worst pair is chosen node by node: nodes 0 and 1 have different ones.
    views = [torch.cat([EAST, EAST]), torch.cat([WEST, NORTH]), torch.cat([EAST, WEST])]
    assert worst_case_alignment(views).item() == pytest.approx(4)
    assert alignment(views).item() == pytest.approx(((4 + 0 + 4) / 3 + (2 + 4 + 2) / 3) / 2)


def test_alignments_equal_loops(generator: torch.Generator) -> None:
    views = [torch.randn(6, 3, generator=generator, dtype=torch.float64) for _ in range(4)]
    distance = [
        [float(((a[i] / a[i].norm() - b[i] / b[i].norm()) ** 2).sum()) for a, b in combinations(views, 2)]
        for i in range(6)
    ]
    assert alignment(views).item() == pytest.approx(sum(map(sum, distance)) / 36)
    assert worst_case_alignment(views).item() == pytest.approx(sum(map(max, distance)) / 6)


def full_uniformity(z: Tensor, t: float) -> Tensor:
    z = F.normalize(z)
    return torch.log(torch.exp(-t * torch.pdist(z).square()).mean())


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("n", [2, 4, 5, 11])
def test_uniformity_equals_the_formula(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, n: int, t: float
) -> None:
    monkeypatch.setattr(blocks, "TILE", 4)
    z = torch.randn(n, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    ours, full = uniformity(z, t), full_uniformity(z, t)
    torch.testing.assert_close(ours, full)
    torch.testing.assert_close(torch.autograd.grad(ours, z), torch.autograd.grad(full, z))


def test_uniformity_of_even_and_collapsed_rows() -> None:
    even = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert uniformity(even).item() == pytest.approx(math.log((2 * math.exp(-4) + math.exp(-8)) / 3))
    assert uniformity(torch.ones(5, 3)).item() == pytest.approx(0, abs=1e-5)
    zero = torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert uniformity(zero).item() == pytest.approx(-4)


@pytest.mark.parametrize("t", [0.7, 1.0, 2.0])
def test_alignment_uniformity_equals_the_formula(generator: torch.Generator, t: float) -> None:
    u, v = (torch.randn(9, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    a, b = F.normalize(u), F.normalize(v)
    distance = (a.unsqueeze(1) - b.unsqueeze(0)).square().sum(2)
    full = distance.diag().mean() + torch.exp(-t * distance).mean(1).log().mean()
    ours = alignment_uniformity(u, v, t)
    torch.testing.assert_close(ours, full)
    torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(full, (u, v)))


def test_equation_two_is_info_nce_at_one_half(generator: torch.Generator) -> None:
    u, v = (torch.randn(9, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    one_cluster = torch.zeros(9, dtype=torch.long)
    expected = conditional_mi(u, v, one_cluster, one_cluster, tau=0.5) - math.log(9)
    torch.testing.assert_close(alignment_uniformity(u, v), expected)


def test_pulling_positives_together_lowers_the_loss(generator: torch.Generator) -> None:
    u, noise = (torch.randn(50, 8, generator=generator) for _ in range(2))
    near, far = alignment_uniformity(u, u + 0.1 * noise), alignment_uniformity(u, u + 10 * noise)
    assert near < far


def test_gradcheck(generator: torch.Generator) -> None:
    u, v = (torch.randn(5, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    for loss in (lambda a, b: alignment_uniformity(a, b, 2.0), lambda a, b: alignment([a, b, a + b])):
        assert torch.autograd.gradcheck(loss, (u, v))
    assert torch.autograd.gradcheck(lambda a, b: worst_case_alignment([a, b, a - b]), (u, v))
    assert torch.autograd.gradcheck(uniformity, (u,))


def test_wrong_input() -> None:
    with pytest.raises(MarioError, match="at least two matrices, got list of 1"):
        alignment([EAST])
    with pytest.raises(MarioError, match="at least two matrices, got Tensor"):
        worst_case_alignment(torch.ones(2, 3, 4))  # type: ignore[arg-type]
    with pytest.raises(MarioError, match=r"views\[0\] is \(1, 2\), views\[1\] is \(2, 2\)"):
        alignment([EAST, torch.ones(2, 2)])
    with pytest.raises(MarioError, match="t must be a finite number above 0"):
        uniformity(torch.ones(3, 2), t=0)
    with pytest.raises(MarioError, match="t must be a finite number above 0"):
        alignment_uniformity(EAST, NORTH, t=-1)
    with pytest.raises(MarioError, match="needs at least 2 nodes"):
        uniformity(EAST)
