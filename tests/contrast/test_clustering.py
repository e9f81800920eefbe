"""Sinkhorn against its fixed point and the released code; swapped prediction and prototypes against loops."""

import math
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import Prototypes, sinkhorn, swapped_prediction
from mario.errors import MarioError


def released_sinkhorn(scores: Tensor, epsilon: float, iterations: int) -> Tensor:
    """SwAV's loop on the K × B matrix of exponentials, as its paper and MARIO's state it."""
    q = torch.exp(scores / epsilon).t()
    k, b = q.shape
    q = q / q.sum()
    for _ in range(iterations):
        q = q / q.sum(1, keepdim=True) / k
        q = q / q.sum(0, keepdim=True) / b
    return (q * b).t()


def test_swaps_by_hand() -> None:
    # Both nodes prefer prototype 0, node 1 more strongly: an even split gives it to node 1.
    q = sinkhorn(torch.tensor([[1.0, 0.9], [1.0, 0.0]]), iterations=3000)
    # At the fixed point of a 2 × 2 plan q00 q11 / (q01 q10) keeps its value e^{(1 + 0 − 0.9 − 1)/0.1} = e⁻⁹.
    p = 1 / (1 + math.exp(4.5))
    torch.testing.assert_close(q, torch.tensor([[p, 1 - p], [1 - p, p]]))


@pytest.mark.parametrize("iterations", [1, 3, 10])
@pytest.mark.parametrize("temperature", [0.1, 0.05, 1.0])
def test_equals_the_released_loop(generator: torch.Generator, iterations: int, temperature: float) -> None:
    scores = torch.rand(30, 7, generator=generator, dtype=torch.float64) * 2 - 1
    ours = sinkhorn(scores, iterations=iterations, temperature=temperature)
    torch.testing.assert_close(ours, released_sinkhorn(scores, temperature, iterations))


def test_both_ways_of_computing_agree(generator: torch.Generator) -> None:
    scores = torch.rand(20, 5, generator=generator, dtype=torch.float64)
    near = sinkhorn(scores, temperature=0.04)
    # One more node far below the others forces the log domain; its row cannot change what SwAV's loop gives.
    wide = torch.cat([scores, torch.full((1, 5), -3.0, dtype=torch.float64)])
    torch.testing.assert_close(near, released_sinkhorn(scores, 0.04, 3))
    torch.testing.assert_close(sinkhorn(wide, temperature=0.04), released_sinkhorn(wide, 0.04, 3))


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_marginals(generator: torch.Generator, scale: float) -> None:
    scores = torch.randn(60, 6, generator=generator) * scale
    q = sinkhorn(scores, iterations=3, temperature=0.1)
    torch.testing.assert_close(q.sum(1), torch.ones(60))
    assert torch.isfinite(q).all()
    q = sinkhorn(scores / scale, iterations=500, temperature=0.2)
    torch.testing.assert_close(q.sum(0), torch.full((6,), 10.0), rtol=1e-3, atol=1e-3)


def test_sinkhorn_carries_no_gradient_and_changes_no_input(generator: torch.Generator) -> None:
    scores = torch.rand(5, 3, generator=generator, requires_grad=True)
    before = scores.detach().clone()
    assert not sinkhorn(scores).requires_grad
    sinkhorn(scores.detach() * 1e3)
    assert torch.equal(scores, before)


def test_order_of_nodes_is_kept(generator: torch.Generator) -> None:
    scores = torch.rand(9, 3, generator=generator, dtype=torch.float64)
    order = torch.randperm(9, generator=generator)
    torch.testing.assert_close(sinkhorn(scores[order]), sinkhorn(scores)[order])


def test_one_node_one_prototype() -> None:
    assert torch.equal(sinkhorn(torch.tensor([[0.3]])), torch.ones(1, 1))


