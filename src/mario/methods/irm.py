"""Invariant risk minimization."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders.apply import encode
from mario.methods.erm import ERM
from mario.methods.registry import register
from mario.methods.settings import setting


@register("irm")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class IRM(ERM):
    """Invariant Risk Minimization (Arjovsky et al., 2019), in the form IRMv1.

    The loss is the risk of the training environments, ``env_id``, plus ``penalty`` times the mean over environments of
    the squared slope of the risk when all logits are scaled. A batch counts the environments that it has nodes of;
    without ``env_id`` all training nodes are one environment.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> IRM(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).predict(data).shape
        torch.Size([700, 4])
    """

    # fmt: off
    penalty: float = setting(1.0, low=0.0, search=(0.1, 1.0, 10.0, 100.0), help="weight of the invariance penalty")
    risk: str = setting("environments", choices=("environments", "nodes"), help="mean risk over environments, or over nodes as in GOOD")
    # fmt: on

    levels: ClassVar[tuple[str, ...]] = ("node",)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        logits = self.head_(encode(self.encoder_, self.weighted(batch), generator))
        known = self.labeled(batch)
        if not known.any():
            return {}
        y, weights = batch.y[known], self.node_weights(batch, known)
        environments = batch.env_id[known] if "env_id" in batch else torch.zeros_like(y)
        risks, slopes = risks_and_slopes(logits[known], y, environments, weights)
        risk = risks.mean() if self.risk == "environments" else self.risk_of(logits[known], y, weights)
        penalty = slopes.square().mean()
        loss = risk + self.penalty * penalty
        loss.backward()
        return {"loss": loss.item(), "risk": risk.item(), "penalty": penalty.item()}


def risks_and_slopes(
    logits: Tensor, y: Tensor, environments: Tensor, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """R_e(1) and dR_e/dw(1) of each environment that occurs, where R_e(w) is the mean cross-entropy of w · logits.

    The slope of a node's cross-entropy is Σ_c (softmax(z)_c - [c = y]) z_c, so one gradient goes through it, not two.
    ``weights`` multiply the cross-entropy of each node, inside the mean.

    Example:
        >>> zeros = torch.zeros(3, 2)
        >>> risks_and_slopes(zeros, torch.tensor([0, 1, 1]), torch.tensor([4, 4, 7]))
        (tensor([0.6931, 0.6931]), tensor([0., 0.]))
    """
    log_p = logits.log_softmax(dim=1)
    loss = -log_p.gather(1, y.unsqueeze(1)).squeeze(1)
    slope = (log_p.exp() * logits).sum(dim=1) - logits.gather(1, y.unsqueeze(1)).squeeze(1)
    if weights is not None:
        loss, slope = weights * loss, weights * slope
    _, place, count = environments.unique(return_inverse=True, return_counts=True)
    sums = logits.new_zeros(2, count.numel()).index_add(1, place, torch.stack([loss, slope]))
    risks, slopes = sums / count
    return risks, slopes
