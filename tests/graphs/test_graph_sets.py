import pytest
import torch
from torch_geometric.data import Batch, Data

from mario.errors import MarioError
from mario.graphs.graph_sets import GraphSet, count_graphs, select_graphs, stack_graphs


def graph(nodes: int, label: int) -> Data:
    ends = torch.arange(nodes)
    return Data(
        x=torch.full((nodes, 2), float(label)),
        edge_index=torch.stack([ends, (ends + 1) % nodes]),
        edge_attr=torch.full((nodes,), float(label)),
        y=torch.tensor([label]),
    )


def three() -> Data:
    """Graphs of 2, 4 and 3 nodes, each a ring, labeled 10, 11 and 12."""
    return stack_graphs([graph(2, 10), graph(4, 11), graph(3, 12)])


def test_stacked_as_pyg_does() -> None:
    graphs = [graph(2, 10), graph(4, 11), graph(3, 12)]
    ours, theirs = stack_graphs(graphs), Batch.from_data_list(graphs)
    for key in ("x", "edge_index", "edge_attr", "y", "batch", "ptr"):
        assert torch.equal(ours[key], theirs[key]), key
    assert ours.num_graphs == count_graphs(ours) == count_graphs(theirs) == 3
    assert count_graphs(Data(x=torch.ones(2, 1), batch=torch.tensor([0, 1]))) == 2
    assert count_graphs(graphs[0]) == 1


def test_sets_can_be_stacked_again() -> None:
    ours = stack_graphs([three(), graph(5, 13)])
    assert ours.ptr.tolist() == [0, 2, 6, 9, 14]
    assert ours.edge_index[:, -5:].tolist() == [[9, 10, 11, 12, 13], [10, 11, 12, 13, 9]]


def test_sparse_features_are_stacked_and_selected() -> None:
    parts = [graph(2, 1), graph(3, 2)]
    for part in parts:
        part.x = (part.x * torch.tensor([0.0, 1.0])).to_sparse_csr()
    both = stack_graphs(parts)
    assert both.x.layout == torch.sparse_csr
    assert both.x.to_dense()[:, 1].tolist() == [1, 1, 2, 2, 2]
    assert select_graphs(both, torch.tensor([1])).x.to_dense()[:, 1].tolist() == [2, 2, 2]


def test_selected_graphs_bring_all_that_is_theirs() -> None:
    data = three()
    data.name, data.train_mask = "three", torch.tensor([True, False, True])
    cut = select_graphs(data, torch.tensor([2, 0]))
    assert cut.y.tolist() == [12, 10]
    assert cut.train_mask.tolist() == [True, True]
    assert cut.batch.tolist() == [0, 0, 0, 1, 1]
    assert cut.ptr.tolist() == [0, 3, 5]
    assert cut.n_id.tolist() == [6, 7, 8, 0, 1]
    assert cut.edge_index.tolist() == [[0, 1, 2, 3, 4], [1, 2, 0, 4, 3]]
    assert cut.edge_attr.tolist() == [12, 12, 12, 10, 10]
    assert (cut.name, cut.num_graphs, cut.num_nodes) == ("three", 2, 5)
    by_mask = select_graphs(data, torch.tensor([True, False, True]))
    assert by_mask.y.tolist() == [10, 12]
    assert select_graphs(by_mask, torch.tensor([1])).n_id.tolist() == [6, 7, 8]


def test_edges_in_any_order_and_a_pyg_batch_will_do(generator: torch.Generator) -> None:
    data = three()
    order = torch.randperm(9, generator=generator)
    data.edge_index, data.edge_attr = data.edge_index[:, order], data.edge_attr[order]
    cut = select_graphs(data, torch.tensor([1]))
    assert sorted(map(tuple, cut.edge_index.t().tolist())) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert cut.edge_attr.tolist() == [11] * 4
    batch = Batch.from_data_list([graph(2, 10), graph(4, 11)])
    assert select_graphs(batch, torch.tensor([1])).y.tolist() == [11]


def test_as_many_graphs_as_edges_or_nodes_is_no_trap() -> None:
    single = Data(x=torch.ones(1, 1), edge_index=torch.tensor([[0], [0]]), y=torch.tensor([5]))
    cut = select_graphs(stack_graphs([single] * 3), torch.tensor([0, 2]))
    assert cut.y.tolist() == [5, 5]
    assert cut.edge_index.tolist() == [[0, 1], [0, 1]]
    pair = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([7]))
    assert select_graphs(stack_graphs([pair] * 3), torch.tensor([1])).y.tolist() == [7]


@pytest.mark.parametrize(("nodes", "sizes"), [(1, [2, 4, 3]), (6, [6, 3]), (7, [6, 3]), (9, [9])])
def test_chunks_hold_every_graph_once_in_order(nodes: int, sizes: list[int]) -> None:
    parts = list(GraphSet(three()).chunks(nodes))
    assert [part.num_nodes for part in parts] == sizes
    assert torch.cat([part.y for part in parts]).tolist() == [10, 11, 12]


def test_wrong_input_is_named() -> None:
    with pytest.raises(MarioError, match="graphs is empty"):
        stack_graphs([])
    with pytest.raises(MarioError, match=r"which must lie in 0\.\.2, got 0\.\.3"):
        select_graphs(three(), torch.tensor([0, 3]))
    with pytest.raises(MarioError, match="mask of length 2, but the set has 3 graphs"):
        select_graphs(three(), torch.tensor([True, False]))
    with pytest.raises(MarioError, match="names no graph"):
        select_graphs(three(), torch.zeros(3, dtype=torch.bool))
    with pytest.raises(MarioError, match="int64 ids or a bool mask"):
        select_graphs(three(), torch.tensor([0.0]))
    with pytest.raises(MarioError, match="data has no batch"):
        GraphSet(graph(2, 0))


def test_one_dense_part_makes_the_whole_dense() -> None:
    edges = torch.zeros(2, 0, dtype=torch.long)
    dense = Data(x=torch.eye(2), edge_index=edges)
    sparse = Data(x=torch.eye(2).to_sparse_csr(), edge_index=edges)
    for pair in ([dense, sparse], [sparse, dense]):
        assert torch.equal(stack_graphs(pair).x, torch.eye(2).repeat(2, 1))
