"""ERM: its loss, and GraphSAINT's norms against the formulas with dense matrices."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.methods.irm import risks_and_slopes

from .tiny import tiny_graph
from .tiny_graphs import tiny_graph_set

SMALL = {"hidden_channels": 8, "num_layers": 2, "roots": 12, "epochs": 2, "steps_per_epoch": 3}


def ready(method: type[mario.ERM] = mario.ERM, **settings: object) -> tuple[mario.ERM, Data]:
    """A method in float64 and one batch that has training nodes, with its norms."""
    model = method(**{**SMALL, **settings})
    graph = model.prepare(tiny_graph(), seed=3)
    batch = model.sampler(graph).sample(torch.Generator().manual_seed(1))
    assert batch.num_nodes < graph.num_nodes
    assert batch.train_mask.sum() > 1
    for key, value in batch.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            batch[key] = value.double()
    model.double().train()
    return model, batch


def logits_by_hand(model: mario.ERM, batch: Data, weight: Tensor) -> Tensor:
    """Two GCN layers with the propagation D^-1/2 (W + I) D^-1/2, D the sum of the weights into a node and 1."""
    adjacency = torch.eye(batch.num_nodes, dtype=torch.float64)
    adjacency.index_put_((batch.edge_index[1], batch.edge_index[0]), weight, accumulate=True)
    scale = adjacency.sum(1).rsqrt()
    propagation = scale.unsqueeze(1) * adjacency * scale
    state = model.state_dict()
    h = batch.x
    for i in range(2):
        h = propagation @ h @ state[f"encoder_.convs.{i}.lin.weight"].t() + state[f"encoder_.convs.{i}.bias"]
        h = F.batch_norm(
            h, None, None, state[f"encoder_.norms.{i}.weight"], state[f"encoder_.norms.{i}.bias"], training=True
        )
        h = h.relu() if i == 0 else h
    return F.linear(h, state["head_.weight"], state["head_.bias"])


@pytest.mark.parametrize("edge_norm", ["none", "receiver", "sender"])
@pytest.mark.parametrize("node_norm", [False, True])
def test_the_loss_is_that_of_the_formula(node_norm: bool, edge_norm: str) -> None:
    model, batch = ready(node_norm=node_norm, edge_norm=edge_norm)
    assert ("edge_norm" in batch) == (node_norm or edge_norm != "none")
    ones = torch.ones(batch.edge_index.size(1), dtype=torch.float64)
    logits = logits_by_hand(model, batch, ones if edge_norm == "none" else batch.edge_norm)
    losses = [(logits[i].logsumexp(0) - logits[i, batch.y[i]]).item() for i in batch.train_mask.nonzero().view(-1)]
    if node_norm:
        expected = sum(
            norm * loss for norm, loss in zip(batch.node_norm[batch.train_mask].tolist(), losses, strict=True)
        )
    else:
        expected = sum(losses) / len(losses)
    assert model.step(batch, torch.Generator())["loss"] == pytest.approx(expected, rel=1e-12)


def test_edge_norms_multiply_the_weights_that_a_graph_has() -> None:
    model, batch = ready(edge_norm="receiver")
    batch.edge_weight = torch.rand(batch.edge_index.size(1), generator=torch.Generator().manual_seed(0)).double() + 0.5
    logits = logits_by_hand(model, batch, batch.edge_norm * batch.edge_weight)
    expected = F.cross_entropy(logits[batch.train_mask], batch.y[batch.train_mask])
    assert model.step(batch, torch.Generator())["loss"] == pytest.approx(expected.item(), rel=1e-12)


def test_sender_and_receiver_are_the_two_counts_over_that_of_the_edge() -> None:
    norms = []
    for edge_norm in ("receiver", "sender"):
        model = mario.ERM(**SMALL, edge_norm=edge_norm)
        graph = model.prepare(tiny_graph(), seed=3)
        norms.append(model.sampler(graph).edge_norm)
    there, back = graph.edge_index.tolist(), graph.edge_index.flip(0).tolist()
    place = {edge: i for i, edge in enumerate(zip(*there, strict=True))}
    flipped = [place[edge] for edge in zip(*back, strict=True)]
    assert not torch.equal(*norms)
    assert torch.equal(norms[0], norms[1][flipped]), "an edge and its reverse are in the same subgraphs"


def test_norms_come_from_the_seed() -> None:
    model = mario.ERM(**SMALL, node_norm=True)
    first, again, other = (model.sampler(model.prepare(tiny_graph(), seed=seed)).node_norm for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    one, two = (mario.ERM(**SMALL, node_norm=True, edge_norm="sender").fit(tiny_graph(), seed=5) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))


def test_embedding_uses_no_norms() -> None:
    model = mario.ERM(**SMALL, node_norm=True, edge_norm="sender").fit(tiny_graph())
    plain = mario.ERM(**SMALL)
    plain.prepare(tiny_graph())
    plain.load_state_dict(model.state_dict())
    assert torch.equal(model.transform(tiny_graph()), plain.transform(tiny_graph()))


@pytest.mark.parametrize("risk", ["environments", "nodes"])
def test_irm_weights_the_risks_of_nodes_alike(risk: str) -> None:
    model, batch = ready(mario.IRM, node_norm=True, edge_norm="sender", risk=risk, penalty=2.0)
    known = batch.train_mask
    batch.env_id = torch.arange(batch.num_nodes) % 2
    logits, y, environments = logits_by_hand(model, batch, batch.edge_norm)[known], batch.y[known], batch.env_id[known]
    weights = batch.node_norm[known] * known.sum()
    risks, slopes = [], []
    for environment in (0, 1):
        here = environments == environment
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        value = (weights[here] * F.cross_entropy(scale * logits[here], y[here], reduction="none")).mean()
        risks.append(value.detach())
        slopes.append(torch.autograd.grad(value, scale)[0])
    mean = (
        torch.stack(risks).mean()
        if risk == "environments"
        else (weights * F.cross_entropy(logits, y, reduction="none")).mean()
    )
    expected = mean + 2.0 * torch.stack(slopes).square().mean()
    assert model.step(batch, torch.Generator())["loss"] == pytest.approx(expected.item(), rel=1e-10)
    torch.testing.assert_close(risks_and_slopes(logits, y, environments, weights)[0], torch.stack(risks))


@pytest.mark.parametrize("sampling", ["full", "neighbors", "clusters"])
@pytest.mark.parametrize("norm", [{"node_norm": True}, {"edge_norm": "sender"}])
def test_norms_without_random_walks_are_refused(norm: dict[str, object], sampling: str) -> None:
    with pytest.raises(MarioError, match=f"need sampling='random_walk', got sampling='{sampling}': use that, or"):
        mario.ERM(sampling=sampling, **norm)
    model = mario.ERM(**norm)
    with pytest.raises(MarioError, match="need sampling='random_walk'"):
        model.sampling = sampling


def test_norms_are_refused_where_they_have_no_meaning() -> None:
    with pytest.raises(MarioError, match="one graph with random walks, got a set of graphs"):
        mario.ERM(**SMALL, node_norm=True).fit(tiny_graph_set())
    with pytest.raises(MarioError, match="edge_norm weights edges, which the encoder gat cannot: use edge_norm='none'"):
        mario.ERM(**SMALL, encoder="gat", edge_norm="sender").fit(tiny_graph())
    with pytest.raises(MarioError, match="edge_norm must be one of none, receiver, sender, got 'both'"):
        mario.ERM(edge_norm="both")
    assert {"node_norm", "edge_norm"}.isdisjoint(mario.EERM().get_params()), "its graphs are edited, not sampled"
