"""Representation contrasting: losses that are pure functions of two views' embeddings, and prototypes."""

from mario.contrast.clustering import Prototypes, sinkhorn, swapped_prediction
from mario.contrast.conditional import conditional_mi
from mario.contrast.estimators import donsker_varadhan, jensen_shannon
from mario.contrast.geometry import alignment, alignment_uniformity, uniformity, worst_case_alignment
from mario.contrast.nce import info_nce

__all__ = [
    "Prototypes",
    "alignment",
    "alignment_uniformity",
    "conditional_mi",
    "donsker_varadhan",
    "info_nce",
    "jensen_shannon",
    "sinkhorn",
    "swapped_prediction",
    "uniformity",
    "worst_case_alignment",
]
