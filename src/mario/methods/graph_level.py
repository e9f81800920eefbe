"""Methods that also embed whole graphs."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.encoders import readout
from mario.encoders.apply import encode
from mario.graphs.graph_sets import GraphSet
from mario.graphs.samplers import Graphs, Sampler
from mario.methods.base import Method
from mario.methods.settings import setting

# Nodes embedded at once: 16 MiB for each layer of width 64.
_CHUNK = 2**16


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GraphLevel(Method):
    """What a method needs for a set of graphs (``"batch" in data``), as a mixin.

    A training batch is then a set of whole graphs; ``sampling`` and ``roots`` have no effect. There is one embedding
    per graph, read out of those of its nodes.
    """

    # fmt: off
    readout: str = setting("max", choices=("max", "mean", "sum"), search=("max", "mean", "sum"), help="from a graph's nodes to the graph; no effect on a single graph")
    graphs: int = setting(128, low=1, help="graphs in a training batch; no effect on a single graph")
    # fmt: on

    levels: ClassVar[tuple[str, ...]] = ("node", "graph")

    def sampler(self, graph: Data) -> Sampler:
        return Graphs(graph, per_batch=self.graphs) if "batch" in graph else super().sampler(graph)

    def embed_nodes(self, data: Data, generator: torch.Generator | None = None) -> Tensor:
        """One row per node."""
        return encode(self.encoder_, data, generator)

    def pool(self, h: Tensor, data: Data) -> Tensor:
        """One row per graph if ``data`` is a set of graphs, else ``h``."""
        return readout(h, data.batch, self.readout) if "batch" in data else h

    def embed(self, data: Data) -> Tensor:
        """Embeddings of all graphs, or of all nodes of a single graph.

        A set is embedded part by part: without training, no graph depends on another.
        """
        if "batch" not in data:
            return self.embed_nodes(data)
        return torch.cat([self.pool(self.embed_nodes(part), part) for part in GraphSet(data).chunks(_CHUNK)])
