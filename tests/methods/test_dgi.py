"""DGI: its loss written out, its views, and the recipe over it."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from mario.encoders import propagation_matrix
from mario.errors import MarioError
from mario.methods import DGI, Recipe

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "epochs": 3, "steps_per_epoch": 2, "roots": 60}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("summary", ["sigmoid", "mean"])
def test_loss_of_a_step_written_out(summary: str, bias: bool) -> None:
    """Equations 1 to 4 with a GCN of one layer: logits D = Hᵀ W s, mean of −log D and −log(1 − D̃)."""
    model = DGI(hidden_channels=4, num_layers=1, summary=summary, discriminator_bias=bias)
    graph = model.prepare(tiny_graph(), seed=1, device="cpu")
    if bias:
        torch.nn.init.constant_(model.discriminator_.bias, 0.4)
    loss = model.step(graph, torch.Generator().manual_seed(5))["loss"]
    order = torch.randperm(80, generator=torch.Generator().manual_seed(5))

    adjacency = propagation_matrix(graph.edge_index, 80).to_dense()
    conv = model.encoder_.convs[0]
    h, corrupted = (F.relu(adjacency @ x @ conv.lin.weight.t() + conv.bias) for x in (graph.x, graph.x[order]))
    s = h.mean(0).sigmoid() if summary == "sigmoid" else h.mean(0)
    real, fake = (torch.einsum("na,ab,b->n", z, model.discriminator_.weight, s) + 0.4 * bias for z in (h, corrupted))
    expected = -(real.sigmoid().log().sum() + (1 - fake.sigmoid()).log().sum()) / 160
    assert loss == pytest.approx(expected.item(), abs=1e-6)


def test_the_first_view_is_the_graph_and_the_second_has_its_rows_shuffled() -> None:
    model = DGI(**SMALL)
    graph = model.prepare(tiny_graph())
    alpha, beta = model.make_views(graph, torch.Generator().manual_seed(0))
    assert torch.equal(alpha.x, graph.x)
    assert torch.equal(alpha.edge_index, graph.edge_index)
    assert torch.equal(beta.edge_index, graph.edge_index)
    assert not torch.equal(beta.x, graph.x)
    assert torch.equal(beta.x[beta.x[:, 2].argsort()], graph.x[graph.x[:, 2].argsort()])


def test_of_a_sampled_neighborhood_only_seeds_count() -> None:
    model = DGI(**SMALL)
    graph = model.prepare(tiny_graph())
    graph.seed_mask = torch.arange(80) < 10
    alpha, beta = model.make_views(graph, torch.Generator().manual_seed(0))
    assert model.encode(alpha).shape == model.encode(beta).shape == (10, 8)


def test_features_tell_real_from_corrupted_after_training() -> None:
    """Features that follow the communities: shuffled, a node's neighborhood is mixed, and that can be seen."""
    data = tiny_graph(nodes=120)
    data.x[:, 0] = data.y.float()
    model = DGI(**{**SMALL, "epochs": 40, "hidden_channels": 16, "lr": 1e-2}, sampling="full").fit(data)
    alpha, beta = model.make_views(data, torch.Generator().manual_seed(1))
    with torch.no_grad():
        h, corrupted = model.encode(alpha), model.encode(beta)
        s = h.mean(0).sigmoid()
        right = (model.discriminator_(h, s) > 0).sum() + (model.discriminator_(corrupted, s) < 0).sum()
    assert right / 240 > 0.8


def test_recipe_over_it_has_the_adversary_and_no_conditional_term() -> None:
    data = tiny_graph()
    model = Recipe(DGI(**SMALL), conditional=False, epsilon=0.05, ascent_steps=2)
    graph = model.prepare(data, seed=0, device="cpu")
    model.double()
    graph.x = graph.x.double()
    model.step(graph, torch.Generator().manual_seed(7))
    ours = {name: p.grad.clone() for name, p in model.named_parameters()}

    model.zero_grad()
    generator = torch.Generator().manual_seed(7)
    alpha, beta = model.make_views(graph, generator)
    delta = torch.empty_like(alpha.x).uniform_(-0.05, 0.05, generator=generator)
    for _ in range(2):
        delta = delta.detach().requires_grad_()
        h = model.encoder_(alpha.x + delta, alpha.edge_index)
        corrupted = model.encoder_(beta.x, beta.edge_index)
        (model.contrast(h, corrupted) / 2).backward()
        delta = delta + 0.05 * delta.grad / delta.grad.norm()
    for name, p in model.named_parameters():
        torch.testing.assert_close(ours[name], p.grad, atol=1e-10, rtol=1e-8, msg=name)
    assert not hasattr(model, "prototypes_")


def test_without_the_adversary_the_recipe_is_dgi_to_the_bit() -> None:
    data = tiny_graph()
    plain = DGI(**SMALL).fit(data, seed=4)
    bare = Recipe(DGI(**SMALL), adversarial=False, conditional=False).fit(data, seed=4)
    assert all(torch.equal(a, b) for a, b in zip(plain.state_dict().values(), bare.state_dict().values(), strict=True))


def test_one_node_without_batch_norm_and_one_with() -> None:
    one = Data(x=torch.ones(1, 4), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert torch.isfinite(DGI(**SMALL).fit(one).transform(one)).all()
    with pytest.raises(MarioError, match="one node"):
        DGI(**SMALL, batch_norm=True).fit(one)


def test_batch_norm_as_the_last_word_leaves_nothing_to_learn() -> None:
    """Logits of real and shuffled nodes then have the same mean: by Jensen's inequality the loss is log 2 or more."""
    model = DGI(**SMALL, batch_norm=True, last_activation=False)
    graph = model.prepare(tiny_graph())
    for seed in range(5):
        torch.nn.init.normal_(model.discriminator_.weight, generator=torch.Generator().manual_seed(seed))
        assert model.step(graph, torch.Generator().manual_seed(seed))["loss"] >= math.log(2)
