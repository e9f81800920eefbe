"""Methods that contrast two views: the hosts of the recipe."""

import dataclasses
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.contrast import alignment, uniformity, worst_case_alignment
from mario.encoders import Projector
from mario.encoders.apply import encode, projector_width, run
from mario.encoders.recomputing import recomputed
from mario.graphs.features import is_wide
from mario.methods.base import Method
from mario.methods.parts import Transform, check_same_nodes, check_views, fresh, view_of
from mario.methods.settings import setting
from mario.views import Chain, DropEdges, MaskFeatures

# Numbers in a layer's output above which it is computed twice instead of stored: 4 MiB of float32.
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

    # fmt: off
    views: tuple[Transform, Transform] | None = setting(None, check=check_views, help="two transforms, Data in and Data out, that make the views; None is the method's own")
    # fmt: on

    host: ClassVar[bool] = True
    aligned: ClassVar[bool] = True
    """Whether row i of both views' Z is the same node; if not, there is no conditional term."""

    def own_views(self, batch: Data) -> tuple[Transform, Transform]:
        """The transforms that make G_α and G_β if ``views`` is ``None``."""
        raise NotImplementedError

    def make_views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        """G_α and G_β."""
        first, second = self.views or self.own_views(batch)
        alpha, beta = view_of(first, batch, generator), view_of(second, batch, generator)
        if self.views is not None and "batch" not in batch:
            check_same_nodes(alpha, batch, first)
            check_same_nodes(beta, batch, second)
        return alpha, beta

    def represent(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        """The output H of the encoder for a view."""
        h = encode(self.encoder_, view, generator)
        # In a sampled neighborhood only the seeds have all their neighbors.
        return h[view.seed_mask] if "seed_mask" in view else h

    def project(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """From H to Z, which is contrasted."""
        return h

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """Z = p_ω ∘ g_θ, and anything else of this view that is contrasted."""
        return self.project(self.represent(view, generator), generator)

    def lean_encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """:meth:`encode`; for a large view no activations are stored, and the backward pass computes them again.

        One more pass through the encoder is cheap beside a contrast of all pairs of many nodes, and its activations
        would be most of the memory. Modules that are not ours may have state of any kind: they run once.
        """
        if not self.recomputable or view.x.size(0) * self.out_channels_ < _LARGE:
            return self.encode(view, generator)
        return recomputed(lambda draws: self.encode(view, draws), self, generator)

    @property
    def recomputable(self) -> bool:
        """Whether a second pass through the networks has the same result and leaves no trace."""
        return self.takes_features

    @property
    def contrast_width(self) -> int:
        """Number of columns of Z."""
        return self.out_channels_

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        """The loss L_MI, which draws the two views of a node together."""
        raise NotImplementedError

    def contrast_with(
        self, beta: Side, generator: torch.Generator | None = None
    ) -> tuple[Callable[..., Tensor], Callable[[], None]]:
        """:meth:`contrast` for several α in a row with a constant β, and a function to call after the last backward.

        A method whose contrast spends work on β alone may do it once, and once for all gradients.
        """
        return lambda alpha: self.contrast(alpha, beta, generator), lambda: None

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        alpha, beta = self.make_views(batch, generator)
        loss = self.contrast(self.lean_encode(alpha, generator), self.lean_encode(beta, generator), generator)
        loss.backward()
        return {"loss": loss.item()}

    @torch.no_grad()
    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Alignment on average and in the worst case over two draws of both views, and uniformity, of Z."""
        if not self.aligned:
            return {}
        self.eval()
        zs = [embeddings(self.encode(view)) for _ in range(2) for view in self.make_views(batch, generator)]
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

    def own_views(self, batch: Data) -> tuple[Transform, Transform]:
        parts = self.takes_features and is_wide(batch.x)
        return (
            Chain(MaskFeatures(self.mask_features_1, in_parts=parts), DropEdges(self.drop_edges_1)),
            Chain(MaskFeatures(self.mask_features_2, in_parts=parts), DropEdges(self.drop_edges_2)),
        )


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Projecting(TwoView):
    """A two-view method with a projector between the embeddings and the contrast, as a mixin.

    ``projector`` is a name or any ``nn.Module`` that maps rows to rows. Like an encoder that is given, it is copied:
    see :class:`Method`.
    """

    # fmt: off
    projector: str | nn.Module | None = setting(None, choices=("linear", "identity"), help="linear, identity, or any module that maps rows to rows; None is the method's own")  # noqa: RUF009
    # fmt: on

    def own_projector(self) -> nn.Module:
        """The projector if ``projector`` is ``None``."""
        return Projector(self.out_channels_)

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        width = self.projected_channels_ = self.out_channels_
        if isinstance(self.projector, nn.Module):
            self.projector_ = self.reduced(fresh(self.projector))
            self.projected_channels_ = projector_width(self.projector_, width)
        elif self.projector == "linear":
            self.projector_ = nn.Linear(width, width)
        elif self.projector == "identity":
            self.projector_ = nn.Identity()
        else:
            self.projector_ = self.reduced(self.own_projector())

    def project(self, h: Tensor, generator: torch.Generator | None = None) -> Tensor:
        given = isinstance(self.projector, nn.Module)
        z: Tensor = run(self.projector_, h, generator=generator) if given else self.projector_(h)
        return z

    @property
    def recomputable(self) -> bool:
        return super().recomputable and not isinstance(self.projector, nn.Module)

    @property
    def contrast_width(self) -> int:
        return self.projected_channels_
