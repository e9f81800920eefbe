"""BA-Shapes: a random graph with five-node houses attached (Ying et al., NeurIPS 2019)."""

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

_HOUSE = ((0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1))
_HOUSE_ROLES = (1, 1, 2, 2, 3)  # middle, middle, bottom, bottom, roof; 0 is a node of the Barabasi-Albert graph


def ba_shapes(seed: int, *, base: int = 300, attach: int = 5, houses: int = 80) -> Data:
    """The graph that PyG's `BAShapes` draws, from a generator of its own.

    A Barabasi-Albert graph in which every new node attaches to ``attach`` ends of earlier edges, and ``houses``
    five-node houses, each attached to a random node of it. All four features are 1.

    Example:
        >>> ba_shapes(0).num_edges
        3962
    """
    rng = np.random.RandomState(seed)
    row, col = np.arange(attach), rng.permutation(attach)
    for node in range(attach, base):
        row = np.concatenate([row, np.full(attach, node)])
        col = np.concatenate([col, rng.choice(np.concatenate([row, col]), attach)])
    hooks = rng.permutation(base)[:houses]
    first = base + 5 * np.arange(houses)
    walls = (np.array(_HOUSE).T[:, None, :] + first[None, :, None]).reshape(2, -1)
    edges = torch.from_numpy(np.concatenate([np.stack([row, col]), np.stack([hooks, first]), walls], axis=1))
    num_nodes = base + 5 * houses
    edge_index = to_undirected(remove_self_loops(edges)[0], num_nodes=num_nodes)
    y = torch.cat([torch.zeros(base, dtype=torch.int64), torch.tensor(_HOUSE_ROLES).repeat(houses)])
    return Data(x=torch.ones(num_nodes, 4), edge_index=edge_index, y=y)
