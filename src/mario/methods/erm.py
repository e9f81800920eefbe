"""Empirical risk minimization."""

import dataclasses
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.methods.base import register
from mario.methods.graph_level import GraphLevel


@register("erm")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class ERM(GraphLevel):
    """An encoder and a linear head trained with the labels of the training nodes or graphs (Vapnik 1999).

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> ERM(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).predict(data).shape
        torch.Size([700, 4])
    """

    supervised: ClassVar[bool] = True

    def build(self, in_channels: int, num_classes: int) -> None:
        super().build(in_channels, num_classes)
        self.head_ = nn.Linear(self.out_channels_, num_classes)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        logits = self.head_(self.pool(self.embed_nodes(batch, generator), batch))
        known = batch.train_mask & batch.seed_mask if "seed_mask" in batch else batch.train_mask
        if not known.any():  # a sampled subgraph may have no training node
            return {}
        loss = F.cross_entropy(logits[known], batch.y[known])
        loss.backward()
        return {"loss": loss.item()}

    @torch.no_grad()
    def predict(self, data: Data) -> Tensor:
        """Logits of all nodes, or of all graphs of a set."""
        self.check_fitted()
        logits: Tensor = self.head_(self.transform(data).to(self.head_.weight.device))
        return logits.cpu()
