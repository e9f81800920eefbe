"""`info_nce` against the formula, its gradient, its memory and its errors."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from mario.contrast import info_nce, tiles
from mario.errors import MarioError


def slow_info_nce(u: Tensor, v: Tensor, tau: float, anchors: Sequence[int] | None = None) -> Tensor:
    """The formula, term by term."""
    n = len(u)

    def s(a: Tensor, b: Tensor) -> Tensor:
        return torch.cosine_similarity(a, b, dim=0) / tau

    def loss(a: Tensor, b: Tensor, i: int) -> Tensor:
        terms = [s(a[i], b[j]) for j in range(n)] + [s(a[i], a[j]) for j in range(n) if j != i]
        return torch.logsumexp(torch.stack(terms), 0) - s(a[i], b[i])

    return torch.stack([(loss(u, v, i) + loss(v, u, i)) / 2 for i in anchors or range(n)]).mean()


def pair(n: int, d: int, generator: torch.Generator, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    u = torch.randn(n, d, generator=generator, dtype=dtype)
    return u.requires_grad_(), (u.detach() + torch.randn(n, d, generator=generator, dtype=dtype)).requires_grad_()


def test_two_orthogonal_nodes() -> None:
    eye = torch.eye(2)
    expected = -math.log(math.e / (math.e + 1 + 1))
    assert info_nce(eye, 5 * eye, tau=1.0).item() == pytest.approx(expected)


def test_one_node_has_no_negative(generator: torch.Generator) -> None:
    u, v = pair(1, 4, generator)
    loss = info_nce(u, v)
    loss.backward()
    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert u.grad is not None
    assert u.grad.abs().max() < 1e-12


@pytest.mark.parametrize("n", [31, 32, 33, 39])
@pytest.mark.parametrize("tau", [0.5, 0.002])
def test_equals_the_formula_where_a_part_of_a_symmetric_tile_is_copied(
    generator: torch.Generator, n: int, tau: float
) -> None:
    u, v = pair(n, 3, generator)
    expected = slow_info_nce(u, v, tau)
    loss = info_nce(u, v, tau)
    torch.testing.assert_close(loss, expected, rtol=1e-10, atol=1e-10)
    for ours, slow in zip(torch.autograd.grad(loss, (u, v)), torch.autograd.grad(expected, (u, v)), strict=True):
        torch.testing.assert_close(ours, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("keep", [0, 400, 2**24])  # 400: some of the tiles
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9])
@pytest.mark.parametrize("tau", [0.5, 0.002])
def test_equals_the_formula_at_tile_boundaries(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, n: int, tau: float, keep: int
) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 4)
    monkeypatch.setattr(tiles, "KEEP", keep)
    u, v = pair(n, 3, generator)
    ours, slow = info_nce(u, v, tau), slow_info_nce(u, v, tau)
    torch.testing.assert_close(ours, slow)
    torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(slow, (u, v)))


@pytest.mark.parametrize("tau", [0.3, 0.002])
def test_gradcheck(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, tau: float) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 2)
    u, v = pair(5, 3, generator)
    if tau < 0.01:
        # At τ = 0.002 differences of far-off rows drown in rounding: near-collinear rows keep the exponents mixed.
        u, v = ((1 + 0.02 * z.detach()).requires_grad_() for z in (u, v))
    assert torch.autograd.gradcheck(lambda a, b: info_nce(a, b, tau), (u, v), atol=1e-4 if tau < 0.01 else 1e-6)


def test_only_one_side_needs_a_gradient_and_both_may_be_the_same(generator: torch.Generator) -> None:
    u, v = pair(6, 3, generator)
    both = torch.autograd.grad(info_nce(u, v), (u, v))
    torch.testing.assert_close(torch.autograd.grad(info_nce(u, v.detach()), u)[0], both[0])
    torch.testing.assert_close(torch.autograd.grad(info_nce(u.detach(), v), v)[0], both[1])
    assert not info_nce(u.detach(), v.detach()).requires_grad
    torch.testing.assert_close(
        torch.autograd.grad(info_nce(u, u), u)[0], torch.autograd.grad(slow_info_nce(u, u, 0.5), u)[0]
    )


def test_backward_twice_through_a_kept_graph(generator: torch.Generator) -> None:
    u, v = pair(6, 3, generator)
    loss = info_nce(u, v)
    first = torch.autograd.grad(loss, (u, v), retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(2 * loss, (u, v)), tuple(2 * g for g in first))


def test_non_contiguous_rows(generator: torch.Generator) -> None:
    wide = torch.randn(3, 12, generator=generator, dtype=torch.float64, requires_grad=True)
    u, v = wide.t()[::2], wide.t()[1::2]
    assert not u.is_contiguous()
    ours, slow = info_nce(u, v), slow_info_nce(u, v, 0.5)
    torch.testing.assert_close(ours, slow)
    torch.testing.assert_close(torch.autograd.grad(ours, wide), torch.autograd.grad(slow, wide))


def test_order_of_nodes_does_not_matter(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 5)
    u, v = pair(13, 4, generator)
    order = torch.randperm(13, generator=generator)
    here, there = info_nce(u, v), info_nce(u[order], v[order])
    torch.testing.assert_close(here, there)
    torch.testing.assert_close(torch.autograd.grad(here, (u, v)), torch.autograd.grad(there, (u, v)))
    torch.testing.assert_close(info_nce(v, u), here)


def test_lengths_of_rows_do_not_matter(generator: torch.Generator) -> None:
    u, v = pair(6, 3, generator)
    lengths = torch.rand(6, 1, generator=generator, dtype=torch.float64) + 0.1
    torch.testing.assert_close(info_nce(u * lengths, v / lengths), info_nce(u, v))


@pytest.mark.parametrize("tau", [0.5, 0.01, 0.001])
def test_float32_is_close_to_float64_at_any_temperature(generator: torch.Generator, tau: float) -> None:
    u, v = pair(40, 300, generator)
    exact = info_nce(u, v, tau)
    grads = torch.autograd.grad(exact, (u, v))
    u32, v32 = (z.detach().float().requires_grad_() for z in (u, v))
    loss = info_nce(u32, v32, tau)
    rounded = torch.autograd.grad(loss, (u32, v32))
    assert loss.item() == pytest.approx(exact.item(), rel=1e-4, abs=1e-4)
    for ours, wanted in zip(rounded, grads, strict=True):
        assert (ours.double() - wanted).norm() < 2e-3 * wanted.norm() + 1e-6


def test_zero_rows_are_orthogonal_to_all_and_get_no_gradient(generator: torch.Generator) -> None:
    u, v = pair(4, 3, generator, torch.float32)
    with torch.no_grad():
        u[1] = 0
    loss = info_nce(u, v, tau=0.01)
    loss.backward()
    assert torch.isfinite(loss)
    assert u.grad is not None
    assert v.grad is not None
    assert torch.equal(u.grad[1], torch.zeros(3))
    assert torch.isfinite(u.grad).all()
    assert torch.isfinite(v.grad).all()


def test_nan_is_not_swallowed(generator: torch.Generator) -> None:
    u, v = pair(4, 3, generator)
    assert torch.isnan(info_nce(u.detach().index_fill(0, torch.tensor([2]), torch.nan), v))


def anchored(u: Tensor, v: Tensor, tau: float, anchors: Sequence[int]) -> Tensor:
    """`info_nce` with these anchors drawn."""
    order = torch.tensor([*anchors, *(i for i in range(len(u)) if i not in anchors)])
    with patch.object(torch, "randperm", lambda count, generator: order):
        return info_nce(u, v, tau, anchors=len(anchors))


@pytest.mark.parametrize("keep", [0, 200, 2**24])
@pytest.mark.parametrize("tau", [0.5, 0.002])
@pytest.mark.parametrize("anchors", [[3], [7, 0, 4], [8, 7, 6, 5, 4, 3, 2, 1]])
def test_anchors_equal_the_formula(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator, anchors: list[int], tau: float, keep: int
) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 2)
    monkeypatch.setattr(tiles, "KEEP", keep)
    u, v = pair(9, 3, generator)
    ours, slow = anchored(u, v, tau, anchors), slow_info_nce(u, v, tau, anchors)
    torch.testing.assert_close(ours, slow)
    torch.testing.assert_close(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(slow, (u, v)))


@pytest.mark.parametrize("count", [1, 2, 5])
def test_anchors_have_no_bias(generator: torch.Generator, count: int) -> None:
    u, v = pair(6, 3, generator)
    subsets = list(combinations(range(6), count))
    mean = torch.stack([anchored(u, v, 0.5, subset) for subset in subsets]).mean()
    every = info_nce(u, v)
    torch.testing.assert_close(mean, every)
    torch.testing.assert_close(torch.autograd.grad(mean, (u, v)), torch.autograd.grad(every, (u, v)))


def test_anchors_are_drawn_uniformly_from_the_generator(generator: torch.Generator) -> None:
    u, v = pair(5, 3, generator)
    of = {round(anchored(u, v, 0.5, subset).item(), 9): subset for subset in combinations(range(5), 2)}
    assert len(of) == 10
    before = torch.get_rng_state()
    drawn = [of[round(info_nce(u, v, anchors=2, generator=generator).item(), 9)] for _ in range(1000)]
    assert torch.equal(torch.get_rng_state(), before)
    counts = [drawn.count(subset) for subset in of.values()]
    assert sum((count - 100) ** 2 / 100 for count in counts) < 27.9  # χ² with 9 degrees of freedom, p = 0.001
    same = [info_nce(u, v, anchors=2, generator=torch.Generator().manual_seed(3)) for _ in range(2)]
    assert torch.equal(*same)


@pytest.mark.parametrize("anchors", [7, 8])
def test_all_as_anchors_is_the_loss_to_the_bit(generator: torch.Generator, anchors: int) -> None:
    u, v = pair(7, 3, generator, torch.float32)
    state = generator.get_state()
    ours, exact = info_nce(u, v, anchors=anchors, generator=generator), info_nce(u, v)
    assert torch.equal(ours, exact)
    for a, b in zip(torch.autograd.grad(ours, (u, v)), torch.autograd.grad(exact, (u, v)), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(generator.get_state(), state)


class Exponentials(TorchDispatchMode):
    """Counts the exponentials taken in tiles."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.exp_.default and args[0].dim() == 2:
            self.count += args[0].numel()
        return func(*args, **(kwargs or {}))


