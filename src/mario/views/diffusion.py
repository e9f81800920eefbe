"""Graph diffusion: a matrix that connects nodes beyond their neighbors."""

import math
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import gammaln, xlogy
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_count, check_number
from mario.errors import MarioError
from mario.graphs.sparse import csr, select_rows
from mario.graphs.subgraph import count_nodes
from mario.graphs.validation import check_edges
from mario.views.view import View, edges_of

Kind = Literal["ppr", "heat"]

_CHUNK = 2**23  # dense size of the block of the matrix in work
_TALLEST = 2**16  # most rows of such a block


class Diffusion(View):
    """Adds the diffusion of a graph to its edges, as in `"Contrastive Multi-View Representation Learning on Graphs"
    <https://arxiv.org/abs/2006.05582>`_ (MVGRL). It is deterministic.

    ``data.diffusion`` is a sparse CSR matrix [nodes, nodes] whose row i holds the weights of the messages to node i;
    pass it to an encoder in place of ``edge_index``. The diffusion uses ``data.edge_weight`` if there is one. The
    arguments are those of :func:`diffusion_matrix`.

    Example:
        >>> data = Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
        >>> Diffusion("ppr", teleport=0.5)(data).diffusion.to_dense()
        tensor([[0.7500, 0.2500],
                [0.2500, 0.7500]])
    """

    def __init__(
        self,
        kind: Kind = "ppr",
        *,
        teleport: float = 0.2,
        time: float = 5.0,
        exact_nodes: int = 3000,
        tolerance: float = 1e-3,
    ) -> None:
        _check(kind, teleport, time, tolerance)
        check_count("exact_nodes", exact_nodes, low=0)
        self.kind, self.teleport, self.time = kind, teleport, time
        self.exact_nodes, self.tolerance = exact_nodes, tolerance

    def forward(self, data: Data, generator: torch.Generator | None = None) -> Data:
        edge_index = edges_of(self, data)
        matrix = diffusion_matrix(
            edge_index,
            count_nodes(data),
            self.kind,
            teleport=self.teleport,
            time=self.time,
            exact_nodes=self.exact_nodes,
            tolerance=self.tolerance,
            edge_weight=data.get("edge_weight"),
        )
        data.diffusion = matrix.to(edge_index.device)
        return data

    def __repr__(self) -> str:
        rate = f"teleport={self.teleport:g}" if self.kind == "ppr" else f"time={self.time:g}"
        return f"Diffusion('{self.kind}', {rate})"


def diffusion_matrix(
    edge_index: Tensor,
    num_nodes: int,
    kind: Kind = "ppr",
    *,
    teleport: float = 0.2,
    time: float = 5.0,
    exact_nodes: int = 3000,
    tolerance: float = 1e-3,
    edge_weight: Tensor | None = None,
) -> Tensor:
    r"""Personalized PageRank or the heat kernel of a graph, made undirected and with self-loops, on the CPU.

    With A the adjacency, D its degrees and Ã = D^-1/2 A D^-1/2, ``ppr`` is α (I − (1 − α) Ã)^-1 and ``heat`` is
    exp(t A D^-1 − t) (equations 2 and 3 of MVGRL's paper).

    On a graph of more than ``exact_nodes`` nodes, the series Σ θ_k Ã^k is summed without small entries. As no entry is
    negative and Ã preserves √d, the error is bounded: no entry (i, j) of PageRank is too large, or too small by more
    than ``tolerance`` · √min(d_i, d_j); for heat, which is D^1/2 (Σ θ_k Ã^k) D^-1/2, the bound is √(d_i / d_j) times
    this. Memory and time grow with the entries kept, not with the square of the number of nodes.

    Args:
        edge_index: int64 [2, E]; the direction of edges, repeated edges and self-loops are ignored.
        num_nodes: Number of rows and columns.
        kind: ``ppr`` or ``heat``.
        teleport: α, the probability that the walk of PageRank restarts.
        time: t, the diffusion time of heat.
        exact_nodes: Up to this many nodes, every entry is computed by dense algebra in double precision.
        tolerance: Error bound of an entry on a larger graph; see above.
        edge_weight: Non-negative float [E]; ``None`` gives every edge the weight 1. Two nodes have the largest weight
            of all edges between them. Self-loops have the weight 1.

    Example:
        >>> diffusion_matrix(torch.tensor([[0], [1]]), 3, "heat", time=0.5).to_dense()
        tensor([[0.8033, 0.1967, 0.0000],
                [0.1967, 0.8033, 0.0000],
                [0.0000, 0.0000, 1.0000]])
    """
    _check(kind, teleport, time, tolerance)
    check_edges(edge_index, num_nodes)
    if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
        raise MarioError(f"edge_weight must have shape [{edge_index.size(1)}], got {list(edge_weight.shape)}")
    spread, root = _normalized(edge_index, num_nodes, edge_weight)
    if num_nodes <= exact_nodes:
        matrix = sp.csr_matrix(_ppr(spread, teleport) if kind == "ppr" else _heat(spread, time))
    else:
        matrix = _truncated(spread, root, kind, teleport if kind == "ppr" else time, tolerance)
    if kind == "heat":
        matrix = sp.diags_array(root) @ matrix @ sp.diags_array(1 / root)
    return _to_torch(sp.csr_array(matrix))


