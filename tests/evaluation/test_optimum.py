"""The optimum against scikit-learn, and against what makes it one: a gradient of zero, written out with autograd."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor

import mario.evaluation.optimum as module
from mario.errors import MarioError
from mario.evaluation import logistic_optimum


def problem(
    n: int, d: int, classes: int, generator: torch.Generator, apart: float = 1.0, width: float = 1.0
) -> tuple[Tensor, Tensor]:
    y = torch.arange(n) % classes
    spread = width * torch.logspace(0.5, -1.5, d, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=torch.float64)).Q
    centers = apart * torch.randn(classes, d, generator=generator, dtype=torch.float64)
    z = (torch.randn(n, d, generator=generator, dtype=torch.float64) + centers[y]) * spread
    return z @ turn + 3.0 * width, y


def gradient(z: Tensor, y: Tensor, weight: Tensor, bias: Tensor, l2: float) -> Tensor:
    weight, bias = weight.clone().requires_grad_(), bias.clone().requires_grad_()
    loss = F.cross_entropy(F.linear(z.double(), weight, bias), y) + 0.5 * l2 * weight.square().sum()
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, (weight, bias))])


SHAPES = {
    "two-classes": (60, 5, 2),
    "more-classes": (44, 6, 4),
    "one-feature": (50, 1, 3),
    "more-features-than-rows": (20, 50, 3),
    "as-many": (20, 20, 2),
    "few-rows": (3, 10, 3),
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
every_l2 = pytest.mark.parametrize("l2", [1.0, 1e-2, 1e-5])


@pytest.fixture(params=["whitened", "not-whitened", "few-leading-axes-and-samples", "blocks", "blocks-not-whitened"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways that size decides between."""
    if "not-whitened" in request.param:
        monkeypatch.setattr(module, "WHITENED", 0)
    if "few" in request.param:
        monkeypatch.setattr(module, "LEADING", 8)
        monkeypatch.setattr(module, "SAMPLED", 10)
    if "blocks" in request.param:
        monkeypatch.setattr(module, "BYTES", 64 * 18)  # three rows of six features
    return str(request.param)


@every_shape
@every_l2
def test_the_gradient_is_zero(shape: tuple[int, int, int], l2: float, route: str, generator: torch.Generator) -> None:
    z, y = problem(*shape, generator)
    weight, bias = logistic_optimum(z, y, shape[2], l2=l2)
    size = (z - z.mean(0)).square().sum(1).mean().add(1).sqrt()
    # Around the mean of z, where weights and biases are not coupled; scikit-learn's own tests ask for 1e-4.
    found = gradient(z - z.mean(0), y, weight, bias + weight @ z.mean(0), l2)
    assert found.norm() <= 1.01 * module.TOLERANCE * size
    assert abs(float(bias.mean())) < 1e-9


