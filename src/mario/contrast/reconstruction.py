"""Edges predicted from inner products of embeddings: the decoder of GAE and its cross-entropy."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from mario.contrast.rows import check_rows
from mario.errors import MarioError
from mario.graphs.validation import check_edges

_TILE = 1 << 20  # numbers held at once


def edge_reconstruction(z: Tensor, edges: Tensor, non_edges: Tensor) -> Tensor:
    r"""Balanced cross-entropy of p(A_ij = 1) = σ(z_i·z_j), from `"Variational Graph Auto-Encoders"
    <https://arxiv.org/abs/1611.07308>`_.

    ½ (mean over edges of softplus(−s_ij) + mean over non-edges of softplus(s_ij)), or one of the two means if there are
    no pairs of the other kind. With non-edges drawn uniformly it is an unbiased estimate of that mean over all pairs
    i ≠ j.

    Args:
        z: ``[nodes, width]``.
        edges: ``[2, E]`` pairs with an edge.
        non_edges: ``[2, M]`` pairs without one.

    Example:
        >>> z = torch.tensor([[1.0], [2.0], [0.0]])
        >>> edge_reconstruction(z, torch.tensor([[0], [1]]), torch.tensor([[0], [2]]))  # ½ (log(1 + e⁻²) + log 2)
        tensor(0.4100)
    """
    check_rows("z", z)
    check_edges(edges, z.size(0), "edges")
    check_edges(non_edges, z.size(0), "non_edges")
    kinds = [F.softplus(sign * _scores(z, pairs)) for sign, pairs in ((-1, edges), (1, non_edges)) if pairs.numel()]
    if not kinds:
        raise MarioError("edges and non_edges are both empty: a reconstruction needs at least two nodes")
    return torch.stack([kind.mean() for kind in kinds]).mean()


def full_reconstruction(z: Tensor, edge_index: Tensor) -> Tensor:
    r"""The same over all N² pairs, weighted and with a node's own pair counted as an edge, as in Kipf & Welling's code.

    ½ (Σ_{A+I} softplus(−s_ij) / |A| + Σ_{others} softplus(s_ij) / (N² − |A|)), where |A| counts edges once and no
    self-loops. Time grows with N², memory with N, as ZZᵀ is computed in tiles.

    Args:
        z: ``[nodes, width]``.
        edge_index: ``[2, E]``, all edges.

    Example:
        >>> loss = full_reconstruction(torch.eye(2), torch.tensor([[0, 1], [1, 0]]))
        >>> round(loss.item(), 4)  # ½ (2 log(1 + e⁻¹) + 2 log 2) / 2, no pair is left over
        0.5032
    """
    check_rows("z", z)
    check_edges(edge_index, z.size(0))
    n = z.size(0)
    code = edge_index[0] * n + edge_index[1]
    joined = code[edge_index[0] != edge_index[1]].unique()
    own = torch.arange(n, device=z.device) * (n + 1)
    s = _scores(z, torch.stack([torch.cat([joined, own]) // n, torch.cat([joined, own]) % n]))
    everything: Tensor = _SoftplusOfAllPairs.apply(z)
    others = everything - F.softplus(s).sum()
    if not joined.numel():
        return others / (n * n)
    loss: Tensor = (F.softplus(-s).sum() / joined.numel() + others / (n * n - joined.numel())) / 2
    return loss


def _scores(z: Tensor, pairs: Tensor) -> Tensor:
    scores: Tensor = _PairScores.apply(z, pairs)
    return scores


class _PairScores(torch.autograd.Function):
    """z_i·z_j of each pair; the gradient is (G + Gᵀ) Z with G the sparse matrix of incoming gradients. Memory is E."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, pairs: Tensor) -> Tensor:
        ctx.save_for_backward(z, pairs)
        chunks = pairs.split(max(1, _TILE // z.size(1)), dim=1)
        return torch.cat([torch.linalg.vecdot(z[first], z[second]) for first, second in chunks])

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None]:
        z, pairs = ctx.saved_tensors
        both_ways, n = torch.cat([pairs, pairs.flip(0)], dim=1), z.size(0)
        matrix = torch.sparse_coo_tensor(both_ways, outer[0].repeat(2), (n, n), check_invariants=False)
        return matrix.to_sparse_csr() @ z, None


class _SoftplusOfAllPairs(torch.autograd.Function):
    """Σ_ij softplus(z_i·z_j); its gradient, 2 σ(ZZᵀ) Z as ZZᵀ is symmetric, is computed in the same pass."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:
        total = z.new_zeros((), dtype=torch.float64)  # N² numbers are too many to add up in single precision
        grad = torch.empty_like(z)
        for rows in torch.arange(z.size(0), device=z.device).split(max(1, _TILE // z.size(0))):
            s = z[rows] @ z.t()
            total += F.softplus(s).sum(dtype=torch.float64)
            grad[rows] = s.sigmoid_() @ z
        ctx.save_for_backward(grad.mul_(2))
        return total.to(z.dtype)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        grad: Tensor = ctx.saved_tensors[0]
        return grad * outer[0]
