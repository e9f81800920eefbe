"""`propagation_matrix` and the products by it against the dense formulas and PyG's own normalization."""

import copy
import pickle
import threading
import warnings
import weakref
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from mario.encoders import Propagation, propagation_matrix, propagation_of
from mario.encoders.adjacency import entries
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


def dense(edge_index: Tensor, num_nodes: int, normalization: str) -> Tensor:
    A = adjacency(edge_index, num_nodes)
    if normalization == "sum":
        return A + torch.eye(num_nodes)
    if normalization == "mean":
        return A / A.sum(1, keepdim=True).clamp_min(1)
    A.fill_diagonal_(1)  # Kipf & Welling's A has no self-loops of its own
    D = torch.diag(A.sum(1) ** -0.5)
    return D @ A @ D


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
def test_equals_the_dense_formula(normalization: str, seed: int) -> None:
    edge_index, num_nodes = multigraph(seed)
    P = propagation_matrix(edge_index, num_nodes, normalization, torch.float64)  # type: ignore[arg-type]
    assert P.layout == torch.sparse_csr
    torch.testing.assert_close(P.to_dense(), dense(edge_index, num_nodes, normalization))


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


@pytest.mark.parametrize(("normalization", "expected"), [("symmetric", 1.0), ("mean", 0.0), ("sum", 1.0)])
def test_without_edges_a_node_hears_at_most_itself(normalization: str, expected: float) -> None:
    P = propagation_matrix(torch.empty(2, 0, dtype=torch.int64), 3, normalization)  # type: ignore[arg-type]
    assert torch.equal(P.to_dense(), expected * torch.eye(3))


