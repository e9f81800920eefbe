"""GRACE."""

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor

from mario.contrast import estimate, info_nce, sums_within
from mario.contrast.across_ranks import gathered
from mario.contrast.estimators import Names
from mario.contrast.nce import sums_fit
from mario.encoders import Projector
from mario.errors import MarioError
from mario.methods.base import register
from mario.methods.settings import setting
from mario.methods.two_view import DropAndMask, Side, embeddings


@register("grace")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GRACE(DropAndMask):
    """Deep Graph Contrastive Representation Learning (Zhu et al., 2020).

    Two views by dropping edges and masking feature columns; the two views of a node are drawn together, all other
    nodes of both views pushed apart.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> GRACE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    tau: float = setting(0.5, low=1e-6, search=(0.1, 0.2, 0.4, 0.5, 0.8), help="temperature of the contrast")
    estimator: str = setting("info_nce", choices=Names(), help="what estimates mutual information")
    projector_batch_norm: bool = setting(True, help="batch norm in the projector")
    anchors: int = setting(0, low=0, help="rows of the contrast, drawn in each step, that meet all columns; 0 is all rows, exact")
    gather: bool = setting(False, help="negatives from the batches of all ranks; without it a rank contrasts its own")
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.anchors and (self.gather or self.estimator != "info_nce"):
            raise MarioError(
                "anchors are for estimator=info_nce on each rank by itself: anchors=0 or gather=False would do"
            )

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        self.projector_ = Projector(self.hidden_channels, batch_norm=self.projector_batch_norm)

    def project(self, h: Tensor) -> Tensor:
        return self.projector_(h)

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        z_alpha, z_beta = self._rounded(alpha), self._rounded(beta)
        if self.estimator == "info_nce":
            chosen = {"anchors": self.anchors, "generator": generator} if self.anchors else {}
            return info_nce(z_alpha, z_beta, self.tau, across_ranks=self.gather, **chosen)
        if self.gather:
            z_alpha, z_beta = gathered(z_alpha), gathered(z_beta)
        return estimate(z_alpha, z_beta, self.tau, self.estimator)

    def contrast_with(
        self, beta: Side, generator: torch.Generator | None = None
    ) -> tuple[Callable[..., Tensor], Callable[[], None]]:
        z_beta = embeddings(beta)
        exact = self.estimator == "info_nce" and not (self.anchors or self.gather) and self.precision == "float32"
        if not exact or not sums_fit(z_beta, self.tau):
            return super().contrast_with(beta, generator)
        # The pairs within β, a quarter of all, are summed once for all α and get one backward pass. Without this a step
        # of MARIO takes 5 % longer at 700 nodes, 16 % at 4,000 and 18 % at 8,000 (benchmarks/kernels.py).
        within = sums_within(z_beta, self.tau)
        cut = within.detach().requires_grad_(within.requires_grad)

        def finish() -> None:
            if cut.grad is not None:
                within.backward(cut.grad)

        return lambda alpha: info_nce(embeddings(alpha), z_beta, self.tau, within_v=cut), finish

    def _rounded(self, side: Side) -> Tensor:
        z = embeddings(side)
        return z.bfloat16() if self.precision == "bfloat16" and self.estimator == "info_nce" and not self.gather else z
