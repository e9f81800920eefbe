import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.views import PerturbEdges


def two_graphs(nodes: int = 50, edges: int = 400) -> Data:
    """Two random graphs side by side."""
    generator = torch.Generator().manual_seed(1)
    ends = torch.randint(nodes, (2, 2 * edges), generator=generator)
    ends[:, edges:] += nodes
    return Data(x=torch.ones(2 * nodes, 1), edge_index=ends, batch=torch.arange(2).repeat_interleave(nodes))


def test_a_share_of_the_edges_is_replaced_within_its_graph(generator: torch.Generator) -> None:
    data = two_graphs(edges=20_000)
    view = PerturbEdges(0.3)(data, generator)
    changed = (view.edge_index != data.edge_index).any(0)
    # A new edge is the old one with probability 1/50².
    assert changed.float().mean().item() == pytest.approx(0.3 * (1 - 1 / 2500), abs=0.01)
    assert torch.equal(data.batch[view.edge_index[0]], data.batch[view.edge_index[1]])
    assert torch.equal(data.batch[view.edge_index[0]], data.batch[data.edge_index[0]])


def test_added_edges_are_uniform_over_pairs(generator: torch.Generator) -> None:
    data = Data(edge_index=torch.zeros(2, 30_000, dtype=torch.long), num_nodes=3)
    view = PerturbEdges(1.0)(data, generator)
    pairs = torch.bincount(view.edge_index[0] * 3 + view.edge_index[1], minlength=9).float() / 30_000
    torch.testing.assert_close(pairs, torch.full((9,), 1 / 9), atol=0.01, rtol=0)


def test_nodes_of_a_graph_need_not_stand_together(generator: torch.Generator) -> None:
    batch = torch.tensor([0, 1, 0, 1])
    data = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[0, 1] * 50, [2, 3] * 50]), batch=batch)
    view = PerturbEdges(1.0)(data, generator)
    assert torch.equal(batch[view.edge_index[0]], batch[data.edge_index[0]])
    assert torch.equal(batch[view.edge_index[1]], batch[data.edge_index[0]])
    assert view.edge_index.unique().tolist() == [0, 1, 2, 3]


def test_attributes_stay_and_the_callers_graph_is_untouched(generator: torch.Generator) -> None:
    data = two_graphs()
    data.edge_attr = torch.arange(800.0)
    before = data.edge_index.clone()
    view = PerturbEdges(0.5)(data, generator)
    assert torch.equal(view.edge_attr, data.edge_attr)
    assert torch.equal(data.edge_index, before)


def test_nothing_to_do_and_wrong_input(generator: torch.Generator) -> None:
    data = two_graphs()
    assert torch.equal(PerturbEdges(0.0)(data, generator).edge_index, data.edge_index)
    empty = Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    assert PerturbEdges(0.5)(empty, generator).edge_index.shape == (2, 0)
    with pytest.raises(MarioError, match="p must be a probability"):
        PerturbEdges(1.5)
    with pytest.raises(MarioError, match="edge_index"):
        PerturbEdges(0.5)(Data(x=torch.ones(2, 1)), generator)


def test_same_generator_same_view() -> None:
    first, again = (PerturbEdges(0.4)(two_graphs(), torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first.edge_index, again.edge_index)
