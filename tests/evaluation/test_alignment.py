"""Average and worst-case alignment: against a slow version, for every method, and within its bounds."""

import math

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.evaluation.alignment import distances, invariance, standard_views
from mario.methods import REGISTRY, Method, find
from methods.tiny import tiny_graph
from methods.tiny_graphs import tiny_graph_set


def fitted(name: str = "random-init", data: Data | None = None, **settings: object) -> Method:
    data = tiny_graph() if data is None else data
    small = {"hidden_channels": 6, "num_layers": 2, "epochs": 1, "steps_per_epoch": 1, **settings}
    return find(name).from_settings(small).fit(data)


def slowly(model: Method, data: Data, seed: int, pairs: int, epsilon: float, steps: int) -> dict[str, float]:
    """Node by node, the ascent by hand."""
    generator = torch.Generator().manual_seed(seed)
    first, second = standard_views()

    def apart(a: Data, b: Data) -> list[float]:
        u, v = model.transform(a).tolist(), model.transform(b).tolist()
        found = []
        for p, q in zip(u, v, strict=True):
            n, m = math.hypot(*p) or 1.0, math.hypot(*q) or 1.0
            found.append(sum((x / n - y / m) ** 2 for x, y in zip(p, q, strict=True)))
        return found

    drawn = [(first(data, generator), second(data, generator)) for _ in range(pairs)]
    found = [apart(*pair) for pair in drawn]
    alpha, beta = drawn[max(range(pairs), key=lambda k: sum(found[k]))]
    step = epsilon / (steps + 1)
    moved = alpha.clone()
    moved.x = alpha.x + (2 * torch.rand(alpha.x.shape, generator=generator) - 1) * step
    target = torch.nn.functional.normalize(model.transform(beta))
    for _ in range(steps):
        x = moved.x.clone().requires_grad_()
        z = torch.nn.functional.normalize(model.embed(Data(x=x, edge_index=alpha.edge_index)))
        (z - target).square().sum().backward()
        moved.x = moved.x + step * x.grad.sign()
    model.zero_grad()
    found.append(apart(moved, beta))
    nodes = range(data.num_nodes)
    return {
        "align_mean": sum(sum(part) for part in found[:-1]) / pairs / data.num_nodes,
        "align_worst": sum(max(part[i] for part in found) for i in nodes) / data.num_nodes,
    }


@pytest.mark.parametrize(("seed", "pairs", "epsilon", "steps"), [(0, 1, 0.5, 1), (3, 4, 0.1, 3), (8, 2, 0.0, 2)])
def test_against_a_slow_version(seed: int, pairs: int, epsilon: float, steps: int) -> None:
    data, model = tiny_graph(), fitted()
    found = invariance(model, data, seed=seed, pairs=pairs, epsilon=epsilon, steps=steps)
    assert found == pytest.approx(slowly(model, data, seed, pairs, epsilon, steps), rel=1e-5)


@pytest.mark.parametrize("name", [*REGISTRY, "costa+mario"])
def test_every_method_has_a_worst_case_that_is_no_better_than_the_mean(name: str) -> None:
    data = tiny_graph() if "node" in find(name).levels else tiny_graph_set()
    model = fitted(name, data)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    gradients = [(p, p.grad.clone()) for p in model.parameters() if p.grad is not None]
    state = torch.get_rng_state()
    x, keys = data.x.clone(), sorted(data.keys())
    found = invariance(model, data, seed=1)
    assert 0 <= found["align_mean"] <= found["align_worst"] <= 4
    assert found == invariance(model, data, seed=1) != invariance(model, data, seed=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(data.x, x)
    assert sorted(data.keys()) == keys
    assert all(torch.equal(p.grad, g) for p, g in gradients)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


@pytest.mark.parametrize("name", ["erm", "random-init", "raw-features"])
def test_sets_of_graphs_have_a_row_a_graph(name: str) -> None:
    data = tiny_graph_set()
    found = invariance(fitted(name, data), data)
    assert 0 < found["align_mean"] < found["align_worst"]


class Spy(mario.RandomInit):
    """Shows what it was given to embed, and may be blind."""

    def embed(self, data: Data) -> Tensor:
        self.__dict__.setdefault("seen", []).append(data)
        z = super().embed(data)
        return 0 * z + 1 if self.__dict__.get("blind") else z


def test_all_methods_are_shown_the_same_views_and_no_feature_moves_farther_than_epsilon() -> None:
    data = tiny_graph()
    one, two = (
        Spy(hidden_channels=hidden_channels, num_layers=2, epochs=1, steps_per_epoch=1).fit(data)
        for hidden_channels in (4, 9)
    )
    for model in (one, two):
        invariance(model, data, seed=5, pairs=1, epsilon=0.25, steps=3)
    first, second = standard_views()
    generator = torch.Generator().manual_seed(5)
    drawn = [first(data, generator), second(data, generator)]
    for model in (one, two):
        seen = model.__dict__["seen"]
        assert all(torch.equal(a.x, b.x) for a, b in zip(seen, drawn, strict=False))
        assert all(torch.equal(a.edge_index, b.edge_index) for a, b in zip(seen, drawn, strict=False))
        delta = (seen[-1].x - drawn[0].x).abs()
        assert 0.1 < delta.max() <= 0.25 + 1e-6


def test_an_embedding_that_sees_nothing_is_invariant() -> None:
    data = tiny_graph()
    model = Spy(hidden_channels=4, num_layers=1, epochs=1, steps_per_epoch=1).fit(data)
    model.__dict__["blind"] = True
    assert invariance(model, data) == {"align_mean": 0.0, "align_worst": 0.0}


def test_the_adversary_and_more_pairs_make_the_worst_case_worse() -> None:
    data, model = tiny_graph(), fitted()
    still = invariance(model, data, epsilon=0.0)
    moved = invariance(model, data, epsilon=1.0)
    assert moved["align_mean"] == still["align_mean"]
    assert moved["align_worst"] > still["align_worst"]
    assert invariance(model, data, epsilon=0.0, pairs=32)["align_worst"] > still["align_worst"]


def test_sparse_features_are_as_good_as_dense_ones() -> None:
    data, sparse = tiny_graph(), tiny_graph()
    sparse.x = data.x.to_sparse_csr()
    model = fitted()
    assert invariance(model, sparse, epsilon=0.1) == pytest.approx(invariance(model, data, epsilon=0.1), rel=1e-5)


def test_rows_are_of_unit_length_and_a_zero_row_stays_where_it_is() -> None:
    u = torch.tensor([[3.0, 0.0], [0.0, 0.5], [0.0, 0.0], [1.0, 1.0]])
    v = torch.tensor([[0.0, 2.0], [0.0, 7.0], [0.0, 1.0], [-2.0, -2.0]])
    torch.testing.assert_close(distances(u, v), torch.tensor([2.0, 0.0, 1.0, 4.0]))
    many = torch.randn(3000, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(distances(many, many.flip(0)), distances(many.flip(0), many))


def test_wrong_input() -> None:
    data = tiny_graph()
    with pytest.raises(MarioError, match="pairs must be an integer of at least 1, got 0"):
        invariance(fitted(), data, pairs=0)
    with pytest.raises(MarioError, match="not fitted yet"):
        invariance(mario.RandomInit(), data)
