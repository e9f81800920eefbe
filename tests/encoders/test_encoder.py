"""Every encoder against the same stack of plain PyG convolutions, and what its switches do."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from mario.encoders import ENCODERS, Encoder, propagation_matrix
from mario.errors import MarioError
from mario.graphs.features import Features

every_encoder = pytest.mark.parametrize("kind", list(ENCODERS))
NODES, FEATURES = 9, 6


def graph(seed: int = 0) -> tuple[Tensor, Tensor]:
    """Directed, with repeated edges, self-loops and a node (8) without any edge; half of the features are zero."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(NODES, FEATURES, generator=generator) < 0.5)
    edge_index = torch.randint(NODES - 1, (2, 20), generator=generator)
    return x, torch.cat([edge_index, edge_index[:, :3], torch.tensor([[1], [1]])], 1)


def make(
    kind: str, in_channels: int = FEATURES, *, hidden_channels: int = 5, seed: int = 0, **switches: object
) -> Encoder:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder = ENCODERS[kind](in_channels, hidden_channels=hidden_channels, **switches).double()  # type: ignore[arg-type]
        for parameter in encoder.parameters():  # biases and batch norm start at 0 and 1, which would hide mistakes
            nn.init.normal_(parameter, std=0.5)
        return encoder


def plain_convolution(kind: str, ours: nn.Module, in_channels: int, out_channels: int) -> nn.Module:
    made = {
        "gcn": lambda: GCNConv(in_channels, out_channels, normalize=True),
        "sage": lambda: SAGEConv(in_channels, out_channels, aggr="mean"),
        "gat": lambda: GATConv(in_channels, out_channels, heads=1),
        "gin": lambda: GINConv(copy.deepcopy(ours.nn)),  # type: ignore[arg-type]
    }[kind]()
    made.double().load_state_dict(ours.state_dict())
    return made


@every_encoder
@pytest.mark.parametrize("num_layers", [1, 2, 4])
@pytest.mark.parametrize("hidden_channels", [1, 7])
def test_equals_a_stack_of_plain_convolutions(kind: str, num_layers: int, hidden_channels: int) -> None:
    x, edge_index = graph()
    encoder = make(kind, hidden_channels=hidden_channels, num_layers=num_layers, batch_norm=False)
    expected = x
    for i, conv in enumerate(encoder.convs):
        expected = plain_convolution(kind, conv, expected.size(1), hidden_channels)(expected, edge_index)
        if i < num_layers - 1:
            expected = expected.clamp_min(0)
    out = encoder(x, edge_index)
    assert out.shape == (NODES, hidden_channels)
    torch.testing.assert_close(out, expected)


@every_encoder
def test_weight_gradients_equal_those_of_plain_convolutions(kind: str) -> None:
    x, edge_index = graph()
    encoder = make(kind, num_layers=2, batch_norm=False)
    plain = [plain_convolution(kind, c, i, 5) for c, i in zip(encoder.convs, (FEATURES, 5), strict=True)]
    encoder(x, edge_index).square().sum().backward()
    plain[1](plain[0](x, edge_index).relu(), edge_index).square().sum().backward()
    for ours, theirs in zip(encoder.convs, plain, strict=True):
        expected = dict(theirs.named_parameters())
        for name, parameter in ours.named_parameters():
            torch.testing.assert_close(parameter.grad, expected[name].grad)


@every_encoder
def test_sparse_features_equal_dense_ones_with_gradients(kind: str) -> None:
    x, edge_index = graph()
    one, two = make(kind, num_layers=2), make(kind, num_layers=2)
    dense, sparse = one(x, edge_index), two(x.to_sparse_csr(), edge_index)
    torch.testing.assert_close(sparse, dense)
    dense.square().sum().backward()
    sparse.square().sum().backward()
    for (name, left), right in zip(one.named_parameters(), two.parameters(), strict=True):
        assert right.grad is not None, name
        torch.testing.assert_close(right.grad, left.grad, atol=1e-10, rtol=1e-8)


@every_encoder
def test_a_single_precision_network_reads_sparse_features(kind: str) -> None:
    x, edge_index = graph()
    encoder = make(kind).float().eval()
    dense = encoder(x.float(), edge_index)
    assert dense.dtype == torch.float32
    torch.testing.assert_close(encoder(x.float().to_sparse_csr(), edge_index), dense, atol=1e-4, rtol=1e-4)


@every_encoder
def test_renumbering_the_nodes_renumbers_the_embeddings(kind: str, generator: torch.Generator) -> None:
    x, edge_index = graph()
    encoder = make(kind)
    order = torch.randperm(NODES, generator=generator)
    place = torch.empty_like(order)
    place[order] = torch.arange(NODES)
    torch.testing.assert_close(encoder(x[order], place[edge_index]), encoder(x, edge_index)[order])


