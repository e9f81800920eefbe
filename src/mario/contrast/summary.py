"""Nodes against a summary of their graph: the contrast of Deep Graph Infomax."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from mario.arguments import check_count
from mario.contrast.rows import check_rows
from mario.errors import MarioError

_WIDEST = 2**17  # whose square is 70 GB


def summarize(h: Tensor, *, squash: bool = True) -> Tensor:
    """One vector for all rows: their mean, through a sigmoid if ``squash`` (equation 3 of DGI's paper).

    Example:
        >>> summarize(torch.tensor([[0.0, 1.0], [0.0, 3.0]]), squash=False)
        tensor([0., 2.])
    """
    check_rows("h", h)
    mean = h.mean(0)
    return mean.sigmoid() if squash else mean


def node_summary_loss(real: Tensor, corrupted: Tensor) -> Tensor:
    r"""Binary cross-entropy of a discriminator's logits for real and corrupted nodes.

    loss = (mean_i softplus(−real_i) + mean_j softplus(corrupted_j)) / 2, the objective of `"Deep Graph Infomax"
    <https://arxiv.org/abs/1809.10341>`_ (equation 1, negated, with as many corrupted nodes as real ones). It is the
    Jensen-Shannon estimator of `MVGRL <https://arxiv.org/abs/2006.05582>`_ up to a factor of 2 and a constant:
    log 4 − 2·loss is a lower bound on twice the Jensen-Shannon divergence between real and corrupted pairs.

    Example:
        >>> node_summary_loss(torch.zeros(3), torch.zeros(2))  # log 2
        tensor(0.6931)
    """
    for name, logits in (("real", real), ("corrupted", corrupted)):
        if not isinstance(logits, Tensor) or not logits.is_floating_point() or not logits.numel():
            given = f"{logits.dtype} of shape {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits)
            raise MarioError(f"{name} must be a floating-point tensor of one logit or more, got {given}")
    return (F.softplus(-real).mean() + F.softplus(corrupted).mean()) / 2


class Discriminator(nn.Module):
    """D(h, s) = hᵀ W s, the logit that node h belongs to the graph that s summarizes (equation 4 of DGI's paper).

    Args:
        width: Number of columns of ``h``, and of entries of ``s``.
        bias: Add a number to all logits, as in the released code of DGI and MVGRL.

    Example:
        >>> Discriminator(4)(torch.zeros(3, 4), torch.zeros(4)).tolist()
        [0.0, 0.0, 0.0]
    """

    def __init__(self, width: int, *, bias: bool = False) -> None:
        super().__init__()
        check_count("width", width, high=_WIDEST)
        self.weight = nn.Parameter(torch.empty(width, width))
        self.bias = nn.Parameter(torch.zeros(1)) if bias else None
        # The released code draws it as a [1, width, width] tensor, whose fans differ from a matrix's.
        nn.init.xavier_uniform_(self.weight.data.unsqueeze(0))

    def forward(self, h: Tensor, summary: Tensor) -> Tensor:
        """One logit per row."""
        _check_widths(h, summary, self.weight.size(0))
        # W s first: one matrix-vector product instead of one per node.
        logits = h @ (self.weight @ summary)
        return logits if self.bias is None else logits + self.bias


class ProjectedDot(nn.Module):
    """D(h, s) = f_ψ(h)·f_φ(s), as in the text of `MVGRL <https://arxiv.org/abs/2006.05582>`_.

    f_ψ, of nodes, and f_φ, of summaries, are MLPs with two hidden layers and PReLU.

    Example:
        >>> ProjectedDot(4)(torch.randn(3, 4), torch.randn(4)).shape
        torch.Size([3])
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        check_count("width", width, high=_WIDEST)
        self.width = width
        self.of_node, self.of_summary = _mlp(width), _mlp(width)

    def forward(self, h: Tensor, summary: Tensor) -> Tensor:
        """One logit per row."""
        _check_widths(h, summary, self.width)
        logits: Tensor = self.of_node(h) @ self.of_summary(summary)
        return logits


def _mlp(width: int) -> nn.Sequential:
    hidden = [layer for _ in range(2) for layer in (nn.Linear(width, width), nn.PReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, width))


def _check_widths(h: Tensor, summary: Tensor, width: int) -> None:
    check_rows("h", h)
    if not isinstance(summary, Tensor) or h.size(1) != width or summary.shape != (width,) or summary.dtype != h.dtype:
        other = f"{summary.dtype} {tuple(summary.shape)}" if isinstance(summary, Tensor) else type(summary).__name__
        got = f"{h.dtype} {tuple(h.shape)} and {other}"
        raise MarioError(f"h must be [nodes, {width}] and summary [{width}] for this discriminator, got {got}")
