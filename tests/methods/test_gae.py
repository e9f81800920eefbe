"""GAE: its loss is PyG's and Kipf & Welling's, and its embeddings tell edges from non-edges."""

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.non_edges import sample_non_edges
from mario.methods import GAE

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "batch_norm": False, "sampling": "full"}


def prepared(**settings: object) -> tuple[GAE, Data]:
    model = GAE(**{**SMALL, **settings})
    return model, model.prepare(tiny_graph())


def test_a_step_is_half_of_pygs_loss_at_the_same_weights_and_non_edges() -> None:
    model, graph = prepared()
    model.encoder_.convs[-1].lin.weight.data.mul_(0.1)  # PyG's log(1 − σ(s) + 1e-15) is off where σ saturates
    theirs = torch_geometric.nn.GAE(model.encoder_)
    non_edges = sample_non_edges(graph.edge_index, 80, graph.num_edges, torch.Generator().manual_seed(5))
    wanted = theirs.recon_loss(theirs.encode(graph.x, graph.edge_index), graph.edge_index, non_edges)
    loss = model.step(graph, torch.Generator().manual_seed(5))["loss"]
    assert abs(2 * loss - wanted.item()) < 1e-5


def test_full_is_the_weighted_cross_entropy_of_kipf_and_welling() -> None:
    model, graph = prepared(reconstruction="full")
    z = model.encoder_(graph.x, graph.edge_index)
    label = torch.zeros(80, 80)
    label[graph.edge_index[0], graph.edge_index[1]] = 1
    others = 6400 - label.sum()
    wanted = F.binary_cross_entropy_with_logits(z @ z.t(), label + torch.eye(80), pos_weight=others / label.sum()) * (
        3200 / others
    )
    assert abs(model.step(graph, torch.Generator())["loss"] - wanted.item()) < 1e-5


def test_sampled_estimates_full_but_for_the_diagonal() -> None:
    model, graph = prepared()
    z = model.encoder_(graph.x, graph.edge_index).detach()
    generator = torch.Generator().manual_seed(0)
    sampled = torch.stack([model.reconstruct(z, graph, generator) for _ in range(200)]).mean()
    s = z @ z.t()
    joined = torch.zeros(80, 80, dtype=torch.bool)
    joined[graph.edge_index[0], graph.edge_index[1]] = True
    apart = ~joined & ~torch.eye(80, dtype=torch.bool)
    torch.testing.assert_close(
        sampled, (F.softplus(-s[joined]).mean() + F.softplus(s[apart]).mean()) / 2, atol=2e-3, rtol=0
    )


def test_only_seeds_of_a_neighborhood_are_scored() -> None:
    model = GAE(**SMALL)
    graph = Data(x=torch.rand(4, 2), edge_index=torch.tensor([[0, 1, 3, 2], [1, 0, 0, 3]]))
    graph.seed_mask = torch.tensor([True, True, True, False])
    z = torch.tensor([[1.0], [2.0], [0.0], [100.0]])
    loss = model.reconstruct(z, graph, torch.Generator().manual_seed(0))
    edge, non_edge = F.softplus(torch.tensor(-2.0)), F.softplus(torch.tensor(0.0))  # all pairs with node 2 have s = 0
    torch.testing.assert_close(loss, (edge + non_edge) / 2)


@pytest.mark.parametrize("reconstruction", ["sampled", "full"])
def test_edges_score_above_non_edges_after_training(reconstruction: str) -> None:
    data = tiny_graph()
    model = GAE(**SMALL, epochs=30, steps_per_epoch=5, lr=1e-2, reconstruction=reconstruction).fit(data)
    z = model.transform(data)
    non_edges = sample_non_edges(data.edge_index, 80, 500, torch.Generator().manual_seed(0))
    edge, non_edge = ((z[a] * z[b]).sum(1) for a, b in (data.edge_index, non_edges))
    assert (edge.unsqueeze(1) > non_edge).float().mean() > 0.8


def test_one_node_has_no_pair() -> None:
    one = Data(x=torch.ones(1, 4), edge_index=torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(MarioError, match="cannot be trained on one node"):
        GAE(**SMALL).fit(one)
