"""Two graphs that differ anywhere in what training sees have two fingerprints."""

import pytest
import torch
from torch_geometric.data import Data

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


def test_what_it_does_not_see_does_not_count() -> None:
    other = graph()
    other.ood_test_mask = torch.tensor([False, True])
    assert fingerprint(other) == fingerprint(graph())


def test_sparse_features() -> None:
    one, other = graph(), graph()
    one.x, other.x = one.x.to_sparse_csr(), (2 * other.x).to_sparse_csr()
    assert fingerprint(one) != fingerprint(other)
    other.edge_index = torch.tensor([[0, 1]]).t().contiguous()  # one edge, whose strides are any
    assert other.edge_index.stride() != graph().edge_index.stride()
    one.edge_index, one.x = graph().edge_index, other.x
    assert fingerprint(one) == fingerprint(other)
    wider = graph()
    wider.x = torch.sparse_csr_tensor(
        other.x.crow_indices(), other.x.col_indices(), other.x.values(), (2, 4), check_invariants=True
    )
    assert fingerprint(wider) != fingerprint(other)


def test_every_row_of_a_large_graph_counts() -> None:
    """Of more than 2²² numbers, only evenly spaced blocks were read: a third of these rows."""
    many = Data(x=torch.zeros(2**17 + 2**16, 32), edge_index=torch.zeros(2, 0, dtype=torch.int64))
    found = {fingerprint(many)}
    for row in (0, 2_500, 33_382, 101_324, 193_971, many.x.size(0) - 1):  # the inner four were between two blocks
        many.x[row, 5] = 1
        found.add(fingerprint(many))
    assert len(found) == 7
