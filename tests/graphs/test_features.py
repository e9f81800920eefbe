"""Features in parts against the same features written out."""

import pytest
import torch
from torch import Tensor, nn

from mario.graphs.features import Features, Perturbed, is_wide, rows_of, take_rows

NODES, FEATURES, HIDDEN = 7, 9, 4


def features(kind: str, seed: int = 0) -> tuple[Features, Tensor]:
    """Masked features, and the same as a dense matrix."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(NODES, FEATURES, generator=generator) < 0.5)
    kept = torch.rand(FEATURES, generator=generator) < 0.6
    return Features(x.to_sparse_csr() if kind == "sparse" else x, kept), x * kept


def weight(seed: int, out: int = HIDDEN) -> nn.Parameter:
    return nn.Parameter(torch.randn(out, FEATURES, generator=torch.Generator().manual_seed(seed), dtype=torch.float64))


both_kinds = pytest.mark.parametrize("kind", ["dense", "sparse"])


@both_kinds
class TestFeatures:
    def test_the_product_and_its_gradient(self, kind: str) -> None:
        parts, written = features(kind)
        ours, plain = weight(1), weight(1)
        loss = parts.times(ours).pow(3).sum() + parts.times(ours).sum()
        (written @ plain.t()).pow(3).sum().add((written @ plain.t()).sum()).backward()
        loss.backward()
        torch.testing.assert_close(ours.grad, plain.grad)

    def test_the_product_is_made_again_when_the_weight_has_changed(self, kind: str) -> None:
        parts, written = features(kind)
        w = weight(1)
        first = parts.times(w)
        assert parts.product(w) is parts.product(w)
        with torch.no_grad():
            w.mul_(2)
        torch.testing.assert_close(parts.times(w), written @ w.t())
        torch.testing.assert_close(parts.times(w), first * 2)

    def test_a_masked_column_leaks_nothing(self, kind: str) -> None:
        parts, written = features(kind)
        assert torch.equal(parts.matrix().to_dense(), written)
        x = torch.tensor([[1.0, float("nan")]])
        held = Features(x.to_sparse_csr() if kind == "sparse" else x, torch.tensor([True, False]))
        assert held.matrix().to_dense().tolist() == [[1.0, 0.0]]

    def test_rows_in_any_order(self, kind: str) -> None:
        parts, written = features(kind)
        w, rows = weight(1), torch.tensor([3, 3, 0])
        taken = take_rows(parts, rows)
        assert taken.size(0) == 3
        assert taken.shape == (3, FEATURES)
        torch.testing.assert_close(taken.times(w), written[rows] @ w.t())
        torch.testing.assert_close(take_rows(taken, torch.tensor([2])).times(w), written[:1] @ w.t())
        torch.testing.assert_close(rows_of(parts, slice(2, 5)).times(w), written[2:5] @ w.t())
        torch.testing.assert_close(taken.matrix().to_dense(), written[rows])


@both_kinds
class TestPerturbed:
    epsilon = 0.1

    def test_the_start_is_uniform_and_the_same_on_every_call(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        parts, written = features(kind)
        ours = Perturbed(parts, self.epsilon, torch.Generator().manual_seed(3))
        delta = ours.matrix() - written
        assert 0.08 < delta.abs().max() <= self.epsilon
        monkeypatch.setattr("mario.graphs.features._BLOCK", 2 * FEATURES)  # in blocks of two rows
        torch.testing.assert_close(ours.matrix() - written, delta)
        w = weight(1)
        torch.testing.assert_close(ours.times(w), (written + delta) @ w.t())

    @pytest.mark.parametrize("steps", [1, 2, 4])
    def test_ascent_and_all_gradients_are_those_of_the_matrix(self, kind: str, steps: int) -> None:
        """Two trained weights, one of them used twice and once with its rows in another order, and a frozen one."""
        order = torch.randperm(NODES, generator=torch.Generator().manual_seed(5))

        def loss(a: Tensor, b: Tensor, shuffled: Tensor, c: Tensor) -> Tensor:
            return (a * b).tanh().sum() + (shuffled * a).cos().sum() + (c * b).sin().sum()

        parts, _ = features(kind)
        ours = Perturbed(parts, self.epsilon, torch.Generator().manual_seed(3))
        x = ours.matrix().requires_grad_()
        mine, plain = ([weight(1), weight(2), weight(4).requires_grad_(False)] for _ in range(2))
        mine[0].grad = torch.ones_like(mine[0])
        plain[0].grad = torch.ones_like(plain[0])
        for _ in range(steps):
            u, v, w = mine
            value = loss(ours.times(u), ours.times(v), ours.select(order).times(u), ours.times(w))
            value.backward()
            a, b, c = plain
            expected = loss(x @ a.t(), x @ b.t(), x[order] @ a.t(), x @ c.t())
            expected.backward()
            torch.testing.assert_close(value, expected)
            torch.testing.assert_close(ours.squared_norm(), x.grad.square().sum())
            ours.move(0.01)
            with torch.no_grad():
                x += 0.01 * x.grad
                x.grad = None
            torch.testing.assert_close(ours.matrix(), x.detach())
        ours.finish()
        for one, other in zip(mine[:2], plain[:2], strict=True):
            torch.testing.assert_close(one.grad, other.grad)
        assert mine[2].grad is None

    @pytest.mark.parametrize("size", [1e-30, 1e-20, 1e20, 1e30])
    def test_squares_that_do_not_fit(self, kind: str, size: float) -> None:
        found = []
        for factor in (1.0, size):
            ours = Perturbed(features(kind)[0], self.epsilon, torch.Generator().manual_seed(3))
            ((ours.times(weight(1)).tanh() + ours.times(weight(2)).sin()) * factor).sum().backward()
            found.append(float(ours.squared_norm()) / factor**2)
        assert found[1] == pytest.approx(found[0], rel=1e-5)

    def test_a_weight_that_comes_later_sees_what_ascent_added(self, kind: str) -> None:
        ours = Perturbed(features(kind)[0], self.epsilon, torch.Generator().manual_seed(3))
        ours.times(weight(1)).square().sum().backward()
        ours.move(0.5)
        late = weight(2)
        torch.testing.assert_close(ours.times(late), ours.matrix() @ late.t())
        torch.testing.assert_close(take_rows(ours, torch.tensor([1])).matrix(), ours.matrix()[1:2])


def test_sparse_features_and_many_columns_are_wide() -> None:
    assert is_wide(torch.eye(3).to_sparse_csr())
    assert is_wide(torch.ones(1, 2000))
    assert not is_wide(torch.ones(3, 100))
