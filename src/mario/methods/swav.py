"""SwAV on graphs."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor, nn

from mario.contrast import Prototypes, sinkhorn, swapped_prediction
from mario.contrast.rows import directions
from mario.encoders import Projector
from mario.encoders.size import check_size
from mario.methods.registry import register
from mario.methods.settings import MOST_PROTOTYPES, MOST_STEPS, setting
from mario.methods.two_view import DropAndMask, Projecting, Side, embeddings


@register("swav")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class SwAV(Projecting, DropAndMask):
    """Unsupervised Learning of Visual Features by Contrasting Cluster Assignments (Caron et al., NeurIPS 2020), on graphs.

    Each view predicts which center the other view is assigned to; assignments fill all centers evenly. Two views of the
    graph replace two crops of an image; there are no small crops and no queue.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> SwAV(hidden_channels=16, centers=20, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    tau: float = setting(0.1, low=1e-6, search=(0.1, 0.2, 0.5), help="temperature of the prediction")
    centers: int = setting(1000, low=1, high=MOST_PROTOTYPES, search=(50, 100, 300, 1000), help="K: number of SwAV's own prototypes")
    centers_wait: int = setting(10, low=0, search=(0, 10), help="optimizer steps in which the centers are fixed: an epoch (paper), 0 (MARIO's release)")
    assignment_temperature: float = setting(0.05, low=1e-6, search=(0.05, 0.1), help="Sinkhorn's ε: 0.05 (paper), 0.1 (MARIO's release)")
    assignment_iterations: int = setting(3, low=1, high=MOST_STEPS, help="iterations of Sinkhorn-Knopp")
    projector_batch_norm: bool = setting(True, help="batch norm in the projector")
    # fmt: on

    gather: ClassVar[bool] = True
    """Over ranks its loss is always that of all of them, because assignments are."""

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        check_size("the prototypes", [self.contrast_width, self.centers])
        self.centers_ = Prototypes(self.centers, self.contrast_width)
        self.steps_done_: Tensor
        self.register_buffer("steps_done_", torch.zeros((), dtype=torch.long))

    def own_projector(self) -> nn.Module:
        return Projector(self.out_channels_, batch_norm=self.projector_batch_norm)

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        waiting = int(self.steps_done_) < self.centers_wait
        centers = self.centers_.weight.detach() if waiting else self.centers_.weight
        # As in SwAV, the gradient does not pass through the scaling of the centers, which have unit length already.
        u, v = (directions(embeddings(side)) @ centers.t() for side in (alpha, beta))
        q_u, q_v = (
            sinkhorn(scores, iterations=self.assignment_iterations, temperature=self.assignment_temperature)
            for scores in (u, v)
        )
        return swapped_prediction(u, v, q_u, q_v, self.tau)

    @torch.no_grad()
    def after_step(self, step: int, total: int) -> None:
        self.centers_.normalize_()
        self.steps_done_.fill_(step + 1)
