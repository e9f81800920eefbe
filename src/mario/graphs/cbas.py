"""GOOD-CBAS: the BA-Shapes graph, colored while it is split (Gui et al., NeurIPS 2022)."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from mario.graphs.rules import CBAS_RULES, ColorRule, SplitRule
from mario.graphs.splits import (
    OOD_TEST,
    OOD_VAL,
    TRAIN,
    Split,
    floor,
    no_shift_split,
    seeded,
    take_id_parts,
    with_split,
)

_HOUSE = ((0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1))
_HOUSE_ROLES = (1, 1, 2, 2, 3)  # middle, middle, bottom, bottom, roof; 0 is a node of the Barabasi-Albert graph
# BA-Shapes drops the duplicates among its random edges, so their number depends on the draw (3,943 ± 18). GOOD drew
# once and published 3,962; this seed gives as many. NumPy keeps the stream of RandomState fixed for ever.
_GRAPH_SEED = 0


def cbas_graph(*, shift: str, split_seed: int) -> Data:
    """The colored BA-Shapes graph under one shift: the graph is fixed, ``split_seed`` draws the split and the colors.

    Example:
        >>> data = cbas_graph(shift="covariate", split_seed=0)
        >>> data.num_nodes, data.num_edges, int(data.train_mask.sum())
        (700, 3962, 420)
    """
    data = ba_shapes(_GRAPH_SEED)
    generator = seeded(split_seed)
    if shift == "no_shift":
        split = no_shift_split(data.y.numel(), SplitRule(environments=5), generator)
        color = torch.zeros_like(data.y)
    else:
        rule = CBAS_RULES[shift]
        split, color = colored_split(data.y, rule, generator)
        data.x = torch.tensor(rule.colors, dtype=torch.float32)[color]
    return with_split(data, split, color, domain="color", shift=shift, split_seed=split_seed)


def colored_split(y: Tensor, rule: ColorRule, generator: torch.Generator | None = None) -> tuple[Split, Tensor]:
    """The five parts, and the color (an index into the rule's colors) of every node."""
    num_nodes = y.numel()
    train_end, val_end = (floor(num_nodes * cut) for cut in rule.cuts)
    shuffled = torch.randperm(num_nodes, generator=generator)
    group = torch.empty(num_nodes, dtype=torch.int64)  # training environments, then ood_val, then ood_test
    group[shuffled[:train_end]] = torch.arange(train_end) * rule.environments // train_end
    group[shuffled[train_end:val_end]] = rule.environments
    group[shuffled[val_end:]] = rule.environments + 1

    if rule.agreement is None:
        color = group.clone()
    else:
        anything = torch.randint(len(rule.colors), (num_nodes,), generator=generator)
        agrees = torch.rand(num_nodes, generator=generator) < torch.tensor(rule.agreement)[group]
        color = torch.where(agrees, y, anything)

    part = torch.full((num_nodes,), TRAIN)
    part[group == rule.environments] = OOD_VAL
    part[group == rule.environments + 1] = OOD_TEST
    take_id_parts(part, shuffled[:train_end], floor(num_nodes * rule.id_fraction), generator)
    return Split(part, group.masked_fill(part != TRAIN, -1)), color


def ba_shapes(seed: int, *, base: int = 300, attach: int = 5, houses: int = 80) -> Data:
    """BA-Shapes (Ying et al., NeurIPS 2019) as PyG's `BAShapes` draws it, from a generator of its own.

    A Barabasi-Albert graph in which every new node attaches to ``attach`` ends of earlier edges, and ``houses``
    five-node houses, each hung on a random node of it.
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
