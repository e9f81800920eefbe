"""`conditional_mi` against the formula, the released code's mask, its gradient, its memory and its errors."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast import blocks, conditional_mi
from mario.errors import MarioError

ESTIMATORS = ("info_nce", "donsker_varadhan", "jensen_shannon")


def slow_conditional_mi(
    u: Tensor, v: Tensor, first: Tensor, second: Tensor, tau: float, estimator: str, negatives: str = "second"
) -> Tensor:
    """The formulas, node by node and cluster by cluster."""
    n = len(u)
    deciding = (second if negatives == "second" else first).tolist()
    s = [[torch.cosine_similarity(u[i], v[j], dim=0) / tau for j in range(n)] for i in range(n)]
    total = u.sum() * 0
    for y in set(first.tolist()):
        rows = [i for i in range(n) if first[i] == y and second[i] == y]
        columns = [j for j in range(n) if deciding[j] == y]
        if not rows:
            continue
        if estimator == "info_nce":
            for i in rows:
                total = total + torch.logsumexp(torch.stack([s[i][j] for j in {i, *columns}]), 0) - s[i][i]
            continue
        apart = [s[i][j] for i in rows for j in columns if j != i]
        if not apart:
            continue
        own = torch.stack([s[i][i] for i in rows])
        if estimator == "donsker_varadhan":
            value = torch.logsumexp(torch.stack(apart), 0) - math.log(len(apart)) - own.mean()
        else:
            value = F.softplus(-own).mean() + F.softplus(torch.stack(apart)).mean()
        total = total + len(rows) * value
    return total / n


def case(n: int, clusters: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    u = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    v = u + torch.randn(n, 3, generator=generator, dtype=torch.float64)
    first = torch.randint(clusters, (n,), generator=generator)
    moved = torch.rand(n, generator=generator) < 0.3
    second = torch.where(moved, torch.randint(clusters, (n,), generator=generator), first)
    return u.requires_grad_(), v.requires_grad_(), first, second


def test_three_nodes_by_hand() -> None:
    u = torch.eye(3)
    same, other = torch.tensor([7, 7, -1]), torch.tensor([7, 7, 3])
    assert conditional_mi(u, u, same, other).item() == pytest.approx(2 / 3 * math.log((math.e + 1) / math.e))
    # Node 2 alone in its cluster: its own pair is all there is, log e^s − s = 0.
    assert conditional_mi(u, u, same, same).item() == pytest.approx(2 / 3 * math.log((math.e + 1) / math.e))
    assert conditional_mi(u, u, same, same, estimator="donsker_varadhan").item() == pytest.approx(2 / 3 * (0 - 1))


def test_a_node_that_changed_cluster_is_a_negative_by_the_view_that_decides() -> None:
    # Node 1 is in cluster 0 in the first view and in cluster 1 in the second.
    u = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    first, second = torch.tensor([0, 0, 1]), torch.tensor([0, 1, 1])
    by_second = (math.log(1) + math.log(math.e + 1) - 1) / 3  # row 0 alone; row 2 against columns 1 and 2
    by_first = (math.log(2 * math.e) - 1 + math.log(1)) / 3  # row 0 against columns 0 and 1; row 2 alone
    assert conditional_mi(u, u, first, second).item() == pytest.approx(by_second)
    assert conditional_mi(u, u, first, second, negatives="first").item() == pytest.approx(by_first)


def test_first_is_the_mask_of_the_released_code(generator: torch.Generator) -> None:
    u, v, first, second = case(40, 5, generator)
    similarity = torch.exp(F.normalize(u) @ F.normalize(v).t())
    mask = (first.repeat(40, 1) == second.reshape(-1, 1).repeat(1, 40)) | torch.eye(40).bool()
    released = -torch.log(similarity.diag() / (similarity * mask).sum(1)) * (first == second)
    ours = conditional_mi(u, v, first, second, negatives="first")
    torch.testing.assert_close(ours, released.mean())
    assert not torch.isclose(ours, conditional_mi(u, v, first, second))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("negatives", ["first", "second"])
@pytest.mark.parametrize(
    ("n", "clusters", "tau"), [(1, 1, 1.0), (2, 1, 1.0), (9, 1, 0.5), (12, 3, 1.0), (12, 40, 1.0), (13, 2, 0.002)]
)
def test_equals_the_formula_at_tile_boundaries(
    monkeypatch: pytest.MonkeyPatch,
    generator: torch.Generator,
    estimator: str,
    negatives: str,
    n: int,
    clusters: int,
    tau: float,
) -> None:
    u, v, first, second = case(n, clusters, generator)
    slow = slow_conditional_mi(u, v, first, second, tau, estimator, negatives)
    slow_grads = torch.autograd.grad(slow, (u, v), allow_unused=True, materialize_grads=True)
    for tile, apart, kept in ((1024, 2**20, 2**22), (4, 2**20, 0), (3, 60, 2**22), (1024, 0, 0)):
        monkeypatch.setattr(blocks, "TILE", tile)
        monkeypatch.setattr(blocks, "APART", apart)
        monkeypatch.setattr(blocks, "KEPT", kept)
        ours = conditional_mi(u, v, first, second, tau, estimator=estimator, negatives=negatives)
        torch.testing.assert_close(ours, slow)
        torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), slow_grads)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_gradcheck(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, estimator: str) -> None:
    monkeypatch.setattr(blocks, "TILE", 3)
    u, v, first, second = case(10, 2, generator)
    assert torch.autograd.gradcheck(
        lambda a, b: conditional_mi(a, b, first, second, 0.4, estimator=estimator), (u, v), atol=1e-6
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_order_of_nodes_and_names_of_clusters_do_not_matter(generator: torch.Generator, estimator: str) -> None:
    u, v, first, second = case(30, 4, generator)
    order, names = torch.randperm(30, generator=generator), torch.tensor([9, -3, 100, 0])
    here = conditional_mi(u, v, first, second, estimator=estimator)
    there = conditional_mi(u[order], v[order], names[first[order]], names[second[order]], estimator=estimator)
    torch.testing.assert_close(here, there)
    torch.testing.assert_close(torch.autograd.grad(here, (u, v)), torch.autograd.grad(there, (u, v)))


def test_one_side_needs_a_gradient_and_both_may_be_the_same(generator: torch.Generator) -> None:
    u, v, first, second = case(12, 2, generator)
    both = torch.autograd.grad(conditional_mi(u, v, first, second), (u, v))
    torch.testing.assert_close(torch.autograd.grad(conditional_mi(u, v.detach(), first, second), u)[0], both[0])
    torch.testing.assert_close(torch.autograd.grad(conditional_mi(u.detach(), v, first, second), v)[0], both[1])
    slow = slow_conditional_mi(u, u, first, second, 1.0, "info_nce")
    ours = conditional_mi(u, u, first, second)
    torch.testing.assert_close(torch.autograd.grad(ours, u), torch.autograd.grad(slow, u))


def test_no_node_keeps_its_cluster(generator: torch.Generator) -> None:
    u, v, first, _ = case(5, 2, generator)
    loss = conditional_mi(u, v, first, first + 10)
    loss.backward()
    assert loss.item() == 0
    assert u.grad is not None
    assert torch.equal(u.grad, torch.zeros(5, 3, dtype=torch.float64))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_float32_with_small_temperature_and_zero_rows(generator: torch.Generator, estimator: str) -> None:
    u, v, first, second = case(60, 2, generator)
    with torch.no_grad():
        u[3] = 0
    exact = conditional_mi(u, v, first, second, 0.005, estimator=estimator).item()
    a, b = (z.detach().float().requires_grad_() for z in (u, v))
    loss = conditional_mi(a, b, first, second, 0.005, estimator=estimator)
    loss.backward()
    assert loss.item() == pytest.approx(exact, rel=1e-4)
    assert a.grad is not None
    assert torch.isfinite(a.grad).all()
    assert torch.equal(a.grad[3], torch.zeros(3))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("tau", [1.0, 0.1])
def test_bfloat16(generator: torch.Generator, estimator: str, tau: float) -> None:
    u, v, first, second = case(60, 3, generator)
    u, v = (z.detach().bfloat16().requires_grad_() for z in (u, v))
    loss = conditional_mi(u, v, first, second, tau, estimator=estimator)
    exact_u, exact_v = (z.detach().double().requires_grad_() for z in (u, v))
    exact = conditional_mi(exact_u, exact_v, first, second, tau, estimator=estimator)
    # Unit rows and cosines have 8 bits: an exponent is off by up to 2⁻⁸/τ, a term of the gradient by that part of it.
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), abs=2**-8 / tau)
    grads = torch.autograd.grad(loss, (u, v))
    for ours, wanted in zip(grads, torch.autograd.grad(exact, (exact_u, exact_v)), strict=True):
        assert ours.dtype == torch.bfloat16
        assert (ours.double() - wanted).norm() < 2**-8 * 4 * wanted.norm()


def test_small_clusters_share_a_tile_and_large_ones_are_cut() -> None:
    second = torch.repeat_interleave(torch.tensor([2000, 600, *[1] * 99]))
    first = second.masked_fill(torch.arange(len(second)) < 500, -1)  # 1500 of the first 2000 nodes keep their cluster
    tiles = blocks.Blocks.of(first, second, second, 2**20 // 99**2, own_pairs=True).tiles
    # The cluster of 600 takes few of the small ones along: 600 · 8 pairs of different clusters on either side.
    assert [(t.rows, t.columns, t.several, t.own) for t in tiles] == [
        (slice(0, 1024), slice(0, 1024), False, True),
        (slice(0, 1024), slice(1024, 2000), False, False),
        (slice(1024, 1500), slice(0, 1024), False, False),
        (slice(1024, 1500), slice(1024, 2000), False, True),
        (slice(1500, 2108), slice(2000, 2608), True, True),
        (slice(2108, 2199), slice(2608, 2699), True, True),
    ]


def test_backward_twice_through_what_was_kept(generator: torch.Generator) -> None:
    u, v, first, second = case(12, 3, generator)
    for estimator in ESTIMATORS:
        loss = conditional_mi(u, v, first, second, estimator=estimator)
        once = torch.autograd.grad(loss, (u, v), retain_graph=True)
        assert all(map(torch.equal, once, torch.autograd.grad(loss, (u, v))))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("clusters", [1, 3])
def test_no_tensor_of_nodes_by_nodes(
    generator: torch.Generator, largest_tensor: Any, estimator: str, clusters: int
) -> None:
    u = torch.randn(3000, 4, generator=generator, requires_grad=True)
    labels = torch.randint(clusters, (3000,), generator=generator)
    with largest_tensor as largest:
        conditional_mi(u, u, labels, labels, 1.0, estimator=estimator).backward()
    assert 3000 * 4 <= largest.numel <= blocks.TILE**2 < 3000**2 / 4


NODES, LABELS = torch.ones(3, 2), torch.tensor([0, 1, 0])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clusters_u": torch.tensor([0, 1])}, r"clusters_u must have one cluster per node, shape \(3,\), got \(2,\)"),
        ({"clusters_v": LABELS.view(3, 1)}, r"clusters_v must have one cluster per node.*\(3, 1\)"),
        ({"clusters_v": LABELS.float()}, "clusters_v must be a tensor of integers, got torch.float32"),
        ({"clusters_u": [0, 1, 0]}, "clusters_u must be a tensor of integers, got list"),
        ({"estimator": "mine"}, "estimator must be one of info_nce, .*got 'mine'"),
        ({"negatives": "both"}, "negatives must be 'first' or 'second', got 'both'"),
        ({"tau": 0}, "tau must be a finite number above 0, got 0"),
        ({"v": torch.ones(2, 2)}, r"\(3, 2\) and \(2, 2\)"),
        ({"u": torch.ones(0, 2), "v": torch.ones(0, 2)}, "non-empty"),
    ],
)
def test_wrong_input(changed: dict[str, object], message: str) -> None:
    given: dict[str, object] = {"u": NODES, "v": NODES, "clusters_u": LABELS, "clusters_v": LABELS}
    with pytest.raises(MarioError, match=message):
        conditional_mi(**{**given, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize("estimator", ["info_nce", "donsker_varadhan", "jensen_shannon"])
@pytest.mark.parametrize("size", [1e25, 1e-30])
def test_rows_whose_squares_do_not_fit(generator: torch.Generator, estimator: str, size: float) -> None:
    u, v = torch.randn(2, 20, 8, generator=generator)
    clusters = torch.arange(20) % 3
    found = conditional_mi(u * size, v, clusters, clusters, estimator=estimator)
    torch.testing.assert_close(found, conditional_mi(u, v, clusters, clusters, estimator=estimator))
