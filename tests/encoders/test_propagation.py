"""`propagation_matrix` against the dense formulas and PyG's own normalisation."""

import pytest
import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from mario.encoders import propagation_matrix
from mario.errors import MarioError


def multigraph(seed: int) -> tuple[Tensor, int]:
    """Directed, with repeated edges, (repeated) self-loops and nodes without any edge."""
    generator = torch.Generator().manual_seed(seed)
    num_nodes = int(torch.randint(2, 12, (1,), generator=generator))
    edges = torch.randint(max(1, num_nodes - 2), (2, 3 * num_nodes), generator=generator)
    loop = edges[:1, :1].expand(2, 2)
    return torch.cat([edges, edges[:, :3], loop], 1), num_nodes


def adjacency(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Row i counts the messages that reach node i."""
    A = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for source, target in edge_index.T.tolist():
        A[target, source] += 1
    return A


def dense(edge_index: Tensor, num_nodes: int, normalisation: str) -> Tensor:
    A = adjacency(edge_index, num_nodes)
    if normalisation == "sum":
        return A + torch.eye(num_nodes)
    if normalisation == "mean":
        return A / A.sum(1, keepdim=True).clamp_min(1)
    A.fill_diagonal_(1)  # Kipf & Welling's A has no self-loops of its own
    D = torch.diag(A.sum(1) ** -0.5)
    return D @ A @ D


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("normalisation", ["symmetric", "mean", "sum"])
def test_equals_the_dense_formula(normalisation: str, seed: int) -> None:
    edge_index, num_nodes = multigraph(seed)
    P = propagation_matrix(edge_index, num_nodes, normalisation, torch.float64)  # type: ignore[arg-type]
    assert P.layout == torch.sparse_csr
    torch.testing.assert_close(P.to_dense(), dense(edge_index, num_nodes, normalisation))


@pytest.mark.parametrize("seed", range(8))
def test_symmetric_equals_pyg(seed: int) -> None:
    edge_index, num_nodes = multigraph(seed)
    (source, target), weight = gcn_norm(edge_index, num_nodes=num_nodes, dtype=torch.float64)
    expected = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    expected.index_put_((target, source), weight, accumulate=True)
    torch.testing.assert_close(propagation_matrix(edge_index, num_nodes, dtype=torch.float64).to_dense(), expected)


def test_worked_by_hand() -> None:
    edge_index = torch.tensor([[0, 1, 1], [2, 2, 2]])  # node 2 hears node 0 once and node 1 twice; node 3 is alone
    third = 1 / 3
    assert propagation_matrix(edge_index, 4, "mean").to_dense()[2].tolist() == pytest.approx([third, 2 * third, 0, 0])
    assert propagation_matrix(edge_index, 4, "sum").to_dense()[2].tolist() == [1, 2, 1, 0]
    # In-degrees with the self-loop: 1, 1, 4, 1.
    expected = torch.tensor([[1, 0, 0, 0], [0, 1, 0, 0], [0.5, 1, 0.25, 0], [0, 0, 0, 1]])
    torch.testing.assert_close(propagation_matrix(edge_index, 4).to_dense(), expected)


@pytest.mark.parametrize(("normalisation", "expected"), [("symmetric", 1.0), ("mean", 0.0), ("sum", 1.0)])
def test_without_edges_a_node_hears_at_most_itself(normalisation: str, expected: float) -> None:
    P = propagation_matrix(torch.empty(2, 0, dtype=torch.int64), 3, normalisation)  # type: ignore[arg-type]
    assert torch.equal(P.to_dense(), expected * torch.eye(3))


def test_the_csr_matrix_is_sound() -> None:
    edge_index, num_nodes = multigraph(3)
    edge_index = edge_index.unique(dim=1)  # torch's check refuses repeated columns, which products handle well
    for normalisation in ("symmetric", "mean"):
        P = propagation_matrix(edge_index, num_nodes, normalisation)  # type: ignore[arg-type]
        torch.sparse_csr_tensor(P.crow_indices(), P.col_indices(), P.values(), P.shape, check_invariants=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalisation", ["symmetric", "mean", "sum"])
def test_weights_have_the_dtype_asked_for(normalisation: str, dtype: torch.dtype) -> None:
    P = propagation_matrix(torch.tensor([[0], [1]]), 2, normalisation, dtype)  # type: ignore[arg-type]
    assert P.dtype == dtype


def test_unknown_normalisation_is_named() -> None:
    with pytest.raises(MarioError, match="normalisation must be one of symmetric, mean, sum, got 'max'"):
        propagation_matrix(torch.tensor([[0], [1]]), 2, "max")  # type: ignore[arg-type]


@pytest.mark.parametrize("normalisation", ["symmetric", "mean", "sum"])
@pytest.mark.parametrize("edge", [[[0], [2]], [[2], [0]], [[-1], [0]], [[0], [-1]]])
def test_an_edge_to_nowhere_is_an_error(edge: list[list[int]], normalisation: str) -> None:
    with pytest.raises(MarioError, match="edge_index must hold nodes 0 to 1, got"):
        propagation_matrix(torch.tensor(edge), 2, normalisation)  # type: ignore[arg-type]
