"""The controls that every table needs: features, neighborhoods and architecture without any learning."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders.adjacency import propagation_matrix
from mario.encoders.apply import dense
from mario.encoders.encoder import BLOCK
from mario.encoders.on_disk import hops_on_disk
from mario.encoders.propagation import propagation_of
from mario.graphs import Block, BlockMatrix
from mario.graphs.samplers import FullGraph, Sampler
from mario.graphs.scratch import scratch_for
from mario.methods.graph_level import GraphLevel
from mario.methods.registry import register
from mario.methods.settings import setting


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class _Control(GraphLevel):
    trains: ClassVar[bool] = False

    def sampler(self, graph: Data) -> Sampler:
        return FullGraph(graph)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        return {}

    def features(self, data: Data) -> Tensor:
        """The checked features of a single graph, sparse or on disk as they are."""
        self.check_fits(data)
        x: Tensor = data.x.to(torch.get_default_dtype()).cpu()
        return x


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

    def blocks(self, data: Data) -> BlockMatrix:
        return BlockMatrix({"x": Block(self.embedded(data) if "batch" in data else self.features(data))})


@register("hops")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Hops(_Control):
    """The features beside the means of the neighbors' features, of their neighbors', and so on; nothing is trained.

    Block ``x`` has the features, ``hop1`` the mean over the neighbors of a node, ``hop2`` the mean over the ``hop1`` of
    its neighbors. A node without neighbors has zeros there. Edge weights weight the means; sparse features stay sparse.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> model = Hops(epochs=1).fit(data)
        >>> model.transform(data).shape, list(model.blocks(data))
        (torch.Size([700, 12]), ['x', 'hop1', 'hop2'])
    """

    # fmt: off
    hops: int = setting(2, low=0, high=16, search=(1, 2, 3), help="how many times the mean over neighbors is taken")
    # fmt: on

    def build(self, in_channels: int, num_classes: int) -> None:
        pass

    def uses(self, name: str) -> bool:
        return name == "edge_weight"

    def embed_nodes(self, data: Data, generator: torch.Generator | None = None) -> Tensor:
        return torch.cat([dense(part) for part in self._means(data)], 1)

    def blocks(self, data: Data) -> BlockMatrix:
        if "batch" in data:
            return BlockMatrix({"graph": Block(self.embedded(data))})
        self.check_fits(data)
        parts = self._means(self.embeddable(data))
        return BlockMatrix({f"hop{hop}" if hop else "x": Block(part.cpu()) for hop, part in enumerate(parts)})

    def _means(self, data: Data) -> list[Tensor]:
        weight = data.get("edge_weight")
        found: list[Tensor] = [data.x]
        size = (self.hops + 1) * data.x.numel() * data.x.dtype.itemsize
        if data.x.layout == torch.strided and data.x.device.type == "cpu" and (scratch := scratch_for(size)):
            return [data.x, *hops_on_disk(data.x, data.edge_index, weight, self.hops, scratch, BLOCK)]
        for _ in range(self.hops):
            if found[-1].layout == torch.sparse_csr:
                mean = propagation_matrix(data.edge_index, data.x.size(0), "mean", data.x.dtype, weight)
                found.append(mean @ found[-1])
            else:
                mean_of = propagation_of(data.edge_index, data.x.size(0), "mean", data.x.dtype, weight)
                found.append(mean_of(found[-1]))
        return found
