"""The IRMv1 penalty, and what it does to a feature that is spurious."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.data import Data

from mario.methods import ERM, IRM
from mario.methods.irm import risks_and_slopes

from .tiny import tiny_graph


def slow(logits: torch.Tensor, y: torch.Tensor, environments: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Section 3.1 of the paper, by automatic differentiation with respect to w."""
    risks, slopes = [], []
    for e in sorted(set(environments.tolist())):
        w = torch.ones((), dtype=logits.dtype, requires_grad=True)
        risk = F.cross_entropy(w * logits[environments == e], y[environments == e])
        risks.append(risk)
        slopes.append(torch.autograd.grad(risk, w, create_graph=True)[0])
    return torch.stack(risks), torch.stack(slopes)


def one_step(model: IRM | ERM, data: Data) -> tuple[dict[str, float], torch.Tensor]:
    graph = model.prepare(data)
    model.train()
    values = model.step(graph, torch.Generator().manual_seed(0))
    return values, torch.cat([p.grad.flatten() for p in model.parameters()])


class TestRisksAndSlopes:
    def test_equal_what_autograd_gives(self, generator: torch.Generator) -> None:
        logits = torch.randn(9, 3, generator=generator, dtype=torch.float64)
        y = torch.tensor([0, 1, 2, 0, 1, 2, 0, 1, 2])
        environments = torch.tensor([5, 5, 0, 0, 0, 5, 2, 5, 0])
        for ours, theirs in zip(risks_and_slopes(logits, y, environments), slow(logits, y, environments), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)

    def test_the_penalty_has_the_gradient_of_the_second_derivative(self, generator: torch.Generator) -> None:
        logits = torch.randn(6, 3, generator=generator, dtype=torch.float64, requires_grad=True)
        y, environments = torch.tensor([0, 1, 2, 0, 1, 2]), torch.tensor([0, 0, 1, 1, 1, 1])
        ours, theirs = (
            torch.autograd.grad(function(logits, y, environments)[1].square().mean(), logits)[0]
            for function in (risks_and_slopes, slow)
        )
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
        assert torch.autograd.gradcheck(lambda z: risks_and_slopes(z, y, environments), logits)

    def test_by_hand(self) -> None:
        # z = (a, 0) and y = 0: R(w) = log(1 + e^(-wa)), R'(1) = -a / (1 + e^a).
        a = 2.0
        risks, slopes = risks_and_slopes(torch.tensor([[a, 0.0]]), torch.tensor([0]), torch.tensor([3]))
        assert risks.item() == pytest.approx(math.log(1 + math.exp(-a)))
        assert slopes.item() == pytest.approx(-a / (1 + math.exp(a)))


class TestStep:
    def test_without_penalty_and_with_one_environment_it_is_erm(self) -> None:
        settings = {"hidden_channels": 4, "num_layers": 1, "batch_norm": False}
        erm, by_erm = one_step(ERM(**settings), tiny_graph())
        irm, by_irm = one_step(IRM(penalty=0.0, **settings), tiny_graph())
        assert irm["loss"] == pytest.approx(erm["loss"])
        torch.testing.assert_close(by_irm, by_erm)

    @pytest.mark.parametrize("risk", ["environments", "nodes"])
    def test_loss_and_gradient_by_the_formula(self, risk: str) -> None:
        data = tiny_graph()
        data.env_id = torch.where(data.train_mask, (torch.arange(80) % 7 == 0).long(), -1)
        model = IRM(hidden_channels=4, num_layers=1, penalty=3.0, risk=risk)
        values, gradient = one_step(model, data)
        known = data.train_mask
        logits = model.head_(model.encoder_(data.x, data.edge_index))[known]
        risks, slopes = slow(logits, data.y[known], data.env_id[known])
        assert risks.numel() == 2
        mean = risks.mean() if risk == "environments" else F.cross_entropy(logits, data.y[known])
        loss = mean + 3.0 * slopes.square().mean()
        assert values["loss"] == pytest.approx(loss.item(), rel=1e-5)
        assert values["penalty"] == pytest.approx(slopes.square().mean().item(), rel=1e-5)
        expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)

    def test_an_environment_without_nodes_in_the_batch_does_not_count(self) -> None:
        data, renamed = tiny_graph(), tiny_graph()
        data.env_id = torch.where(data.train_mask, torch.arange(80) % 2, -1)
        renamed.env_id = torch.where(data.train_mask, 10 * (torch.arange(80) % 2), -1)
        first, second = (one_step(IRM(hidden_channels=4), graph)[0] for graph in (data, renamed))
        assert first == second

    def test_without_environments_all_training_nodes_are_one(self) -> None:
        data, bare = tiny_graph(), tiny_graph()
        del bare.env_id
        assert one_step(IRM(hidden_channels=4), bare)[0] == one_step(IRM(hidden_channels=4), data)[0]

    def test_a_batch_without_training_nodes_gives_nothing(self) -> None:
        model = IRM(hidden_channels=4)
        graph = model.prepare(tiny_graph())
        graph.train_mask = torch.zeros(80, dtype=torch.bool)
        assert model.step(graph, torch.Generator()) == {}


def test_leans_less_on_a_feature_that_only_some_environments_reward() -> None:
    """Colored points: the shape is right three times out of four in both environments, the color 19 times out of 20
    in one and three out of four in the other. ERM trusts the color, IRM the shape."""
    generator = torch.Generator().manual_seed(0)
    n = 1000
    y = torch.arange(n) % 2
    env_id = torch.arange(n) * 2 // n

    def agrees(rate: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.rand(n, generator=generator) < rate, y, 1 - y)

    shape = agrees(torch.full((n,), 0.75))
    color = agrees(torch.where(env_id == 0, 0.95, 0.75))
    x = torch.stack([shape, color], dim=1).float() * 2 - 1
    edge_index = torch.empty(2, 0, dtype=torch.long)
    train_mask = torch.ones(n, dtype=torch.bool)
    data = Data(x=x, edge_index=edge_index, y=y, env_id=env_id, train_mask=train_mask)
    flipped = Data(x=x * torch.tensor([1.0, -1.0]), edge_index=edge_index)
    settings = {
        "hidden_channels": 8,
        "num_layers": 1,
        "batch_norm": False,
        "sampling": "full",
        "epochs": 30,
        "lr": 1e-2,
    }
    right = {}
    for model in (ERM(**settings), IRM(penalty=300.0, **settings)):
        right[model.name] = (model.fit(data).predict(flipped).argmax(dim=1) == y).float().mean().item()
    assert right["erm"] < 0.3
    assert right["irm"] > 0.6
