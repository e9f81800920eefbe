"""A small graph of one's own in a folder: towns, months and few labels, or none."""

from pathlib import Path

import torch
from torch_geometric.data import Data

from mario.graphs import save_graph
from mario.graphs.card import write_card

TOWNS = ("Bern", "Oslo", "Rome", "Lima")
NODES = 240
MONTH = 30 * 86_400


def own_graph(*, labels: bool = True) -> Data:
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(3, (NODES,), generator=generator)
    data = Data(
        x=torch.eye(3)[truth] + 0.5 * torch.randn(NODES, 3, generator=generator),
        edge_index=torch.randint(NODES, (2, 4 * NODES), generator=generator),
        town=torch.arange(NODES) % 4,
        time=1_451_606_400 + MONTH * (torch.arange(NODES) // 8),  # from 2016 on
    )
    if labels:
        data.y = torch.where(torch.rand(NODES, generator=generator) < 0.3, truth, -1)
    return data


def own_folder(folder: Path, *, labels: bool = True) -> Path:
    """The graph with a card as ``mario graph build`` writes it: a domain, a time, and no split."""
    folder.mkdir(parents=True)
    save_graph(own_graph(labels=labels), folder / "graph.safetensors")
    table = {
        "name": folder.name,
        "file": "graph.safetensors",
        "metric": "accuracy",
        "setting": "transductive",
        "nodes": NODES,
        "edges": 4 * NODES,
        "features": 3,
        "classes": 3 if labels else 0,
        "class_names": ["cat", "dog", "owl"] if labels else [],
        "columns": {
            "town": {"role": "domain", "kind": "categorical", "values": list(TOWNS)},
            "time": {"role": "time", "kind": "date"},
        },
    }
    write_card(folder, table)
    return folder
