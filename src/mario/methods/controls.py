"""The two controls that every table needs: what features and architecture are worth without any learning."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.samplers import FullGraph, Sampler
from mario.methods.base import register
from mario.methods.graph_level import GraphLevel


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
    """An encoder as it was initialized: what the architecture alone gives a linear probe."""


@register("raw-features")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class RawFeatures(_Control):
    """The features themselves, without the graph; of a set of graphs, their readout."""

    def build(self, in_channels: int, num_classes: int) -> None:
        pass

    def embed_nodes(self, data: Data, generator: torch.Generator | None = None) -> Tensor:
        return data.x.to_dense() if data.x.layout == torch.sparse_csr else data.x
