"""Calling encoders of any kind: what they are given, and what is left untouched."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, PNA, GraphSAGE

from mario import encoders
from mario.encoders.apply import dense, encode, encoder_width, takes
from mario.errors import MarioError
from mario.graphs.features import Features

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


class Seen(nn.Module):
    """Keeps its inputs."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        self.inputs = x, edge_index, edge_weight
        return x


class Plain(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x


@pytest.mark.parametrize("kind", ["dense", "sparse", "parts", "masked parts"])
def test_a_foreign_encoder_gets_plain_tensors(kind: str) -> None:
    x = torch.rand(3, 4)
    kept = torch.tensor([True, False, True, True])
    given = {
        "dense": x,
        "sparse": x.to_sparse_csr(),
        "parts": Features(x.to_sparse_csr()),
        "masked parts": Features(x, kept),
    }[kind]
    module = Seen()
    encode(module, Data(x=given, edge_index=EDGES))
    seen, edge_index, edge_weight = module.inputs
    assert seen.layout == torch.strided
    assert torch.equal(seen, x * kept if kind == "masked parts" else x)
    assert edge_index is EDGES
    assert edge_weight is None


def test_edge_weights_go_by_name_to_those_who_take_them() -> None:
    data = Data(x=torch.rand(3, 4), edge_index=EDGES, edge_weight=torch.rand(3), edge_attr=torch.rand(3, 2))
    module = Seen()
    encode(module, data)
    assert module.inputs[2] is data.edge_weight
    assert torch.equal(encode(Plain(), data), data.x)
    theirs = GCN(4, 8, num_layers=2)
    assert torch.equal(encode(theirs, data), theirs(data.x, EDGES, edge_weight=data.edge_weight))
    attention = GAT(4, 8, num_layers=2, edge_dim=2)
    assert torch.equal(encode(attention, data), attention(data.x, EDGES, edge_attr=data.edge_attr))


def test_what_is_taken_is_declared_or_in_the_signature() -> None:
    assert (takes(GCN(4, 8, 1), "edge_weight"), takes(GCN(4, 8, 1), "edge_attr")) == (True, False)
    attention = GAT(4, 8, 1, edge_dim=2)
    assert (takes(attention, "edge_weight"), takes(attention, "edge_attr")) == (False, True)
    assert not takes(GAT(4, 8, 1), "edge_attr"), "PyG's would not read it"
    degrees = torch.tensor([0, 3])
    assert not takes(PNA(4, 8, 1, aggregators=["mean"], scalers=["identity"], deg=degrees), "edge_attr")
    assert (takes(encoders.GAT(4), "edge_attr"), takes(encoders.GAT(4, edge_dim=2), "edge_attr")) == (False, True)
    assert takes(encoders.GCN(4), "edge_weight")
    assert (takes(Seen(), "edge_weight"), takes(Seen(), "edge_attr")) == (True, False)
    assert not takes(Plain(), "edge_weight")


def test_dropout_is_drawn_from_the_generator_and_the_default_one_is_left_alone() -> None:
    data, module = Data(x=torch.ones(50, 4), edge_index=EDGES), GCN(4, 8, num_layers=2, dropout=0.5)
    before = torch.get_rng_state()
    first, again, other = (encode(module, data, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)
    generator = torch.Generator().manual_seed(0)
    assert not torch.equal(encode(module, data, generator), encode(module, data, generator)), "a new draw for each call"


@pytest.mark.parametrize(
    ("module", "width"),
    [
        (GCN(4, 16, num_layers=2), 16),
        (GraphSAGE(4, 16, num_layers=2, out_channels=5), 5),
        (GAT(-1, 16, num_layers=2, heads=2), 16),
        (PNA(4, 8, 1, aggregators=["mean"], scalers=["identity"], deg=torch.tensor([0, 3])), 8),
        (encoders.GIN(4, hidden_channels=7), 7),
        (Plain(), 4),
    ],
)
def test_the_width_is_found_by_trying(module: nn.Module, width: int) -> None:
    module.train()
    assert encoder_width(module, 4) == width
    assert module.training


def test_the_width_with_edge_attributes() -> None:
    module = PNA(4, 8, 1, aggregators=["mean"], scalers=["identity"], deg=torch.tensor([0, 3]), edge_dim=3)
    assert encoder_width(module, 4, edge_channels=3) == 8


class OneRow(nn.Module):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x.sum(0, keepdim=True)


def test_modules_that_are_no_encoders_are_named() -> None:
    with pytest.raises(MarioError, match="GCN cannot be applied to a graph with 5 features per node: mat1 and mat2"):
        encoder_width(GCN(4, 16, num_layers=2), 5)
    with pytest.raises(MarioError, match=r"one row of real numbers for each of 2 nodes, got .* \(1, 4\)"):
        encoder_width(OneRow(), 4)
    with pytest.raises(
        MarioError, match=r"Linear cannot be applied to a graph with 4 features per node: .* positional"
    ):
        encoder_width(nn.Linear(4, 4), 4)


def test_one_node_and_batch_norm_is_one_clear_error() -> None:
    module = GCN(4, 8, num_layers=2, norm="batch_norm")
    with pytest.raises(MarioError, match="GCN cannot be trained on one row"):
        encode(module, Data(x=torch.ones(1, 4), edge_index=EDGES[:, :0]))


def test_dense_of_dense_is_itself() -> None:
    x = torch.rand(2, 2)
    assert dense(x) is x
