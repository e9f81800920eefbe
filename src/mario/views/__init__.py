"""View generation: random views of a graph, as PyG transforms."""

from mario.views.adversarial import AdversarialFeatures
from mario.views.chain import Chain
from mario.views.diffusion import Diffusion, diffusion_block, diffusion_matrix
from mario.views.drop_edges import DropEdges
from mario.views.drop_nodes import DropNodes
from mario.views.mask_features import MaskFeatures
from mario.views.mask_nodes import MaskNodes
from mario.views.one_of import OneOf
from mario.views.perturb_edges import PerturbEdges
from mario.views.random_walk_subgraph import RandomWalkSubgraph
from mario.views.shuffle import ShuffleFeatures
from mario.views.view import View

__all__ = [
    "AdversarialFeatures",
    "Chain",
    "Diffusion",
    "DropEdges",
    "DropNodes",
    "MaskFeatures",
    "MaskNodes",
    "OneOf",
    "PerturbEdges",
    "RandomWalkSubgraph",
    "ShuffleFeatures",
    "View",
    "diffusion_block",
    "diffusion_matrix",
]
