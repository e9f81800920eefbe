"""Small graphs of which the truth is known."""

import numpy as np
import torch
from torch_geometric.data import Data

NAMES = ["age", "income", "member", "color=red", "color=blue", "color=green"]


def world(seed: int = 0, nodes: int = 240, domains: int = 2, *, separate: bool = True) -> Data:
    """Communities of twenty nodes; nothing differs between domains.

    With ``separate``, each domain has its own communities and no links to the others; otherwise domains are dealt.
    """
    draws = np.random.default_rng([seed, 5])
    community = np.repeat(np.arange(nodes // 20), 20)
    nodes = len(community)
    domain = community % domains if separate else draws.integers(domains, size=nodes)
    y = np.where(
        draws.random(nodes) < 0.8, draws.integers(2, size=nodes // 20)[community], draws.integers(2, size=nodes)
    )
    source = draws.integers(nodes, size=3 * nodes)
    target = community[source] * 20 + draws.integers(20, size=3 * nodes)
    across = draws.random(3 * nodes) < 0.05
    if not separate:
        target[across] = draws.integers(nodes, size=int(across.sum()))
    color = np.eye(3)[draws.choice(3, size=nodes, p=[0.5, 0.3, 0.2])]
    numbers = draws.normal(size=(nodes, 2)) + y[:, None]
    x = np.column_stack([numbers, draws.random(nodes) < 0.4, color])
    edges = torch.tensor(np.stack([np.r_[source, target], np.r_[target, source]]))
    data = Data(x=torch.tensor(x, dtype=torch.float32), edge_index=edges, y=torch.tensor(y))
    data.domain_id, data.domain = torch.tensor(domain), "region"
    data.feature_names, data.metric, data.num_classes = NAMES, "accuracy", 2
    return data
