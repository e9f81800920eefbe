"""Sets of graphs split by size."""

import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import graph_sizes
from mario.graphs.splits import seeded


def size_split(data: Data, sizes: tuple[int, int], train: int | None, split_seed: int = 0) -> Data:
    """Split a set by the number of nodes: ``train`` of those within ``sizes`` are for training, others for testing.

    ``split_seed`` draws which, if more than ``train`` graphs are within ``sizes``; ``None`` takes all of them.
    ``domain_id`` is the number of nodes, and training is one environment.

    Example:
        >>> from mario.graphs.graph_sets import stack_graphs
        >>> data = stack_graphs([Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0).long()) for n in (1, 2, 3)])
        >>> size_split(data, (1, 2), None).ood_test_mask.tolist()
        [False, False, True]
    """
    nodes = graph_sizes(data)
    within = ((nodes >= sizes[0]) & (nodes <= sizes[1])).nonzero().view(-1)
    generator = seeded(split_seed)
    if train is not None:
        if train > within.numel():
            raise MarioError(f"train={train}, but only {within.numel()} graphs have {sizes[0]} to {sizes[1]} nodes")
        within = within[torch.randperm(within.numel(), generator=generator)[:train]]
    mask = torch.zeros(nodes.numel(), dtype=torch.bool)
    mask[within] = True
    data.train_mask, data.ood_test_mask = mask, ~mask
    data.domain_id, data.env_id = nodes.clone(), torch.where(mask, 0, -1)
    data.shift, data.split_seed = "covariate", split_seed
    return data
