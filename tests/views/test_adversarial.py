"""`AdversarialFeatures` against lines 5 to 12 of Algorithm 1, written out."""

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.transforms import Compose

from mario.errors import MarioError
from mario.graphs.features import Features, Perturbed
from mario.views.adversarial import AdversarialFeatures

EPSILON = 0.05


class Network(nn.Module):
    """A small encoder and projector, smooth so that ascent is ascent."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.g = GCNConv(4, 5).double()
            self.p = nn.Linear(5, 3).double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.p(self.g(x, edge_index).tanh())


def contrast(u: Tensor, v: Tensor) -> Tensor:
    u, v = nn.functional.normalize(u), nn.functional.normalize(v)
    return nn.functional.cross_entropy(u @ v.T / 0.5, torch.arange(len(u)))


def two_views(*, sparse: bool = False) -> tuple[Data, Data]:
    generator = torch.Generator().manual_seed(4)
    views = []
    for _ in range(2):
        x = torch.randn(6, 4, generator=generator, dtype=torch.float64)
        x = x * (torch.rand(6, 4, generator=generator) < 0.6)
        edge_index = torch.randint(6, (2, 12), generator=generator)
        views.append(Data(x=x.to_sparse_csr() if sparse else x, edge_index=edge_index))
    return views[0], views[1]


def uniform(shape: torch.Size, generator: torch.Generator) -> Tensor:
    return torch.empty(shape, dtype=torch.float64).uniform_(-EPSILON, EPSILON, generator=generator)


def moved(delta: Tensor, gradient: Tensor, step: str) -> Tensor:
    if step == "sign":
        return delta + EPSILON * torch.sign(gradient)
    return delta + EPSILON * gradient / gradient.pow(2).sum().sqrt()


def algorithm_1(M: int, step: str, both: bool) -> tuple[list[Tensor], list[float], list[Tensor]]:
    """The gradients ħ_M of θ and ω, the M losses, and δ_M of the perturbed views."""
    net = Network()
    parameters = list(net.parameters())
    alpha, beta = two_views()
    generator = torch.Generator().manual_seed(9)
    deltas = [uniform(alpha.x.shape, generator)] + ([uniform(beta.x.shape, generator)] if both else [])  # line 5
    total = [torch.zeros_like(p) for p in parameters]  # line 6
    losses = []
    for _ in range(M):  # line 7
        leaves = [d.clone().requires_grad_() for d in deltas]
        z_alpha = net(alpha.x + leaves[0], alpha.edge_index)  # line 8
        z_beta = net(beta.x + leaves[1] if both else beta.x, beta.edge_index)  # line 9
        loss = contrast(z_alpha, z_beta)
        gradients = torch.autograd.grad(loss, parameters + leaves)
        total = [h + g / M for h, g in zip(total, gradients[: len(parameters)], strict=True)]  # line 10
        deltas = [moved(d, g, step) for d, g in zip(deltas, gradients[len(parameters) :], strict=True)]  # lines 11, 12
        losses.append(loss.item())
    return total, losses, deltas


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("both", [False, True], ids=["alpha", "both"])
@pytest.mark.parametrize("step", ["frobenius", "sign"])
@pytest.mark.parametrize("M", [1, 3])
def test_gradients_and_losses_are_those_of_algorithm_1(M: int, step: str, both: bool, sparse: bool) -> None:
    net = Network()
    alpha, beta = two_views(sparse=sparse)
    clean_beta = two_views()[1]

    def loss(*views: Data) -> Tensor:
        a, b = views if both else (*views, clean_beta)
        return contrast(net(a.x, a.edge_index), net(b.x, b.edge_index))

    adversary = AdversarialFeatures(EPSILON, M, step)  # type: ignore[arg-type]
    losses = adversary.ascend(loss, [alpha, beta] if both else [alpha], torch.Generator().manual_seed(9))
    gradients, expected, _ = algorithm_1(M, step, both)
    assert [value.item() for value in losses] == pytest.approx(expected, abs=1e-12)
    assert not any(value.requires_grad for value in losses)
    for parameter, gradient in zip(net.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-10, rtol=0)


SIZES = torch.tensor([0.3, 0.0, 0.01, 1.5], dtype=torch.float64)  # the second column is not perturbed


def written_out(M: int, step: str, gradients: str, both: bool, epsilon: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """The gradients of the parameters, and δ at the end, with ε per column; each pass by plain autograd."""
    net = Network()
    parameters = list(net.parameters())
    alpha, beta = two_views()
    generator = torch.Generator().manual_seed(9)
    deltas = [
        torch.empty(6, 4, dtype=torch.float64).uniform_(-1, 1, generator=generator) * epsilon
        for _ in range(2 if both else 1)
    ]

    def passed(leaves: list[Tensor]) -> tuple[Tensor, ...]:
        z_alpha = net(alpha.x + leaves[0], alpha.edge_index)
        z_beta = net(beta.x + leaves[1] if both else beta.x, beta.edge_index)
        return torch.autograd.grad(contrast(z_alpha, z_beta), parameters + leaves)

    trained = []
    for _ in range(M):
        found = passed([d.clone().requires_grad_() for d in deltas])
        trained.append(found[: len(parameters)])
        for i, gradient in enumerate(found[len(parameters) :]):
            if step == "sign":
                deltas[i] = deltas[i] + epsilon * gradient.sign()
            else:
                moved = deltas[i] + min(1.0, 2.5 / M) * epsilon * gradient.sign()
                deltas[i] = torch.minimum(torch.maximum(moved, -epsilon), epsilon)
    if gradients == "last":
        trained = [passed([d.clone().requires_grad_() for d in deltas])[: len(parameters)]]
    return [torch.stack(of_one).mean(0) for of_one in zip(*trained, strict=True)], deltas


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("both", [False, True], ids=["alpha", "both"])
@pytest.mark.parametrize("step", ["sign", "projected_sign"])
@pytest.mark.parametrize("gradients", ["every", "last"])
@pytest.mark.parametrize("M", [1, 3, 5])
def test_sign_steps_with_an_epsilon_per_column_are_the_formula(
    M: int, gradients: str, step: str, both: bool, sparse: bool
) -> None:
    net = Network()
    alpha, beta = two_views(sparse=sparse)
    clean_beta = two_views()[1]
    passes: list[bool] = []

    def loss(*views: Data) -> Tensor:
        a, b = views if both else (*views, clean_beta)
        passes.append(a.x.requires_grad)
        return contrast(net(a.x, a.edge_index), net(b.x, b.edge_index))

    adversary = AdversarialFeatures(SIZES, M, step, gradients=gradients)  # type: ignore[arg-type]
    losses = adversary.ascend(loss, [alpha, beta] if both else [alpha], torch.Generator().manual_seed(9))
    expected, deltas = written_out(M, step, gradients, both, SIZES)
    assert passes == [True] * (M if gradients == "last" else M - 1) + [False]
    assert len(losses) == (1 if gradients == "last" else M)
    for parameter, gradient in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-10, rtol=0)
    if not both:
        view = AdversarialFeatures(SIZES, M, step, loss)  # type: ignore[arg-type]
        harder = view(two_views(sparse=sparse)[0], torch.Generator().manual_seed(9))
        torch.testing.assert_close(harder.x - two_views()[0].x, deltas[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("in_parts", [False, True], ids=["matrix", "in parts"])
def test_after_frobenius_steps_the_last_pass_alone_trains(in_parts: bool) -> None:
    """Also for features in parts, whose δ is kept in factors that all passes add to."""
    alpha, _ = two_views(sparse=in_parts)
    weight = torch.eye(4, dtype=torch.float64).requires_grad_()
    generator = torch.Generator().manual_seed(9)
    x = two_views()[0].x + uniform(alpha.x.shape, generator)
    if in_parts:
        alpha.x = Features(alpha.x)
        x = Perturbed(alpha.x, EPSILON, generator.manual_seed(9)).matrix()  # draws δ₀ in another way

    def loss(view: Data) -> Tensor:
        product = view.x @ weight.t() if isinstance(view.x, Tensor) else view.x.times(weight)
        return contrast(product.tanh(), two_views()[1].x)

    adversary = AdversarialFeatures(EPSILON, 2, gradients="last")
    (value,) = adversary.ascend(loss, [alpha], torch.Generator().manual_seed(9))
    for _ in range(2):
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(loss(Data(x=x)), x)
        x = x + EPSILON * slope / slope.norm()
    expected = loss(Data(x=x.detach()))
    torch.testing.assert_close(value, expected.detach(), atol=1e-12, rtol=0)
    torch.testing.assert_close(weight.grad, torch.autograd.grad(expected, weight)[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize("M", [1, 2, 7])
def test_projected_steps_stay_within_the_bound_and_reach_it(M: int, generator: torch.Generator) -> None:
    x = torch.randn(50, 4, generator=generator)
    x[:, 1] = 7.0
    view = AdversarialFeatures(SIZES.float(), M, "projected_sign", lambda d: (d.x * d.x.detach().sin()).sum())
    delta = view(Data(x=x, num_nodes=50), generator).x - x
    assert (delta.abs() <= SIZES + 1e-6).all()
    assert torch.equal(delta[:, 1], torch.zeros(50)), "a column of size 0 keeps its bits"
    assert (delta.abs()[:, 3] > 1.5 - 1e-5).float().mean() > (0.4 if M == 1 else 0.9)
    assert not delta[:, 0].eq(0).any()


def test_ascent_alone_leaves_no_gradient_at_the_parameters() -> None:
    """Else a loss that needs a frozen network for its ascent would move it."""
    net = Network()
    alpha, beta = two_views()
    seen: list[list[Tensor | None]] = []

    def loss(view: Data) -> Tensor:
        seen.append([p.grad for p in net.parameters()])
        return contrast(net(view.x, view.edge_index), net(beta.x, beta.edge_index))

    AdversarialFeatures(0.1, 3, "sign", gradients="last").ascend(loss, [alpha], torch.Generator().manual_seed(0))
    assert seen == [[None] * 4] * 4
    assert all(p.grad is not None for p in net.parameters())


def test_gradients_add_to_what_is_there(generator: torch.Generator) -> None:
    weight = torch.tensor([2.0], requires_grad=True)
    weight.grad = torch.tensor([100.0])
    data = Data(x=torch.ones(1, 1), num_nodes=1)
    AdversarialFeatures(0.0, 3).ascend(lambda view: (view.x * weight).sum(), [data], generator)
    assert weight.grad.item() == pytest.approx(101.0)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("step", ["frobenius", "sign"])
def test_as_a_transform_it_ends_at_the_last_perturbation(step: str, sparse: bool) -> None:
    net = Network()
    alpha, _ = two_views(sparse=sparse)
    beta = two_views()[1]

    def loss(view: Data) -> Tensor:
        return contrast(net(view.x, view.edge_index), net(beta.x, beta.edge_index))

    view = AdversarialFeatures(EPSILON, 3, step, loss)  # type: ignore[arg-type]
    harder = view(alpha, torch.Generator().manual_seed(9))
    (delta,) = algorithm_1(3, step, both=False)[2]
    torch.testing.assert_close(harder.x, two_views()[0].x + delta, atol=1e-10, rtol=0)
    assert not harder.x.requires_grad
    assert all(parameter.grad is None for parameter in net.parameters())
    assert delta.abs().max() <= 4 * EPSILON


def test_in_a_pyg_compose_it_draws_from_the_default_generator() -> None:
    data = two_views()[0]
    view = AdversarialFeatures(EPSILON, 2, loss=lambda d: d.x.pow(2).sum())
    with torch.random.fork_rng():
        torch.manual_seed(3)
        composed = Compose([view])(data)
    assert torch.equal(composed.x, view(data, torch.Generator().manual_seed(3)).x)


class TestStart:
    def test_is_uniform_within_epsilon(self, generator: torch.Generator) -> None:
        data = Data(x=torch.full((200, 50), 7.0, dtype=torch.float64), num_nodes=200)
        (started,) = AdversarialFeatures(EPSILON).start([data], generator)
        delta = (started.x.detach() - 7.0) / EPSILON
        assert -1 <= delta.min() < -0.99
        assert 0.99 < delta.max() <= 1
        assert delta.mean().item() == pytest.approx(0, abs=0.02)
        assert delta.var().item() == pytest.approx(1 / 3, abs=0.01)  # the variance of U(-1, 1)

    def test_views_get_different_noise(self, generator: torch.Generator) -> None:
        data = two_views()[0]
        one, two = AdversarialFeatures(EPSILON).start([data, data], generator)
        assert not torch.equal(one.x, two.x)

    def test_sparse_features_with_repeated_entries_add_up(self, generator: torch.Generator) -> None:
        x = torch.sparse_csr_tensor(
            torch.tensor([0, 0, 3]),
            torch.tensor([1, 1, 0]),
            torch.tensor([1.0, 2.0, 5.0]),
            (2, 2),
            check_invariants=False,
        )
        (started,) = AdversarialFeatures(0.0).start([Data(x=x)], generator)
        assert started.x.tolist() == [[0, 0], [5, 3]]

    def test_is_drawn_from_the_generator_alone(self) -> None:
        data = two_views()[0]
        state = torch.get_rng_state()
        one, two, other = (
            AdversarialFeatures(EPSILON).start([data], torch.Generator().manual_seed(seed))[0].x for seed in (1, 1, 2)
        )
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(one, two)
        assert not torch.equal(one, other)


@pytest.mark.parametrize("step", ["frobenius", "sign"])
def test_ascent_makes_the_view_harder(step: str) -> None:
    net = Network()
    alpha, beta = two_views()

    def loss(view: Data) -> Tensor:
        return contrast(net(view.x, view.edge_index), net(beta.x, beta.edge_index))

    adversary = AdversarialFeatures(1e-3, 5, step, loss)  # type: ignore[arg-type]
    values = adversary.ascend(loss, [alpha], torch.Generator().manual_seed(0))
    assert all(later > earlier for earlier, later in pairwise(values))
    assert loss(adversary(alpha, torch.Generator().manual_seed(0))) > values[-1] > loss(alpha)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_input_is_left_alone(sparse: bool, generator: torch.Generator) -> None:
    data, before = two_views(sparse=sparse)[0], two_views(sparse=sparse)[0]
    x = data.x
    adversary = AdversarialFeatures(EPSILON, 2, loss=lambda d: d.x.pow(3).sum())
    adversary(data, generator)
    adversary.ascend(lambda d: d.x.pow(3).sum(), [data], generator)
    assert data.x is x
    assert not data.x.requires_grad
    assert torch.equal(data.x.to_dense(), before.x.to_dense())
    assert torch.equal(data.edge_index, before.edge_index)


FLAT: list[Callable[[Data], Tensor]] = [lambda d: (d.x * 0).sum(), lambda d: d.x.clamp(50, 60).sum()]


@pytest.mark.parametrize("flat", FLAT)
@pytest.mark.parametrize("step", ["frobenius", "sign"])
@pytest.mark.parametrize("epsilon", [1e-3, 10.0])
def test_where_the_loss_is_flat_nothing_moves(
    flat: Callable[[Data], Tensor], step: str, epsilon: float, generator: torch.Generator
) -> None:
    data = Data(x=torch.ones(2, 3), num_nodes=2)
    adversary = AdversarialFeatures(epsilon, 2, step, flat)  # type: ignore[arg-type]
    state = generator.get_state()
    (started,) = adversary.start([data], generator)
    generator.set_state(state)
    assert torch.equal(adversary(data, generator).x, started.x)


@pytest.mark.parametrize("step", ["frobenius", "sign"])
def test_a_gradient_that_is_one_number_for_all_entries(step: str, generator: torch.Generator) -> None:
    # The gradient of a sum is a single number that autograd expands to the shape of x.
    data = Data(x=torch.zeros(4, 1), num_nodes=4)
    adversary = AdversarialFeatures(0.5, 1, step, lambda d: d.x.sum())  # type: ignore[arg-type]
    state = generator.get_state()
    (started,) = adversary.start([data], generator)
    generator.set_state(state)
    moved_by = 0.5 if step == "sign" else 0.5 / 2
    torch.testing.assert_close(adversary(data, generator).x, started.x.detach() + moved_by)


@pytest.mark.parametrize("size", [1e-30, 1e-20, 1e20, 1e30])
def test_the_step_is_as_long_for_a_gradient_whose_squares_do_not_fit(size: float) -> None:
    data = Data(x=torch.randn(6, 4, generator=torch.Generator().manual_seed(1)), edge_index=torch.zeros(2, 1).long())

    def ascended(factor: float) -> Tensor:
        adversary = AdversarialFeatures(EPSILON, 3, loss=lambda view: (view.x.sin() * factor).sum())
        moved: Tensor = adversary(data, torch.Generator().manual_seed(2)).x
        return moved

    torch.testing.assert_close(ascended(size), ascended(1.0))


def test_a_view_that_the_loss_does_not_touch_stays(generator: torch.Generator) -> None:
    alpha, beta = two_views()
    seen: list[Tensor] = []

    def loss(a: Data, b: Data) -> Tensor:
        seen.append(b.x.detach().clone())
        return a.x.pow(2).sum()

    AdversarialFeatures(EPSILON, 2).ascend(loss, [alpha, beta], generator)
    assert torch.equal(seen[0], seen[1])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a finite number of at least 0, got -1.0"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number of at least 0, got nan"),
        ({"epsilon": float("inf")}, "epsilon must be a finite number of at least 0, got inf"),
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"step": "l1"}, "step must be 'frobenius', 'sign' or 'projected_sign', got 'l1'"),
        ({"gradients": "first"}, "gradients must be 'every' or 'last', got 'first'"),
        ({"epsilon": torch.tensor([0.1, -1.0]), "step": "sign"}, "epsilon per column must be finite numbers"),
        ({"epsilon": torch.ones(2, 2), "step": "sign"}, "epsilon per column must be finite numbers"),
        ({"epsilon": torch.ones(2)}, "epsilon per column needs step 'sign' or 'projected_sign', got 'frobenius'"),
    ],
)
def test_bad_arguments_are_named(bad: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        AdversarialFeatures(**bad)  # type: ignore[arg-type]


def test_an_epsilon_for_other_columns_is_named(generator: torch.Generator) -> None:
    view = AdversarialFeatures(torch.ones(3), step="sign", loss=lambda d: d.x.sum())
    with pytest.raises(MarioError, match="epsilon must be one number or 4, one per column, got 3"):
        view(two_views()[0], generator)


def test_a_transform_needs_a_loss(generator: torch.Generator) -> None:
    with pytest.raises(MarioError, match="needs a function to ascend: pass loss="):
        AdversarialFeatures()(two_views()[0], generator)
