"""Donsker-Varadhan and Jensen-Shannon losses against their formulas over the full matrix of similarities."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import blocks, donsker_varadhan, jensen_shannon
from mario.errors import MarioError


def full_donsker_varadhan(u: Tensor, v: Tensor, tau: float) -> Tensor:
    s = F.normalize(u) @ F.normalize(v).t() / tau
    apart = ~torch.eye(len(u), dtype=torch.bool)
    return s[apart].logsumexp(0) - math.log(apart.sum()) - s.diag().mean()


def full_jensen_shannon(u: Tensor, v: Tensor, tau: float) -> Tensor:
    s = F.normalize(u) @ F.normalize(v).t() / tau
    return F.softplus(-s.diag()).mean() + F.softplus(s[~torch.eye(len(u), dtype=torch.bool)]).mean()


BOTH = pytest.mark.parametrize(
    ("loss", "full"), [(donsker_varadhan, full_donsker_varadhan), (jensen_shannon, full_jensen_shannon)]
)


@BOTH
@pytest.mark.parametrize("tau", [1.0, 0.5, 0.002])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 9])
def test_equals_the_formula(monkeypatch, generator, loss, full, n, tau) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(blocks, "TILE", 4)
    u = torch.randn(n, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    v = torch.randn(n, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    ours, wanted = loss(u, v, tau), full(u, v, tau)
    torch.testing.assert_close(ours, wanted)
    torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(wanted, (u, v)))


@BOTH
def test_gradcheck_and_order_of_nodes(monkeypatch, generator, loss, full) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(blocks, "TILE", 3)
    u, v = (torch.randn(7, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(lambda a, b: loss(a, b, 0.3), (u, v))
    order = torch.randperm(7, generator=generator)
    here, there = loss(u, v), loss(u[order], v[order])
    torch.testing.assert_close(here, there)
    torch.testing.assert_close(torch.autograd.grad(here, (u, v)), torch.autograd.grad(there, (u, v)))


@BOTH
def test_float32_sums_over_many_pairs(generator, loss, full) -> None:  # type: ignore[no-untyped-def]
    u, v = (torch.randn(2500, 3, generator=generator) for _ in range(2))
    assert loss(u, v).item() == pytest.approx(full(u.double(), v.double(), 0.5).item(), abs=3e-6)


def test_by_hand() -> None:
    eye = torch.eye(3)
    assert donsker_varadhan(eye, eye, 0.5).item() == pytest.approx(-2)
    assert jensen_shannon(eye, eye, 0.5).item() == pytest.approx(math.log(1 + math.exp(-2)) + math.log(2))


@pytest.mark.parametrize("loss", [donsker_varadhan, jensen_shannon])
def test_wrong_input(loss) -> None:  # type: ignore[no-untyped-def]
    one = torch.ones(1, 2)
    with pytest.raises(MarioError, match=r"needs at least 2 nodes.*got 1"):
        loss(one, one)
    with pytest.raises(MarioError, match="tau"):
        loss(torch.ones(2, 2), torch.ones(2, 2), -0.1)
    with pytest.raises(MarioError, match="same nodes"):
        loss(torch.ones(2, 2), torch.ones(3, 2))
