"""GraphCL's contrast: each graph against the other view of the batch."""

import torch
from torch import Tensor

from mario.arguments import check_positive
from mario.contrast.rows import check_pair, directions
from mario.errors import MarioError


def nt_xent(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    r"""NT-Xent as in `"Graph Contrastive Learning with Augmentations" <https://arxiv.org/abs/2010.13902>`_ (GraphCL).

    With s_ij = cos(u_i, v_j)/τ the loss is the mean over i of −log( e^{s_ii} / Σ_{j≠i} e^{s_ij} ). Unlike SimCLR's and
    GRACE's, its negatives are from the other view only, its positive is not in the denominator (so it may be negative),
    and it is one-directional, from the first view to the second; the authors' code has all three.

    Rows are the graphs of a batch, typically hundreds: the matrix of all pairs takes 4·B² bytes. For the nodes of a
    graph use :func:`info_nce`, whose memory is linear.

    Args:
        u: embeddings [B, d] of the graphs in the first view; rows are scaled to unit length inside.
        v: embeddings of the same graphs in the second view.
        tau: temperature; 0.2 in GraphCL's code.

    Example:
        >>> nt_xent(torch.eye(3), torch.eye(3), tau=0.5)  # log(e⁰ + e⁰) − 1/0.5
        tensor(-1.3069)
    """
    check_pair(u, v)
    check_positive("tau", tau)
    if u.size(0) < 2:
        raise MarioError(
            f"nt_xent needs at least 2 graphs, as other graphs are its negatives; got one row of {u.size(1)}"
        )
    s = directions(u) @ directions(v).t() / tau
    others = s.masked_fill(torch.eye(u.size(0), dtype=torch.bool, device=u.device), -torch.inf)
    return (others.logsumexp(1) - s.diagonal()).mean()
