"""Representation contrasting: losses as pure functions of two views' embeddings, and prototypes."""

from mario.contrast.blocks import Pairs as Pairs
from mario.contrast.bootstrapping import bootstrap as bootstrap
from mario.contrast.clustering import (
    Prototypes as Prototypes,
    sinkhorn as sinkhorn,
    swapped_prediction as swapped_prediction,
)
from mario.contrast.conditional import conditional_mi as conditional_mi
from mario.contrast.cross_view import nt_xent as nt_xent
from mario.contrast.estimators import (
    ESTIMATORS as ESTIMATORS,
    Estimator as Estimator,
    donsker_varadhan as donsker_varadhan,
    estimate as estimate,
    estimator as estimator,
    jensen_shannon as jensen_shannon,
)
from mario.contrast.geometry import (
    alignment as alignment,
    alignment_uniformity as alignment_uniformity,
    uniformity as uniformity,
    worst_case_alignment as worst_case_alignment,
)
from mario.contrast.nce import (
    info_nce as info_nce,
    sums_within as sums_within,
)
from mario.contrast.reconstruction import (
    edge_reconstruction as edge_reconstruction,
    full_reconstruction as full_reconstruction,
)
from mario.contrast.sce import scaled_cosine_error as scaled_cosine_error
from mario.contrast.sketching import sketch as sketch
from mario.contrast.summary import (
    Discriminator as Discriminator,
    ProjectedDot as ProjectedDot,
    node_summary_loss as node_summary_loss,
    summarize as summarize,
)
from mario.contrast.transport import (
    graph_emd as graph_emd,
    transport_nce as transport_nce,
    transport_plan as transport_plan,
)
from mario.plugins import discover

discover(__name__, __path__, __name__)  # a file of yours may register an estimator
