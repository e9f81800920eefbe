"""BGRL: its loss by hand, its target, and what the recipe and a checkpoint must leave alone."""

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import mario
from mario.methods import BGRL, find
from mario.training import train

from .tiny import tiny_graph

SMALL = {
    "hidden_channels": 8,
    "num_layers": 2,
    "epochs": 3,
    "steps_per_epoch": 2,
    "roots": 60,
    "predictor_hidden_channels": 6,
}


def built(**settings: object) -> tuple[BGRL, Data]:
    model = BGRL(**{**SMALL, **settings})
    graph = model.prepare(tiny_graph(), seed=0)
    model.train()
    return model, graph


def test_loss_is_two_minus_both_cosines() -> None:
    """As in the authors' train_transductive.py: each view's prediction against the other view's target."""
    model, graph = built()
    alpha, beta = model.make_views(graph, torch.Generator().manual_seed(1))
    first, second = copy.deepcopy(model.predictor_[0]), copy.deepcopy(model.predictor_[2])
    slope = model.predictor_[1].weight

    def predict(view: Data) -> torch.Tensor:
        inner = first(model.encoder_(view.x, view.edge_index))
        return second(torch.where(inner > 0, inner, slope * inner))

    y_alpha, y_beta = (model.target_(view.x, view.edge_index) for view in (alpha, beta))
    expected = 2.0
    for prediction, target in ((predict(alpha), y_beta), (predict(beta), y_alpha)):
        expected -= (F.normalize(prediction) * F.normalize(target)).sum(1).mean().item()
    ours = model.contrast(model.encode(alpha), model.encode(beta))
    assert ours.item() == pytest.approx(expected, abs=1e-6)


def test_target_starts_elsewhere_and_gets_no_gradient() -> None:
    model, graph = built()
    assert not torch.equal(model.target_.convs[0].lin.weight, model.encoder_.convs[0].lin.weight)
    model.step(graph, torch.Generator().manual_seed(1))
    assert all(p.grad is None for p in model.target_.parameters())
    assert all(p.grad is not None for p in (*model.encoder_.parameters(), *model.predictor_.parameters()))


@pytest.mark.parametrize(
    ("schedule", "step", "momentum"), [("cosine", 0, 0.9), ("cosine", 5, 0.95), ("constant", 5, 0.9)]
)
def test_target_follows_by_the_scheduled_momentum(schedule: str, step: int, momentum: float) -> None:
    model, _ = built(momentum=0.9, momentum_schedule=schedule)
    before = [p.clone() for p in model.target_.parameters()]
    model.after_step(step, 10)
    for old, online, new in zip(before, model.encoder_.parameters(), model.target_.parameters(), strict=True):
        torch.testing.assert_close(new, momentum * old + (1 - momentum) * online)


def test_momentum_is_one_at_the_end() -> None:
    model, _ = built(momentum=0.0)
    before = [p.clone() for p in model.target_.parameters()]
    model.after_step(1_000_000, 1_000_000)
    assert all(torch.equal(a, b) for a, b in zip(before, model.target_.parameters(), strict=True))


@pytest.mark.parametrize("name", ["bgrl", "bgrl+mario"])
def test_the_optimizer_moves_encoder_and_predictor_only(name: str) -> None:
    model = find(name).from_settings({**SMALL, **({"clusters": 4} if "+" in name else {})})
    model.prepare(tiny_graph(), seed=0)
    moved = {id(p) for group in model.optimizer().param_groups for p in group["params"]}
    names = {name.split(".")[0] for name, p in model.named_parameters() if id(p) in moved}
    assert names == {"encoder_", "predictor_"}
    assert isinstance(model.optimizer(), torch.optim.AdamW)


def test_seeds_of_a_neighborhood_are_the_rows_of_all_three() -> None:
    model, graph = built()
    graph.seed_mask = torch.arange(80) < 7
    side = model.encode(graph)
    assert [part.shape for part in side] == [(7, 8)] * 3
    whole = copy.copy(graph)
    del whole.seed_mask
    for part, full in zip(side, model.encode(whole), strict=True):
        torch.testing.assert_close(part, full[:7])


@pytest.mark.parametrize("perturb", ["alpha", "both"])
def test_recipe_conditions_on_the_online_embeddings(perturb: str) -> None:
    recipe = mario.Recipe(BGRL(**SMALL), clusters=4, gamma=0.5, epsilon=0.0, ascent_steps=1, perturb=perturb)
    graph = recipe.prepare(tiny_graph(), seed=0)
    recipe.train()
    loss = recipe.step(graph, torch.Generator().manual_seed(1))["loss"]
    ours = {name: p.grad.clone() for name, p in recipe.named_parameters() if p.grad is not None}
    recipe.zero_grad()
    alpha, beta = (recipe.encode(view) for view in recipe.make_views(graph, torch.Generator().manual_seed(1)))
    expected = recipe.contrast(alpha, beta) - 0.5 * recipe.conditional_term(alpha[0], beta[0])
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-5)
    for name, p in recipe.named_parameters():
        assert (p.grad is None) == (name not in ours)
        if p.grad is not None:
            torch.testing.assert_close(ours[name], p.grad, atol=1e-5, rtol=1e-4, msg=name)


def test_it_learns_what_it_is_asked() -> None:
    """Views of four columns differ too much from step to step to compare losses of different steps: the same views."""
    model, graph = built(epochs=30, lr=1e-2)

    def loss() -> float:
        generator = torch.Generator().manual_seed(9)
        with torch.no_grad():
            sides = [[model.encode(view) for view in model.make_views(graph, generator)] for _ in range(10)]
            return sum(model.contrast(*pair).item() for pair in sides) / 10

    before = loss()
    for _ in train(model, graph, seed=0):
        pass
    model.train()
    assert loss() < before - 0.5
    assert not math.isnan(before)
