"""Every contrast equals its slow version for rows of any size, and its gradients are finite."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from hypothesis import example, strategies as st
from hypothesis.strategies import DrawFn
from torch import Tensor

from contrast.test_clustering import released_sinkhorn
from contrast.test_conditional import slow_conditional_mi
from contrast.test_cross_view import slow as slow_nt_xent
from contrast.test_estimators import full_donsker_varadhan, full_jensen_shannon
from contrast.test_geometry import full_uniformity
from contrast.test_nce import slow_info_nce
from contrast.test_reconstruction import weighted_cross_entropy
from fuzz.graphs import generator, seeds, tensors, things
from fuzz.targets import attempt, fuzz
from mario.contrast import (
    alignment,
    alignment_uniformity,
    bootstrap,
    conditional_mi,
    donsker_varadhan,
    edge_reconstruction,
    full_reconstruction,
    info_nce,
    jensen_shannon,
    nt_xent,
    scaled_cosine_error,
    sinkhorn,
    sums_within,
    swapped_prediction,
    uniformity,
    worst_case_alignment,
)
from mario.errors import MarioError

SIZES = (1.0, 1.0, 1e-30, 1e-20, 1e-10, 1e-3, 1e3, 1e10, 1e19, 1e25, 1e30)
MODERATE = SIZES
TAUS = st.sampled_from((0.05, 0.2, 0.5, 1.0, 3.0))
ESTIMATORS = st.sampled_from(("info_nce", "donsker_varadhan", "jensen_shannon"))


@st.composite
def pairs(draw: DrawFn, sizes: tuple[float, ...] = SIZES, least: int = 1, zeros: bool = True) -> tuple[Tensor, Tensor]:
    """Two views in float32: rows of very different sizes, rows of zeros, rows that occur twice or in both views."""
    rows, width = draw(st.integers(least, 9)), draw(st.integers(1, 4))
    drawn = generator(draw(seeds))
    views = []
    for _ in range(2):
        z = torch.randn(rows, width, generator=drawn)
        scale = [draw(st.sampled_from(sizes)) for _ in range(min(rows, 3))]
        z = z * torch.tensor([scale[row % len(scale)] for row in range(rows)]).unsqueeze(1)
        kind = draw(st.sampled_from(("any", "any", "twice", "zero" if zeros else "any", "line")))
        if kind == "twice":
            z[draw(st.integers(0, rows - 1))] = z[0]
        elif kind == "zero":
            z[draw(st.integers(0, rows - 1))] = 0
        elif kind == "line":
            z[:, 1:] = 0
        views.append(z)
    if draw(st.integers(0, 4)) == 0:
        views[1] = views[0].clone()
    return views[0], views[1]


def directions(z: Tensor) -> Tensor:
    """Rows in float64, whose length is about 1; their direction is all that these losses depend on."""
    z = z.double()
    largest = z.abs().amax(1, keepdim=True)
    return z / largest.where(largest > 0, 1.0)


def compare(
    ours: Callable[[Tensor, Tensor], Tensor],
    slow: Callable[[Tensor, Tensor], Tensor],
    given: tuple[Tensor, Tensor],
    tau: float = 1.0,
) -> None:
    u, v = (z.clone().requires_grad_() for z in given)
    loss = attempt(lambda: ours(u, v))
    if isinstance(loss, MarioError):
        assert len(u) == 1, loss  # other rows are the negatives of some
        return
    wanted = slow(directions(given[0]), directions(given[1]))
    torch.testing.assert_close(loss.detach().double(), wanted, rtol=1e-4, atol=1e-5 / tau)
    if loss.requires_grad:
        grads = torch.autograd.grad(loss, (u, v), allow_unused=True, materialize_grads=True)
        assert all(bool(torch.isfinite(grad).all()) for grad in grads), grads


@fuzz(examples=50, given=pairs(), tau=TAUS)
def test_info_nce(given: tuple[Tensor, Tensor], tau: float) -> None:
    compare(lambda u, v: info_nce(u, v, tau), lambda u, v: slow_info_nce(u, v, tau), given, tau)


@fuzz(
    examples=50,
    given=pairs(),
    tau=TAUS,
    estimator=ESTIMATORS,
    negatives=st.sampled_from(("first", "second")),
    clusters=st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=9, max_size=9),
)
def test_conditional_mi(
    given: tuple[Tensor, Tensor], tau: float, estimator: str, negatives: str, clusters: list[tuple[int, int]]
) -> None:
    first, second = torch.tensor(clusters)[: len(given[0])].t()
    compare(
        lambda u, v: conditional_mi(u, v, first, second, tau, estimator=estimator, negatives=negatives),
        lambda u, v: slow_conditional_mi(u, v, first, second, tau, estimator, negatives),
        given,
        tau,
    )


@fuzz(examples=30, given=pairs(), tau=TAUS)
def test_estimators(given: tuple[Tensor, Tensor], tau: float) -> None:
    for loss, full in ((donsker_varadhan, full_donsker_varadhan), (jensen_shannon, full_jensen_shannon)):
        compare(lambda u, v, f=loss: f(u, v, tau), lambda u, v, f=full: f(u, v, tau), given, tau)


@fuzz(examples=30, given=pairs(zeros=False), t=st.sampled_from((0.5, 1.0, 2.0)))
def test_uniformity(given: tuple[Tensor, Tensor], t: float) -> None:
    compare(lambda u, v: uniformity(u, t), lambda u, v: full_uniformity(u, t), given)

    def slow(u: Tensor, v: Tensor) -> Tensor:
        distance = (F.normalize(u).unsqueeze(1) - F.normalize(v).unsqueeze(0)).square().sum(2)
        return distance.diag().mean() + torch.exp(-t * distance).mean(1).log().mean()

    moderate = tuple(directions(z).float() for z in given)
    compare(lambda u, v: alignment_uniformity(u, v, t), slow, (moderate[0], moderate[1]))


@fuzz(examples=30, given=pairs(MODERATE, least=2), tau=TAUS)
def test_nt_xent(given: tuple[Tensor, Tensor], tau: float) -> None:
    compare(lambda u, v: nt_xent(u, v, tau), lambda u, v: slow_nt_xent(u, v, tau), given, tau)


@fuzz(examples=30, given=pairs(MODERATE), exponent=st.sampled_from((1.0, 2.0, 3.0)))
def test_losses_of_rows(given: tuple[Tensor, Tensor], exponent: float) -> None:
    def cosines(u: Tensor, v: Tensor) -> Tensor:
        return (F.normalize(u) * F.normalize(v)).sum(1)

    def apart(u: Tensor, v: Tensor) -> Tensor:
        return (F.normalize(u) - F.normalize(v)).square().sum(1).mean()

    compare(bootstrap, lambda u, v: 1 - cosines(u, v).mean(), given)
    compare(lambda u, v: alignment([u, v]), apart, given)
    compare(lambda u, v: worst_case_alignment([u, v, u]), apart, given)
    compare(
        lambda u, v: scaled_cosine_error(u, v, exponent), lambda u, v: ((1 - cosines(u, v)) ** exponent).mean(), given
    )


@fuzz(examples=30, given=pairs(), tau=st.sampled_from((0.2, 0.5, 1.0)))
def test_sums_within(given: tuple[Tensor, Tensor], tau: float) -> None:
    def slow(u: Tensor, v: Tensor) -> Tensor:
        similar = (F.normalize(v) @ F.normalize(v).t() / tau).exp()
        return similar.masked_fill(torch.eye(len(v), dtype=torch.bool), 0).sum(1)

    ours, wanted = sums_within(given[1], tau), slow(*map(directions, given))
    torch.testing.assert_close(ours.double(), wanted, rtol=1e-4, atol=1e-4)


@fuzz(
    examples=40,
    rows=st.integers(1, 9),
    columns=st.integers(1, 5),
    seed=seeds,
    temperature=st.sampled_from((0.05, 0.1, 1.0)),
    iterations=st.integers(1, 5),
    scale=st.sampled_from((0.0, 1e-30, 1.0, 30.0, 1e4, 1e30)),
)
@example(rows=2, columns=2, seed=0, temperature=0.05, iterations=3, scale=1e30)
@example(rows=9, columns=5, seed=1025, temperature=0.05, iterations=1, scale=30.0)
def test_sinkhorn(rows: int, columns: int, seed: int, temperature: float, iterations: int, scale: float) -> None:
    scores = torch.randn(rows, columns, generator=generator(seed)) * scale
    found = sinkhorn(scores, iterations=iterations, temperature=temperature)
    assert bool((found >= 0).all())
    torch.testing.assert_close(found.sum(1), torch.ones(rows))
    if scale <= 1:  # beyond, the exponentials of the released code overflow
        wanted = released_sinkhorn(scores.double(), temperature, iterations)
        torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-4)


@fuzz(
    examples=40,
    rows=st.integers(1, 6),
    width=st.integers(1, 3),
    edges=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12),
    seed=seeds,
    scale=st.sampled_from((1.0, 1e-20, 1e3)),
)
def test_reconstruction(rows: int, width: int, edges: list[tuple[int, int]], seed: int, scale: float) -> None:
    z = (torch.randn(rows, width, generator=generator(seed)) * scale).requires_grad_()
    kept = sorted({(a % rows, b % rows) for a, b in edges if a % rows != b % rows})
    pairs_of = torch.tensor(kept, dtype=torch.int64).view(-1, 2).t()
    adjacency = torch.zeros(rows, rows, dtype=torch.float64)
    adjacency[pairs_of[0], pairs_of[1]] = 1
    loss = full_reconstruction(z, pairs_of)
    if kept and len(kept) < rows * rows:
        exact = z.detach().double()
        rounding = 1e-6 * rows * rows * float((exact @ exact.t()).abs().max())  # the sum of all pairs less some of them
        wanted = weighted_cross_entropy(exact, adjacency)
        torch.testing.assert_close(loss.detach().double(), wanted, rtol=1e-3, atol=1e-4 + rounding)
    assert math.isfinite(loss.item())
    assert bool(torch.isfinite(torch.autograd.grad(loss, z)[0]).all())
    others = (adjacency == 0).nonzero().t()
    sampled = attempt(lambda: edge_reconstruction(z, pairs_of, others))
    if not isinstance(sampled, MarioError):
        s = (z.detach().double() @ z.detach().double().t()).detach()
        means = [
            F.softplus(sign * s[tuple(ends)]).mean() for sign, ends in ((-1, pairs_of), (1, others)) if ends.numel()
        ]
        torch.testing.assert_close(sampled.detach().double(), torch.stack(means).mean(), rtol=1e-4, atol=1e-5)


ANYTHING = st.one_of(tensors((1, 2, 3)), things)
TWO = st.one_of(tensors((1, 2, 3)).map(lambda z: (z, z)), st.tuples(ANYTHING, ANYTHING))
CALLS: dict[str, Callable[[object, object, object], object]] = {
    "info_nce": lambda u, v, tau: info_nce(u, v, tau),  # type: ignore[arg-type]
    "nt_xent": lambda u, v, tau: nt_xent(u, v, tau),  # type: ignore[arg-type]
    "bootstrap": lambda u, v, tau: bootstrap(u, v),  # type: ignore[arg-type]
    "alignment": lambda u, v, tau: alignment([u, v]),  # type: ignore[list-item]
    "uniformity": lambda u, v, tau: uniformity(u, tau),  # type: ignore[arg-type]
    "donsker_varadhan": lambda u, v, tau: donsker_varadhan(u, v, tau),  # type: ignore[arg-type]
    "conditional_mi": lambda u, v, tau: conditional_mi(u, u, v, v, tau),  # type: ignore[arg-type]
    "scaled_cosine_error": lambda u, v, tau: scaled_cosine_error(u, v, tau),  # type: ignore[arg-type]
    "sums_within": lambda u, v, tau: sums_within(u, tau),  # type: ignore[arg-type]
    "sinkhorn": lambda u, v, tau: sinkhorn(u, temperature=tau),  # type: ignore[arg-type]
    "swapped_prediction": lambda u, v, tau: swapped_prediction(u, v, u, v, tau),  # type: ignore[arg-type]
}


@fuzz(
    examples=100,
    name=st.sampled_from(sorted(CALLS)),
    given=TWO,
    tau=st.one_of(TAUS, things, st.sampled_from((0.0, -1.0, 1e-6))),
)
@example(name="scaled_cosine_error", given=(torch.zeros(1, 1), torch.zeros(1, 1)), tau=None)
@example(name="scaled_cosine_error", given=(torch.zeros(1, 1).half(), torch.zeros(1, 1).half()), tau=2**31)
@example(name="sinkhorn", given=(torch.zeros(1, 1), torch.zeros(1, 1)), tau=2**70)
@example(name="info_nce", given=(torch.eye(2).to_sparse(), torch.eye(2).to_sparse()), tau=0.5)
def test_any_arguments(name: str, given: tuple[object, object], tau: object) -> None:
    attempt(lambda: CALLS[name](*given, tau))
