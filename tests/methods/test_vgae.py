"""VGAE: its loss is PyG's and Kipf & Welling's, its embedding the mean of the posterior."""

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.graphs.non_edges import sample_non_edges
from mario.methods import VGAE
from mario.methods.vgae import kl_to_standard_normal

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "batch_norm": False, "sampling": "full"}


class Both(nn.Module):
    """Our two heads, called as PyG calls its encoder."""

    def __init__(self, model: VGAE) -> None:
        super().__init__()
        self.model = model

    def forward(self, graph: Data) -> tuple[Tensor, Tensor]:
        return self.model.posterior(graph)


def noise_and_non_edges(graph: Data, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(80, 8, generator=generator)
    return noise, sample_non_edges(graph.edge_index, 80, graph.num_edges, generator)


def test_a_step_is_half_of_pygs_loss_at_the_same_weights_and_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    model = VGAE(**SMALL, kl_weight=0.5)
    graph = model.prepare(tiny_graph())
    model.double()  # and small, as PyG's log(1 − σ(s) + 1e-15) is off where σ saturates
    graph.x = graph.x.double() / 10
    noise, non_edges = noise_and_non_edges(graph, 5)
    monkeypatch.setattr(torch, "randn_like", lambda _: noise)
    theirs = torch_geometric.nn.VGAE(Both(model))
    wanted = theirs.recon_loss(theirs.encode(graph), graph.edge_index, non_edges) + theirs.kl_loss() / 80
    assert abs(2 * model.step(graph, torch.Generator().manual_seed(5))["loss"] - wanted.item()) < 1e-5


def test_the_papers_loss_at_the_same_weights_and_draws() -> None:
    model = VGAE(**SMALL, reconstruction="full")
    graph = model.prepare(tiny_graph())
    mean, log_std = model.posterior(graph)
    noise, _ = noise_and_non_edges(graph, 5)
    z = mean + noise * log_std.exp()
    label = torch.zeros(80, 80)
    label[graph.edge_index[0], graph.edge_index[1]] = 1
    others = 6400 - label.sum()
    likelihood = F.binary_cross_entropy_with_logits(
        z @ z.t(), label + torch.eye(80), pos_weight=others / label.sum()
    ) * (3200 / others)
    kl = 0.5 / 80 * (1 + 2 * log_std - mean**2 - log_std.exp() ** 2).sum(1).mean()  # their sign
    figures = model.step(graph, torch.Generator().manual_seed(5))
    assert abs(figures["loss"] - (likelihood - kl).item()) < 1e-5
    assert abs(figures["kl"] + kl.item()) < 1e-6


def test_divergence_against_torchs() -> None:
    mean, log_std = torch.tensor([[0.3, -1.0], [2.0, 0.0]]), torch.tensor([[0.1, -0.5], [0.0, 1.0]])
    normal = torch.distributions.Normal
    wanted = torch.distributions.kl_divergence(normal(mean, log_std.exp()), normal(0.0, 1.0)).sum(1).mean()
    torch.testing.assert_close(kl_to_standard_normal(mean, log_std), wanted)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_the_embedding_is_the_mean_and_layers_count_the_heads(num_layers: int) -> None:
    data = tiny_graph()
    model = VGAE(**{**SMALL, "num_layers": num_layers}, epochs=1).fit(data)
    assert sum("convs" in name and name.endswith("bias") for name, _ in model.named_parameters()) == num_layers + 1
    assert torch.equal(model.transform(data), model.posterior(data)[0])


def test_noise_comes_from_the_generator_and_only_in_training() -> None:
    model = VGAE(**SMALL)
    graph = model.prepare(tiny_graph())
    first, again, other = (model.step(graph, torch.Generator().manual_seed(seed))["loss"] for seed in (1, 1, 2))
    assert first == again != other
    assert torch.equal(model.transform(graph), model.transform(graph))


def test_only_seeds_count_for_the_divergence() -> None:
    model = VGAE(**SMALL)
    graph = model.prepare(tiny_graph())
    graph.seed_mask = torch.arange(80) < 40
    mean, log_std = model.posterior(graph)
    wanted = kl_to_standard_normal(mean[:40], log_std[:40]) / 40
    assert abs(model.step(graph, torch.Generator().manual_seed(0))["kl"] - wanted.item()) < 1e-7
