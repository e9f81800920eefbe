"""Contrasts over ranks against those of one process that holds the rows of both."""

import pytest
import torch
from torch import Tensor

from mario import ranks
from mario.contrast import Prototypes, info_nce, sinkhorn, swapped_prediction, tiles
from mario.contrast.across_ranks import gathered, summed
from two_ranks import on_two_ranks


def draw(nodes: int, dim: int = 5, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(nodes)
    u, v = torch.randn(2, nodes, dim, generator=generator, dtype=torch.float64).to(dtype)
    return u, v


def part(rank: int, first: int) -> slice:
    return slice(first) if rank == 0 else slice(first, None)


def own_nce(rank: int, first: int, nodes: int, tau: float, dtype: torch.dtype, tile: int) -> tuple[Tensor, ...]:
    tiles.SMALL_TILE = tile
    u, v = (z[part(rank, first)].requires_grad_() for z in draw(nodes, dtype=dtype))
    loss = info_nce(u, v, tau, across_ranks=True)
    (3 * loss).backward()
    return loss.detach(), u.grad, v.grad  # type: ignore[return-value]


@pytest.mark.parametrize("tile", [512, 3])
@pytest.mark.parametrize("tau", [0.5, 0.02, 1e-3])
@pytest.mark.parametrize(("first", "nodes"), [(6, 13), (1, 2), (10, 11)])
def test_info_nce(first: int, nodes: int, tau: float, tile: int) -> None:
    u, v = (z.requires_grad_() for z in draw(nodes))
    loss = info_nce(u, v, tau)
    (3 * loss).backward()
    one, two = on_two_ranks(own_nce, first, nodes, tau, torch.float64, tile)
    assert torch.equal(one[0], two[0]), "the same loss to the bit on all ranks"
    torch.testing.assert_close(one[0], loss.detach(), rtol=1e-12, atol=1e-12)
    for i, z in enumerate((u, v), start=1):
        torch.testing.assert_close(torch.cat([one[i], two[i]]), z.grad, rtol=1e-10, atol=1e-10)


def test_info_nce_in_float32_and_a_row_of_zeros() -> None:
    u, v = (z.requires_grad_() for z in draw(12, dtype=torch.float32))
    loss = info_nce(u, v, 0.2)
    (3 * loss).backward()
    one, two = on_two_ranks(own_nce, 5, 12, 0.2, torch.float32, 4)
    torch.testing.assert_close(one[0], loss.detach())
    torch.testing.assert_close(torch.cat([one[1], two[1]]), u.grad)
    assert all(torch.isfinite(x).all() for x in on_two_ranks(with_zeros)[0])


def with_zeros(rank: int) -> tuple[Tensor, ...]:
    u, v = (torch.eye(3)[rank:].clone() for _ in range(2))
    u[0] = 0
    u.requires_grad_()
    loss = info_nce(u, v, across_ranks=True)
    loss.backward()
    return loss.detach(), u.grad  # type: ignore[return-value]


def largest(rank: int) -> int:
    """The most numbers in any tensor that a step over 2 × 1000 nodes makes."""
    from contrast.conftest import LargestTensor

    tiles.SMALL_TILE = 100
    u = torch.randn(1000, 4, requires_grad=True)
    with LargestTensor() as watch:
        info_nce(u, u.detach().flip(1), across_ranks=True).backward()
    return watch.numel


def test_no_square_matrix() -> None:
    assert max(on_two_ranks(largest)) <= 2 * 2000 * 4 + 2 * 2000


def cubed(rank: int, first: int) -> tuple[Tensor, ...]:
    u, _ = (z[part(rank, first)].requires_grad_() for z in draw(7))
    everyone = gathered(u)
    loss = (everyone @ everyone.t()).pow(3).sum()
    loss.backward()
    weight = torch.ones(2, requires_grad=True)
    whole = summed((weight * (rank + 1)).sum())
    whole.backward()
    return loss.detach(), u.grad, whole.detach(), weight.grad  # type: ignore[return-value]


@pytest.mark.parametrize("first", [3, 7])
def test_rows_of_all_with_the_gradient_at_the_own(first: int) -> None:
    u, _ = draw(7)
    u.requires_grad_()
    loss = (u @ u.t()).pow(3).sum()
    loss.backward()
    one, two = on_two_ranks(cubed, first)
    for rank, found in enumerate((one, two)):
        torch.testing.assert_close(found[0], loss.detach())
        assert found[2] == 6, "2 · 1 + 2 · 2"
        assert found[3].tolist() == [rank + 1] * 2
    torch.testing.assert_close(torch.cat([one[1], two[1]]), u.grad)


def test_alone_they_are_what_they_gather() -> None:
    u, v = draw(6)
    assert gathered(u) is u
    assert summed(u) is u
    assert torch.equal(info_nce(u, v, 0.3, across_ranks=True), info_nce(u, v, 0.3))


def clustered(rank: int, first: int, temperature: float, tau: float) -> dict[str, Tensor]:
    u, v = (z[part(rank, first)].requires_grad_() for z in draw(12))
    prototypes = Prototypes(3, 5, torch.Generator().manual_seed(1)).double()
    prototypes.normalize_()
    q = sinkhorn(prototypes(u), temperature=temperature)
    loss = prototypes.loss(u, v, tau, temperature=temperature)
    loss.backward()
    ranks.sum_gradients(prototypes.parameters())
    gradient = prototypes.weight.grad
    optimizer = torch.optim.Adam(prototypes.parameters(), lr=0.05)
    prototypes.descend(u.detach(), v.detach(), optimizer, 4, tau, temperature=temperature)
    found = {"q": q, "loss": loss.detach(), "u": u.grad, "gradient": gradient, "moved": prototypes.weight.detach()}
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("tau", [1.0, 0.2])
@pytest.mark.parametrize("temperature", [0.1, 0.01], ids=["kernel", "logarithms"])
@pytest.mark.parametrize("first", [5, 11])
def test_clustering_over_ranks(first: int, temperature: float, tau: float) -> None:
    one, two = on_two_ranks(clustered, first, temperature, tau)
    expected = clustered(0, 12, temperature, tau)
    for name in ("q", "u"):
        torch.testing.assert_close(torch.cat([one[name], two[name]]), expected[name], rtol=1e-10, atol=1e-11)
    for name in ("loss", "gradient", "moved"):
        assert torch.equal(one[name], two[name]), "equal to the bit on all ranks"
        torch.testing.assert_close(one[name], expected[name], rtol=1e-9, atol=1e-10)


def spread_by_one(rank: int) -> Tensor:
    """Scores that only together are too far apart for exponentials as they are."""
    scores = torch.arange(6.0, dtype=torch.float64).view(2, 3) + 100 * rank
    return sinkhorn(scores, iterations=50, temperature=1.0)


def test_both_ranks_take_the_same_way_through_sinkhorn() -> None:
    one, two = on_two_ranks(spread_by_one)
    scores = torch.arange(6.0, dtype=torch.float64).view(2, 3)
    expected = sinkhorn(torch.cat([scores, scores + 100]), iterations=50, temperature=1.0)
    torch.testing.assert_close(torch.cat([one, two]), expected)


def test_swapped_prediction_alone_is_the_mean() -> None:
    scores = torch.zeros(4, 2)
    q = torch.eye(2)[[0, 1, 0, 1]]
    assert swapped_prediction(scores, scores, q, q).item() == pytest.approx(0.6931, abs=1e-4)
