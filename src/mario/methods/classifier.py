"""An encoder with a linear head, trained with labels."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.methods.graph_level import GraphLevel


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Classifier(GraphLevel):
    """The parts that supervised methods share: the head, the labels that a batch may use, and :meth:`predict`."""

    supervised: ClassVar[bool] = True

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        self.head_ = nn.Linear(self.out_channels_, num_classes)

    def labeled(self, batch: Data) -> Tensor:
        """Mask of the training nodes or graphs of a batch. A sampled subgraph may have none."""
        known: Tensor = batch.train_mask & (batch.y >= 0)
        return known & batch.seed_mask if "seed_mask" in batch else known

    @torch.no_grad()
    def predict(self, data: Data) -> Tensor:
        """Logits of all nodes, or of all graphs of a set."""
        self.check_fitted()
        device = self.head_.weight.device
        with torch.autocast(device.type, enabled=False):
            logits: Tensor = self.head_(self.transform(data).to(device))
        return self.finite(logits.cpu())
