"""Deep Graph Infomax."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.contrast import Discriminator, node_summary_loss, summarize
from mario.encoders.size import check_size
from mario.methods.parts import Transform
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.methods.two_view import Side, TwoView, embeddings
from mario.views import Chain, ShuffleFeatures


@register("dgi")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class DGI(TwoView):
    """Deep Graph Infomax (Veličković et al., ICLR 2019).

    View α is the graph and view β the graph with features shuffled among its nodes. A bilinear discriminator separates
    the nodes of α from those of β by how they fit a summary of α. Row i of the two views is not the same node, so the
    recipe has no conditional term here, only the adversary.

    With batch norm as the last layer of the encoder there is nothing to learn: real and shuffled nodes then have the
    same mean, so their logits do too, and the loss is at least log 2. By default the encoder therefore has no batch
    norm and ends with an activation, as in the paper. ``views=(a, b)`` replaces the graph and its corruption.

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
        check_size("the discriminator", [self.out_channels_, self.out_channels_])
        self.discriminator_ = Discriminator(self.out_channels_, bias=self.discriminator_bias)

    def own_views(self, batch: Data) -> tuple[Transform, Transform]:
        return Chain(), ShuffleFeatures()

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        h, corrupted = embeddings(alpha), embeddings(beta)
        s = summarize(h, squash=self.summary == "sigmoid")
        return node_summary_loss(self.discriminator_(h, s), self.discriminator_(corrupted, s))
