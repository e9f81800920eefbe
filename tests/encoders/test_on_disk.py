"""Embedding through files is the same map as in memory, whatever the sizes of blocks and panels."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders import ENCODERS, Encoder, propagation_matrix, stored_adjacency
from mario.encoders.adjacency import Normalization
from mario.encoders.stored_adjacency import StoredAdjacency
from mario.errors import MarioError
from mario.graphs import load_mapped, save_mapped
from mario.graphs.paging import mapping_of
from mario.graphs.scratch import Scratch
from mario.graphs.sparse import csr

NODES, FEATURES = 40, 6


def graph(seed: int = 0, edges: int = 150) -> tuple[Tensor, Tensor, Tensor]:
    """Directed, with repeated edges, one self-loop at most per node, a hub, and nodes without edges."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(NODES, FEATURES, generator=generator) < 0.5)
    edge_index = torch.randint(NODES - 2, (2, edges), generator=generator)
    edge_index[1, :30] = 7
    loops = edge_index[0] == edge_index[1]
    edge_index = torch.cat([edge_index[:, ~loops], edge_index[:, :3][:, ~loops[:3]], torch.tensor([[1, 7], [1, 7]])], 1)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=generator)]
    weight = torch.rand(edge_index.size(1), generator=generator, dtype=torch.float64)
    return x, edge_index, weight * (weight > 0.2)


def make(kind: str, **switches: object) -> Encoder:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = ENCODERS[kind](FEATURES, **switches).double()  # type: ignore[arg-type]
        for parameter in encoder.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
        return encoder


@pytest.fixture(params=[2**22, 20], ids=["one bucket", "many buckets"])
def few_edges(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_adjacency, "_EDGES", request.param)


@pytest.mark.usefixtures("few_edges")
class TestAdjacency:
    @pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("edges", [150, 0])
    def test_has_the_rows_of_the_matrix(self, normalization: Normalization, weighted: bool, edges: int) -> None:
        _, edge_index, weight = (
            graph(edges=edges) if edges else (None, torch.empty(2, 0).long(), torch.empty(0).double())
        )
        given = weight if weighted else None
        matrix = propagation_matrix(edge_index, NODES, normalization, torch.float64, given)
        stored = StoredAdjacency(edge_index, NODES, normalization, torch.float64, given, Scratch())
        blocks = list(stored.blocks(9))
        assert [rows.start for rows in blocks[1:]] == [rows.stop for rows in blocks[:-1]]
        assert (blocks[0].start, blocks[-1].stop) == (0, NODES)
        for rows in blocks:
            starts, columns, values = stored.rows(rows)
            size = rows.stop - rows.start
            assert starts.dtype == columns.dtype == torch.int32
            assert size <= 9
            part = csr(starts.long(), columns.long(), values, (size, NODES))
            torch.testing.assert_close(part.to_dense(), matrix.to_dense()[rows], rtol=0, atol=1e-15)
        if not weighted:  # the same bits in the same order
            assert torch.equal(torch.cat([stored.rows(rows)[1] for rows in blocks]).long(), matrix.col_indices())
            assert torch.equal(torch.cat([stored.rows(rows)[2] for rows in blocks]), matrix.values())

    def test_for_attention_each_node_has_one_loop_and_no_values(self) -> None:
        _, edge_index, weight = graph()
        stored = StoredAdjacency(edge_index, NODES, None, torch.float64, weight, Scratch())
        starts, columns, values = stored.rows(slice(0, NODES))
        assert values.numel() == 0
        for node in range(NODES):
            into = columns[starts[node] : starts[node + 1]].tolist()
            others = edge_index[0, (edge_index[1] == node) & (edge_index[0] != node)].tolist()
            assert into == sorted([*others, node])

    def test_a_node_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(MarioError, match="node 40"):
            StoredAdjacency(torch.tensor([[0], [40]]), NODES, "mean", torch.float32, None, Scratch())
        with pytest.raises(MarioError, match="edge_weight must have one number for each of 1 edges"):
            StoredAdjacency(torch.tensor([[0], [1]]), NODES, "mean", torch.float32, torch.ones(2), Scratch())


@pytest.mark.usefixtures("few_edges")
@pytest.mark.parametrize("kind", list(ENCODERS))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("hidden_channels", [3, 30])  # narrower and wider than the features; one panel and four
@pytest.mark.parametrize("block", [7, 2**16])
def test_on_disk_it_is_the_same_map(
    kind: str, weighted: bool, hidden_channels: int, block: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    x, edge_index, weight = graph()
    given = weight if weighted and kind != "gat" else None
    encoder = make(kind, hidden_channels=hidden_channels, num_layers=3)
    encoder(x, edge_index)  # gives batch norm statistics to remember
    encoder.eval()
    monkeypatch.setattr("mario.encoders.encoder.BLOCK", block)
    for form in (x, x.to_sparse_csr()):
        with torch.no_grad():
            whole = encoder(form, edge_index, given)
            with Scratch(tmp_path, memory=1):
                found = encoder(form, edge_index, given)
        assert mapping_of(found) is not None
        torch.testing.assert_close(found, whole, rtol=1e-12, atol=1e-12)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", list(ENCODERS))
def test_a_graph_on_disk_and_the_same_bits_each_time(kind: str, tmp_path: Path) -> None:
    x, edge_index, weight = graph()
    save_mapped(Data(x=x.float(), edge_index=edge_index, edge_weight=weight.float()), tmp_path / "graph")
    data = load_mapped(tmp_path / "graph")
    given = data.edge_weight if kind != "gat" else None
    encoder = make(kind, hidden_channels=20).float().eval()
    with torch.no_grad():
        whole = encoder(data.x, data.edge_index, given)
        with Scratch(memory=1):
            found = [encoder(data.x, data.edge_index, given) for _ in range(2)]
    torch.testing.assert_close(found[0], whole)
    assert torch.equal(*found)


def test_training_and_attributes_of_edges_stay_in_memory() -> None:
    x, edge_index, _ = graph()
    attr = torch.rand(edge_index.size(1), 2, dtype=torch.float64)
    with Scratch(memory=1):
        encoder = make("gat", hidden_channels=4, edge_dim=2)
        assert mapping_of(encoder(x, edge_index, edge_attr=attr)) is None
        encoder.eval()
        with torch.no_grad():
            assert mapping_of(encoder(x, edge_index, edge_attr=attr)) is None
            assert mapping_of(encoder(x, edge_index)) is not None
