"""Estimators of mutual information between two views, by name. :func:`register_estimator` adds one, from any file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import torch.nn.functional as F
from torch import Tensor

from mario.arguments import check_positive
from mario.contrast.blocks import Blocks, Pairs, Term, sum_pairs
from mario.contrast.nce import info_nce
from mario.contrast.rows import check_pair, wide
from mario.errors import MarioError


@dataclass(frozen=True)
class Estimator:
    """How mutual information is estimated from the similarities s_ij = cos(u_i, v_j)/τ.

    Args:
        per_row: from :class:`Pairs` to one loss per row. ``None`` if there is no conditional version.
        term: f in the sums Σ_j f(s_ij) that ``per_row`` sees; ``None`` sums e^{s_ij} and takes the logarithm.
        own_pairs: whether j = i is in these sums.
        loss: the unconditional loss of (u, v, τ), if it is not ``per_row`` with all nodes in one cluster.
    """

    per_row: Callable[[Pairs], Tensor] | None
    term: Term | None = None
    own_pairs: bool = False
    loss: Callable[[Tensor, Tensor, float], Tensor] | None = None


ESTIMATORS: dict[str, Estimator] = {}
"""All registered estimators."""


def register_estimator(
    name: str,
    *,
    term: Term | None = None,
    own_pairs: bool = False,
    loss: Callable[[Tensor, Tensor, float], Tensor] | None = None,
) -> Callable[[Callable[[Pairs], Tensor]], Callable[[Pairs], Tensor]]:
    """Register a function from :class:`Pairs` to one loss per row; :class:`Estimator` describes the arguments.

    ``estimate(u, v, tau, name)``, ``conditional_mi(..., estimator=name)``, ``GRACE(estimator=name)`` and
    ``MARIO(cmi_estimator=name)`` then accept the name.

    Example:
        >>> import torch
        >>> @register_estimator("nwj", term=lambda s: (s - 1).exp())
        ... def nwj(pairs):
        ...     return pairs.sums / pairs.negatives - pairs.own
        >>> estimate(torch.eye(3), torch.eye(3), 0.5, "nwj")  # e⁻¹ − 1/0.5
        tensor(-1.6321)
        >>> del ESTIMATORS["nwj"]
    """

    if not isinstance(name, str) or not name:
        raise MarioError(f"the name of an estimator must be a text, got {name!r}")

    def keep(per_row: Callable[[Pairs], Tensor]) -> Callable[[Pairs], Tensor]:
        ESTIMATORS[name] = Estimator(per_row, term, own_pairs, loss)
        return per_row

    return keep


class Names(Sequence[str]):
    """The names of the estimators registered so far, for ``choices=`` of a setting.

    Args:
        conditional: only those that :func:`conditional_mi` accepts.
    """

    def __init__(self, *, conditional: bool = False) -> None:
        self.conditional = conditional

    def _now(self) -> list[str]:
        return [name for name, found in ESTIMATORS.items() if found.per_row or not self.conditional]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._now()[index]

    def __len__(self) -> int:
        return len(self._now())

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())


def estimate(u: Tensor, v: Tensor, tau: float = 0.5, estimator: str = "info_nce") -> Tensor:
    """The loss of the registered ``estimator`` between two views of the same nodes.

    Example:
        >>> import torch
        >>> from mario.contrast import estimate
        >>> estimate(torch.eye(3), torch.eye(3), 0.5, "donsker_varadhan")
        tensor(-2.)
    """
    found = find_estimator(estimator, Names())
    if found.loss is not None:
        return found.loss(u, v, tau)
    check_pair(u, v)
    check_positive("tau", tau)
    if u.size(0) < 2 and not found.own_pairs:
        raise MarioError(f"{estimator} needs at least 2 nodes, as other nodes are its negatives; got {u.size(0)}")
    blocks = Blocks.everything(u.size(0), u.size(1), u.device, own_pairs=found.own_pairs)
    return mean_over_rows(found, u, v, blocks, tau)


def mean_over_rows(estimator: Estimator, u: Tensor, v: Tensor, blocks: Blocks, tau: float) -> Tensor:
    """The sum of the estimator's losses over the rows of ``blocks``, divided by all N nodes."""
    assert estimator.per_row is not None
    if not blocks.tiles:
        return (u.sum() + v.sum()).to(wide(u.dtype)) * 0.0
    losses = estimator.per_row(sum_pairs(u, v, blocks, tau, estimator.term))
    return (losses.sum() / u.size(0)).to(wide(u.dtype))


def find_estimator(name: str, names: Sequence[str]) -> Estimator:
    if name not in names:
        raise MarioError(f"estimator must be one of {', '.join(names)}, got {name!r}")
    return ESTIMATORS[name]


@register_estimator("info_nce", own_pairs=True, loss=info_nce)
def _info_nce(pairs: Pairs) -> Tensor:
    return pairs.sums - pairs.own


@register_estimator("donsker_varadhan")
def _donsker_varadhan(pairs: Pairs) -> Tensor:
    return pairs.log_mean() - pairs.own


@register_estimator("jensen_shannon", term=F.softplus)
def _jensen_shannon(pairs: Pairs) -> Tensor:
    return F.softplus(-pairs.own) + pairs.sums / pairs.negatives


def donsker_varadhan(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    r"""Donsker-Varadhan estimate as in `MINE <https://arxiv.org/abs/1801.04062>`_, critic s_ij = cos(u_i, v_j)/τ.

    loss = log mean_{i≠j} e^{s_ij} − mean_i s_ii. A loss to minimize: −loss is a lower bound on I(U; V) in the limit of
    many nodes (with few it is biased upward, as the mean is inside the logarithm). Pairs i ≠ j sample the product of
    marginals, as in the code of Deep InfoMax: a node's own pair is a sample of the joint, and including it would
    bound the estimate by log N.

    Example:
        >>> import torch
        >>> from mario.contrast import donsker_varadhan
        >>> donsker_varadhan(torch.eye(3), torch.eye(3), tau=0.5)  # log e⁰ − 1/0.5
        tensor(-2.)
    """
    return estimate(u, v, tau, "donsker_varadhan")


def jensen_shannon(u: Tensor, v: Tensor, tau: float = 0.5) -> Tensor:
    r"""Jensen-Shannon estimate of `f-GAN <https://arxiv.org/abs/1606.00709>`_, critic s_ij = cos(u_i, v_j)/τ.

    loss = mean_i softplus(−s_ii) + mean_{i≠j} softplus(s_ij). A loss to minimize: 2 log 2 − loss is a lower bound on
    twice the Jensen-Shannon divergence between joint and product of marginals, which is at most I(U; V). Pairs i ≠ j
    sample the product of marginals, as in `Deep InfoMax <https://arxiv.org/abs/1808.06670>`_.

    Example:
        >>> import torch
        >>> from mario.contrast import jensen_shannon
        >>> loss = jensen_shannon(torch.eye(3), torch.eye(3), tau=0.5)
        >>> round(loss.item(), 4)  # log(1 + e⁻²) + log 2
        0.8201
    """
    return estimate(u, v, tau, "jensen_shannon")
