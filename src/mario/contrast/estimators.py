"""The paper's other two lower bounds on mutual information, as losses with memory linear in the number of nodes."""

from torch import Tensor

from mario.contrast.blocks import Blocks, within_blocks
from mario.contrast.rows import check_pair, check_positive
from mario.errors import MarioError


def donsker_varadhan(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    r"""Donsker-Varadhan estimate as in `MINE <https://arxiv.org/abs/1801.04062>`_, critic s_ij = cos(u_i, v_j)/τ.

    loss = log mean_{i≠j} e^{s_ij} − mean_i s_ii. A loss to minimize: −loss is a lower bound on I(U; V) in the limit of
    many nodes (with few it errs upwards, the mean being inside the logarithm). Pairs i ≠ j stand for the product of
    marginals, as in the code of Deep InfoMax: a node's own pair is a draw from the joint, and with it the estimate
    could never exceed log N.

    Example:
        >>> import torch
        >>> from mario.contrast import donsker_varadhan
        >>> donsker_varadhan(torch.eye(3), torch.eye(3), tau=0.5)  # log e⁰ − 1/0.5
        tensor(-2.)
    """
    return _unconditional(u, v, tau, "donsker_varadhan")


def jensen_shannon(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    r"""Jensen-Shannon estimate of `f-GAN <https://arxiv.org/abs/1606.00709>`_, critic s_ij = cos(u_i, v_j)/τ.

    loss = mean_i softplus(−s_ii) + mean_{i≠j} softplus(s_ij). A loss to minimize: 2 log 2 − loss is a lower bound on
    twice the Jensen-Shannon divergence between joint and product of marginals, which is at most I(U; V). Pairs i ≠ j
    stand for the product of marginals, as in `Deep InfoMax <https://arxiv.org/abs/1808.06670>`_.

    Example:
        >>> import torch
        >>> from mario.contrast import jensen_shannon
        >>> loss = jensen_shannon(torch.eye(3), torch.eye(3), tau=0.5)
        >>> round(loss.item(), 4)  # log(1 + e⁻²) + log 2
        0.8201
    """
    return _unconditional(u, v, tau, "jensen_shannon")


def _unconditional(u: Tensor, v: Tensor, tau: float, estimator: str) -> Tensor:
    check_pair(u, v)
    check_positive("tau", tau)
    if u.size(0) < 2:
        raise MarioError(f"{estimator} needs at least 2 nodes, as other nodes are its negatives; got {u.size(0)}")
    return within_blocks(u, v, Blocks.everything(u.size(0), u.size(1), u.device, estimator), tau, estimator)
