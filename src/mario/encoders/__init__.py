"""View encoding: GCN, GraphSAGE, GAT and GIN, projectors and readouts."""

from mario.encoders.adjacency import propagation_matrix
from mario.encoders.encoder import ENCODERS, GAT, GCN, GIN, Encoder, GraphSAGE
from mario.encoders.projector import Projector
from mario.encoders.propagation import Propagation, propagation_of
from mario.encoders.protocol import FeatureEncoder
from mario.encoders.readout import readout

__all__ = [
    "ENCODERS",
    "GAT",
    "GCN",
    "GIN",
    "Encoder",
    "FeatureEncoder",
    "GraphSAGE",
    "Projector",
    "Propagation",
    "propagation_matrix",
    "propagation_of",
    "readout",
]
