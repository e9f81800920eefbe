import pytest
import torch
from torch_geometric.utils import subgraph

from mario.graphs.csr import CSR

EDGES = torch.tensor([[2, 0, 0, 3, 2], [0, 1, 2, 3, 1]])


def test_rows_by_source_keep_the_order_of_edges() -> None:
    csr = CSR(EDGES, num_nodes=5)
    assert csr.starts.tolist() == [0, 2, 2, 4, 5, 5]
    assert csr.others.tolist() == [1, 2, 0, 1, 3]
    assert csr.edge_ids is not None
    assert csr.edge_ids.tolist() == [1, 2, 0, 4, 3]


def test_rows_by_target() -> None:
    csr = CSR(EDGES, num_nodes=5, by="target")
    assert csr.starts.tolist() == [0, 1, 3, 4, 5, 5]
    assert csr.others.tolist() == [2, 0, 2, 0, 3]


def test_edges_in_order_are_not_copied() -> None:
    edges = torch.tensor([[0, 0, 1], [2, 1, 0]])
    csr = CSR(edges, num_nodes=3)
    assert csr.edge_ids is None
    assert csr.others.data_ptr() == edges[1].data_ptr()
    assert csr.ids(torch.tensor([2, 0])).tolist() == [2, 0]


def test_slots_of_some_rows() -> None:
    slots, owner = CSR(EDGES, num_nodes=5).slots(torch.tensor([2, 4, 0]))
    assert slots.tolist() == [2, 3, 0, 1]
    assert owner.tolist() == [0, 0, 2, 2]


def test_no_edges_at_all() -> None:
    csr = CSR(torch.empty(2, 0, dtype=torch.int64), num_nodes=2)
    edge_index, edge_ids = csr.induced(torch.tensor([0, 1]), torch.full((2,), -1))
    assert edge_index.shape == (2, 0)
    assert edge_ids.shape == (0,)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ordered", [False, True])
def test_induced_edges_are_those_of_pyg(seed: int, ordered: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(40, (2, 300), generator=generator)
    if ordered:
        edges = edges[:, edges[0].argsort()]
    nodes = torch.randperm(40, generator=generator)[:15].sort().values
    position = torch.full((40,), -1)
    edge_index, edge_ids = CSR(edges, num_nodes=40).induced(nodes, position)
    expected, _, mask = subgraph(nodes, edges, relabel_nodes=True, num_nodes=40, return_edge_mask=True)
    assert torch.equal(edge_index, expected)
    assert torch.equal(edge_ids, mask.nonzero().view(-1))
    assert (position == -1).all()
