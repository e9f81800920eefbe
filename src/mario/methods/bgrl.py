"""BGRL."""

import dataclasses
import math

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.contrast import bootstrap
from mario.encoders.apply import encode
from mario.encoders.size import check_size
from mario.methods.registry import register
from mario.methods.settings import MOST_CHANNELS, setting
from mario.methods.two_view import DropAndMask, Side
from mario.training import SCHEDULES


@register("bgrl")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class BGRL(DropAndMask):
    """Large-Scale Representation Learning on Graphs via Bootstrapping (Thakoor et al., ICLR 2022).

    An online encoder and a predictor predict the output of a target encoder for the other view. The target follows the
    online encoder with a momentum that rises to 1. There are no negatives. In the paper, the learning rate has a
    ``warmup`` of a tenth of the steps.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> BGRL(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    schedule: str = setting("cosine", choices=SCHEDULES, help="course of the learning rate")
    weight_decay: float = setting(1e-5, low=0.0, search=(0.0, 1e-5, 1e-4), help="weight decay of AdamW")
    momentum: float = setting(0.99, low=0.0, high=1.0, search=(0.99, 0.995, 0.999), help="momentum of the target at the first step")
    momentum_schedule: str = setting("cosine", choices=("cosine", "constant"), help="course of the momentum: a cosine up to 1, or constant")
    predictor_hidden_channels: int = setting(512, low=1, high=MOST_CHANNELS, search=(256, 300, 512), help="width of the predictor's hidden layer")
    # fmt: on

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        check_size("the predictor", [self.out_channels_, self.predictor_hidden_channels, self.out_channels_])
        self.predictor_ = nn.Sequential(
            nn.Linear(self.out_channels_, self.predictor_hidden_channels),
            nn.PReLU(),
            nn.Linear(self.predictor_hidden_channels, self.out_channels_),
        )
        # Not a copy of the online weights: the authors draw them anew.
        self.target_ = self.make_encoder(in_channels).requires_grad_(False)

    def encode(self, view: Data, generator: torch.Generator | None = None) -> Side:
        """(H of the online encoder, its prediction, H of the target encoder)."""
        h = self.represent(view, generator)
        with torch.no_grad():
            target = encode(self.target_, view, generator)
        return h, self.predictor_(h), target[view.seed_mask] if "seed_mask" in view else target

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        (_, predicted_alpha, target_alpha), (_, predicted_beta, target_beta) = alpha, beta
        return bootstrap(predicted_alpha, target_beta) + bootstrap(predicted_beta, target_alpha)

    @torch.no_grad()
    def after_step(self, step: int, total: int) -> None:
        """φ ← τφ + (1 − τ)θ with 1 − τ = (1 − τ₀)·(1 + cos(π·step/total))/2."""
        share = 1 - self.momentum
        if self.momentum_schedule == "cosine":
            share *= (1 + math.cos(math.pi * step / total)) / 2
        for target, online in zip(self.target_.parameters(), self.encoder_.parameters(), strict=True):
            target.lerp_(online, share)

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.trained(), lr=self.lr, weight_decay=self.weight_decay, fused=True)