@every_encoder
def test_features_of_nodes_that_cannot_be_reached_do_not_matter(kind: str) -> None:
    x, _ = graph()
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    encoder = make(kind, num_layers=2, batch_norm=False)
    changed = x.clone()
    changed[0] += 1
    moved = (encoder(changed, path) - encoder(x, path)).abs().amax(1) > 1e-9
    assert moved.tolist() == [True, True, True] + [False] * 6  # two layers reach two steps along the edges


@every_encoder
def test_without_edges_every_node_stands_alone(kind: str) -> None:
    x, _ = graph()
    none = torch.empty(2, 0, dtype=torch.int64)
    encoder = make(kind, batch_norm=False)
    alone = torch.cat([encoder(row[None], none) for row in x])
    torch.testing.assert_close(encoder(x, none), alone)


class TestSwitches:
    def test_batch_norm_stands_between_convolution_and_activation(self) -> None:
        x, edge_index = graph()
        encoder = make("gcn", num_layers=1, last_activation=True)
        h = plain_convolution("gcn", encoder.convs[0], FEATURES, 5)(x, edge_index)
        normal = (h - h.mean(0)) / (h.var(0, unbiased=False) + 1e-5).sqrt()
        expected = (normal * encoder.norms[0].weight + encoder.norms[0].bias).clamp_min(0)
        torch.testing.assert_close(encoder(x, edge_index), expected)

    def test_batch_norm_keeps_running_statistics_only_while_training(self) -> None:
        x, edge_index = graph()
        encoder = make("gcn", num_layers=2)
        before = encoder.norms[0].running_mean.clone()
        encoder.eval()(x, edge_index)
        assert torch.equal(encoder.norms[0].running_mean, before)
        encoder.train()(x, edge_index)
        assert not torch.equal(encoder.norms[0].running_mean, before)

    def test_without_batch_norm_there_is_none(self) -> None:
        assert not any(isinstance(module, nn.BatchNorm1d) for module in make("gcn", batch_norm=False).modules())
        assert sum(isinstance(module, nn.BatchNorm1d) for module in make("gcn", num_layers=4).modules()) == 4

    @pytest.mark.parametrize(("name", "function"), [("relu", F.relu), ("elu", F.elu), ("leaky_relu", F.leaky_relu)])
    def test_activation_and_last_activation(self, name: str, function: object) -> None:
        x, edge_index = graph()
        bare, last = (make("gcn", num_layers=2, activation=name, last_activation=flag) for flag in (False, True))
        out = bare(x, edge_index)
        assert (out < 0).any()
        torch.testing.assert_close(last(x, edge_index), function(out))  # type: ignore[operator]
        first = plain_convolution("gcn", bare.convs[0], FEATURES, 5)(x, edge_index)
        second = plain_convolution("gcn", bare.convs[1], 5, 5)
        expected = bare.norms[1](second(function(bare.norms[0](first)), edge_index))  # type: ignore[operator]
        torch.testing.assert_close(out, expected)

    def test_dropout_zeroes_that_share_and_keeps_the_mean(self, generator: torch.Generator) -> None:
        x = torch.ones(2000, 1, dtype=torch.float64)
        encoder = make("gcn", 1, hidden_channels=10, num_layers=1, batch_norm=False, dropout=0.3)
        edge_index = torch.empty(2, 0, dtype=torch.int64)
        clean = encoder.eval()(x, edge_index)
        out = encoder.train()(x, edge_index, generator)
        kept = out != 0
        assert kept.double().mean().item() == pytest.approx(0.7, abs=0.02)
        torch.testing.assert_close(out[kept], clean[kept] / 0.7)

    def test_dropout_comes_after_every_layer(self, generator: torch.Generator) -> None:
        x, edge_index = graph()
        encoder = make("gcn", num_layers=2, batch_norm=False, dropout=0.5)
        first = (torch.rand(NODES, 5, generator=generator) >= 0.5) / 0.5
        second = (torch.rand(NODES, 5, generator=generator) >= 0.5) / 0.5
        one, two = (plain_convolution("gcn", c, i, 5) for c, i in zip(encoder.convs, (FEATURES, 5), strict=True))
        expected = two(one(x, edge_index).relu() * first, edge_index) * second
        torch.testing.assert_close(encoder(x, edge_index, torch.Generator().manual_seed(0)), expected)

    def test_dropout_is_off_when_not_training(self, generator: torch.Generator) -> None:
        x, edge_index = graph()
        wet, dry = make("gcn", dropout=0.9).eval(), make("gcn").eval()
        assert torch.equal(wet(x, edge_index, generator), dry(x, edge_index))

    @every_encoder
    def test_dropout_is_drawn_from_the_generator_alone(self, kind: str) -> None:
        x, edge_index = graph()
        encoder = make(kind, dropout=0.5, batch_norm=False)
        state = torch.get_rng_state()
        one, two, other = (encoder(x, edge_index, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(one, two)
        assert not torch.equal(one, other)

    def test_dropout_keeps_the_dtype(self, generator: torch.Generator) -> None:
        x, edge_index = graph()
        assert make("gcn", dropout=0.5).float()(x.float(), edge_index, generator).dtype == torch.float32
        assert make("gcn", dropout=0.5)(x, edge_index, generator).dtype == torch.float64


class TestOneNode:
    edge_index = torch.empty(2, 0, dtype=torch.int64)

    @every_encoder
    def test_batch_norm_cannot_be_trained_on_it(self, kind: str) -> None:
        with pytest.raises(MarioError, match="batch norm cannot be trained on one row, a graph of one node"):
            make(kind)(torch.ones(1, FEATURES).double(), self.edge_index)

    @every_encoder
    def test_anything_else_can(self, kind: str) -> None:
        x = torch.ones(1, FEATURES).double()
        assert make(kind, batch_norm=False)(x, self.edge_index).shape == (1, 5)
        assert make(kind).eval()(x, self.edge_index).shape == (1, 5)


@every_encoder
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"in_channels": 0}, "in_channels, hidden_channels and num_layers of at least 1, got 0, 300, 3"),
        ({"hidden_channels": 0}, "in_channels, hidden_channels and num_layers of at least 1, got 2, 0, 3"),
        ({"num_layers": -1}, "in_channels, hidden_channels and num_layers of at least 1, got 2, 300, -1"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"dropout": -0.1}, r"dropout must lie in \[0, 1\), got -0.1"),
        ({"dropout": float("nan")}, r"dropout must lie in \[0, 1\), got nan"),
        ({"activation": "tanh"}, "activation must be one of relu, elu, leaky_relu, got 'tanh'"),
    ],
)
def test_bad_arguments_are_named(kind: str, bad: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        ENCODERS[kind](**{"in_channels": 2, **bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
def test_an_edge_to_a_node_that_is_not_there_is_an_error(kind: str) -> None:
    with pytest.raises(MarioError, match="edge_index must hold nodes 0 to 8, got 0 to 9"):
        make(kind)(graph()[0], torch.tensor([[9], [0]]))


@every_encoder
def test_a_ready_propagation_matrix_takes_the_place_of_the_encoders_own(kind: str) -> None:
    x, edge_index = graph()
    edge_index = edge_index.unique(dim=1)  # a matrix has one entry a pair
    model = make(kind, batch_norm=False)
    if model.normalization is not None:
        ready = propagation_matrix(edge_index, x.size(0), model.normalization, x.dtype)
    else:  # attention has no matrix: it looks along the entries
        ones = torch.ones(edge_index.size(1), dtype=x.dtype)
        ready = torch.sparse_coo_tensor(edge_index.flip(0), ones, (x.size(0), x.size(0))).to_sparse_csr()
    torch.testing.assert_close(model(x, ready), model(x, edge_index))


@pytest.mark.parametrize("kept", [1.0, 0.05])
def test_a_full_matrix_and_a_sparse_one_are_multiplied_alike(kept: float, generator: torch.Generator) -> None:
    """Where most entries are there the product is dense; it must be the same product, gradients included."""
    dense = torch.rand(20, 20, generator=generator, dtype=torch.float64)
    dense = dense * (torch.rand(20, 20, generator=generator) < kept)
    x = torch.rand(20, FEATURES, generator=generator, dtype=torch.float64).requires_grad_()
    model = make("gcn", batch_norm=False, num_layers=1, last_activation=False)
    out = model(x, dense.to_sparse_csr())
    conv = model.convs[0]
    torch.testing.assert_close(out, dense @ (x @ conv.lin.weight.t()) + conv.bias)
    (gradient,) = torch.autograd.grad(out.sum(), x)
    torch.testing.assert_close(gradient, dense.sum(0).unsqueeze(1) * conv.lin.weight.sum(0))


@every_encoder
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("hidden_channels", [3, 11])  # narrower and wider than the features
def test_in_blocks_it_is_the_same_map(
    kind: str, sparse: bool, hidden_channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, edge_index = graph()
    x = x.to_sparse_csr() if sparse else x
    model = make(kind, hidden_channels=hidden_channels, last_activation=True)
    model(x, edge_index)  # gives batch norm statistics to remember
    model.eval()
    with torch.no_grad():
        whole = model(x, edge_index)
        monkeypatch.setattr("mario.encoders.encoder.BLOCK", 4)
        torch.testing.assert_close(model(x, edge_index), whole)
    torch.testing.assert_close(model(x, edge_index).detach(), whole)  # with gradients asked for: no blocks


@every_encoder
def test_features_in_parts_equal_the_matrix_with_gradients(kind: str) -> None:
    x, edge_index = graph()
    kept = torch.tensor([True, False, True, True, False, True])
    one, two = make(kind, num_layers=2), make(kind, num_layers=2)
    written = one(x * kept, edge_index)
    parts = two(Features(x, kept), edge_index)
    torch.testing.assert_close(parts, written)
    written.square().sum().backward()
    parts.square().sum().backward()
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad)
