"""GraphMAE: what is masked, what the decoder may see, and its loss by hand."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from mario.contrast import scaled_cosine_error
from mario.methods import GraphMAE

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 2, "batch_norm": False, "sampling": "full"}
PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
GRAPH = Data(edge_index=PATH, num_nodes=3)


def built(in_channels: int = 4, **settings: object) -> GraphMAE:
    model = GraphMAE(**{**SMALL, **settings})
    model.place(in_channels, 0)
    nn.init.constant_(model.mask_token_, 7.0)
    return model


@pytest.mark.parametrize(("mask_rate", "masked"), [(0.0, 1), (0.25, 5), (0.5, 10), (1.0, 20)])
def test_as_many_nodes_get_the_token_as_are_masked(mask_rate: float, masked: int) -> None:
    x = torch.rand(20, 4)
    nodes, corrupted = built(mask_rate=mask_rate, replace_rate=0.0).corrupt(x, torch.Generator().manual_seed(0))
    assert nodes.unique().numel() == masked
    assert (corrupted[nodes] == 7).all()
    kept = torch.ones(20, dtype=torch.bool).index_fill(0, nodes, False)
    assert torch.equal(corrupted[kept], x[kept])


def test_some_masked_nodes_get_the_features_of_another() -> None:
    x = torch.arange(40.0).view(40, 1).expand(40, 4)
    nodes, corrupted = built(mask_rate=0.5, replace_rate=0.25).corrupt(x, torch.Generator().manual_seed(0))
    token = (corrupted == 7).all(1) & (x != 7).all(1)
    moved = (corrupted != x).any(1)
    assert nodes.numel() == 20
    assert token.sum() == 15
    assert 15 < moved.sum() <= 20
    assert (corrupted[:, 0] == corrupted[:, 1]).all()  # whole rows, of nodes of this graph
    assert moved[~torch.zeros(40, dtype=torch.bool).index_fill(0, nodes, True)].sum() == 0


def test_the_token_learns_and_so_does_everything_else() -> None:
    model = GraphMAE(**SMALL)
    model.step(model.prepare(tiny_graph()), torch.Generator().manual_seed(0))
    assert all(p.grad is not None and p.grad.any() for name, p in model.named_parameters() if "bias" not in name)


@pytest.mark.parametrize("decoder", ["gcn", "gat"])
def test_masked_embeddings_are_hidden_from_the_decoder(decoder: str) -> None:
    model = built(decoder=decoder)
    h, masked = torch.rand(3, 8), torch.tensor([0])
    other = h.index_fill(0, masked, 5.0)
    assert torch.equal(model.decode(h, GRAPH, masked, masked), model.decode(other, GRAPH, masked, masked))
    seen = h.index_fill(0, torch.tensor([1]), 5.0)
    assert not torch.equal(model.decode(h, GRAPH, masked, masked), model.decode(seen, GRAPH, masked, masked))


def test_an_mlp_sees_only_its_own_node_and_is_not_masked_again() -> None:
    model = built(decoder="mlp")
    h, masked = torch.rand(3, 8), torch.tensor([0])
    assert torch.equal(model.decode(h, GRAPH, masked, masked), model.decoder_(h[:1]))


def test_the_decoder_is_a_gcn_layer() -> None:
    model = built()
    layer = GCNConv(8, 4)
    layer.lin.weight, layer.bias = model.decoder_.weight, model.decoder_.bias
    nn.init.normal_(layer.bias)
    h, masked = torch.rand(3, 8), torch.tensor([2, 0])
    torch.testing.assert_close(
        model.decode(h, GRAPH, masked, masked), layer(h.index_fill(0, masked, 0.0), PATH)[masked]
    )


@pytest.mark.parametrize(("decoder", "encoder", "key"), [("gcn", "gcn", "edge_weight"), ("gat", "gat", "edge_attr")])
def test_the_decoder_uses_the_edge_data_that_the_encoder_uses(decoder: str, encoder: str, key: str) -> None:
    model = GraphMAE(**SMALL, decoder=decoder, encoder=encoder)
    model.place(4, 0, edge_channels=2 if key == "edge_attr" else 0)
    h, masked = torch.rand(3, 8), torch.tensor([1])
    values = torch.rand(4, 2) if key == "edge_attr" else torch.rand(4)
    graph = Data(edge_index=PATH, num_nodes=3, **{key: values})
    other = Data(edge_index=PATH, num_nodes=3, **{key: values.flip(0)})
    assert not torch.equal(model.decode(h, graph, masked, masked), model.decode(h, other, masked, masked))


def test_the_loss_by_hand() -> None:
    model = built(exponent=2.0, replace_rate=0.0, mask_rate=0.4)
    graph = Data(x=torch.rand(3, 4), edge_index=PATH)
    (masked,) = torch.randperm(3, generator=torch.Generator().manual_seed(3))[:1].tolist()
    x = graph.x.clone()
    x[masked] = 7.0
    h = model.encoder_to_decoder_(model.encoder_(x, PATH))
    h = h * (torch.arange(3) != masked).unsqueeze(1)
    step = torch.tensor([[1 / 2, 6**-0.5, 0], [6**-0.5, 1 / 3, 6**-0.5], [0, 6**-0.5, 1 / 2]])
    rebuilt = model.decoder_(step @ h)[masked]
    wanted = (1 - nn.functional.cosine_similarity(rebuilt, graph.x[masked], dim=0)) ** 2
    assert model.step(graph, torch.Generator().manual_seed(3))["loss"] == pytest.approx(wanted.item(), abs=1e-6)


def test_edges_are_dropped_for_the_encoder_alone() -> None:
    model = built(drop_edges=1.0, replace_rate=0.0, mask_rate=0.4)
    graph = Data(x=torch.rand(3, 4), edge_index=PATH)
    masked, x = model.corrupt(graph.x, torch.Generator().manual_seed(3))
    h = model.encoder_to_decoder_(model.encoder_(x, PATH[:, :0]))
    wanted = scaled_cosine_error(model.decode(h, GRAPH, masked, masked), graph.x[masked], 3.0)
    assert model.step(graph, torch.Generator().manual_seed(3))["loss"] == pytest.approx(wanted.item(), abs=1e-6)
    assert graph.num_edges == 4


def test_only_seeds_of_a_neighborhood_are_scored() -> None:
    model = built(mask_rate=1.0, replace_rate=0.0)
    graph = Data(x=torch.rand(3, 4), edge_index=PATH, seed_mask=torch.tensor([True, False, False]))
    first = model.step(graph, torch.Generator().manual_seed(0))["loss"]
    graph.x[1:] = torch.rand(2, 4)
    assert model.step(graph, torch.Generator().manual_seed(0))["loss"] == first
    graph.seed_mask[:] = False
    assert model.step(graph, torch.Generator().manual_seed(0)) == {}
