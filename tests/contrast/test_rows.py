"""Rows of any size: whatever depends on directions only has the same value and gradient for rows of 1e-30 and 1e30."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import (
    ESTIMATORS,
    Prototypes,
    alignment,
    alignment_uniformity,
    bootstrap,
    conditional_mi,
    estimate,
    graph_emd,
    info_nce,
    nt_xent,
    scaled_cosine_error,
    sums_within,
    transport_nce,
    uniformity,
    worst_case_alignment,
)
from mario.contrast.rows import directions, in_range
from mario.evaluation.alignment import distances

ROWS, WIDTH = 12, 5
CLUSTERS = torch.arange(ROWS) % 3
SETS = torch.arange(ROWS).view(4, 3)
PARTNERS = torch.tensor([[0, 1], [1, 2], [2, 3], [3, 0]])


def prototypes(gradient: str = "sphere") -> Prototypes:
    return Prototypes(4, WIDTH, torch.Generator().manual_seed(5), gradient=gradient)  # type: ignore[arg-type]


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "directions": lambda u, v: (directions(u) * directions(v)[:, [1, 0, 2, 3, 4]]).sum(),
    "info_nce": info_nce,
    "sums_within": lambda u, v: sums_within(u).sum(),
    "nt_xent": nt_xent,
    "bootstrap": bootstrap,
    "scaled_cosine_error": scaled_cosine_error,
    "alignment": lambda u, v: alignment([u, v]),
    "worst_case_alignment": lambda u, v: worst_case_alignment([u, v]),
    "uniformity": lambda u, v: uniformity(u),
    "alignment_uniformity": alignment_uniformity,
    "prototypes": lambda u, v: prototypes().loss(u, v),
    "prototypes, raw": lambda u, v: prototypes("raw").loss(u, v),
    "distances": lambda u, v: distances(u, v).mean(),
    **{f"estimate, {name}": lambda u, v, name=name: estimate(u, v, estimator=name) for name in ESTIMATORS},
    **{
        f"conditional_mi, {name}": lambda u, v, name=name: conditional_mi(u, v, CLUSTERS, CLUSTERS, estimator=name)
        for name in ("info_nce", "donsker_varadhan", "jensen_shannon")
    },
}
# A node weighs as much as it is long, so that only a size that all have in common is of no consequence.
OF_SETS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "graph_emd": lambda u, v: graph_emd(u, SETS, v, SETS, PARTNERS).sum(),
    "transport_nce": lambda u, v: transport_nce(u, SETS, v, SETS),
}


def found(loss: Callable[[Tensor, Tensor], Tensor], u: Tensor, v: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of u·scale and v, and its gradient in terms of u."""
    z = (u * scale).requires_grad_()
    value = loss(z, v)
    value.backward()
    assert z.grad is not None
    return value.detach(), z.grad * scale


@pytest.fixture
def pair(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    u, v = torch.randn(2, ROWS, WIDTH, generator=generator)
    return u, v


@pytest.mark.parametrize("name", LOSSES)
def test_the_length_of_rows_is_of_no_consequence(name: str, pair: tuple[Tensor, Tensor]) -> None:
    u, v = pair
    exponents = torch.tensor([-30, -25, -19, -18, -12, -8, 0, 8, 18, 19, 25, 30], dtype=torch.float64)
    scale = (10.0**exponents).float().unsqueeze(1)
    for one, other in ((u, v), (u, v * scale.flip(0)), (u, v * 1e30), (u, v * 1e-30)):
        value, gradient = found(LOSSES[name], one, v, torch.ones(ROWS, 1))
        torch.testing.assert_close(found(LOSSES[name], one, other, scale), (value, gradient), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("size", [1e-30, 1e-19, 1e-13, 1e19, 1e30])
@pytest.mark.parametrize("name", OF_SETS)
def test_a_size_that_all_rows_have_in_common_is_of_no_consequence(
    name: str, size: float, pair: tuple[Tensor, Tensor]
) -> None:
    u, v = pair
    value, gradient = found(OF_SETS[name], u, v, torch.ones(1))
    for other in (v, v * size):
        if name == "transport_nce" and other is v:
            continue  # sets of both views are compared with each other
        torch.testing.assert_close(found(OF_SETS[name], u, other, torch.tensor(size)), (value, gradient))


@pytest.mark.parametrize("size", [1e-30, 1e-13, 1e19, 1e30])
def test_prototypes_of_rows_of_any_size(size: float, pair: tuple[Tensor, Tensor]) -> None:
    u, v = pair
    plain, scaled = prototypes(), prototypes()
    assert torch.equal(plain.assign(u), scaled.assign(u * size))
    for one, z in ((plain, u), (scaled, u * size)):
        one.descend(z, v, torch.optim.SGD(one.parameters(), lr=0.1), steps=3)
    torch.testing.assert_close(plain.weight, scaled.weight)
    with torch.no_grad():
        scaled.weight.mul_(size)
        scaled.normalize_()
    torch.testing.assert_close(plain.weight, scaled.weight)


def test_the_bits_of_usual_rows_are_those_of_torch(pair: tuple[Tensor, Tensor]) -> None:
    u, v = pair
    assert in_range(u) is u
    for ours, theirs in (
        (lambda z: directions(z) @ v.t(), lambda z: F.normalize(z) @ v.t()),
        (lambda z: bootstrap(z, v), lambda z: 1 - F.cosine_similarity(z, v).mean()),
    ):
        for size in (1e-5, 1.0, 1e5):
            a, b = ((u * size).requires_grad_() for _ in range(2))
            one, two = ours(a), theirs(b)
            assert torch.equal(one, two)
            one.sum().backward()
            two.sum().backward()
            assert torch.equal(a.grad, b.grad)


def test_a_zero_row_has_neither_direction_nor_gradient() -> None:
    z = torch.tensor([[0.0, 0.0], [1e-45, 0.0], [3.0, 4.0]], requires_grad=True)
    made = directions(z)
    assert made.tolist()[0] == [0.0, 0.0]
    made.sum().backward()
    assert z.grad is not None
    assert z.grad[:2].tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert torch.isfinite(z.grad).all()


def test_gradients_of_gradients(generator: torch.Generator) -> None:
    z = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    scale = torch.tensor([[1e-170], [1.0], [1e170]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: directions(z * scale), (z,))
    assert torch.autograd.gradgradcheck(lambda z: directions(z * scale), (z,))
