"""Every encoder against the same stack of plain PyG convolutions, and what its switches do."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv

from mario.encoders import ENCODERS, Encoder, FeatureEncoder, propagation_matrix
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
def test_without_edges_every_node_is_embedded_alone(kind: str) -> None:
    x, _ = graph()
    none = torch.empty(2, 0, dtype=torch.int64)
    encoder = make(kind, batch_norm=False)
    alone = torch.cat([encoder(row[None], none) for row in x])
    torch.testing.assert_close(encoder(x, none), alone)


class TestSwitches:
    def test_batch_norm_is_between_convolution_and_activation(self) -> None:
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
        out = encoder.train()(x, edge_index, generator=generator)
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
        torch.testing.assert_close(encoder(x, edge_index, generator=torch.Generator().manual_seed(0)), expected)

    def test_dropout_is_off_when_not_training(self, generator: torch.Generator) -> None:
        x, edge_index = graph()
        wet, dry = make("gcn", dropout=0.9).eval(), make("gcn").eval()
        assert torch.equal(wet(x, edge_index, generator=generator), dry(x, edge_index))

    @every_encoder
    def test_dropout_is_drawn_from_the_generator_alone(self, kind: str) -> None:
        x, edge_index = graph()
        encoder = make(kind, dropout=0.5, batch_norm=False)
        state = torch.get_rng_state()
        one, two, other = (encoder(x, edge_index, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
        assert torch.equal(torch.get_rng_state(), state)
        assert torch.equal(one, two)
        assert not torch.equal(one, other)

    def test_dropout_keeps_the_dtype(self, generator: torch.Generator) -> None:
        x, edge_index = graph()
        assert make("gcn", dropout=0.5).float()(x.float(), edge_index, generator=generator).dtype == torch.float32
        assert make("gcn", dropout=0.5)(x, edge_index, generator=generator).dtype == torch.float64


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
        ({"in_channels": 0}, "in_channels must be an integer of at least 1, got 0"),
        ({"hidden_channels": 0}, "hidden_channels must be an integer of at least 1, got 0"),
        ({"num_layers": -1}, "num_layers must be an integer of at least 1, got -1"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"dropout": -0.1}, r"dropout must be a probability in \[0, 1\], got -0.1"),
        ({"dropout": float("nan")}, r"dropout must be a probability in \[0, 1\], got nan"),
        ({"activation": "tanh"}, "activation must be one of relu, elu, leaky_relu, got 'tanh'"),
    ],
)
def test_bad_arguments_are_named(kind: str, bad: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        ENCODERS[kind](**{"in_channels": 2, **bad})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
def test_an_edge_to_a_node_that_is_not_there_is_an_error(kind: str) -> None:
    with pytest.raises(MarioError, match="edge_index names node 9, but the 9 nodes"):
        make(kind)(graph()[0], torch.tensor([[9], [0]]))


@every_encoder
def test_a_ready_propagation_matrix_takes_the_place_of_the_encoders_own(kind: str) -> None:
    x, edge_index = graph()
    edge_index = edge_index.unique(dim=1)  # a matrix has one entry per pair
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
    torch.testing.assert_close(model(x, edge_index).detach(), whole)  # with gradients: no blocks


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


def edges(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """:func:`graph` with one self-loop at most per node, weights (some zero) and attributes of its edges."""
    x, edge_index = graph(seed)
    loops = edge_index[0] == edge_index[1]
    edge_index = torch.cat([edge_index[:, ~loops], edge_index[:, loops].unique(dim=1)], 1)
    generator = torch.Generator().manual_seed(seed + 1)
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64)
    attr = torch.randn(edge_index.size(1), 3, generator=generator, dtype=torch.float64)
    return x, edge_index, weight * (weight > 0.2), attr


def weighted_mean(conv: nn.Module, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    """W_l (Σ_j w_ji x_j / Σ_j w_ji) + b + W_r x_i, one node at a time."""
    rows = []
    for i in range(x.size(0)):
        into = (edge_index[1] == i).nonzero().view(-1)
        total = weight[into].sum()
        got = (weight[into, None] * x[edge_index[0, into]]).sum(0) / total if total > 0 else torch.zeros_like(x[i])
        rows.append(conv.lin_l(got) + conv.lin_r(x[i]))  # type: ignore[operator]
    return torch.stack(rows)


def weighted_sum(conv: nn.Module, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    """MLP(x_i + Σ_j w_ji x_j), one node at a time."""
    rows = []
    for i in range(x.size(0)):
        into = (edge_index[1] == i).nonzero().view(-1)
        rows.append(conv.nn(x[i] + (weight[into, None] * x[edge_index[0, into]]).sum(0)))  # type: ignore[operator]
    return torch.stack(rows)


def reference(kind: str, conv: nn.Module, x: Tensor, edge_index: Tensor, weight: Tensor, attr: Tensor) -> Tensor:
    """One convolution with edge weights, or attributes, by PyG where it has it, else from the formula."""
    if kind == "gcn":
        return plain_convolution(kind, conv, x.size(1), 5)(x, edge_index, weight)
    if kind == "gat":
        theirs = GATConv(x.size(1), 5, heads=1, edge_dim=3).double()
        theirs.load_state_dict(conv.state_dict())
        return theirs(x, edge_index, attr)
    return (weighted_mean if kind == "sage" else weighted_sum)(conv, x, edge_index, weight)


def with_edges(kind: str, weight: Tensor, attr: Tensor) -> dict[str, Tensor]:
    return {"edge_attr": attr} if kind == "gat" else {"edge_weight": weight}


def make_for_edges(kind: str, **switches: object) -> Encoder:
    return make(kind, **switches, **({"edge_dim": 3} if kind == "gat" else {}))  # type: ignore[arg-type]


class TestEdges:
    @every_encoder
    @pytest.mark.parametrize("seed", range(3))
    def test_values_and_gradients_equal_the_reference(self, kind: str, seed: int) -> None:
        x, edge_index, weight, attr = edges(seed)
        encoder = make_for_edges(kind, num_layers=2, batch_norm=False)
        out = encoder(x, edge_index, **with_edges(kind, weight, attr))
        expected = x
        for i, conv in enumerate(encoder.convs):
            expected = reference(kind, conv, expected, edge_index, weight, attr)
            expected = expected.relu() if i == 0 else expected
        torch.testing.assert_close(out, expected)
        if kind in ("sage", "gin"):  # the reference shares its parameters with the encoder
            parameters = list(encoder.parameters())
            ours, theirs = (torch.autograd.grad(h.square().sum(), parameters) for h in (out, expected))
            for one, other in zip(ours, theirs, strict=True):
                torch.testing.assert_close(one, other)

    @pytest.mark.parametrize("kind", ["gcn", "gat"])
    def test_gradients_equal_pyg(self, kind: str) -> None:
        x, edge_index, weight, attr = edges()
        encoder = make_for_edges(kind, num_layers=1, batch_norm=False)
        conv = encoder.convs[0]
        theirs = GCNConv(FEATURES, 5) if kind == "gcn" else GATConv(FEATURES, 5, edge_dim=3)
        theirs.double().load_state_dict(conv.state_dict())
        encoder(x, edge_index, **with_edges(kind, weight, attr)).square().sum().backward()
        theirs(x, edge_index, weight if kind == "gcn" else attr).square().sum().backward()
        expected = dict(theirs.named_parameters())
        for name, parameter in conv.named_parameters():
            torch.testing.assert_close(parameter.grad, expected[name].grad)

    @every_encoder
    def test_they_matter(self, kind: str) -> None:
        x, edge_index, weight, attr = edges()
        encoder = make_for_edges(kind)
        out = encoder(x, edge_index, **with_edges(kind, weight, attr))
        assert not torch.allclose(out, encoder(x, edge_index))
        assert not torch.allclose(out, encoder(x, edge_index, **with_edges(kind, weight + 1, attr + attr.square())))

    @pytest.mark.parametrize("kind", ["gcn", "sage", "gin"])
    def test_ones_give_the_same_bits_as_no_weights(self, kind: str) -> None:
        x, edge_index = graph()
        encoder = make(kind)
        ones = torch.ones(edge_index.size(1), dtype=torch.float64)
        assert torch.equal(encoder(x, edge_index, ones), encoder(x, edge_index))

    @every_encoder
    def test_renumbering_the_nodes_and_edges_renumbers_the_embeddings(
        self, kind: str, generator: torch.Generator
    ) -> None:
        x, edge_index, weight, attr = edges()
        encoder = make_for_edges(kind)
        order, edge_order = (
            torch.randperm(NODES, generator=generator),
            torch.randperm(weight.numel(), generator=generator),
        )
        place = torch.empty_like(order)
        place[order] = torch.arange(NODES)
        moved = with_edges(kind, weight[edge_order], attr[edge_order])
        expected = encoder(x, edge_index, **with_edges(kind, weight, attr))[order]
        torch.testing.assert_close(encoder(x[order], place[edge_index][:, edge_order], **moved), expected)

    @every_encoder
    def test_sparse_features_and_blocks_of_nodes(self, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        x, edge_index, weight, attr = edges()
        given = with_edges(kind, weight, attr)
        encoder = make_for_edges(kind).eval()
        with torch.no_grad():
            whole = encoder(x, edge_index, **given)
            torch.testing.assert_close(encoder(x.to_sparse_csr(), edge_index, **given), whole)
            monkeypatch.setattr("mario.encoders.encoder.BLOCK", 4)
            torch.testing.assert_close(encoder(x, edge_index, **given), whole)

    @every_encoder
    def test_changed_values_are_not_taken_from_the_cache(self, kind: str) -> None:
        x, edge_index, weight, attr = edges()
        encoder = make_for_edges(kind)
        given = with_edges(kind, weight, attr)
        before = encoder(x, edge_index, **given)
        for value in given.values():
            value.mul_(torch.arange(1.0, value.size(0) + 1).view(-1, *[1] * (value.dim() - 1)))
        fresh = {key: value.clone() for key, value in given.items()}
        torch.testing.assert_close(encoder(x, edge_index, **given), encoder(x, edge_index, **fresh))
        assert not torch.allclose(encoder(x, edge_index, **given), before)

    def test_single_precision_weights_serve_a_double_network(self) -> None:
        x, edge_index, weight, _ = edges()
        encoder = make("gcn")
        torch.testing.assert_close(
            encoder(x, edge_index, weight.float()), encoder(x, edge_index, weight.float().double())
        )

    def test_what_an_encoder_declares(self) -> None:
        assert {kind: (c.supports_edge_weight, c.supports_edge_attr) for kind, c in ENCODERS.items()} == {
            "gcn": (True, False),
            "sage": (True, False),
            "gat": (False, True),
            "gin": (True, False),
        }
        assert not make("gat").supports_edge_attr
        assert make("gat", edge_dim=3).supports_edge_attr
        assert all(isinstance(make(kind), FeatureEncoder) for kind in ENCODERS)

    @pytest.mark.parametrize(
        ("kind", "switches", "given", "message"),
        [
            ("gat", {}, {"edge_weight": torch.ones(24)}, "GAT uses no edge_weight: pass None"),
            ("gat", {}, {"edge_attr": torch.ones(24, 3)}, "GAT without edge_dim uses no edge_attr: pass None"),
            (
                "gat",
                {"edge_dim": 2},
                {"edge_attr": torch.ones(24, 3)},
                r"edge_attr must have shape \[24, 2\], .* got \[24, 3\]",
            ),
            ("gcn", {}, {"edge_attr": torch.ones(24, 3)}, "GCN uses no edge_attr: pass None"),
            ("gat", {"edge_dim": 3}, {"edge_attr": torch.ones(24, 3, requires_grad=True)}, "edge_attr requires grad"),
            ("gcn", {}, {"edge_weight": torch.Generator()}, "edge_weight must be a tensor .*, got Generator"),
            ("gin", {}, {"edge_weight": torch.ones(3)}, r"edge_weight must be a tensor of shape \[24\]"),
        ],
    )
    def test_what_it_cannot_use_is_named(
        self, kind: str, switches: dict[str, int], given: dict[str, Tensor], message: str
    ) -> None:
        with pytest.raises(MarioError, match=message):
            make(kind, **switches)(*graph(), **given)  # type: ignore[arg-type]

    def test_a_ready_matrix_holds_its_own_weights(self) -> None:
        x, _ = graph()
        with pytest.raises(MarioError, match="edge_index is a propagation matrix, which holds its own weights"):
            make("gcn")(x, torch.eye(NODES, dtype=torch.float64).to_sparse_csr(), torch.ones(NODES))

    @pytest.mark.parametrize(
        ("kind", "edge_dim", "message"),
        [
            ("gcn", 3, "GCN uses no edge attributes, got edge_dim=3: use GAT"),
            ("gat", 0, "edge_dim must be an integer"),
        ],
    )
    def test_bad_edge_dims_are_named(self, kind: str, edge_dim: int, message: str) -> None:
        with pytest.raises(MarioError, match=message):
            make(kind, edge_dim=edge_dim)