def test_swapped_prediction_equals_loops(generator: torch.Generator) -> None:
    a, b = (torch.randn(5, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    q_a, q_b = (torch.rand(5, 3, generator=generator, dtype=torch.float64) for _ in range(2))
    total = 0.0
    for i in range(5):
        for k in range(3):
            p_a = math.exp(a[i, k] / 0.3) / sum(math.exp(x / 0.3) for x in a[i])
            p_b = math.exp(b[i, k] / 0.3) / sum(math.exp(x / 0.3) for x in b[i])
            total += -(q_b[i, k].item() * math.log(p_a) + q_a[i, k].item() * math.log(p_b)) / 2
    assert swapped_prediction(a, b, q_a, q_b, tau=0.3).item() == pytest.approx(total / 5)
    a.requires_grad_()
    b.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y: swapped_prediction(x, y, q_a, q_b, 0.3), (a, b))


def test_prototypes_start_from_the_generator_at_unit_length() -> None:
    first, second = (Prototypes(6, 4, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first.weight, second.weight)
    assert not torch.equal(first.weight, Prototypes(6, 4, torch.Generator().manual_seed(4)).weight)
    torch.testing.assert_close(first.weight.norm(dim=1), torch.ones(6))


def test_scores_are_cosines_whatever_the_lengths(generator: torch.Generator) -> None:
    prototypes = Prototypes(2, 2, generator)
    with torch.no_grad():
        prototypes.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 0.1]]))
    z = torch.tensor([[5.0, 0.0], [1.0, 1.0], [0.0, -2.0]])
    root = math.sqrt(0.5)
    torch.testing.assert_close(prototypes(z), torch.tensor([[1.0, 0.0], [root, root], [0.0, -1.0]]))
    assert prototypes.assign(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).tolist() == [0, 1]
    prototypes.normalize_()
    torch.testing.assert_close(prototypes.weight.detach(), torch.eye(2))


def test_prototype_loss_is_swapped_prediction_of_even_assignments(generator: torch.Generator) -> None:
    prototypes = Prototypes(3, 4, generator).double()
    u, v = (torch.randn(7, 4, generator=generator, dtype=torch.float64) for _ in range(2))
    c = F.normalize(prototypes.weight, dim=1)
    s_u, s_v = F.normalize(u) @ c.t(), F.normalize(v) @ c.t()
    q_u, q_v = released_sinkhorn(s_u, 0.1, 3).detach(), released_sinkhorn(s_v, 0.1, 3).detach()
    expected = -0.5 * (q_v * (s_u / 0.2).log_softmax(1) + q_u * (s_v / 0.2).log_softmax(1)).sum(1).mean()
    loss = prototypes.loss(u, v, 0.2)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(
        torch.autograd.grad(loss, prototypes.weight), torch.autograd.grad(expected, prototypes.weight)
    )


def test_prototypes_find_well_separated_clusters(generator: torch.Generator) -> None:
    centers = torch.eye(4)
    labels = torch.arange(4).repeat_interleave(15)
    u, v = (centers[labels] + 0.05 * torch.randn(60, 4, generator=generator) for _ in range(2))
    prototypes = Prototypes(4, 4, generator)
    optimizer = torch.optim.Adam(prototypes.parameters(), lr=0.05)
    for _ in range(100):
        optimizer.zero_grad()
        prototypes.loss(u, v, tau=0.2).backward()
        optimizer.step()
        prototypes.normalize_()
    found = prototypes.assign(u).view(4, 15)
    assert (found == found[:, :1]).all()
    assert found[:, 0].unique().numel() == 4


