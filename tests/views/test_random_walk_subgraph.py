import pytest
import torch
from scipy.sparse.csgraph import connected_components
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_scipy_sparse_matrix

from mario.errors import MarioError
from mario.graphs.subgraph import subgraph
from mario.views import RandomWalkSubgraph


def ring(nodes: int) -> Data:
    ends = torch.arange(nodes)
    return Data(x=ends.view(-1, 1).float(), edge_index=torch.stack([ends, (ends + 1) % nodes]), num_nodes=nodes)


def dense(nodes: int, edges: int) -> Data:
    edge_index = torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(3))
    return Data(x=torch.eye(nodes), edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1))


@pytest.mark.parametrize("ratio", [0.05, 0.1, 0.5, 0.99, 1.0])
def test_ratio_is_met_exactly(ratio: float, generator: torch.Generator) -> None:
    view = RandomWalkSubgraph(ratio)(dense(30, 100), generator)
    assert view.num_nodes == {0.05: 2, 0.1: 3, 0.5: 15, 0.99: 30, 1.0: 30}[ratio]


def test_ratio_is_met_by_every_graph_of_a_batch(generator: torch.Generator) -> None:
    batch = Batch.from_data_list([ring(10), ring(1), ring(40), ring(7)])
    view = RandomWalkSubgraph(0.5)(batch, generator)
    assert torch.bincount(view.batch).tolist() == [5, 1, 20, 4]
    assert view.ptr.tolist() == [0, 5, 6, 26, 30]
    assert torch.equal(view.x.view(-1), batch.x.view(-1)[view.n_id])


def test_is_the_induced_subgraph(generator: torch.Generator) -> None:
    data = dense(30, 60)
    view = RandomWalkSubgraph(0.6)(data, generator)
    assert torch.equal(view.edge_index, subgraph(data, view.n_id).edge_index)


def test_on_a_directed_ring_the_view_is_an_arc(generator: torch.Generator) -> None:
    for _ in range(20):
        nodes = RandomWalkSubgraph(0.4)(ring(10), generator).n_id
        gaps = (nodes.roll(-1) - nodes) % 10
        assert sorted(gaps.tolist()) == [1, 1, 1, 7]


def test_is_connected_where_the_graph_is(generator: torch.Generator) -> None:
    data = dense(60, 300)
    for _ in range(20):
        view = RandomWalkSubgraph(0.5)(data, generator)
        assert connected_components(to_scipy_sparse_matrix(view.edge_index, num_nodes=30), directed=False)[0] == 1


def test_components_too_small_do_not_hold_the_walk(generator: torch.Generator) -> None:
    isolated = Data(x=torch.eye(9), edge_index=torch.empty(2, 0, dtype=torch.int64))
    assert RandomWalkSubgraph(0.7)(isolated, generator).num_nodes == 7
    pairs = Data(x=torch.eye(8), edge_index=torch.tensor([[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]]))
    assert RandomWalkSubgraph(0.75)(pairs, generator).num_nodes == 6


def test_roots_and_length_follow_the_walks(generator: torch.Generator) -> None:
    view = RandomWalkSubgraph(roots=1, length=3)(ring(10), generator)
    gaps = (view.n_id.roll(-1) - view.n_id) % 10
    assert sorted(gaps.tolist()) == [1, 1, 1, 7]


def test_roots_are_drawn_in_every_graph(generator: torch.Generator) -> None:
    batch = Batch.from_data_list([ring(4), ring(4), ring(4)])
    assert RandomWalkSubgraph(roots=1, length=1)(batch, generator).batch.tolist() == [0, 0, 1, 1, 2, 2]


def test_every_node_is_as_likely_as_another_on_a_ring() -> None:
    generator = torch.Generator().manual_seed(0)
    counts = torch.zeros(10)
    for _ in range(1000):
        counts[RandomWalkSubgraph(0.3)(ring(10), generator).n_id] += 1
    # Expected 300 each, standard deviation 14.5
    assert counts.min() > 240
    assert counts.max() < 360


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "either ratio, or roots and length"),
        ({"ratio": 0.5, "roots": 3, "length": 2}, "either ratio, or roots and length"),
        ({"ratio": 0.0}, "ratio must be above 0"),
        ({"ratio": 1.2}, r"ratio must be a probability in \[0, 1\], got 1.2"),
        ({"roots": 3}, "length must be an integer of at least 0, got None"),
        ({"roots": 0, "length": 2}, "roots must be an integer of at least 1, got 0"),
        ({"roots": 2, "length": -1}, "length must be an integer of at least 0, got -1"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, float], match: str) -> None:
    with pytest.raises(MarioError, match=match):
        RandomWalkSubgraph(**arguments)  # type: ignore[arg-type]


def test_a_graph_without_edge_index_is_an_error() -> None:
    with pytest.raises(MarioError, match="no edge_index"):
        RandomWalkSubgraph(0.5)(Data(x=torch.eye(2)))
