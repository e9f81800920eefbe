"""GraphCL."""

import dataclasses
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.contrast import nt_xent
from mario.encoders import Projector
from mario.methods.graph_level import GraphLevel
from mario.methods.parts import Transform
from mario.methods.registry import register
from mario.methods.settings import setting
from mario.methods.two_view import DropAndMask, Projecting, Side, embeddings
from mario.views import (
    Chain,
    DropEdges,
    DropNodes,
    MaskFeatures,
    MaskNodes,
    OneOf,
    PerturbEdges,
    RandomWalkSubgraph,
    View,
)

AUGMENTATIONS = ("nodes", "subgraph", "edges", "attributes", "random2", "random3", "random4", "drop_and_mask", "none")


@register("graphcl")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GraphCL(GraphLevel, Projecting, DropAndMask):
    """Graph Contrastive Learning with Augmentations (You et al., NeurIPS 2020).

    The two views of a graph are drawn together and the views of all other graphs of the batch are pushed apart
    (NT-Xent). There are four augmentations: ``nodes`` (dropped), ``subgraph`` (a random walk), ``edges`` (perturbed)
    and ``attributes`` (nodes masked). ``random2``, ``random3`` and ``random4`` draw one of the first two, three or four
    for each graph; ``random2`` is the authors' choice for biochemical graphs. ``drop_and_mask`` drops edges and masks
    feature columns with the probabilities that MARIO's paper gives for GraphCL. ``none`` leaves the graph unchanged, as
    the authors' code does in one of its two views.

    Example:
        >>> import torch
        >>> from mario.graphs.graph_sets import stack_graphs
        >>> ring = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
        >>> data = stack_graphs([ring] * 4)
        >>> GraphCL(hidden_channels=8, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([4, 8])
    """

    # fmt: off
    augment_1: str = setting("random2", choices=AUGMENTATIONS, search=AUGMENTATIONS, help="augmentation that makes view α")
    augment_2: str = setting("random2", choices=AUGMENTATIONS, search=AUGMENTATIONS, help="augmentation that makes view β")
    ratio: float = setting(0.2, low=0.0, high=1.0, search=(0.05, 0.1, 0.2), help="nodes dropped, edges perturbed, nodes masked: 0.2 (code, semi-supervised), 0.1 (code, unsupervised)")
    subgraph_ratio: float = setting(0.2, low=1e-6, high=1.0, search=(0.2, 0.5, 0.8), help="nodes that a subgraph keeps: 0.2 (code)")
    mask_fill: str = setting("mean", choices=("mean", "noise", "zero"), help="features of a masked node: mean (code, semi-supervised), noise (code, unsupervised) or zero")
    tau: float = setting(0.5, low=1e-6, search=(0.1, 0.2, 0.5), help="temperature: 0.5 (MARIO's paper), 0.2 (GraphCL's code)")
    projector_batch_norm: bool = setting(False, help="batch norm in the projector; GraphCL has none")
    # fmt: on

    levels: ClassVar[tuple[str, ...]] = ("graph",)

    def own_projector(self) -> nn.Module:
        return Projector(self.out_channels_, batch_norm=self.projector_batch_norm)

    def own_views(self, batch: Data) -> tuple[Transform, Transform]:
        return (
            self.augmentation(self.augment_1, self.mask_features_1, self.drop_edges_1),
            self.augmentation(self.augment_2, self.mask_features_2, self.drop_edges_2),
        )

    def augmentation(self, kind: str, mask_features: float, drop_edges: float) -> View:
        """The view called ``kind``; only ``drop_and_mask`` has its own probabilities for each view."""
        if kind == "drop_and_mask":
            return Chain(MaskFeatures(mask_features), DropEdges(drop_edges))
        four: dict[str, View] = {
            "nodes": DropNodes(self.ratio),
            "subgraph": RandomWalkSubgraph(self.subgraph_ratio),
            "edges": PerturbEdges(self.ratio),
            "attributes": MaskNodes(self.ratio, fill=self.mask_fill),
        }
        if kind.startswith("random"):
            return OneOf(*list(four.values())[: int(kind.removeprefix("random"))])
        return four.get(kind, Chain())

    def represent(self, view: Data, generator: torch.Generator | None = None) -> Tensor:
        return self.pool(self.embed_nodes(view, generator), view)

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        return nt_xent(embeddings(alpha), embeddings(beta), self.tau)
