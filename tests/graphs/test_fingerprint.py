"""Two graphs that differ in any number have two fingerprints."""

import pytest
import torch
from torch_geometric.data import Data

from mario.graphs import training_graph
from mario.graphs.fingerprint import fingerprint


def graph() -> Data:
    x = torch.arange(6.0).view(2, 3)
    return Data(
        x=x,
        edge_index=torch.tensor([[0], [1]]),
        edge_weight=torch.tensor([0.5]),
        edge_attr=torch.tensor([[1.0, 2.0]]),
        y=torch.tensor([0, 1]),
        train_mask=torch.tensor([True, False]),
    )


@pytest.mark.parametrize("key", ["edge_weight", "edge_attr"])
def test_weights_and_attributes_of_edges_count(key: str) -> None:
    other, without = graph(), graph()
    other[key] = other[key] + 1
    del without[key]
    assert len({fingerprint(each) for each in (graph(), other, without)}) == 3


@pytest.mark.parametrize("key", ["x", "edge_index", "y", "train_mask"])
def test_all_that_training_sees_counts(key: str) -> None:
    other = graph()
    other[key] = other[key].flip(0)
    assert fingerprint(other) != fingerprint(graph()) == fingerprint(graph())


def test_the_test_set_counts_but_not_for_training() -> None:
    other = graph()
    other.ood_test_mask = torch.tensor([False, True])
    assert fingerprint(other) != fingerprint(graph())
    assert fingerprint(training_graph(other)) == fingerprint(training_graph(graph()))


def test_every_row_of_a_large_graph_counts() -> None:
    x = torch.zeros(2**16, 128)  # 32 MiB; a sample of its rows missed a third of them
    seen = {fingerprint(Data(x=x))}
    for row in range(0, 2**16, 2**12):
        other = x.clone()
        other[row + 777, 5] = 1.0
        seen.add(fingerprint(Data(x=other)))
    assert len(seen) == 17


def test_the_width_of_sparse_features_and_empty_tensors_count() -> None:
    narrow, wide = (torch.eye(2, width).to_sparse_csr() for width in (2, 3))
    assert fingerprint(Data(x=narrow)) != fingerprint(Data(x=wide)) == fingerprint(Data(x=wide.to_sparse_coo()))
    assert fingerprint(Data(x=torch.zeros(0, 3), scale=torch.tensor(1.0))) != fingerprint(Data(x=torch.zeros(0, 4)))


def test_sparse_features_and_another_order_of_edges() -> None:
    one, other = graph(), graph()
    one.x, other.x = one.x.to_sparse_csr(), (2 * other.x).to_sparse_csr()
    assert fingerprint(one) != fingerprint(other)
    other.edge_index = torch.tensor([[0, 1]]).t().contiguous()  # one edge, whose strides are any
    assert other.edge_index.stride() != graph().edge_index.stride()
    one.edge_index, one.x = graph().edge_index, other.x
    assert fingerprint(one) == fingerprint(other)
    many = Data(x=torch.rand(50, 3), edge_index=torch.randint(50, (2, 90)))
    moved = Data(x=many.x, edge_index=many.edge_index.flip(1))
    assert fingerprint(many) == fingerprint(many.clone()) != fingerprint(moved)
