import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from mario.errors import MarioError
from mario.graphs.samplers import RandomWalk


def graph(nodes: int = 30, edges: int = 100) -> Data:
    generator = torch.Generator().manual_seed(5)
    return Data(
        x=torch.rand((nodes, 3), generator=generator), edge_index=torch.randint(nodes, (2, edges), generator=generator)
    )


def directed() -> Data:
    """A hub, a sink, an isolated node, a loop and parallel edges."""
    edges = [(0, 1), (1, 0), (0, 2), (2, 0), (0, 3), (3, 4), (4, 4), (1, 2), (1, 2), (5, 0)]
    x = torch.tensor([[1.0], [2.0], [-1.0], [4.0], [0.5], [3.0], [-2.0]])
    return Data(x=x, edge_index=torch.tensor(edges).t())


def norms_by_loop(data: Data, batches: list[Data]) -> tuple[torch.Tensor, torch.Tensor]:
    """Node and edge norms, straight from the counts of GraphSAINT's Section 3.2."""
    nodes, edges = int(data.num_nodes or 0), data.edge_index.t().tolist()
    seen = [set(batch.n_id.tolist()) for batch in batches]
    node_count = [max(sum(v in part for part in seen), 1) for v in range(nodes)]
    edge_count = [max(sum(u in part and v in part for part in seen), 1) for u, v in edges]
    node_norm = [len(batches) / (nodes * count) for count in node_count]
    edge_norm = [node_count[v] / count for (_, v), count in zip(edges, edge_count, strict=True)]
    return torch.tensor(node_norm), torch.tensor(edge_norm)


@pytest.mark.parametrize("seed", range(5))
def test_edges_are_those_that_pyg_induces(seed: int) -> None:
    data = graph()
    batch = RandomWalk(data, roots=5, length=2).sample(torch.Generator().manual_seed(seed))
    expected, _ = subgraph(batch.n_id, data.edge_index, relabel_nodes=True, num_nodes=30)
    assert batch.num_nodes < 30
    assert torch.equal(batch.edge_index, expected)
    assert torch.equal(batch.n_id, batch.n_id.sort().values)


def test_nodes_are_those_on_the_walks(generator: torch.Generator) -> None:
    ring = Data(x=torch.eye(10), edge_index=torch.stack([torch.arange(10), (torch.arange(10) + 1) % 10]))
    for _ in range(10):
        nodes = RandomWalk(ring, roots=1, length=3).sample(generator).n_id
        assert sorted(((nodes.roll(-1) - nodes) % 10).tolist()) == [1, 1, 1, 7]


def test_roots_are_uniform(generator: torch.Generator) -> None:
    sampler = RandomWalk(graph(8, 0), roots=1, length=2)
    counts = torch.zeros(8)
    for _ in range(1600):
        counts[sampler.sample(generator).n_id] += 1
    # Expected 200 each, standard deviation 13
    assert counts.sum() == 1600
    assert counts.min() > 145


def test_more_roots_than_nodes_give_the_whole_graph(generator: torch.Generator) -> None:
    batch = RandomWalk(graph(), roots=1000, length=2).sample(generator)
    assert batch.n_id.tolist() == list(range(30))
    assert torch.equal(batch.edge_index, graph().edge_index)


def test_an_epoch_holds_as_many_nodes_as_the_graph_or_the_given_number_of_batches(generator: torch.Generator) -> None:
    sizes = [int(batch.num_nodes or 0) for batch in RandomWalk(graph(), roots=4, length=1).epoch(generator)]
    assert sum(sizes[:-1]) < 30 <= sum(sizes)
    assert len(list(RandomWalk(graph(), roots=4, length=1, batches=7).epoch(generator))) == 7


def test_norms_are_those_of_the_counts() -> None:
    data = directed()
    sampler = RandomWalk(
        data, roots=2, length=1, normalize=True, pre_samples=40, generator=torch.Generator().manual_seed(1)
    )
    generator = torch.Generator().manual_seed(1)
    plain = RandomWalk(data, roots=2, length=1)
    node_norm, edge_norm = norms_by_loop(data, [plain.sample(generator) for _ in range(40)])
    assert sampler.node_norm is not None
    assert sampler.edge_norm is not None
    torch.testing.assert_close(sampler.node_norm, node_norm)
    torch.testing.assert_close(sampler.edge_norm, edge_norm)
    batch = sampler.sample(generator)
    assert torch.equal(batch.node_norm, sampler.node_norm[batch.n_id])
    ids = [
        edge
        for edge, (u, v) in enumerate(data.edge_index.t().tolist())
        if u in batch.n_id.tolist() and v in batch.n_id.tolist()
    ]
    assert torch.equal(batch.edge_norm, sampler.edge_norm[ids])


def test_an_edge_to_oneself_needs_no_correction() -> None:
    sampler = RandomWalk(directed(), roots=2, length=1, normalize=True, generator=torch.Generator().manual_seed(1))
    assert sampler.edge_norm is not None
    assert sampler.edge_norm[6] == 1
    assert sampler.edge_norm.min() >= 1


def test_loss_and_aggregation_are_unbiased() -> None:
    data = directed()
    loss = torch.tensor([3.0, -1.0, 2.0, 0.5, 7.0, 1.0, 4.0])
    source, target = data.edge_index
    weight = 1 / torch.bincount(target, minlength=7)[target]
    full = torch.zeros(7).index_add(0, target, weight * data.x[source, 0])

    generator = torch.Generator().manual_seed(0)
    sampler = RandomWalk(data, roots=2, length=2, normalize=True, pre_samples=6000, generator=generator)
    losses, plain, sums, times = [], [], torch.zeros(7), torch.zeros(7)
    for _ in range(2500):
        batch = sampler.sample(generator)
        losses.append(float((batch.node_norm * loss[batch.n_id]).sum()))
        plain.append(float(loss[batch.n_id].mean()))
        here, there = batch.n_id[batch.edge_index]
        w = 1 / torch.bincount(target, minlength=7)[there]
        sums.index_add_(0, there, batch.edge_norm * w * data.x[here, 0])
        times[batch.n_id] += 1
    # Standard errors: 0.03 for the loss, at most 0.04 for a sum.
    assert sum(losses) / 2500 == pytest.approx(float(loss.mean()), abs=0.1)
    assert abs(sum(plain) / 2500 - float(loss.mean())) > 0.2
    torch.testing.assert_close(sums / times, full, atol=0.15, rtol=0)


def test_without_normalize_there_are_no_norms(generator: torch.Generator) -> None:
    batch = RandomWalk(graph(), roots=4, length=1).sample(generator)
    assert "node_norm" not in batch
    assert "edge_norm" not in batch


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"roots": 0, "length": 1}, "roots must be an integer of at least 1, got 0"),
        ({"roots": 2.5, "length": 1}, r"roots must be an integer of at least 1, got 2\.5"),
        ({"roots": 2, "length": -1}, "length must be an integer of at least 0, got -1"),
        ({"roots": 2, "length": 1, "batches": 0}, "batches must be an integer of at least 1, got 0"),
        ({"roots": 2, "length": 1, "normalize": True, "pre_samples": 0}, "pre_samples must be an integer"),
        ({"roots": 2, "length": 1, "pre_samples": 9}, "pre_samples=9 has no effect without normalize=True"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, int], match: str) -> None:
    with pytest.raises(MarioError, match=match):
        RandomWalk(graph(), **arguments)  # type: ignore[arg-type]
