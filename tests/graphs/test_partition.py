from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch_geometric.utils import stochastic_blockmodel_graph

from mario.errors import MarioError
from mario.graphs import partition as partition_module
from mario.graphs.partition import choose_method, partition

both = pytest.mark.parametrize("method", ["metis", "bfs"])


def grid(side: int) -> torch.Tensor:
    nodes = torch.arange(side * side).view(side, side)
    right = torch.stack([nodes[:, :-1].reshape(-1), nodes[:, 1:].reshape(-1)])
    down = torch.stack([nodes[:-1].reshape(-1), nodes[1:].reshape(-1)])
    return torch.cat([right, down], dim=1)


def cut(edges: torch.Tensor, parts: torch.Tensor) -> float:
    source, target = parts[edges]
    return float((source != target).float().mean())


@both
def test_parts_are_balanced_and_cut_few_edges(method: str) -> None:
    parts = partition(grid(30), 900, 9, method)
    sizes = torch.bincount(parts)
    assert sizes.numel() == 9
    assert int(sizes.min()) >= 89
    assert int(sizes.max()) <= 111
    # Nine squares of 10 × 10 would cut 7 %, a partition at random 89 %.
    assert cut(grid(30), parts) < 0.25


@both
def test_is_deterministic_and_draws_nothing(method: str) -> None:
    before = torch.get_rng_state()
    assert torch.equal(partition(grid(12), 144, 5, method), partition(grid(12), 144, 5, method))
    assert torch.equal(torch.get_rng_state(), before)


@both
def test_direction_loops_and_parallel_edges_play_no_part(method: str) -> None:
    edges = grid(8)
    loops = torch.arange(64).expand(2, -1)
    noisy = torch.cat([edges.flip(0), loops, *[edges[:, :9]] * 300], dim=1)
    assert torch.equal(partition(noisy, 64, 4, method), partition(edges, 64, 4, method))


def test_metis_finds_planted_blocks() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        edges = stochastic_blockmodel_graph([40, 40, 40], torch.eye(3) * 0.4 + 0.005)
    assert [block.unique().numel() for block in partition(edges, 120, 3, "metis").split(40)] == [1, 1, 1]


def test_label_propagation_keeps_every_part() -> None:
    star = torch.stack([torch.zeros(40, dtype=torch.int64), torch.arange(1, 41)])
    sizes = torch.bincount(partition(star, 41, 10, "bfs"), minlength=10)
    assert int(sizes.min()) >= 3
    assert int(sizes.max()) <= 5


@both
def test_a_graph_without_edges_is_partitioned(method: str) -> None:
    parts = partition(torch.empty(2, 0, dtype=torch.int64), 10, 2, method)
    assert torch.bincount(parts).tolist() == [5, 5]


def test_a_real_graph_is_cut_far_less_than_by_chance(mario_data: Path) -> None:
    with np.load(mario_data / "Coauthor/CS/raw/ms_academic_cs.npz") as file:
        links = csr_matrix((file["adj_data"], file["adj_indices"], file["adj_indptr"]), shape=file["adj_shape"]).tocoo()
    edges = torch.from_numpy(np.stack([links.row, links.col]).astype(np.int64))
    assert cut(edges, partition(edges, 18_333, 50, "bfs")) < 0.5
    assert cut(edges, partition(edges, 18_333, 50, "metis")) < 0.35


def test_auto_is_metis_where_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_method("auto") == "metis"
    monkeypatch.setattr(partition_module.importlib.util, "find_spec", lambda name: None)
    assert choose_method("auto") == "bfs"
    with pytest.raises(MarioError, match=r"needs pymetis, which is not installed: pip install .*method='bfs'"):
        choose_method("metis")


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(MarioError, match="method must be one of auto, metis, bfs, got 'louvain'"):
        choose_method("louvain")