def test_work_is_half_of_all_pairs_or_anchors_times_nodes(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 16)
    u, v = pair(320, 4, generator, torch.float32)
    taken = {}
    for anchors in (8, 16, None):
        for keep in (0, 2**24):
            monkeypatch.setattr(tiles, "KEEP", keep)
            with Exponentials() as exponentials:
                info_nce(u, v, anchors=anchors, generator=generator).backward()
            taken[anchors, keep] = exponentials.count
    assert taken[None, 2**24] == (640 + 16) * 640 / 2  # on and above the diagonal, in tiles of 16
    assert taken[16, 2**24] == 2 * 16 * 640 - 16 * 16
    assert taken[8, 2**24] == 2 * 8 * 640 - 8 * 8
    assert all(taken[anchors, 0] == 2 * taken[anchors, 2**24] for anchors in (8, 16, None))


def test_no_tile_is_kept_where_most_would_not_fit(monkeypatch: pytest.MonkeyPatch, generator: torch.Generator) -> None:
    monkeypatch.setattr(tiles, "SMALL_TILE", 16)
    u, v = pair(64, 4, generator, torch.float32)
    everything = (128 + 16) * 128 / 2 * 4
    taken = []
    for keep in (everything / 2, everything / 4, everything / 4 - 1):
        monkeypatch.setattr(tiles, "KEEP", keep)
        with Exponentials() as exponentials:
            info_nce(u, v).backward()
        taken.append(exponentials.count * 4)
    assert taken == [1.5 * everything, 1.75 * everything, 2 * everything]