@every_shape
@every_l2
def test_equals_scikit_learn(shape: tuple[int, int, int], l2: float, generator: torch.Generator) -> None:
    z, y = problem(*shape, generator, apart=0.5)
    weight, bias = logistic_optimum(z, y, shape[2], l2=l2)
    # Of two classes it holds one row of weights, the difference of our two: ‖w‖² for our ‖w/2‖² + ‖w/2‖².
    c = (2 if shape[2] == 2 else 1) / (l2 * len(y))
    model = LogisticRegression(C=c, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(z.numpy(), y.numpy())
    expected = torch.from_numpy(model.predict_proba(z.numpy()))
    torch.testing.assert_close((z @ weight.T + bias).softmax(1), expected, atol=1e-7, rtol=0)
    if shape[2] == 2:
        weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
    torch.testing.assert_close(weight, torch.from_numpy(model.coef_), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(bias, torch.from_numpy(model.intercept_), atol=1e-5, rtol=1e-5)


@every_l2
def test_separable_classes_have_an_optimum(l2: float, route: str, generator: torch.Generator) -> None:
    z, y = problem(40, 6, 3, generator, apart=20.0)
    weight, bias = logistic_optimum(z, y, 3, l2=l2)
    assert torch.isfinite(weight).all()
    assert gradient(z - z.mean(0), y, weight, bias + weight @ z.mean(0), l2).norm() < 1e-6
    if l2 < 1e-3:
        assert torch.equal((z @ weight.T + bias).argmax(1), y)


@pytest.mark.parametrize("width", [1e-6, 1e6])
def test_embeddings_of_any_width(width: float, generator: torch.Generator) -> None:
    z, y = problem(60, 5, 3, generator, width=width)
    weight, bias = logistic_optimum(z, y, 3, l2=1e-2 * width**2)
    near, near_bias = logistic_optimum(z / width, y, 3, l2=1e-2)
    expected = (z / width) @ near.T + near_bias
    torch.testing.assert_close(z @ weight.T + bias, expected, atol=1e-3 if width < 1 else 1e-5, rtol=1e-3)


def test_a_class_without_rows_is_out_of_the_question(generator: torch.Generator) -> None:
    z, y = problem(30, 4, 2, generator)
    expected, expected_bias = logistic_optimum(z, y, 2, l2=0.01)
    for labels, found in ((y, [0, 1]), (2 * y, [0, 2]), (y + 1, [1, 2])):
        weight, bias = logistic_optimum(z, labels, 3, l2=0.01)
        assert torch.equal(weight[found], expected)
        assert torch.equal(bias[found], expected_bias)
        (missing,) = {0, 1, 2} - set(found)
        assert bias[missing] == -torch.inf
        assert (weight[missing] == 0).all()
        again, _ = logistic_optimum(z, labels, 3, l2=0.01, start=(weight, bias))
        torch.testing.assert_close(again, weight, atol=1e-6, rtol=0)


def test_a_class_that_appears_after_the_start(generator: torch.Generator) -> None:
    z, y = problem(30, 4, 3, generator)
    start = logistic_optimum(z[y < 2], y[y < 2], 3, l2=0.01)
    found, expected = logistic_optimum(z, y, 3, l2=0.01, start=start), logistic_optimum(z, y, 3, l2=0.01)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@every_shape
def test_a_warm_start_ends_at_the_same_place(
    shape: tuple[int, int, int], route: str, generator: torch.Generator
) -> None:
    z, y = problem(*shape, generator)
    start = logistic_optimum(z + 0.05 * torch.randn(z.shape, generator=generator), y, shape[2], l2=0.01)
    found, expected = (logistic_optimum(z, y, shape[2], l2=0.01, start=x) for x in (start, None))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_a_warm_start_saves_work(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = []
    plain = module._conjugate_gradients

    def counted(*given: Any) -> tuple[Tensor, Tensor]:
        steps.append(given)
        return plain(*given)

    monkeypatch.setattr(module, "_conjugate_gradients", counted)
    z, y = problem(60, 5, 3, generator)
    layer = logistic_optimum(z, y, 3, l2=1e-4)
    cold = len(steps)
    logistic_optimum(z, y, 3, l2=1e-4, start=layer)
    assert cold > 3
    assert len(steps) == cold


def test_columns_that_say_nothing(route: str, generator: torch.Generator) -> None:
    z, y = problem(30, 4, 3, generator)
    expected, expected_bias = logistic_optimum(z, y, 3, l2=0.01)
    wide = torch.cat([torch.full((30, 2), 5.0, dtype=torch.float64), z], 1)
    weight, bias = logistic_optimum(wide, y, 3, l2=0.01)
    torch.testing.assert_close(weight[:, 2:], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(weight[:, :2], torch.zeros(3, 2, dtype=torch.float64), atol=1e-9, rtol=0)
    torch.testing.assert_close(bias, expected_bias, atol=1e-5, rtol=0)


@pytest.mark.parametrize("n", [30, 3])
def test_embeddings_that_are_all_the_same(n: int, route: str) -> None:
    y = torch.arange(n) % 3
    y[:1] = 1  # 9 of 0, 11 of 1, 10 of 2; or none of 0
    weight, bias = logistic_optimum(torch.ones(n, 4), y, 3, l2=0.01)
    assert weight.abs().max() < 1e-9
    torch.testing.assert_close(bias.softmax(0), y.bincount(minlength=3).double() / n, atol=1e-6, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_embedding_is_left_alone_and_counts_as_it_is(
    dtype: torch.dtype, route: str, generator: torch.Generator
) -> None:
    z, y = problem(30, 4, 3, generator)
    z = z.to(dtype)
    before = z.clone()
    weight, bias = logistic_optimum(z, y, 3, l2=0.01)
    assert torch.equal(z, before)
    assert weight.dtype == bias.dtype == torch.float64
    torch.testing.assert_close((weight, bias), logistic_optimum(z.double(), y, 3, l2=0.01), atol=1e-5, rtol=0)


def test_errors_say_what_is_wrong(generator: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    z, y = problem(30, 4, 3, generator)
    with pytest.raises(MarioError, match="needs training nodes of two classes, all are of class 1"):
        logistic_optimum(z, torch.ones_like(y), 3, l2=0.01)
    for l2 in (0.0, -1.0, float("nan")):
        with pytest.raises(MarioError, match=f"l2 must be a finite number above 0, got {l2}"):
            logistic_optimum(z, y, 3, l2=l2)
    monkeypatch.setattr(module, "STEPS", 1)
    with pytest.raises(MarioError, match="found no optimum in 1 Newton steps: try a larger l2"):
        logistic_optimum(z, y, 3, l2=0.01)


def test_where_all_axes_lead_the_preconditioner_undoes_the_hessian(generator: torch.Generator) -> None:
    z, y = problem(60, 5, 3, generator)
    loss = module._Loss(module._Rows(z), y, 1e-4)
    x = torch.randn(3, 6, generator=generator, dtype=torch.float64)
    p = (0.3 * loss.rows.logits(x)).softmax(0)
    x[:, -1] -= x[:, -1].mean()  # a constant in all biases is lost
    found = loss.preconditioner(p)(loss.curved(p, loss.rows.logits(x), x))
    torch.testing.assert_close(found, x, atol=1e-4, rtol=0)  # it is held from being singular


def test_the_hessian_is_that_of_autograd(route: str, generator: torch.Generator) -> None:
    z, y = problem(40, 5, 3, generator)
    rows = module._Rows(z)
    loss = module._Loss(rows, y, 0.1)
    x, v = torch.randn(2, 3, 6, generator=generator, dtype=torch.float64)
    turned = (z - z.mean(0)) if rows.basis is None else (z - z.mean(0)) @ rows.basis

    def value(x: Tensor) -> Tensor:
        return F.cross_entropy(F.linear(turned, x[:, :-1], x[:, -1]), y) + 0.05 * x[:, :-1].square().sum()

    expected, product = torch.autograd.functional.vhp(value, x, v)
    logits = rows.logits(x)
    assert loss.value(logits, x) == pytest.approx(float(expected), abs=1e-12)
    slope = torch.autograd.functional.jacobian(value, x)
    torch.testing.assert_close(loss.gradient(logits.softmax(0), x), slope, atol=1e-12, rtol=0)
    torch.testing.assert_close(loss.curved(logits.softmax(0), rows.logits(v), v), product, atol=1e-12, rtol=0)
