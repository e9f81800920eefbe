import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views import DropEdges


def symmetric(pairs: int) -> Data:
    """A ring: every pair of neighbors is stored once a direction, in shuffled order."""
    source = torch.arange(pairs)
    edge_index = torch.stack([source, (source + 1) % pairs])
    edge_index = torch.cat([edge_index, edge_index.flip(0)], dim=1)
    return Data(
        edge_index=edge_index[:, torch.randperm(2 * pairs, generator=torch.Generator().manual_seed(1))], num_nodes=pairs
    )


def test_drops_nothing_at_zero_and_all_at_one(generator: torch.Generator) -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_weight=torch.tensor([0.5, 2.0]), num_nodes=3)
    same = DropEdges(0.0)(data, generator)
    assert torch.equal(same.edge_index, data.edge_index)
    none = DropEdges(1.0)(data, generator)
    assert none.edge_index.shape == (2, 0)
    assert none.edge_weight.shape == (0,)
    assert none.num_nodes == 3


def test_rate_is_p_for_each_direction_by_itself(generator: torch.Generator) -> None:
    data = symmetric(50_000)
    view = DropEdges(0.3)(data, generator)
    # 100,000 draws: standard error 0.00145
    assert view.num_edges / data.num_edges == pytest.approx(0.7, abs=0.006)
    kept = set(map(tuple, view.edge_index.t().tolist()))
    both = sum((target, source) in kept for source, target in kept) / 2
    assert both / 50_000 == pytest.approx(0.49, abs=0.01)


def test_undirected_drops_both_directions_together(generator: torch.Generator) -> None:
    data = symmetric(20_000)
    view = DropEdges(0.3, undirected=True)(data, generator)
    assert view.is_undirected()
    # 20,000 draws: standard error 0.0032
    assert view.num_edges / data.num_edges == pytest.approx(0.7, abs=0.013)


def test_undirected_does_not_depend_on_the_order_of_edges() -> None:
    data = symmetric(100)
    shuffled = Data(edge_index=data.edge_index[:, torch.randperm(200)], num_nodes=100)
    view = DropEdges(0.5, undirected=True)
    kept = [
        set(map(tuple, view(graph, torch.Generator().manual_seed(2)).edge_index.t().tolist()))
        for graph in (data, shuffled)
    ]
    assert kept[0] == kept[1]


def test_keeps_nodes_whose_edges_are_all_gone(generator: torch.Generator) -> None:
    with pytest.warns(UserWarning, match="num_nodes"):
        assert DropEdges(1.0)(Data(edge_index=torch.tensor([[0, 4], [1, 2]])), generator).num_nodes == 5


def test_node_attributes_are_kept_where_there_are_as_many_edges_as_nodes(generator: torch.Generator) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), edge_attr=torch.tensor([0, 1, 2]))
    view = DropEdges(0.5)(data, generator)
    assert view.num_edges < 3
    assert view.x.shape == (3, 3)
    assert torch.equal(view.edge_index[0], view.edge_attr)


def test_a_graph_without_edge_index_is_an_error() -> None:
    with pytest.raises(MarioError, match="no edge_index"):
        DropEdges(0.5)(Data(x=torch.eye(2)))
