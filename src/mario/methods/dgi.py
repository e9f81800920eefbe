"""Deep Graph Infomax."""

import copy
import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.contrast import Discriminator, node_summary_loss, summarize
from mario.methods.base import register
from mario.methods.settings import setting
from mario.methods.two_view import Side, TwoView, embeddings
from mario.views import ShuffleFeatures


@register("dgi")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class DGI(TwoView):
    """Deep Graph Infomax (Veličković et al., ICLR 2019).

    View α is the graph and view β the graph with features shuffled among its nodes. A bilinear discriminator tells the
    nodes of α from those of β by how they fit a summary of α. The views are not two of the same nodes, and under
    the recipe there is the adversary only.

    Batch norm as the encoder's last word leaves nothing to learn: it gives both the real and the shuffled nodes the same
    mean, hence logits of the same mean, for which the loss is at least log 2. So the encoder has no batch norm and ends
    with an activation unless told otherwise, as in the paper.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> DGI(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    batch_norm: bool = setting(False, search=(False, True), help="batch norm after each convolution; needs last_activation")
    last_activation: bool = setting(True, search=(True, False), help="activation after the last convolution too")
    lr: float = setting(1e-3, low=0.0, search=(1e-2, 1e-3, 1e-4), help="learning rate of Adam")
    summary: str = setting("sigmoid", choices=("sigmoid", "mean"), help="σ(mean of nodes) (paper) or the mean itself (MARIO's code)")
    discriminator_bias: bool = setting(False, help="a number added to all logits: false (paper), true (DGI's released code)")
    # fmt: on

    aligned: ClassVar[bool] = False

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        self.discriminator_ = Discriminator(self.hidden_channels, bias=self.discriminator_bias)

    def views(self, batch: Data, generator: torch.Generator | None = None) -> tuple[Data, Data]:
        return copy.copy(batch), ShuffleFeatures()(batch, generator)

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        h, corrupted = embeddings(alpha), embeddings(beta)
        s = summarize(h, squash=self.summary == "sigmoid")
        return node_summary_loss(self.discriminator_(h, s), self.discriminator_(corrupted, s))