def test_the_side_of_tiles_does_not_change_the_result(
    monkeypatch: pytest.MonkeyPatch, generator: torch.Generator
) -> None:
    u, v = pair(2048, 300, generator, torch.float32)
    assert (tiles.tile_side(2047), tiles.tile_side(2048)) == (tiles.SMALL_TILE, tiles.LARGE_TILE)
    large = info_nce(u, v)
    monkeypatch.setattr(tiles, "MANY", 10**6)
    small = info_nce(u, v)
    torch.testing.assert_close(large, small)
    torch.testing.assert_close(torch.autograd.grad(large, (u, v)), torch.autograd.grad(small, (u, v)))


@pytest.mark.parametrize("tau", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("anchors", [None, 30])
def test_bfloat16(generator: torch.Generator, tau: float, anchors: int | None) -> None:
    # Views that share nothing: at a small τ those that do have a gradient of almost nothing.
    u, v = (torch.randn(60, 32, generator=generator).bfloat16().requires_grad_() for _ in range(2))
    loss = info_nce(u, v, tau, anchors=anchors, generator=torch.Generator().manual_seed(1))
    exact_u, exact_v = (z.detach().double().requires_grad_() for z in (u, v))
    exact = info_nce(exact_u, exact_v, tau, anchors=anchors, generator=torch.Generator().manual_seed(1))
    # Unit rows and cosines have 8 bits: an exponent is off by up to 2⁻⁸/τ, a term of the gradient by that part of it.
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), abs=2**-8 / tau)
    grads = torch.autograd.grad(loss, (u, v))
    for ours, wanted in zip(grads, torch.autograd.grad(exact, (exact_u, exact_v)), strict=True):
        assert ours.dtype == torch.bfloat16
        assert (ours.double() - wanted).norm() < 2**-8 / tau * wanted.norm()


