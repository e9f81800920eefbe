import pytest
import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.subgraph import subgraph

#   0 → 1 → 2 → 3 → 0
EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])


def square(x: torch.Tensor) -> Data:
    weights = torch.tensor([[0.1], [0.2], [0.3], [0.4]])
    return Data(
        x=x, edge_index=EDGES, edge_attr=weights, y=torch.arange(4), name="square", train_mask=torch.eye(4)[1] > 0
    )


def test_nodes_edges_and_attributes_follow_in_the_given_order() -> None:
    x = torch.arange(8.0).view(4, 2)
    cut = subgraph(square(x), torch.tensor([3, 1, 2]))
    assert cut.edge_index.tolist() == [[1, 2], [2, 0]]
    assert torch.equal(cut.edge_attr, torch.tensor([[0.2], [0.3]]))
    assert cut.x.tolist() == [[6, 7], [2, 3], [4, 5]]
    assert cut.y.tolist() == [3, 1, 2]
    assert cut.train_mask.tolist() == [False, True, False]
    assert cut.n_id.tolist() == [3, 1, 2]
    assert cut.name == "square"


@pytest.mark.parametrize("rows", [[2, 0], [1], [3, 2, 1, 0], []])
def test_sparse_rows_equal_dense_rows(rows: list[int]) -> None:
    x = torch.tensor([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 0, 5]])
    ids = torch.tensor(rows, dtype=torch.int64)
    cut = subgraph(square(x.to_sparse_csr()), ids)
    assert cut.x.layout == torch.sparse_csr
    assert cut.x.shape == (len(rows), 3)
    assert torch.equal(cut.x.to_dense(), x[ids])
    assert cut.num_nodes == len(rows)


def test_mask_and_ids_agree_and_a_cut_of_a_cut_keeps_the_first_ids() -> None:
    data = square(torch.eye(4))
    by_mask = subgraph(data, torch.tensor([False, True, True, True]))
    assert by_mask.n_id.tolist() == [1, 2, 3]
    twice = subgraph(by_mask, torch.tensor([2, 0]))
    assert twice.n_id.tolist() == [3, 1]
    assert torch.equal(twice.x, data.x[[3, 1]])


def test_the_graph_that_was_cut_is_unchanged() -> None:
    data = square(torch.eye(4))
    subgraph(data, torch.tensor([0, 1]))
    assert "n_id" not in data
    assert torch.equal(data.edge_index, EDGES)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (torch.tensor([0, 4]), r"0\.\.3"),
        (torch.tensor([-1]), r"0\.\.3"),
        (torch.tensor([1, 1]), "twice"),
        (torch.tensor([0.5]), "int64"),
        (torch.tensor([[0]]), "one dimension"),
        (torch.tensor([True]), "mask of length 1, but the graph has 4"),
    ],
)
def test_wrong_ids_are_named(ids: torch.Tensor, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        subgraph(square(torch.eye(4)), ids)
