"""Conditional mutual information between two views, given their clusters."""

from torch import Tensor

from mario.arguments import check_positive
from mario.contrast.blocks import Blocks
from mario.contrast.estimators import Names, find_estimator, mean_over_rows
from mario.contrast.rows import check_clusters, check_pair
from mario.errors import MarioError


def conditional_mi(
    u: Tensor,
    v: Tensor,
    clusters_u: Tensor,
    clusters_v: Tensor,
    tau: float = 1.0,
    *,
    estimator: str = "info_nce",
    negatives: str = "second",
) -> Tensor:
    r"""L_CMI of `MARIO <https://arxiv.org/abs/2307.13055>`_ (Eq. 16): minus the information shared beyond clusters.

    With s_ij = cos(u_i, v_j)/τ it is the mean over all N nodes of [c_u(i) = c_v(i)] · (log Σ_j e^{s_ij} − s_ii), j over
    i itself and the nodes with c_v(j) = c_u(i). (The paper prints a plus before the logarithm; its proof and its
    released code have the minus.) MARIO subtracts γ times it from its loss. Every estimator is a loss to
    minimize whose negative, up to a constant, is a lower bound on I(U; V | Y), Y being the cluster. Nodes whose two
    views are in different clusters add 0 but count in the mean. With A_y the nodes both of whose views are in y, B_y
    those whose second view is, and n_y = |A_y|:

    - `info_nce`: as above; the bound is Σ_y (n_y/N) log |B_y| − loss.
    - `donsker_varadhan`: Σ_y (n_y/N) (log mean_{i∈A_y, j∈B_y, j≠i} e^{s_ij} − mean_{i∈A_y} s_ii); the bound is −loss.
    - `jensen_shannon`: Σ_y (n_y/N) (mean_{i∈A_y} softplus(−s_ii) + mean_{i∈A_y, j∈B_y, j≠i} softplus(s_ij)); the bound
      is Σ_y (n_y/N) 2 log 2 − loss.

    In the last two a cluster without negatives adds 0. Embeddings in bfloat16 are multiplied in bfloat16 and
    their gradient is bfloat16; the loss is float32.

    Args:
        u: embeddings [N, d] of the nodes in the first view; rows are scaled to unit length inside.
        v: embeddings of the same nodes in the second view.
        clusters_u: the cluster [N] of each node in the first view, integers.
        clusters_v: the same for the second view.
        tau: temperature; 1 in the released code.
        estimator: `info_nce`, `donsker_varadhan`, `jensen_shannon`, or another registered with
            :func:`mario.contrast.register_estimator`.
        negatives: which view's cluster of j decides whether v_j is a negative of u_i: `second` as in the formula, or
            `first` as in the released code (c_u(j) = c_v(i)).

    Example:
        >>> import torch
        >>> from mario.contrast import conditional_mi
        >>> u, v = torch.eye(3), torch.eye(3)
        >>> loss = conditional_mi(u, v, torch.tensor([0, 0, 1]), torch.tensor([0, 0, 2]))
        >>> round(loss.item(), 4)  # two of three nodes: 2/3 · log((e + 1)/e)
        0.2088
    """
    check_pair(u, v)
    check_positive("tau", tau)
    found = find_estimator(estimator, Names(conditional=True))
    if negatives not in ("first", "second"):
        raise MarioError(f"negatives must be 'first' or 'second', got {negatives!r}")
    check_clusters(u, clusters_u, clusters_v)
    deciding = clusters_u if negatives == "first" else clusters_v
    blocks = Blocks.of(clusters_u, clusters_v, deciding, u.size(1), own_pairs=found.own_pairs)
    return mean_over_rows(found, u, v, blocks, tau)
