"""Several first views in a row against one second view: the losses and gradients of as many calls of `info_nce`."""

import pytest
import torch
from torch import Tensor

from mario.contrast import Conditional, RepeatedInfoNCE, conditional_mi, info_nce, repeated, tiles
from mario.errors import MarioError


def views(n: int, count: int = 3) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(n)
    first = [torch.randn(n, 5, generator=generator, dtype=torch.float64) for _ in range(count)]
    return first, torch.randn(n, 5, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("keep", [0, 2**20])
@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_losses_and_gradients(n: int, keep: int, tau: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "_TILE", 4)
    monkeypatch.setattr(tiles, "_KEEP", keep)
    monkeypatch.setattr(repeated, "_KEEP", keep)
    first, second = views(n)
    ours, plain = second.clone().requires_grad_(), second.clone().requires_grad_()
    contrast = RepeatedInfoNCE(ours, tau)
    for weight, u in zip((1.0, 0.5, -2.0), first, strict=True):
        a, b = u.clone().requires_grad_(), u.clone().requires_grad_()
        loss, expected = contrast(a), info_nce(b, plain, tau)
        torch.testing.assert_close(loss, expected)
        (weight * loss).backward()
        (weight * expected).backward()
        torch.testing.assert_close(a.grad, b.grad)
    contrast.finish()
    torch.testing.assert_close(ours.grad, plain.grad)
    before = ours.grad.clone()
    contrast.finish()
    assert torch.equal(ours.grad, before), "what was added is not added again"


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("keep", [0, 2**10, 2**20])
@pytest.mark.parametrize(("tau", "cmi_tau"), [(0.2, 1.0), (1.0, 0.3)])
@pytest.mark.parametrize(("clusters", "gamma"), [(1, 0.7), (3, 0.7), (3, -0.3), (50, 0.7)])
def test_less_the_conditional_term(
    n: int, keep: int, tau: float, cmi_tau: float, clusters: int, gamma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiles, "_TILE", 4)
    monkeypatch.setattr(tiles, "_KEEP", keep)
    monkeypatch.setattr(repeated, "_KEEP", keep)
    first, second = views(n)
    generator = torch.Generator().manual_seed(clusters)
    ours, plain = second.clone().requires_grad_(), second.clone().requires_grad_()
    contrast = RepeatedInfoNCE(ours, tau)
    clusters_v = torch.randint(clusters, (n,), generator=generator)
    for weight, u in zip((1.0, 0.5, -2.0), first, strict=True):
        # About half of the nodes stay in their cluster.
        moved = torch.randint(clusters, (n,), generator=generator)
        clusters_u = torch.where(torch.rand(n, generator=generator) < 0.5, clusters_v, moved)
        a, b = u.clone().requires_grad_(), u.clone().requires_grad_()
        loss = contrast(a, Conditional(clusters_u, clusters_v, cmi_tau, gamma))
        term = conditional_mi(b, plain, clusters_u, clusters_v, cmi_tau)
        expected = info_nce(b, plain, tau) - gamma * term
        torch.testing.assert_close(loss, expected, rtol=1e-12, atol=1e-12)
        (weight * loss).backward()
        (weight * expected).backward()
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-10, atol=1e-12)
    contrast.finish()
    torch.testing.assert_close(ours.grad, plain.grad, rtol=1e-10, atol=1e-12)


def test_a_row_of_zeros_has_no_gradient() -> None:
    (u, *_), v = views(6)
    u[2], v[3] = 0, 0
    clusters = torch.tensor([0, 0, 0, 1, 1, 1])
    u.requires_grad_()
    v.requires_grad_()
    contrast = RepeatedInfoNCE(v)
    contrast(u, Conditional(clusters, clusters, 1.0, 0.5)).backward()
    contrast.finish()
    assert u.grad.isfinite().all()
    assert v.grad.isfinite().all()
    assert not u.grad[2].any()
    assert not v.grad[3].any()


@pytest.mark.parametrize("dtypes", [(torch.int32, torch.int64), (torch.int64, torch.uint8)])
def test_clusters_of_any_integers(dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    (u, *_), v = views(6)
    clusters = torch.tensor([0, 7, 0, 200, 7, 7])
    expected = RepeatedInfoNCE(v)(u, Conditional(clusters, clusters))
    told = RepeatedInfoNCE(v)(u, Conditional(clusters.to(dtypes[0]), clusters.to(dtypes[1])))
    far = RepeatedInfoNCE(v)(u, Conditional(clusters + 2**40, clusters + 2**40))
    torch.testing.assert_close(torch.stack([told, far]), expected.expand(2), rtol=0, atol=0)


def test_nodes_that_no_cluster_keeps_leave_info_nce() -> None:
    (u, *_), v = views(6)
    apart = torch.arange(6)
    torch.testing.assert_close(RepeatedInfoNCE(v)(u, Conditional(apart, apart + 6)), RepeatedInfoNCE(v)(u))


def test_a_second_view_without_a_gradient() -> None:
    (u, *_), v = views(6)
    u.requires_grad_()
    contrast = RepeatedInfoNCE(v)
    contrast(u).backward()
    contrast.finish()
    assert v.grad is None
    expected = u.detach().clone().requires_grad_()
    info_nce(expected, v).backward()
    torch.testing.assert_close(u.grad, expected.grad)


def test_clusters_that_make_no_sense_are_told() -> None:
    (u, *_), v = views(3)
    contrast, clusters = RepeatedInfoNCE(v.float()), torch.zeros(3, dtype=torch.long)
    with pytest.raises(MarioError, match=r"clusters_v must have one cluster a node, shape \(3,\), got \(2,\)"):
        contrast(u.float(), Conditional(clusters, clusters[:2]))
    with pytest.raises(MarioError, match=r"tau must be larger .* got 0\.001"):
        contrast(u.float(), Conditional(clusters, clusters, tau=1e-3))


def test_a_temperature_that_needs_a_shift_is_refused() -> None:
    _, v = views(3)
    assert not RepeatedInfoNCE.fits(v.float(), 1e-3)
    with pytest.raises(MarioError, match=r"tau must be larger .* got 0.001: use info_nce"):
        RepeatedInfoNCE(v.float(), 1e-3)
