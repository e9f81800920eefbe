"""What all samplers have in common."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.samplers import Clusters, FullGraph, Neighbors, RandomWalk, Sampler
from mario.graphs.subgraph import subgraph

Make = Callable[[Data], Sampler]
SAMPLERS: dict[str, Make] = {
    "full": FullGraph,
    "walk": lambda data: RandomWalk(data, roots=4, length=2),
    "saint": lambda data: RandomWalk(
        data, roots=4, length=2, normalize=True, pre_samples=5, generator=torch.Generator().manual_seed(9)
    ),
    "neighbors": lambda data: Neighbors(data, seeds=4, fanouts=[2, 1]),
    "bfs": lambda data: Clusters(data, clusters=min(6, data.num_nodes), method="bfs"),
    "metis": lambda data: Clusters(data, clusters=min(6, data.num_nodes), method="metis"),
}
every_sampler = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS.keys())


def graph(*, sparse: bool = False) -> Data:
    generator = torch.Generator().manual_seed(5)
    x = torch.rand((30, 4), generator=generator)
    return Data(
        x=x.to_sparse_csr() if sparse else x,
        edge_index=torch.randint(30, (2, 80), generator=generator),
        edge_attr=torch.arange(80).view(80, 1),
        edge_weight=torch.rand(80, generator=generator),
        y=torch.arange(30),
        train_mask=torch.arange(30) % 2 == 0,
        prior=torch.tensor([0.1, 0.9]),
        temperature=torch.tensor(0.5),
        name="thirty",
        faults=["none"],
    )


def same(left: Data, right: Data) -> bool:
    one, two = ({k: v.to_dense() for k, v in data if isinstance(v, torch.Tensor)} for data in (left, right))
    return one.keys() == two.keys() and all(torch.equal(one[key], two[key]) for key in one)


@every_sampler
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_batch_carries_its_part_of_every_attribute(make: Make, sparse: bool, generator: torch.Generator) -> None:
    data = graph(sparse=sparse)
    sampler = make(data)
    for batch in [sampler.sample(generator), *sampler.epoch(generator)]:
        assert batch.num_nodes == batch.n_id.numel() == batch.n_id.unique().numel()
        assert batch.x.layout == data.x.layout
        assert torch.equal(batch.x.to_dense(), data.x.to_dense()[batch.n_id])
        assert torch.equal(batch.y, batch.n_id)
        assert torch.equal(batch.train_mask, batch.n_id % 2 == 0)
        assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.edge_attr.view(-1)])
        assert batch.edge_attr.unique().numel() == batch.num_edges
        assert torch.equal(batch.edge_weight, data.edge_weight[batch.edge_attr.view(-1)])
        assert torch.equal(batch.prior, data.prior)
        assert (batch.temperature, batch.name, batch.faults) == (torch.tensor(0.5), "thirty", ["none"])


@every_sampler
def test_weights_and_attributes_stay_with_their_edges_if_there_are_as_many_nodes(
    make: Make, generator: torch.Generator
) -> None:
    data = Data(
        x=torch.rand(30, 2),
        edge_index=torch.randint(30, (2, 30), generator=generator),
        edge_weight=torch.rand(30, generator=generator),
        edge_attr=torch.rand(30, 3, generator=generator),
    )
    known = {
        (*edge, weight) for edge, weight in zip(data.edge_index.t().tolist(), data.edge_weight.tolist(), strict=True)
    }
    attr = dict(zip(data.edge_weight.tolist(), data.edge_attr.tolist(), strict=True))
    for batch in make(data).epoch(generator):
        ends = batch.n_id[batch.edge_index].t().tolist()
        for edge, weight, row in zip(ends, batch.edge_weight.tolist(), batch.edge_attr.tolist(), strict=True):
            assert (*edge, weight) in known
            assert attr[weight] == row


@every_sampler
def test_weights_do_not_change_what_is_drawn(make: Make) -> None:
    data, bare = graph(), graph()
    del bare.edge_weight
    for one, two in zip(*(make(d).epoch(torch.Generator().manual_seed(0)) for d in (data, bare)), strict=True):
        assert torch.equal(one.n_id, two.n_id)
        assert torch.equal(one.edge_index, two.edge_index)


@every_sampler
def test_same_generator_state_gives_the_same_batches(make: Make) -> None:
    sampler = make(graph())
    one, two = (torch.Generator().manual_seed(3) for _ in range(2))
    for _ in range(3):
        assert same(sampler.sample(one), sampler.sample(two))
    for left, right in zip(sampler.epoch(one), sampler.epoch(two), strict=True):
        assert same(left, right)
    assert torch.equal(one.get_state(), two.get_state())


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "full"])
def test_other_generator_states_give_other_batches(name: str) -> None:
    sampler = SAMPLERS[name](graph())
    batches = [sampler.sample(torch.Generator().manual_seed(seed)).n_id.tolist() for seed in range(8)]
    assert any(batch != batches[0] for batch in batches)


@every_sampler
def test_the_default_generator_serves_where_none_is_given_and_is_left_alone_otherwise(make: Make) -> None:
    sampler = make(graph())
    before = torch.get_rng_state()
    given = sampler.sample(torch.Generator().manual_seed(11))
    list(sampler.epoch(torch.Generator().manual_seed(11)))
    assert torch.equal(torch.get_rng_state(), before)
    with torch.random.fork_rng():
        torch.manual_seed(11)
        assert same(sampler.sample(), given)


def test_drawing_in_advance_leaves_the_default_generator_alone() -> None:
    before = torch.get_rng_state()
    RandomWalk(graph(), roots=4, length=2, normalize=True, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), before)


@every_sampler
def test_the_graph_is_left_alone(make: Make, generator: torch.Generator) -> None:
    data = graph()
    identities = {key: id(value) for key, value in data}
    batch = make(data).sample(generator)
    batch.extra = 1
    assert {key: id(value) for key, value in data} == identities
    assert same(data, graph())


@every_sampler
def test_ids_of_an_earlier_cut_are_carried_on(make: Make, generator: torch.Generator) -> None:
    cut = subgraph(graph(), torch.arange(10, 30))
    for batch in make(cut).epoch(generator):
        assert torch.equal(batch.n_id, batch.y)
        assert (batch.n_id >= 10).all()


@every_sampler
@pytest.mark.parametrize(
    ("nodes", "edges"),
    [(1, []), (1, [(0, 0)]), (5, []), (4, [(0, 1)]), (3, [(0, 1), (0, 1), (1, 0)]), (7, [(i, i) for i in range(7)])],
    ids=["one node", "one loop", "no edges", "isolated", "parallel", "loops"],
)
def test_small_and_odd_graphs(make: Make, nodes: int, edges: list[tuple[int, int]], generator: torch.Generator) -> None:
    edge_index = torch.tensor(edges, dtype=torch.int64).view(-1, 2).t()
    sampler = make(Data(x=torch.ones(nodes, 2), edge_index=edge_index))
    for batch in [sampler.sample(generator), *sampler.epoch(generator)]:
        assert 1 <= batch.num_nodes <= nodes
        assert batch.x.shape == (batch.num_nodes, 2)
        assert batch.num_edges <= len(edges)
        if batch.num_edges:
            assert int(batch.edge_index.max()) < batch.num_nodes


@every_sampler
def test_a_graph_without_features_is_sampled(make: Make, generator: torch.Generator) -> None:
    batch = make(Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=6)).sample(generator)
    assert batch.num_nodes == batch.n_id.numel()


@every_sampler
@pytest.mark.parametrize(
    ("data", "match"),
    [
        (Data(x=torch.ones(0, 2), edge_index=torch.empty(2, 0, dtype=torch.int64)), "no nodes"),
        (Data(x=torch.ones(3, 2)), "data has no edge_index"),
        (Data(x=torch.ones(3, 2), edge_index=torch.zeros(3, 2, dtype=torch.int64)), r"of shape \(3, 2\)"),
        (
            Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0.0], [float("nan")]])),
            "must be int64, got torch.float32",
        ),
        (Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0], [3]])), "names node 3"),
        (Data(x=torch.ones(3, 2), edge_index=torch.tensor([[-1], [2]])), "names node -1"),
    ],
    ids=["no nodes", "no edge_index", "shape", "type", "too large", "negative"],
)
def test_a_graph_that_is_none_is_an_error(make: Make, data: Data, match: str) -> None:
    with pytest.raises(MarioError, match=match):
        make(data)


class LargestResult(TorchDispatchMode):
    """Notes the largest tensor that an operation makes; those that write into a tensor or look at one make none."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        makes = all(argument.alias_info is None for argument in func._schema.arguments)
        if makes and isinstance(result, torch.Tensor):
            self.numel = max(self.numel, result.numel())
        return result


@pytest.mark.parametrize(
    "make",
    [
        lambda data: RandomWalk(data, roots=20, length=2, normalize=True, pre_samples=2),
        lambda data: Neighbors(data, seeds=10, fanouts=[3, 3]),
        lambda data: Clusters(data, clusters=500, per_batch=2, method="bfs"),
    ],
    ids=["walk", "neighbors", "clusters"],
)
def test_work_is_that_of_the_batch_and_not_of_the_graph(make: Make, generator: torch.Generator) -> None:
    edges = torch.randint(20_000, (2, 100_000), generator=generator)
    sampler = make(Data(x=torch.ones(20_000, 2), edge_index=edges))
    with LargestResult() as largest:
        batch = sampler.sample(generator)
    assert 0 < batch.num_nodes < 150
    # The rows of 150 nodes hold 5 edges on average; the graph has 20,000 nodes and 100,000 edges.
    assert batch.num_nodes < largest.numel < 2000
