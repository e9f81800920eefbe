"""View generation: random views of a graph as PyG transforms."""

from mario.views.adversarial import AdversarialFeatures
from mario.views.chain import Chain
from mario.views.drop_edges import DropEdges
from mario.views.drop_nodes import DropNodes
from mario.views.mask_features import MaskFeatures
from mario.views.random_walk_subgraph import RandomWalkSubgraph
from mario.views.view import View

__all__ = [
    "AdversarialFeatures",
    "Chain",
    "DropEdges",
    "DropNodes",
    "MaskFeatures",
    "RandomWalkSubgraph",
    "View",
]