@pytest.mark.parametrize("tau", [0.5, 0.005])
def test_no_tensor_of_nodes_by_nodes(generator: torch.Generator, largest_tensor: Any, tau: float) -> None:
    u, v = pair(2500, 4, generator, torch.float32)
    with largest_tensor as largest:
        info_nce(u, v, tau).backward()
    assert 2500 * 4 <= largest.numel <= tiles.LARGE_TILE**2 < 2500**2 / 4


@pytest.mark.parametrize(
    ("u", "v", "tau", "message"),
    [
        (torch.ones(3, 2), torch.ones(4, 2), 0.5, r"\(3, 2\) and \(4, 2\)"),
        (torch.ones(3, 2), torch.ones(3, 5), 0.5, r"\(3, 2\) and \(3, 5\)"),
        (torch.ones(3), torch.ones(3), 0.5, r"u must be a non-empty matrix.*\(3,\)"),
        (torch.ones(0, 2), torch.ones(0, 2), 0.5, r"non-empty.*\(0, 2\)"),
        (torch.ones(3, 2), torch.ones(3, 2).long(), 0.5, "v must be a floating-point tensor.*int64"),
        (torch.ones(3, 2), [[1.0, 2.0]], 0.5, "v must be a floating-point tensor.*list"),
        (torch.ones(3, 2), torch.ones(3, 2).double(), 0.5, "float32 on cpu and torch.float64"),
        (torch.ones(3, 2), torch.ones(3, 2), 0.0, "tau must be a finite number above 0, got 0.0"),
        (torch.ones(3, 2), torch.ones(3, 2), -1, "tau .* got -1"),
        (torch.ones(3, 2), torch.ones(3, 2), math.nan, "tau .* got nan"),
        (torch.ones(3, 2), torch.ones(3, 2), math.inf, "tau .* got inf"),
    ],
)
def test_wrong_input(u: Tensor, v: Tensor, tau: float, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        info_nce(u, v, tau)


@pytest.mark.parametrize("anchors", [0, -3, 2.0])
def test_wrong_anchors(anchors: Any) -> None:
    with pytest.raises(MarioError, match=f"anchors must be a whole number of nodes above 0.*got {anchors}"):
        info_nce(torch.ones(3, 2), torch.ones(3, 2), anchors=anchors)


@pytest.mark.parametrize("size", [1e19, 1e25, 3e37, 1e-21, 1e-30])
def test_rows_whose_squares_do_not_fit_equal_those_of_a_usual_size(generator: torch.Generator, size: float) -> None:
    """Squares of float32 overflow from 1.8e19 on and vanish below 1e-23: such rows counted as zero."""
    u, v = pair(20, 8, generator, torch.float32)
    scale = torch.ones(20, 1)
    scale[::3] = size
    large = (u.detach() * scale).requires_grad_()
    loss, expected = info_nce(large, v), info_nce(u, v)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    assert large.grad is not None
    assert u.grad is not None
    # The gradient shrinks as the row grows; in float64, so that it can be compared.
    torch.testing.assert_close(large.grad.double() * scale, u.grad.double(), rtol=1e-3, atol=1e-6)


def test_a_zero_row_among_large_ones_stays_zero(generator: torch.Generator) -> None:
    u, v = (z.detach() for z in pair(4, 3, generator, torch.float32))
    u[1] = 0
    large = u.clone()
    large[0] *= 1e20
    torch.testing.assert_close(info_nce(large, v), info_nce(u, v))
    large[0, 0] = torch.inf
    assert info_nce(large, v).isnan()
