"""Several first views in a row against one second view: the losses and gradients of as many calls of `info_nce`."""

import pytest
import torch
from torch import Tensor

from mario.contrast import RepeatedInfoNCE, info_nce, tiles
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
    first, second = views(n)
    ours, plain = second.clone().requires_grad_(), second.clone().requires_grad_()
    repeated = RepeatedInfoNCE(ours, tau)
    for weight, u in zip((1.0, 0.5, -2.0), first, strict=True):
        a, b = u.clone().requires_grad_(), u.clone().requires_grad_()
        loss, expected = repeated(a), info_nce(b, plain, tau)
        torch.testing.assert_close(loss, expected)
        (weight * loss).backward()
        (weight * expected).backward()
        torch.testing.assert_close(a.grad, b.grad)
    repeated.finish()
    torch.testing.assert_close(ours.grad, plain.grad)
    before = ours.grad.clone()
    repeated.finish()
    assert torch.equal(ours.grad, before), "what was added is not added again"


def test_a_second_view_without_a_gradient() -> None:
    (u, *_), v = views(6)
    u.requires_grad_()
    repeated = RepeatedInfoNCE(v)
    repeated(u).backward()
    repeated.finish()
    assert v.grad is None
    expected = u.detach().clone().requires_grad_()
    info_nce(expected, v).backward()
    torch.testing.assert_close(u.grad, expected.grad)


def test_a_temperature_that_needs_a_shift_is_refused() -> None:
    _, v = views(3)
    assert not RepeatedInfoNCE.fits(v.float(), 1e-3)
    with pytest.raises(MarioError, match=r"tau must be larger .* got 0.001: use info_nce"):
        RepeatedInfoNCE(v.float(), 1e-3)
