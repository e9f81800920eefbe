"""Representation contrasting: losses that are pure functions of two views' embeddings, and prototypes."""

from mario.contrast.bootstrapping import bootstrap
from mario.contrast.clustering import Prototypes, sinkhorn, swapped_prediction
from mario.contrast.conditional import conditional_mi
from mario.contrast.cross_view import nt_xent
from mario.contrast.estimators import donsker_varadhan, jensen_shannon
from mario.contrast.geometry import alignment, alignment_uniformity, uniformity, worst_case_alignment
from mario.contrast.nce import info_nce
from mario.contrast.reconstruction import edge_reconstruction, full_reconstruction
from mario.contrast.repeated import Conditional, RepeatedInfoNCE
from mario.contrast.sce import scaled_cosine_error
from mario.contrast.sketching import sketch
from mario.contrast.summary import Discriminator, ProjectedDot, node_summary_loss, summarize
from mario.contrast.transport import graph_emd, transport_nce, transport_plan

__all__ = [
    "Conditional",
    "Discriminator",
    "ProjectedDot",
    "Prototypes",
    "RepeatedInfoNCE",
    "alignment",
    "alignment_uniformity",
    "bootstrap",
    "conditional_mi",
    "donsker_varadhan",
    "edge_reconstruction",
    "full_reconstruction",
    "graph_emd",
    "info_nce",
    "jensen_shannon",
    "node_summary_loss",
    "nt_xent",
    "scaled_cosine_error",
    "sinkhorn",
    "sketch",
    "summarize",
    "swapped_prediction",
    "transport_nce",
    "transport_plan",
    "uniformity",
    "worst_case_alignment",
]
