"""GRACE."""

import dataclasses
from collections.abc import Callable

import torch
from torch import Tensor, nn

from mario.contrast import estimate, info_nce, sums_within
from mario.contrast.across_ranks import gathered
from mario.contrast.estimators import Names
from mario.contrast.nce import sums_fit
from mario.encoders import Projector
from mario.errors import MarioError
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.methods.two_view import DropAndMask, Projecting, Side, embeddings


@register("grace")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GRACE(Projecting, DropAndMask):
    """Deep Graph Contrastive Representation Learning (Zhu et al., 2020).

    Two views by dropping edges and masking feature columns. The two views of a node are drawn together, and all other
    nodes of both views are pushed apart.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> GRACE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    tau: float = setting(0.5, low=1e-6, search=(0.1, 0.2, 0.4, 0.5, 0.8), help="temperature of the contrast")
    estimator: str = setting("info_nce", choices=Names(), help="estimator of mutual information")
    projector_batch_norm: bool = setting(True, help="batch norm in the projector")
    anchors: int = setting(0, low=0, help="rows of the contrast, drawn in each step, that are compared with all columns; 0 is all rows, exact")
    gather: bool = setting(False, help="negatives from the batches of all ranks; if false, each rank contrasts its own")
    # fmt: on

    def check_together(self) -> None:
        super().check_together()
        if self.anchors and (self.gather or self.estimator != "info_nce"):
            raise MarioError(
                "anchors are for estimator=info_nce on each rank by itself: use anchors=0, or gather=False"
            )

    def own_projector(self) -> nn.Module:
        return Projector(self.out_channels_, batch_norm=self.projector_batch_norm)

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        z_alpha, z_beta = self._rounded(alpha), self._rounded(beta)
        if self.estimator == "info_nce":
            anchors = self.anchors or None
            return info_nce(z_alpha, z_beta, self.tau, anchors=anchors, generator=generator, across_ranks=self.gather)
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
