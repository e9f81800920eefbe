"""COSTA."""

import dataclasses

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.contrast import conditional_mi, info_nce, sketch
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.methods.two_view import DropAndMask, Projecting, Side

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "elu": nn.ELU, "prelu": nn.PReLU}


@register("costa")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class COSTA(Projecting, DropAndMask):
    """Covariance-Preserving Feature Augmentation for Graph Contrastive Learning (Zhang et al., KDD 2022).

    The contrast is not between nodes but between the rows of a sketch P·H of the embeddings: random mixtures of nodes
    with the same covariance. P is drawn in each step and is the same for both views. ``multi_view=False`` is the
    paper's COSTA_SV: both views are one augmented graph, encoded once, and the contrast only pushes the rows of its
    sketch apart.

    Z, which the recipe clusters, is the projector's output for the nodes themselves.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> COSTA(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    tau: float = setting(0.4, low=1e-6, search=(0.1, 0.2, 0.3, 0.4, 0.5, 1.0), help="temperature of the contrast")
    ratio: float = setting(0.5, low=1e-6, high=100.0, search=(0.25, 0.5, 0.8), help="k/n: rows of the sketch for each node")
    multi_view: bool = setting(True, help="contrast two augmented graphs (COSTA_MV); false is one with itself (COSTA_SV)")
    negatives: str = setting("both", choices=("both", "other"), help="views with negatives: both (paper, Eq. 3), the other one (authors' code)")
    sketch_density: float = setting(1.0, low=1e-6, high=1.0, search=(0.004, 0.01, 1.0), help="share of P that is not zero; 1 is a normal P")
    projector_activation: str = setting("relu", choices=tuple(ACTIVATIONS), help="relu (paper), elu (authors' code), prelu (MARIO's release)")
    # fmt: on

    def own_projector(self) -> nn.Module:
        return nn.Sequential(
            nn.Linear(self.out_channels_, self.out_channels_),
            ACTIVATIONS[self.projector_activation](),
            nn.Linear(self.out_channels_, self.out_channels_),
        )

    def make_views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        alpha, beta = super().make_views(batch, generator)
        return (alpha, beta) if self.multi_view else (alpha, alpha)

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """(Z, H): the sketch is of H, before the projector."""
        h = self.represent(view, generator)
        return self.project(h, generator), h

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        h_alpha, h_beta = alpha[1], beta[1]
        rows = max(2, int(self.ratio * h_alpha.size(0)))
        side_by_side = torch.cat([h_alpha, h_beta], dim=1)
        both = sketch(side_by_side, rows, density=self.sketch_density, generator=generator)
        u, v = (self.project(half, generator) for half in both.tensor_split(2, dim=1))
        if self.negatives == "both":
            return info_nce(u, v, self.tau)
        # InfoNCE given one cluster with all rows has its negatives in the other view only.
        one = torch.zeros(rows, dtype=torch.long, device=u.device)
        return (conditional_mi(u, v, one, one, self.tau) + conditional_mi(v, u, one, one, self.tau)) / 2

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        if self.multi_view:
            return super().step(batch, generator)
        alpha, _ = self.make_views(batch, generator)
        side = self.encode(alpha, generator)
        loss = self.contrast(side, side, generator)
        loss.backward()
        return {"loss": loss.item()}
