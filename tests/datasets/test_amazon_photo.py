"""Ten environments of one graph: against the formula, against PyG's modules, and on the real file."""

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from mario.datasets import load_dataset
from mario.datasets.amazon_photo import photo_graph
from mario.datasets.generators.random_networks import RandomNetworks, labels_and_cues
from mario.graphs import check_graph, training_graph


def small(nodes: int = 12, features: int = 20) -> Data:
    generator = torch.Generator().manual_seed(1)
    edge_index = torch.randint(nodes - 1, (2, 30), generator=generator)  # the last node is alone
    return Data(x=torch.randn(nodes, features, generator=generator), edge_index=edge_index)


def environments(data: Data) -> list[Data]:
    return [
        Data(
            x=data.x[data.domain_id == k],
            y=data.y[data.domain_id == k],
            edge_index=data.edge_index[:, data.domain_id[data.edge_index[0]] == k],
        )
        for k in range(10)
    ]


def slow_gcn(x: Tensor, edge_index: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    """relu(P X W1), then P H W2, node by node."""
    nodes = x.size(0)
    messages = [(s, t) for s, t in edge_index.t().tolist() if s != t] + [(v, v) for v in range(nodes)]
    degree = [sum(t == v for _, t in messages) for v in range(nodes)]
    for layer, weight in enumerate(weights):
        out = torch.zeros(nodes, weight.size(1), dtype=torch.float64)
        for s, t in messages:
            out[t] += x[s].double() @ weight.double() / math.sqrt(degree[s] * degree[t])
        x = out.relu() if layer == 0 else out
    return x


def test_labels_and_cues_are_those_of_the_formula() -> None:
    data = small()
    networks = RandomNetworks.draw(20, torch.Generator().manual_seed(3))
    y, cues = labels_and_cues(data.x, data.edge_index, networks)
    assert torch.equal(y, slow_gcn(data.x, data.edge_index, networks.labels).argmax(1))
    assert len(y.unique()) >= 3
    shared = slow_gcn(torch.eye(10)[y], data.edge_index, networks.cues)
    for k in range(10):
        expected = shared + networks.shift[:, k].double() + networks.bias.double()
        torch.testing.assert_close(cues[k].double(), expected, rtol=0, atol=1e-6)


def test_labels_and_cues_are_those_of_pygs_modules_with_the_same_weights() -> None:
    """EERM's script builds them of `GCNConv` and `Linear`."""
    data = small()
    networks = RandomNetworks.draw(20, torch.Generator().manual_seed(4))

    def gcn(x: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
        for layer, weight in enumerate(weights):
            conv = GCNConv(*weight.shape)
            conv.lin.weight.data = weight.t()
            x = conv(x, data.edge_index)
            x = x.relu() if layer == 0 else x
        return x

    linear = torch.nn.Linear(10, 10)
    linear.weight.data, linear.bias.data = networks.shift, networks.bias
    y, cues = labels_and_cues(data.x, data.edge_index, networks)
    assert torch.equal(y, gcn(data.x, networks.labels).argmax(1))
    for k in range(10):
        context = torch.zeros(12, 10)
        context[:, k] = 1
        torch.testing.assert_close(cues[k], gcn(torch.eye(10)[y], networks.cues) + linear(context), rtol=0, atol=1e-6)


def test_weights_are_drawn_within_the_bounds_of_pyg_and_torch() -> None:
    networks = RandomNetworks.draw(745, torch.Generator().manual_seed(0))
    bounds = [(networks.cues[0], 6 / 20), (networks.cues[1], 6 / 20), (networks.labels[0], 6 / 755)]
    bounds += [(networks.labels[1], 6 / 20), (networks.shift, 1 / 10), (networks.bias, 1 / 10)]
    for weight, square in bounds:
        assert 0.6 * square**0.5 < float(weight.abs().max()) <= square**0.5
    assert [tuple(weight.shape) for weight, _ in bounds] == [(10, 10), (10, 10), (745, 10), (10, 10), (10, 10), (10,)]


def check_environments(data: Data, features: int) -> None:
    parts = environments(data)
    for k, part in enumerate(parts):
        start = k * parts[0].x.size(0)
        assert torch.equal(part.x[:, :features], parts[0].x[:, :features])
        assert torch.equal(part.y, parts[0].y)
        assert torch.equal(part.edge_index - start, parts[0].edge_index)
        offset = part.x[:, features:] - parts[0].x[:, features:]
        # The environment adds one vector to all nodes, and another one for each environment.
        assert float((offset - offset[0]).abs().max()) < 1e-5
        assert (float(offset.abs().max()) > 0.01) == (k > 0)


def test_environments_share_all_but_the_cues() -> None:
    data = photo_graph(small(), split_seed=0)
    check_graph(data)
    check_environments(data, 20)
    assert data.num_nodes == 120
    assert data.x.size(1) == 30
    assert (data.num_classes, len(data.groups), data.groups[0]) == (10, 8, "T1")
    environment = torch.arange(120) // 12
    assert torch.equal(data.domain_id, environment)
    assert torch.equal(data.train_mask, environment == 0)
    assert torch.equal(data.visible_mask, environment == 0)
    assert torch.equal(data.ood_val_mask, environment == 1)
    assert torch.equal(data.ood_test_mask, environment > 1)
    assert torch.equal(data.group_id[24:], environment[24:] - 2)
    assert (data.group_id[:24] == -1).all()
    assert torch.equal(data.env_id == 0, data.train_mask)
    assert "id_val_mask" not in data


def test_labels_follow_from_the_shared_features_alone() -> None:
    """The same features and graph give the same labels, whatever labels the file has; other features, others."""
    one, two, other = small(), small(), small()
    two.y = torch.ones(12).long()
    other.x = other.x.flip(0)
    first = photo_graph(one, split_seed=0)
    assert torch.equal(first.y, photo_graph(two, split_seed=0).y)
    assert not torch.equal(first.y, photo_graph(other, split_seed=0).y)


def test_environments_are_a_function_of_the_seed_and_of_nothing_global() -> None:
    state = torch.get_rng_state()
    one, two, other = (photo_graph(small(), split_seed=seed) for seed in (5, 5, 6))
    assert torch.equal(one.x, two.x)
    assert torch.equal(one.y, two.y)
    assert not torch.equal(one.x, other.x)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_real_file(mario_data: Path) -> None:
    data = load_dataset("amazon-photo", root=mario_data, download=False)
    assert (data.num_nodes, data.num_edges, data.x.size(1)) == (76_500, 2_381_620, 755)
    assert (data.setting, data.shift, data.domain, data.metric) == ("inductive", "concept", "environment", "accuracy")
    check_environments(data, 745)
    seen = training_graph(data)
    assert (seen.num_nodes, seen.num_edges) == (7_650, 238_162)
    assert torch.equal(seen.n_id, torch.arange(7_650))
    # EERM's procedure gives uneven labels; this is its draw for seed 0.
    counts = torch.bincount(seen.y, minlength=10).sort(descending=True).values.tolist()
    assert counts == [5176, 1331, 937, 93, 72, 28, 8, 3, 2, 0]


@pytest.mark.parametrize("split_seed", [1, 4])
def test_other_seeds_give_other_labels_on_the_same_graph(split_seed: int, mario_data: Path) -> None:
    data = load_dataset("amazon-photo", root=mario_data, download=False, split_seed=split_seed)
    first = load_dataset("amazon-photo", root=mario_data, download=False)
    assert torch.equal(data.edge_index, first.edge_index)
    assert torch.equal(data.x[:7650, :745], first.x[:7650, :745])
    assert not torch.equal(data.y, first.y)
