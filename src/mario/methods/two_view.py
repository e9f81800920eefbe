"""Methods that contrast two views: the hosts of the recipe."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.contrast import alignment, uniformity, worst_case_alignment
from mario.encoders.recomputing import recomputed
from mario.graphs.features import is_wide
from mario.methods.base import Method
from mario.methods.settings import setting
from mario.views import Chain, DropEdges, MaskFeatures

# Numbers in a layer's output above which it is made twice rather than kept: 4 MiB of float32.
_LARGE = 2**20

Side = Tensor | tuple[Tensor, ...]
"""What a contrast needs of one view: Z, or a tuple that begins with Z."""


def embeddings(side: Side) -> Tensor:
    """Z, the matrix that is clustered and conditioned on."""
    return side if isinstance(side, Tensor) else side[0]


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class TwoView(Method):
    """View generation, view encoding, representation contrasting: the three parts, each a method of its own.

    The loss depends on a view only through what :meth:`encode` makes of it. That is all the recipe has to know.
    """

    host: ClassVar[bool] = True
    aligned: ClassVar[bool] = True
    """Whether row i of both views' Z is the same node; without it there is nothing to condition on."""

    def views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        """G_α and G_β."""
        raise NotImplementedError

    def represent(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        """What the encoder makes of a view."""
        h = self.encoder_(view.x, view.edge_index, generator)
        # Of a sampled neighborhood only the seeds have all the neighbors they should have.
        return h[view.seed_mask] if "seed_mask" in view else h

    def project(self, h: Tensor) -> Tensor:
        """From what the encoder makes to what is contrasted."""
        return h

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """Z = p_ω ∘ g_θ, and whatever else of this view is contrasted."""
        return self.project(self.represent(view, generator))

    def lean_encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """:meth:`encode`; of a large view nothing is kept for the backward, which makes it again.

        Against a contrast of all pairs of many nodes one more pass through the encoder is nothing, and its activations
        would be most of the memory.
        """
        if view.x.size(0) * self.hidden_channels < _LARGE:
            return self.encode(view, generator)
        return recomputed(lambda draws: self.encode(view, draws), self, generator)

    @property
    def contrast_width(self) -> int:
        """Number of columns of Z."""
        return self.hidden_channels

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        """The loss that draws the views of a node together, L_MI."""
        raise NotImplementedError

    def contrast_with(
        self, beta: Side, generator: torch.Generator | None = None
    ) -> tuple[Callable[..., Tensor], Callable[[], None]]:
        """:meth:`contrast` for several α in a row while β stands still, and what is to be done after the last backward.

        A method whose contrast spends work on β alone may do it once, and once for all gradients.
        """
        return lambda alpha: self.contrast(alpha, beta, generator), lambda: None

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        alpha, beta = self.views(batch, generator)
        loss = self.contrast(self.lean_encode(alpha, generator), self.lean_encode(beta, generator), generator)
        loss.backward()
        return {"loss": loss.item()}

    @torch.no_grad()
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Alignment on average and in the worst case over two draws of both views, and uniformity, of Z."""
        if not self.aligned:
            return {}
        self.eval()
        zs = [embeddings(self.encode(view)) for _ in range(2) for view in self.views(batch, generator)]
        self.train()
        return {
            "alignment": alignment(zs).item(),
            "worst_case_alignment": worst_case_alignment(zs).item(),
            "uniformity": uniformity(zs[0]).item(),
        }


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class DropAndMask(TwoView):
    """Two views as GRACE makes them: each edge dropped and each feature column masked with the view's own probability."""

    # fmt: off
    mask_features_1: float = setting(0.2, low=0.0, high=1.0, search=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5), help="p_f1: columns masked in view α")
    mask_features_2: float = setting(0.3, low=0.0, high=1.0, search=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5), help="p_f2: columns masked in view β")
    drop_edges_1: float = setting(0.2, low=0.0, high=1.0, search=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), help="p_e1: edges dropped in view α")
    drop_edges_2: float = setting(0.3, low=0.0, high=1.0, search=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), help="p_e2: edges dropped in view β")
    # fmt: on

    def views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        wide = is_wide(batch.x)
        first = Chain(MaskFeatures(self.mask_features_1, in_parts=wide), DropEdges(self.drop_edges_1))
        second = Chain(MaskFeatures(self.mask_features_2, in_parts=wide), DropEdges(self.drop_edges_2))
        return first(batch, generator), second(batch, generator)
