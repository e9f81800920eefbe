"""A tiny set of graphs that shifts, for tests of methods: two classes, trained on small graphs, tested on larger."""

import torch
from torch_geometric.data import Data

from mario.graphs.graph_sets import stack_graphs


def tiny_graph_set(seed: int = 0, graphs: int = 40, *, flips: bool = True) -> Data:
    """Rings with (class 1) and without chords (class 0), and a color that goes with the class in training only.

    The first half has 5 to 8 nodes and is for training; the second half has 12 to 20, and there the color
    flips, unless told otherwise.
    """
    generator = torch.Generator().manual_seed(seed)
    made = []
    for i in range(graphs):
        low, high = (5, 9) if i < graphs // 2 else (12, 21)
        nodes = int(torch.randint(low, high, (1,), generator=generator))
        label = i % 2
        ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
        chords = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 2) % nodes]) if label else ring[:, :0]
        edges = torch.cat([ring, chords], dim=1)
        often = label == (i < graphs // 2 or not flips)
        color = (torch.rand(nodes, generator=generator) < (0.7 if often else 0.3)).float()
        x = torch.stack([color, 1 - color, *torch.rand(2, nodes, generator=generator)], dim=1)
        made.append(Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=torch.tensor([label])))
    data = stack_graphs(made)
    train = torch.arange(graphs) < graphs // 2
    data.train_mask, data.ood_test_mask = train, ~train
    data.domain_id, data.env_id = data.ptr.diff(), torch.where(train, 0, -1)
    for key, value in {
        "name": "tiny-graphs",
        "domain": "size",
        "shift": "covariate",
        "setting": "inductive",
        "split_seed": seed,
        "metric": "accuracy",
        "num_classes": 2,
        "faults": [],
    }.items():
        data[key] = value
    return data