def diffusion_block(matrix: Tensor, nodes: Tensor) -> Tensor:
    """The rows and columns of ``nodes`` of a sparse CSR matrix, in this order.

    MVGRL trains on such blocks of the diffusion of the whole graph, not on the diffusion of a sampled subgraph.

    Example:
        >>> diffusion_block(torch.tensor([[1.0, 2.0], [0.0, 3.0]]).to_sparse_csr(), torch.tensor([1, 0])).to_dense()
        tensor([[3., 0.],
                [2., 1.]])
    """
    rows = select_rows(matrix, nodes)
    position = torch.full((matrix.size(1),), -1, dtype=torch.int64, device=matrix.device)
    position[nodes] = torch.arange(nodes.numel(), device=matrix.device)
    columns = position.index_select(0, rows.col_indices())
    kept = (columns >= 0).nonzero().view(-1)
    before = torch.zeros(columns.numel() + 1, dtype=torch.int64, device=matrix.device)
    torch.cumsum(columns >= 0, 0, out=before[1:])
    crow = before.index_select(0, rows.crow_indices())
    values = rows.values().index_select(0, kept)
    return csr(crow, columns.index_select(0, kept), values, (nodes.numel(), nodes.numel()))


def _check(kind: str, teleport: float, time: float, tolerance: float) -> None:
    if kind not in get_args(Kind):
        raise MarioError(f"kind must be one of {', '.join(get_args(Kind))}, got '{kind}'")
    for name, value in (("teleport", teleport), ("time", time), ("tolerance", tolerance)):
        check_number(name, value)
    if not 0 < teleport <= 1:
        raise MarioError(f"teleport must be a probability above 0, got {teleport}")
    if not 0 <= time < math.inf:
        raise MarioError(f"time must be finite and not negative, got {time}")
    if not 0 < tolerance < 100:
        raise MarioError(f"tolerance must be above 0 and below 100, got {tolerance}")


def _normalized(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None) -> tuple[sp.csr_array, np.ndarray]:
    """Ã and √d."""
    source, target = edge_index.cpu().numpy()
    if edge_weight is None:
        adjacency = _unweighted(source, target, num_nodes)
    else:
        adjacency = _weighted(source, target, edge_weight.detach().double().cpu().numpy(), num_nodes)
    root = np.sqrt(adjacency.sum(axis=1))
    adjacency.data /= root.repeat(np.diff(adjacency.indptr)) * root[adjacency.indices]
    return adjacency, root


def _unweighted(source: np.ndarray, target: np.ndarray, num_nodes: int) -> sp.csr_array:
    """The symmetric adjacency with ones for all pairs and on the diagonal."""
    ends = np.arange(num_nodes)
    rows, columns = np.concatenate([source, target, ends]), np.concatenate([target, source, ends])
    adjacency = sp.coo_array((np.ones(rows.size), (rows, columns)), shape=(num_nodes, num_nodes)).tocsr()
    adjacency.data[:] = 1
    return adjacency


