"""Representation contrasting: losses as pure functions of two views' embeddings, and prototypes."""

from mario.contrast.blocks import Pairs
from mario.contrast.bootstrapping import bootstrap
from mario.contrast.clustering import Prototypes, sinkhorn, swapped_prediction
from mario.contrast.conditional import conditional_mi
from mario.contrast.cross_view import nt_xent
from mario.contrast.estimators import (
    ESTIMATORS,
    Estimator,
    donsker_varadhan,
    estimate,
    jensen_shannon,
    register_estimator,
)
from mario.contrast.geometry import alignment, alignment_uniformity, uniformity, worst_case_alignment
from mario.contrast.nce import info_nce, sums_within
from mario.contrast.reconstruction import edge_reconstruction, full_reconstruction
from mario.contrast.sce import scaled_cosine_error
from mario.contrast.sketching import sketch
from mario.contrast.summary import Discriminator, ProjectedDot, node_summary_loss, summarize
from mario.contrast.transport import graph_emd, transport_nce, transport_plan
from mario.plugins import discover

discover(__name__, __path__, __name__)  # a file of yours may register an estimator

__all__ = [
    "ESTIMATORS",
    "Discriminator",
    "Estimator",
    "Pairs",
    "ProjectedDot",
    "Prototypes",
    "alignment",
    "alignment_uniformity",
    "bootstrap",
    "conditional_mi",
    "donsker_varadhan",
    "edge_reconstruction",
    "estimate",
    "full_reconstruction",
    "graph_emd",
    "info_nce",
    "jensen_shannon",
    "node_summary_loss",
    "nt_xent",
    "register_estimator",
    "scaled_cosine_error",
    "sinkhorn",
    "sketch",
    "summarize",
    "sums_within",
    "swapped_prediction",
    "transport_nce",
    "transport_plan",
    "uniformity",
    "worst_case_alignment",
]