def test_the_csr_matrix_is_sound() -> None:
    edge_index, num_nodes = multigraph(3)
    edge_index = edge_index.unique(dim=1)  # torch's check refuses repeated columns, which products handle well
    for normalization in ("symmetric", "mean"):
        P = propagation_matrix(edge_index, num_nodes, normalization)  # type: ignore[arg-type]
        torch.sparse_csr_tensor(P.crow_indices(), P.col_indices(), P.values(), P.shape, check_invariants=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
def test_weights_have_the_given_dtype(normalization: str, dtype: torch.dtype) -> None:
    P = propagation_matrix(torch.tensor([[0], [1]]), 2, normalization, dtype)  # type: ignore[arg-type]
    assert P.dtype == dtype


def test_unknown_normalization_is_named() -> None:
    with pytest.raises(MarioError, match="normalization must be one of symmetric, mean, sum, got 'max'"):
        propagation_matrix(torch.tensor([[0], [1]]), 2, "max")  # type: ignore[arg-type]


@pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
@pytest.mark.parametrize("edge", [[[0], [2]], [[2], [0]], [[-1], [0]], [[0], [-1]]])
def test_an_edge_to_nowhere_is_an_error(edge: list[list[int]], normalization: str) -> None:
    with pytest.raises(MarioError, match="edge_index names node"):
        propagation_matrix(torch.tensor(edge), 2, normalization)  # type: ignore[arg-type]


def large(seed: int = 0, nodes: int = 60) -> tuple[Tensor, int]:
    """A multigraph too sparse for a dense product. Node 0 hears nearly all and sends nothing; the last has no edge."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(1, nodes - 1, (2, 2 * nodes), generator=generator)
    hub = torch.stack([torch.arange(1, nodes - 1), torch.zeros(nodes - 2, dtype=torch.int64)])
    return torch.cat([edges, edges[:, :5], edges[:1, :2].expand(2, 2), hub], 1), nodes


GRAPHS: dict[str, tuple[Tensor, int]] = {
    "multigraph": large(),
    "small and full": multigraph(1),
    "no edges": (torch.empty(2, 0, dtype=torch.int64), 20),
    "one node": (torch.empty(2, 0, dtype=torch.int64), 1),
    "one node with a loop": (torch.tensor([[0], [0]]), 1),
}
every_graph = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
# Products in single precision differ by size: both widths reach every one of them.
every_product = pytest.mark.parametrize(
    ("dtype", "width"),
    [(torch.float32, 7), (torch.float32, 2**14), (torch.float64, 7)],
    ids=["small", "large", "double"],
)


def sparse(rows: int, columns: int, generator: torch.Generator, kept: float = 0.05) -> Tensor:
    values = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    return values * (torch.rand(rows, columns, generator=generator) < kept)


@every_graph
@every_product
@pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
def test_values_and_gradients_are_those_of_the_dense_formula(
    normalization: str, dtype: torch.dtype, width: int, graph: tuple[Tensor, int], generator: torch.Generator
) -> None:
    edge_index, num_nodes = graph
    P = Propagation.of(edge_index, num_nodes, normalization, dtype)  # type: ignore[arg-type]
    A = dense(edge_index, num_nodes, normalization)
    x = torch.randn(num_nodes, width, generator=generator, dtype=dtype, requires_grad=True)
    outer = torch.randn(num_nodes, width, generator=generator, dtype=dtype)
    assert P.shape == (num_nodes, num_nodes)
    torch.testing.assert_close(P(x), (A @ x.double()).to(dtype))
    torch.testing.assert_close(torch.autograd.grad(P(x), x, outer)[0], (A.t() @ outer.double()).to(dtype))


def test_a_gradient_can_be_differentiated_again() -> None:
    P = Propagation.of(*large(nodes=20), dtype=torch.float64)
    x = torch.randn(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: P(x).pow(3), x)


@every_product
@pytest.mark.parametrize("shape", [(40, 30), (30, 40), (1, 50), (50, 1)])
def test_a_ready_matrix_may_be_rectangular(
    shape: tuple[int, int], dtype: torch.dtype, width: int, generator: torch.Generator
) -> None:
    A = sparse(*shape, generator)
    P = Propagation.from_matrix(A.to(dtype).to_sparse_csr())
    x = torch.randn(shape[1], width, generator=generator, dtype=dtype, requires_grad=True)
    outer = torch.randn(shape[0], width, generator=generator, dtype=dtype)
    back = (A.t() @ outer.double()).to(dtype)
    assert P.shape == shape
    torch.testing.assert_close(P(x), (A @ x.double()).to(dtype))
    torch.testing.assert_close(torch.autograd.grad(P(x), x, outer)[0], back)
    torch.testing.assert_close(P.transpose(outer), back)


@every_product
def test_features_in_any_order_of_memory(dtype: torch.dtype, width: int, generator: torch.Generator) -> None:
    edge_index, num_nodes = large()
    P, A = Propagation.of(edge_index, num_nodes, dtype=dtype), dense(edge_index, num_nodes, "symmetric")
    x = torch.randn(2 * width, num_nodes, generator=generator, dtype=dtype)
    for each in (x.t(), x[::2].t(), x[:1].t().expand(-1, width)):
        torch.testing.assert_close(P(each), (A @ each.double()).to(dtype))


@every_product
def test_only_the_rows_that_are_sent_reach_a_node(dtype: torch.dtype, width: int) -> None:
    """No product may multiply uninitialized memory, or what is not sent, by zero: that could be nan."""
    P = Propagation.of(torch.tensor([[0], [1]]).repeat(1, 32), 20, "mean", dtype)
    x = torch.full((20, width), float("nan"), dtype=dtype)
    x[0] = 2
    for _ in range(3):
        assert P(x).mean(1).tolist() == [0, 2] + [0] * 18


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_features_of_no_width(dtype: torch.dtype) -> None:
    assert Propagation.of(*large())(torch.empty(60, 0, dtype=dtype)).shape == (60, 0)


@pytest.mark.parametrize("kind", ["sparse", "full"])
def test_blocks_of_rows_stack_to_the_whole(kind: str, generator: torch.Generator) -> None:
    A = sparse(50, 40, generator, kept=0.05 if kind == "sparse" else 1.0)
    P = Propagation.from_matrix(A.to_sparse_csr())
    x = torch.randn(40, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    bounds = [0, 1, 1, 17, 48, 50]
    blocks = [P.rows(start, stop) for start, stop in pairwise(bounds)]
    assert [block.shape for block in blocks] == [(1, 40), (0, 40), (16, 40), (31, 40), (2, 40)]
    stacked = torch.cat([block(x) for block in blocks])
    torch.testing.assert_close(stacked, A @ x)
    (gradient,) = torch.autograd.grad(stacked.square().sum(), x)
    torch.testing.assert_close(gradient, 2 * A.t() @ A @ x)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 61)])
def test_rows_that_are_not_there_are_an_error(start: int, stop: int) -> None:
    with pytest.raises(MarioError, match=f"must ascend within 0 to 60, got {start} and {stop}"):
        Propagation.of(*large()).rows(start, stop)


def test_the_transpose_is_built_once() -> None:
    P = Propagation.of(*large())
    P(torch.ones(60, 2, requires_grad=True)).sum().backward()
    assert P.transpose is P.transpose


def test_of_an_undirected_graph_the_transpose_is_the_map_itself() -> None:
    edge_index, num_nodes = large()
    both = torch.cat([edge_index, edge_index.flip(0)], 1)
    P = Propagation.of(both, num_nodes)
    assert P.transpose is P
    Q = Propagation.of(both, num_nodes, "mean")
    assert Q.transpose is not Q
    R = Propagation.of(edge_index, num_nodes)
    assert R.transpose is not R


@pytest.mark.parametrize("kept", [0.3, 0.05])
def test_full_and_sparse_matrices_give_the_same_product(kept: float, generator: torch.Generator) -> None:
    A = sparse(30, 30, generator, kept)
    P = Propagation.from_matrix(A.to_sparse_csr())
    x = torch.randn(30, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(P(x), A @ x)
    torch.testing.assert_close(torch.autograd.grad(P(x).sum(), x)[0], A.sum(0).unsqueeze(1).expand(-1, 4))


def test_a_dense_matrix_gets_its_gradient_and_a_sparse_one_refuses(generator: torch.Generator) -> None:
    A = sparse(5, 4, generator, 0.7).requires_grad_()
    x = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    P = Propagation.from_matrix(A)
    torch.testing.assert_close(P(x), A @ x)
    torch.testing.assert_close(torch.autograd.grad(P(x).sum(), A)[0], x.sum(1).expand(5, -1))
    with pytest.raises(MarioError, match="matrix is sparse and requires grad"):
        Propagation.from_matrix(A.detach().to_sparse_csr().requires_grad_())


@pytest.mark.parametrize("column", [-1, 20])
def test_a_matrix_with_a_column_out_of_range_is_an_error(column: int) -> None:
    crow = torch.tensor([0, 1] + [1] * 19)
    matrix = torch.sparse_csr_tensor(crow, torch.tensor([column]), torch.ones(1), (20, 20), check_invariants=False)
    with pytest.raises(MarioError, match=f"matrix must have columns 0 to 19, got {column} to {column}"):
        Propagation.from_matrix(matrix)


def test_other_layouts_and_shapes_are_named() -> None:
    with pytest.raises(MarioError, match=r"matrix must be dense or torch.sparse_csr .* got torch.sparse_coo with 2"):
        Propagation.from_matrix(torch.eye(2).to_sparse())
    with pytest.raises(MarioError, match=r"matrix must be .* got torch.strided with 1"):
        Propagation.from_matrix(torch.ones(2))
    P = Propagation.of(*large())
    for x in (torch.ones(59, 2), torch.ones(60), torch.ones(60, 2).to_sparse_csr()):
        with pytest.raises(MarioError, match=r"x must be dense of shape \[60, width\], got"):
            P(x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_features_of_another_dtype_keep_theirs(dtype: torch.dtype, generator: torch.Generator) -> None:
    edge_index, num_nodes = large()
    P, A = Propagation.of(edge_index, num_nodes, dtype=torch.float32), dense(edge_index, num_nodes, "symmetric")
    x = torch.randn(num_nodes, 8, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()
    out = P(x)
    (gradient,) = torch.autograd.grad(out, x, torch.ones_like(out))
    assert out.dtype == gradient.dtype == dtype
    tolerance = 1e-6 if dtype == torch.float64 else 0.02  # of float32's weights, of bfloat16's 8 bits
    torch.testing.assert_close(out.double(), A @ x.double(), atol=tolerance, rtol=tolerance)
    expected = A.sum(0).unsqueeze(1).expand(-1, 8)
    torch.testing.assert_close(gradient.double(), expected, atol=tolerance, rtol=tolerance)


def test_the_order_of_edges_does_not_matter(generator: torch.Generator) -> None:
    edge_index, num_nodes = large()
    order = torch.randperm(edge_index.size(1), generator=generator)
    x = torch.randn(num_nodes, 9, generator=generator)
    assert torch.equal(Propagation.of(edge_index, num_nodes)(x), Propagation.of(edge_index[:, order], num_nodes)(x))


def test_a_copy_is_the_same_map(generator: torch.Generator) -> None:
    P = Propagation.of(*large())
    x = torch.randn(60, 3, generator=generator)
    for other in (copy.deepcopy(P), pickle.loads(pickle.dumps(P))):
        assert torch.equal(other(x), P(x))


def test_entries_are_the_edges_of_a_matrix() -> None:
    edge_index = torch.tensor([[2, 0, 1], [0, 1, 1]])
    assert entries(propagation_matrix(edge_index, 3, "mean")).tolist() == edge_index.tolist()


def weighted(seed: int) -> tuple[Tensor, int, Tensor]:
    """A multigraph whose self-loops are not repeated, as PyG keeps one of them only; some weights are zero."""
    edge_index, num_nodes = multigraph(seed)
    loops = edge_index[0] == edge_index[1]
    edge_index = torch.cat([edge_index[:, ~loops], edge_index[:, loops].unique(dim=1)], 1)
    weight = torch.rand(edge_index.size(1), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return edge_index, num_nodes, weight * (weight > 0.2)


class TestEdgeWeight:
    @pytest.mark.parametrize("seed", range(8))
    def test_symmetric_equals_pyg(self, seed: int) -> None:
        edge_index, num_nodes, weight = weighted(seed)
        (source, target), normalized = gcn_norm(edge_index, weight, num_nodes, dtype=torch.float64)
        expected = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
        expected.index_put_((target, source), normalized, accumulate=True)
        P = propagation_matrix(edge_index, num_nodes, dtype=torch.float64, edge_weight=weight)
        torch.testing.assert_close(P.to_dense(), expected)

    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("normalization", ["mean", "sum"])
    def test_mean_and_sum_equal_the_formula(self, normalization: str, seed: int) -> None:
        edge_index, num_nodes, weight = weighted(seed)
        A = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
        for (source, target), each in zip(edge_index.T.tolist(), weight.tolist(), strict=True):
            A[target, source] += each
        total = A.sum(1, keepdim=True)
        mean = torch.where(total > 0, A / total.clamp_min(1e-300), 0.0)
        expected = mean if normalization == "mean" else A + torch.eye(num_nodes)
        P = propagation_matrix(edge_index, num_nodes, normalization, torch.float64, weight)  # type: ignore[arg-type]
        torch.testing.assert_close(P.to_dense(), expected)

    @pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
    def test_ones_give_the_same_bits_as_no_weights(self, normalization: str, generator: torch.Generator) -> None:
        edge_index, num_nodes = large()
        x, ones = torch.randn(num_nodes, 9, generator=generator), torch.ones(edge_index.size(1))
        with_ones = Propagation.of(edge_index, num_nodes, normalization, edge_weight=ones)  # type: ignore[arg-type]
        assert torch.equal(with_ones(x), Propagation.of(edge_index, num_nodes, normalization)(x))  # type: ignore[arg-type]

    def test_a_symmetric_weighted_graph_is_its_own_transpose(self) -> None:
        edge_index, num_nodes = large()
        pairs = torch.cat([edge_index, edge_index.flip(0)], 1).unique(dim=1)
        both = torch.rand(num_nodes, num_nodes, generator=torch.Generator().manual_seed(0))
        weight = (both + both.t())[pairs[0], pairs[1]]
        P = Propagation.of(pairs, num_nodes, edge_weight=weight)
        assert P.transpose is P

    @pytest.mark.parametrize("normalization", ["symmetric", "mean", "sum"])
    def test_without_edges(self, normalization: str) -> None:
        none = torch.empty(2, 0, dtype=torch.int64)
        P = propagation_matrix(none, 3, normalization, edge_weight=torch.empty(0))  # type: ignore[arg-type]
        assert torch.equal(P.to_dense(), torch.zeros(3, 3) if normalization == "mean" else torch.eye(3))

    def test_the_cache_knows_edges_and_weights(self) -> None:
        edge_index, num_nodes = large()
        one, two = torch.ones(edge_index.size(1)), torch.full((edge_index.size(1),), 2.0)
        P = propagation_of(edge_index, num_nodes, edge_weight=one)
        assert propagation_of(edge_index, num_nodes, edge_weight=one) is P
        assert propagation_of(edge_index, num_nodes) is not P
        assert propagation_of(edge_index, num_nodes, edge_weight=two) is not P
        assert propagation_of(edge_index.clone(), num_nodes, edge_weight=one) is not P
        one.mul_(3)
        assert propagation_of(edge_index, num_nodes, edge_weight=one) is not P

    def test_a_cached_map_is_freed_with_its_edges_or_its_weights(self) -> None:
        for freed in ("edges", "weights"):
            edge_index, num_nodes = large()
            edge_index, weight = edge_index.clone(), torch.ones(edge_index.size(1))
            alive = weakref.ref(propagation_of(edge_index, num_nodes, edge_weight=weight))
            assert alive() is not None
            if freed == "edges":
                del edge_index
            else:
                del weight
            assert alive() is None

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (torch.ones(3), r"edge_weight must be a tensor of shape \[2\], one per edge, got \[3\]"),
            (torch.ones(2, 1), r"got \[2, 1\]"),
            (torch.Generator(), "got Generator"),
            (torch.ones(2, requires_grad=True), "edge_weight requires grad"),
        ],
    )
    def test_bad_weights_are_named(self, weight: Tensor, message: str) -> None:
        with pytest.raises(MarioError, match=message):
            propagation_matrix(torch.tensor([[0, 1], [1, 0]]), 2, edge_weight=weight)


def test_a_call_changes_nothing_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path))
    filters = list(warnings.filters)
    for width in (3, 2**14):
        Propagation.of(*large())(torch.ones(60, width, requires_grad=True)).sum().backward()
    assert list(warnings.filters) == filters
    assert not list(tmp_path.iterdir())


class TestCache:
    def test_the_same_edges_give_the_same_map(self) -> None:
        edge_index, num_nodes = large()
        P = propagation_of(edge_index, num_nodes)
        assert propagation_of(edge_index, num_nodes) is P
        assert propagation_of(edge_index, num_nodes, "symmetric", torch.get_default_dtype()) is P
        others = [
            propagation_of(edge_index, num_nodes + 1),
            propagation_of(edge_index, num_nodes, "mean"),
            propagation_of(edge_index, num_nodes, dtype=torch.float64),
            propagation_of(edge_index.clone(), num_nodes),
        ]
        assert all(other is not P for other in others)
        assert [other.shape[0] for other in others] == [61, 60, 60, 60]
        assert others[2].dtype == torch.float64
        assert propagation_of(edge_index, num_nodes) is P

    def test_a_change_in_place_is_seen(self) -> None:
        edge_index = torch.tensor([[0, 1], [1, 2]])
        x = torch.tensor([[1.0], [2.0], [4.0]])
        assert propagation_of(edge_index, 3, "mean")(x).view(-1).tolist() == [0, 1, 2]
        edge_index[0, 1] = 0
        assert propagation_of(edge_index, 3, "mean")(x).view(-1).tolist() == [0, 1, 1]

    def test_a_change_in_place_of_a_ready_matrix_is_seen(self) -> None:
        matrix = torch.eye(20).to_sparse_csr()
        P = Propagation.from_matrix(matrix)
        assert Propagation.from_matrix(matrix) is P
        matrix.mul_(3)
        assert torch.equal(Propagation.from_matrix(matrix)(torch.eye(20)), 3 * torch.eye(20))

    @pytest.mark.parametrize("both_ways", [True, False])
    def test_goes_with_its_edges(self, both_ways: bool) -> None:
        edge_index, num_nodes = large()
        edge_index = torch.cat([edge_index, edge_index.flip(0)], 1) if both_ways else edge_index.clone()
        P = propagation_of(edge_index, num_nodes)
        P(torch.ones(num_nodes, 1, requires_grad=True)).sum().backward()
        alive = weakref.ref(P)
        del P
        assert alive() is not None
        del edge_index
        assert alive() is None

    @pytest.mark.parametrize("index", [torch.int32, torch.int64])
    def test_goes_with_its_matrix(self, index: torch.dtype) -> None:
        crow, col = torch.arange(21, dtype=index), torch.arange(20, dtype=index)
        matrix = torch.sparse_csr_tensor(crow, col, torch.ones(20), (20, 20), check_invariants=False)
        alive = weakref.ref(Propagation.from_matrix(matrix))
        assert alive() is not None
        del matrix
        assert alive() is None

    def test_in_inference_mode_edges_have_no_version(self) -> None:
        with torch.inference_mode():
            edge_index = torch.tensor([[0], [1]])
            x = torch.tensor([[1.0], [2.0]])
            assert propagation_of(edge_index, 2, "mean")(x).view(-1).tolist() == [0, 1]
            edge_index[0, 0] = 1
            assert propagation_of(edge_index, 2, "mean")(x).view(-1).tolist() == [0, 2]

    def test_an_error_is_not_remembered(self) -> None:
        edge_index = torch.tensor([[0], [5]])
        for _ in range(2):
            with pytest.raises(MarioError, match="edge_index names node 5, but the 2 nodes"):
                propagation_of(edge_index, 2)

    def test_threads_that_make_a_map_at_once_get_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        edge_index, num_nodes = large()
        maps: list[Propagation] = []
        both_made = threading.Barrier(2, timeout=60)
        make = Propagation.of

        def slow(*args: Any) -> Propagation:
            made = make(*args)
            both_made.wait()
            return made

        monkeypatch.setattr(Propagation, "of", slow)
        threads = [
            threading.Thread(target=lambda: maps.append(propagation_of(edge_index, num_nodes))) for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(maps) == 2
        assert maps[0] is maps[1] is propagation_of(edge_index, num_nodes)
