"""SwAV on graphs: its loss as Facebook's code has it, its centers, and how long they wait."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import mario
from mario.methods import SwAV, find
from mario.training import train

from .tiny import tiny_graph

SMALL = {
    "hidden_channels": 8,
    "num_layers": 2,
    "epochs": 3,
    "steps_per_epoch": 2,
    "roots": 60,
    "centers": 5,
    "centers_wait": 0,
}


def built(**settings: object) -> tuple[SwAV, Data]:
    model = SwAV(**{**SMALL, **settings})
    graph = model.prepare(tiny_graph(), seed=0)
    model.train()
    return model, graph


def even(scores: torch.Tensor, epsilon: float) -> torch.Tensor:
    """Algorithm of the paper's Appendix A.1 on the K × B matrix."""
    q = (scores / epsilon).exp().t()
    q = q / q.sum()
    for _ in range(3):
        q = q / q.sum(1, keepdim=True) / q.size(0)
        q = q / q.sum(0, keepdim=True) / q.size(1)
    return (q * q.size(1)).t().detach()


def test_loss_and_gradients_are_the_papers() -> None:
    model, graph = built()
    alpha, beta = model.make_views(graph, torch.Generator().manual_seed(1))
    u, v = model.encode(alpha), model.encode(beta)
    centers = model.centers_.weight.detach().clone().requires_grad_()
    s_u, s_v = F.normalize(u) @ centers.t(), F.normalize(v) @ centers.t()
    q_u, q_v = even(s_u, 0.05), even(s_v, 0.05)
    expected = 0.0
    for q, s in ((q_v, s_u), (q_u, s_v)):
        expected = expected - (q * (s / 0.1).log_softmax(1)).sum(1).mean() / 2
    (slope,) = torch.autograd.grad(expected, centers, retain_graph=True)
    ours = model.contrast(u, v)
    torch.testing.assert_close(ours, expected)
    # The gradient has its part along each center: it does not pass through their scaling to unit length.
    torch.testing.assert_close(torch.autograd.grad(ours, model.centers_.weight)[0], slope)


def test_centers_are_at_unit_length_after_each_step() -> None:
    model, graph = built(lr=0.1)
    start = None
    for _ in train(model, graph, seed=0):
        lengths = model.centers_.weight.norm(dim=1)
        torch.testing.assert_close(lengths, torch.ones(5))
        assert start is None or not torch.equal(start, model.centers_.weight)
        start = model.centers_.weight.detach().clone()


@pytest.mark.parametrize("name", ["swav", "swav+mario"])
def test_centers_wait_and_then_move(name: str) -> None:
    given = {**SMALL, "centers_wait": 4, "epochs": 4, "steps_per_epoch": 1}
    model = find(name).from_settings({**given, **({"clusters": 4} if "+" in name else {})})
    graph = model.prepare(tiny_graph(), seed=0)
    start = model.centers_.weight.detach().clone()
    encoder = model.encoder_.convs[0].lin.weight.detach().clone()
    for _ in train(model, graph, seed=0):
        pass
    torch.testing.assert_close(model.centers_.weight.detach(), start)
    assert not torch.equal(model.encoder_.convs[0].lin.weight, encoder)
    model.step(graph, torch.Generator().manual_seed(0))  # the fifth step
    assert model.centers_.weight.grad is not None


def test_the_wait_outlives_a_kill(tmp_path) -> None:
    settings = {**SMALL, "epochs": 4, "centers_wait": 6}
    whole = SwAV(**settings).fit(tiny_graph(), seed=3)
    stopped = SwAV(**settings)
    for epoch in train(stopped, stopped.prepare(tiny_graph(), seed=3), seed=3, folder=tmp_path, checkpoints=4):
        if epoch.number == 3:
            break  # the checkpoint is of epoch 2, while the centers wait
    resumed = SwAV(**settings).fit(tiny_graph(), seed=3, folder=tmp_path)
    assert torch.equal(whole.centers_.weight, resumed.centers_.weight)
    assert int(resumed.steps_done_) == 8


def test_centers_are_moved_by_the_main_optimizer_and_prototypes_of_the_recipe_are_not() -> None:
    recipe = mario.Recipe(SwAV(**SMALL), clusters=4)
    recipe.prepare(tiny_graph(), seed=0)
    moved = {id(p) for p in recipe.trained()}
    names = {name.split(".")[0] for name, p in recipe.named_parameters() if id(p) in moved}
    assert names == {"encoder_", "projector_", "centers_"}


def test_views_end_up_at_the_same_of_several_centers() -> None:
    """Neither all nodes at one center nor views at different ones, where views differ in edges only."""
    model, graph = built(epochs=60, lr=1e-2, mask_features_1=0.0, mask_features_2=0.0)
    for _ in train(model, graph, seed=0):
        pass
    alpha, beta = model.make_views(graph, torch.Generator().manual_seed(5))
    model.eval()
    with torch.no_grad():
        first, second = model.centers_.assign(model.encode(alpha)), model.centers_.assign(model.encode(beta))
    assert first.bincount(minlength=5).min() >= 5
    assert (first == second).float().mean() > 0.5