def test_wrong_input() -> None:
    scores = torch.rand(4, 3)
    for bad, message in (
        (torch.rand(4), "scores must be a non-empty matrix"),
        (torch.zeros(4, 3, dtype=torch.long), "scores must be a floating-point tensor"),
        (torch.full((2, 2), torch.nan), "scores must be finite"),
        (torch.tensor([[torch.inf, 0.0]]), "scores must be finite"),
    ):
        with pytest.raises(MarioError, match=message):
            sinkhorn(bad)
    with pytest.raises(MarioError, match="iterations must be an integer of at least 1, got 0"):
        sinkhorn(scores, iterations=0)
    with pytest.raises(MarioError, match="temperature must be a finite number above 0, got -1"):
        sinkhorn(scores, temperature=-1)
    with pytest.raises(MarioError, match=r"q_v must have the shape of scores_u, \(4, 3\), got \(3, 3\)"):
        swapped_prediction(scores, scores, scores, scores[:3])
    with pytest.raises(MarioError, match="clusters must be an integer of at least 1, got 0"):
        Prototypes(0, 3)
    with pytest.raises(MarioError, match="z must have 3 columns, like the prototypes, got 5"):
        Prototypes(2, 3)(torch.ones(4, 5))


@pytest.mark.parametrize("tau", [1.0, 0.2, 0.002])
@pytest.mark.parametrize("temperature", [0.1, 0.01], ids=["kernel", "logarithms"])
@pytest.mark.parametrize("maker", [torch.optim.Adam, torch.optim.SGD])
@pytest.mark.parametrize("gradient", ["sphere", "raw"])
def test_descend_is_the_plain_steps_on_the_loss(
    gradient: Literal["sphere", "raw"], tau: float, temperature: float, maker: type[torch.optim.Optimizer]
) -> None:
    generator = torch.Generator().manual_seed(0)
    u, v = torch.randn(2, 30, 6, generator=generator, dtype=torch.float64)
    ours, plain = (
        Prototypes(4, 6, generator=torch.Generator().manual_seed(1), gradient=gradient).double() for _ in range(2)
    )
    ours.normalize_()
    plain.normalize_()
    start = plain.weight.detach().clone()
    *scores, reached = ours.descend(u, v, maker(ours.parameters(), lr=0.05), 7, tau, temperature=temperature)
    optimizer = maker(plain.parameters(), lr=0.05)
    for _ in range(7):
        optimizer.zero_grad()
        loss = plain.loss(u, v, tau, temperature=temperature)
        loss.backward()
        optimizer.step()
        plain.normalize_()
    torch.testing.assert_close(reached, loss.detach(), atol=1e-10, rtol=1e-10)
    assert not torch.allclose(plain.weight, start, atol=1e-4)
    torch.testing.assert_close(ours.weight, plain.weight, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(torch.cat(scores), plain(torch.cat([u, v])), atol=1e-10, rtol=1e-10)


def test_raw_keeps_the_gradient_along_a_prototype_and_sphere_has_none(generator: torch.Generator) -> None:
    u, v = torch.randn(2, 30, 6, generator=generator, dtype=torch.float64)
    found = []
    for gradient in ("sphere", "raw"):
        prototypes = Prototypes(4, 6, torch.Generator().manual_seed(1), gradient=gradient).double()
        prototypes.normalize_()
        prototypes.loss(u, v).backward()
        found.append((prototypes.weight.detach(), prototypes.weight.grad))
    (weight, sphere), (_, raw) = found
    torch.testing.assert_close(torch.linalg.vecdot(sphere, weight), torch.zeros(4, dtype=torch.float64))
    along = torch.linalg.vecdot(raw, weight)
    assert (along.abs() > 1e-4).all()
    torch.testing.assert_close(raw - along.unsqueeze(1) * weight, sphere)
    with pytest.raises(MarioError, match="gradient must be 'sphere' or 'raw', got 'flat'"):
        Prototypes(2, 3, gradient="flat")  # type: ignore[arg-type]


def test_the_nearest_prototype_is_that_of_the_largest_cosine(generator: torch.Generator) -> None:
    prototypes = Prototypes(6, 4, generator)
    with torch.no_grad():
        prototypes.weight.mul_(torch.rand(6, 1, generator=generator) * 5)
    z = torch.randn(50, 4, generator=generator) * torch.logspace(-6, 6, 50).unsqueeze(1)
    assert torch.equal(prototypes.assign(z), prototypes(z).argmax(1))
    with pytest.raises(MarioError, match="z must have 4 columns, like the prototypes, got 5"):
        prototypes.assign(torch.ones(4, 5))
