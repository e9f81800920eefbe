"""Several first views against one second view: the losses and gradients of as many plain calls of `info_nce`."""

import pytest
import torch
from torch import Tensor

from mario.contrast import info_nce, nce, sums_within, tiles
from mario.errors import MarioError


def views(n: int, count: int = 3) -> tuple[list[Tensor], Tensor]:
    generator = torch.Generator().manual_seed(n)
    first = [torch.randn(n, 5, generator=generator, dtype=torch.float64) for _ in range(count)]
    return first, torch.randn(n, 5, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_equals_the_formula(n: int, tau: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 4)
    _, v = views(n)
    v.requires_grad_()
    similarities = torch.cosine_similarity(v.unsqueeze(1), v.unsqueeze(0), dim=2) / tau
    wanted = similarities.exp().masked_fill(torch.eye(n, dtype=torch.bool), 0).sum(1)
    ours = sums_within(v, tau)
    torch.testing.assert_close(ours, wanted)
    weights = torch.arange(1.0, n + 1, dtype=torch.float64)
    torch.testing.assert_close(torch.autograd.grad(ours, v, weights), torch.autograd.grad(wanted, v, weights))


@pytest.mark.parametrize("n", [1, 2, 7, 20])
@pytest.mark.parametrize("keep", [0, 2**10, 2**20])
@pytest.mark.parametrize("tau", [0.2, 1.0])
def test_losses_and_gradients(n: int, keep: int, tau: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 4)
    monkeypatch.setattr(tiles, "KEEP", keep)
    monkeypatch.setattr(nce, "KEEP_WITHIN", keep)
    first, second = views(n)
    ours, plain = second.clone().requires_grad_(), second.clone().requires_grad_()
    within = sums_within(ours, tau)
    cut = within.detach().requires_grad_()
    for weight, u in zip((1.0, 0.5, -2.0), first, strict=True):
        a, b = u.clone().requires_grad_(), u.clone().requires_grad_()
        loss, expected = info_nce(a, ours, tau, within_v=cut), info_nce(b, plain, tau)
        torch.testing.assert_close(loss, expected)
        (weight * loss).backward()
        (weight * expected).backward()
        torch.testing.assert_close(a.grad, b.grad)
    within.backward(cut.grad)
    torch.testing.assert_close(ours.grad, plain.grad)


def test_gradcheck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 3)
    (u, *_), v = views(7)
    u.requires_grad_()
    v.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: info_nce(a, b, 0.3, within_v=sums_within(b, 0.3)), (u, v))


def test_a_row_of_zeros_has_no_gradient() -> None:
    (u, *_), v = views(6)
    u[2], v[3] = 0, 0
    u.requires_grad_()
    v.requires_grad_()
    info_nce(u, v, within_v=sums_within(v)).backward()
    assert u.grad is not None
    assert v.grad is not None
    assert u.grad.isfinite().all()
    assert v.grad.isfinite().all()
    assert not u.grad[2].any()
    assert not v.grad[3].any()


def test_a_second_view_without_a_gradient() -> None:
    (u, *_), v = views(6)
    u.requires_grad_()
    info_nce(u, v, within_v=sums_within(v)).backward()
    expected = u.detach().clone().requires_grad_()
    info_nce(expected, v).backward()
    torch.testing.assert_close(u.grad, expected.grad)


def test_a_temperature_that_needs_a_shift_is_refused() -> None:
    _, v = views(3)
    with pytest.raises(MarioError, match=r"tau must be larger .* got 0.001; omit within_v"):
        sums_within(v.float(), 1e-3)
    with pytest.raises(MarioError, match=r"tau must be larger .* got 0.001; omit within_v"):
        info_nce(v.float(), v.float(), 1e-3, within_v=torch.ones(3))


def test_wrong_sums_are_refused() -> None:
    _, v = views(3)
    with pytest.raises(MarioError, match=r"within_v must be sums_within\(v, tau\), shape \[3\], got \(2,\)"):
        info_nce(v, v, within_v=torch.ones(2))
    with pytest.raises(MarioError, match="use only one of anchors, within_v and across_ranks"):
        info_nce(v, v, within_v=sums_within(v), anchors=2)
