"""Training batches: the whole graph, or random parts of it. Vectorized torch, no compiled extension."""

from mario.graphs.samplers.clusters import Clusters
from mario.graphs.samplers.full_graph import FullGraph
from mario.graphs.samplers.graphs import Graphs
from mario.graphs.samplers.neighbors import Neighbors
from mario.graphs.samplers.random_walk import RandomWalk
from mario.graphs.samplers.sampler import Sampler

__all__ = ["Clusters", "FullGraph", "Graphs", "Neighbors", "RandomWalk", "Sampler"]
