"""The two controls that every table needs: features and architecture without any learning."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders.apply import dense
from mario.graphs.samplers import FullGraph, Sampler
from mario.methods.graph_level import GraphLevel
from mario.methods.registry import register


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class _Control(GraphLevel):
    trains: ClassVar[bool] = False

    def sampler(self, graph: Data) -> Sampler:
        return FullGraph(graph)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        return {}


@register("random-init")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class RandomInit(_Control):
    """An encoder as it was initialized: what the architecture alone gives a linear probe.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> RandomInit(hidden_channels=16, epochs=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """


@register("raw-features")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class RawFeatures(_Control):
    """The features themselves, without the graph; for a set of graphs, their readout.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> RawFeatures(epochs=1).fit(data).transform(data).shape
        torch.Size([700, 4])
    """

    def build(self, in_channels: int, num_classes: int) -> None:
        pass

    def embed_nodes(self, data: Data, generator: torch.Generator | None = None) -> Tensor:
        return dense(data.x)
