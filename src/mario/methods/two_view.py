"""Methods that contrast two views: the hosts of the recipe."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.contrast import alignment, uniformity, worst_case_alignment
from mario.methods.base import Method


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class TwoView(Method):
    """View generation, view encoding, representation contrasting: the three parts, each a method of its own."""

    host: ClassVar[bool] = True

    def views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        """G_α and G_β."""
        raise NotImplementedError

    def represent(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        """What the encoder makes of a view."""
        h = self.encoder_(view.x, view.edge_index, generator)
        # Of a sampled neighbourhood only the seeds have all the neighbours they should have.
        return h[view.seed_mask] if "seed_mask" in view else h

    def project(self, h: Tensor) -> Tensor:
        """From what the encoder makes to what is contrasted."""
        return h

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        """Z = p_ω ∘ g_θ, what is contrasted."""
        return self.project(self.represent(view, generator))

    @property
    def contrast_width(self) -> int:
        """Number of columns of Z."""
        return self.hidden

    def contrast(self, z_alpha: Tensor, z_beta: Tensor) -> Tensor:
        """The loss that draws the views of a node together, L_MI."""
        raise NotImplementedError

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        alpha, beta = self.views(batch, generator)
        loss = self.contrast(self.encode(alpha, generator), self.encode(beta, generator))
        loss.backward()
        return {"loss": loss.item()}

    @torch.no_grad()
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Alignment on average and in the worst case over two draws of both views, and uniformity, of Z."""
        self.eval()
        zs = [self.encode(view) for _ in range(2) for view in self.views(batch, generator)]
        self.train()
        return {
            "alignment": alignment(zs).item(),
            "worst_case_alignment": worst_case_alignment(zs).item(),
            "uniformity": uniformity(zs[0]).item(),
        }
