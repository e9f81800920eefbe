"""COSTA: the paper's loss and its authors' on the same sketch, one view and two, and Z under the recipe."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.contrast import sketch
from mario.methods import COSTA

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "steps_per_epoch": 2, "roots": 60}


def built(**settings: object) -> tuple[COSTA, Data]:
    model = COSTA(**{**SMALL, **settings})
    graph = model.prepare(tiny_graph(), seed=0)
    model.train()
    return model, graph


def paper(u: Tensor, v: Tensor, tau: float) -> Tensor:
    """Eq. 3 in both directions with cosines, negatives j ≠ i in both views as the text says, to minimize."""
    u, v = F.normalize(u), F.normalize(v)
    losses = []
    for a, b in ((u, v), (v, u)):
        across, within = (a @ b.t() / tau).exp(), (a @ a.t() / tau).exp()
        losses.append(-(across.diag() / (across.sum(1) + within.sum(1) - within.diag())).log().mean())
    return (losses[0] + losses[1]) / 2


def authors(u: Tensor, v: Tensor, tau: float) -> Tensor:
    """DualBranchContrast over InfoNCE in the authors' model/COSTA.py: negatives in the other view only."""
    scores = F.normalize(u) @ F.normalize(v).t() / tau
    return -(scores.log_softmax(1).diag().mean() + scores.t().log_softmax(1).diag().mean()) / 2


@pytest.mark.parametrize("negatives", ["both", "other"])
@pytest.mark.parametrize("activation", ["relu", "elu", "prelu"])
@pytest.mark.parametrize("density", [1.0, 0.2])
def test_loss_is_of_the_sketch_with_the_same_p_for_both_views(negatives: str, activation: str, density: float) -> None:
    model, graph = built(negatives=negatives, projector_activation=activation, ratio=0.3, sketch_density=density)
    alpha, beta = model.make_views(graph, torch.Generator().manual_seed(1))
    ours = model.contrast(model.encode(alpha), model.encode(beta), torch.Generator().manual_seed(2))
    p = sketch(torch.eye(80), 24, density=density, generator=torch.Generator().manual_seed(2))
    u, v = (model.projector_(p @ model.encoder_(view.x, view.edge_index)) for view in (alpha, beta))
    expected = {"both": paper, "other": authors}[negatives](u, v, 0.4)
    torch.testing.assert_close(ours, expected)
    slopes = [torch.autograd.grad(loss, list(model.parameters()), allow_unused=True) for loss in (ours, expected)]
    for a, b in zip(*slopes, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_single_view_pushes_the_rows_of_one_sketch_apart() -> None:
    """COSTA_SV: U = V, so every positive is a constant e^{1/τ} and one encoding is enough."""
    model, graph = built(multi_view=False, dropout=0.5)
    calls = []
    model.encoder_.register_forward_hook(lambda *_: calls.append(1))
    loss = model.step(graph, torch.Generator().manual_seed(3))["loss"]
    assert len(calls) == 1
    generator = torch.Generator().manual_seed(3)
    alpha, beta = model.make_views(graph, generator)
    assert alpha is beta
    h = model.encoder_(alpha.x, alpha.edge_index, generator=generator)
    u = F.normalize(model.projector_(sketch(torch.cat([h, h], 1), 40, generator=generator)[:, :8]))
    power = (u @ u.t() / 0.4).exp()
    expected = -(power.diag() / (2 * power.sum(1) - power.diag())).log().mean()
    assert loss == pytest.approx(expected.item(), abs=1e-5)


def test_graph_augmentation_can_be_left_out() -> None:
    """Row 3 of the paper's Table 4: feature augmentation alone."""
    off = {"mask_features_1": 0.0, "mask_features_2": 0.0, "drop_edges_1": 0.0, "drop_edges_2": 0.0}
    model, graph = built(multi_view=False, **off)
    alpha, _ = model.make_views(graph, torch.Generator().manual_seed(3))
    assert torch.equal(alpha.x, graph.x)
    assert torch.equal(alpha.edge_index, graph.edge_index)
    first, second = (model.step(graph, torch.Generator().manual_seed(seed))["loss"] for seed in (1, 2))
    assert first != second  # the sketch is what differs


def test_rows_of_the_sketch() -> None:
    model, _ = built(ratio=1e-6)
    h = torch.randn(10, 8, generator=torch.Generator().manual_seed(0))
    # One row has no negatives, and nothing to learn from: there are two at least, however small the ratio.
    assert model.contrast((h, h), (h, h * 2), torch.Generator().manual_seed(0)).item() > 1e-3
    more, graph = built(ratio=1.5)
    assert more.step(graph, torch.Generator().manual_seed(0))["loss"] > 0


@pytest.mark.parametrize("multi_view", [True, False])
def test_recipe_conditions_on_projected_nodes(multi_view: bool) -> None:
    recipe = mario.Recipe(COSTA(**SMALL, multi_view=multi_view), clusters=4, gamma=0.5, adversarial=False)
    graph = recipe.prepare(tiny_graph(), seed=0)
    recipe.train()
    loss = recipe.step(graph, torch.Generator().manual_seed(1))["loss"]
    generator = torch.Generator().manual_seed(1)
    alpha, beta = (recipe.encode(view) for view in recipe.make_views(graph, generator))
    torch.testing.assert_close(alpha[0], recipe.projector_(alpha[1]))
    expected = recipe.contrast(alpha, beta, generator) - 0.5 * recipe.conditional_term(alpha[0], beta[0])
    assert loss == pytest.approx(expected.item(), abs=1e-5)


def test_without_both_parts_the_recipe_is_costa_to_the_bit() -> None:
    data = tiny_graph()
    for multi_view in (True, False):
        host = COSTA(**SMALL, multi_view=multi_view)
        bare = mario.Recipe(host, adversarial=False, conditional=False).fit(data, seed=4).state_dict()
        plain = host.fit(data, seed=4).state_dict()
        assert plain.keys() == bare.keys()
        assert all(torch.equal(plain[key], bare[key]) for key in plain)


def test_the_adversary_makes_one_view_harder_even_where_both_are_the_same() -> None:
    recipe = mario.Recipe(COSTA(**SMALL, multi_view=False), clusters=4, epsilon=0.5, conditional=False)
    graph = recipe.prepare(tiny_graph(), seed=0)
    recipe.train()
    hard = recipe.step(graph, torch.Generator().manual_seed(1))["loss"]
    plain = COSTA(**SMALL, multi_view=False)
    plain.prepare(tiny_graph(), seed=0)
    plain.train()
    assert hard > plain.step(graph, torch.Generator().manual_seed(1))["loss"]