def _weighted(source: np.ndarray, target: np.ndarray, weight: np.ndarray, num_nodes: int) -> sp.csr_array:
    """The symmetric adjacency with the largest weight of each pair, and ones on the diagonal."""
    links = source != target
    low, high = np.minimum(source, target)[links], np.maximum(source, target)[links]
    pairs, pair = np.unique(low * num_nodes + high, return_inverse=True)
    largest = np.zeros(pairs.size)
    np.maximum.at(largest, pair, weight[links])
    half = sp.coo_array((largest, (pairs // num_nodes, pairs % num_nodes)), shape=(num_nodes, num_nodes))
    return sp.csr_array(half + half.T + sp.eye_array(num_nodes))


def _ppr(spread: sp.csr_array, teleport: float) -> np.ndarray:
    # I − (1 − α) Ã is symmetric and positive definite: the eigenvalues of Ã lie in (−1, 1].
    system = torch.from_numpy(np.eye(spread.shape[0]) - (1 - teleport) * spread.toarray())
    inverse: np.ndarray = torch.cholesky_inverse(torch.linalg.cholesky(system)).mul_(teleport).numpy()
    return inverse


def _heat(spread: sp.csr_array, time: float) -> np.ndarray:
    # No entry of a power of Ã exceeds 1, so that a tail of 1e-16 is below rounding.
    shares, _ = _series("heat", time, 1e-16)
    power = np.eye(spread.shape[0])
    total: np.ndarray = shares[0] * power
    for share in shares[1:]:
        power = spread @ power
        total += share * power
    return total


def _series(kind: Kind, rate: float, below: float) -> tuple[np.ndarray, np.ndarray]:
    """θ_k, the shares of Ã^k, which sum to 1, and their tails Σ_{j≥k} θ_j, as long as these are above ``below``."""
    if kind == "ppr":
        steps = np.arange(1 if rate == 1 else math.ceil(math.log(below) / math.log1p(-rate)) + 1)
        tails = (1 - rate) ** steps
        return rate * tails, tails
    steps = np.arange(math.ceil(rate + 10 * math.sqrt(rate)) + 40)
    shares = np.exp(xlogy(steps, rate) - rate - gammaln(steps + 1))
    tails = shares[::-1].cumsum()[::-1]
    return shares[tails > below], tails[tails > below]


def _truncated(spread: sp.csr_array, root: np.ndarray, kind: Kind, rate: float, tolerance: float) -> sp.csr_array:
    """Σ θ_k Ã^k without negligible entries.

    If entries e_u of a row of Ã^k are dropped, entry v of that row of the sum lacks Σ_{j≥k} θ_j (e Ã^(j−k))_v. If
    e_u ≤ b·√d_u, this is at most b·tail_k·√d_v, because √d is an eigenvector of Ã with eigenvalue 1. Half of the
    tolerance is spent on this (b_k ∝ 1/√tail_k is the least work, as about 1/b_k entries are above b_k), a hundredth on
    the end of the series, and the rest on entries of the sum. The sum is symmetric, so that the larger of entries
    (i, j) and (j, i), which lacks less, is used for both.
    """
    nodes = spread.shape[0]
    shares, tails = _series(kind, rate, tolerance / 100)
    bounds = 0.5 * tolerance / (np.sqrt(tails) * np.sqrt(tails).sum())
    parts = []
    spread, root = spread.astype(np.float32), root.astype(np.float32)
    start = 0
    least = height = max(1, _CHUNK // nodes)
    while start < nodes:
        rows = np.arange(start, min(start + height, nodes))
        start, most = int(rows[-1]) + 1, 0
        power = sp.csr_array((np.ones(rows.size, np.float32), rows, np.arange(rows.size + 1)), shape=(rows.size, nodes))
        total = power * np.float32(shares[0])
        for share, bound in zip(shares[1:], bounds[1:], strict=True):
            product = power @ spread
            most = max(most, product.nnz)
            power = _above(product, root, bound)
            if not power.nnz:
                break
            total = total + power * np.float32(share)
        # A product costs memory and time for every column, so that many short rows are processed together.
        height = max(least, min(4 * rows.size, int(rows.size * _CHUNK / max(most, 1)), _TALLEST))
        parts.append(_above(total, root, 0.49 * tolerance))
    total = sp.vstack(parts, format="csr")
    return total.maximum(total.T.tocsr())


def _above(matrix: sp.csr_array, root: np.ndarray, bound: float) -> sp.csr_array:
    """``matrix`` without entries (i, u) below ``bound`` · √d_u."""
    kept = matrix.data >= np.float32(bound) * root[matrix.indices]
    starts = np.concatenate([[0], kept.cumsum()])[matrix.indptr]
    return sp.csr_array((matrix.data[kept], matrix.indices[kept], starts), shape=matrix.shape)


def _to_torch(matrix: sp.csr_array) -> Tensor:
    matrix.sort_indices()
    crow, col = (torch.from_numpy(part.astype(np.int64)) for part in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data).to(torch.get_default_dtype())
    return csr(crow, col, values, (matrix.shape[0], matrix.shape[1]))
