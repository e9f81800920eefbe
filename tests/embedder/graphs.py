"""Small graphs with domains, of which the truth is known."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.ipc
import torch
from torch_geometric.data import Data

from mario.embedder import Ids, ModelFolder, conclude, fit_graph, read_source, write_model


def shifting(seed: int = 0, nodes: int = 300, domains: int = 4, *, labels: bool = True, split: bool = True) -> Data:
    """The first column tells the class everywhere, the second only in the domain it is from; links within domains.

    With ``split``, two domains train, one validates and one tests; without, there are no masks.
    """
    draws = torch.Generator().manual_seed(seed)
    domain, y = torch.arange(nodes) % domains, torch.randint(2, (nodes,), generator=draws)
    sign = torch.tensor([1.0, -1.0] * domains)[domain]
    noise = torch.randn(nodes, 4, generator=draws)
    x = torch.stack([2 * y - 1 + 0.8 * noise[:, 0], (2 * y - 1) * sign * 3 + 0.1 * noise[:, 1]], 1)
    x = torch.cat([x, noise[:, 2:] + domain[:, None]], 1)
    ends = torch.randint(nodes // domains, (2, 3 * nodes), generator=draws) * domains
    edges = ends + torch.arange(3 * nodes) % domains
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), domain_id=domain, domain="region")
    if labels:
        data.y = y
        data.metric, data.num_classes = "accuracy", 2
    if labels and split:
        part, inside = torch.rand(nodes, generator=draws), domain < 2
        data.train_mask = inside & (part < 0.6)
        data.id_val_mask = inside & (part >= 0.6) & (part < 0.8)
        data.id_test_mask = inside & (part >= 0.8)
        data.ood_val_mask, data.ood_test_mask = domain == 2, domain == 3
    return data


QUICK = {"steps": 3, "hidden_channels": 8, "method": "grace"}


def folder_of(data: Data | Path, home: Path, *, given: dict[str, Any] | None = None) -> ModelFolder:
    """A model that was fitted on ``data``."""
    source = read_source(data)
    return write_model(conclude(fit_graph(source.data, given=given or QUICK), source), home)


def with_ids(home: Path, ids: Any) -> Path:
    """The folder of a graph with an ``ids.arrow``, as `mario graph build` writes it."""
    column = Ids.of(ids).column
    schema = pyarrow.schema([("id", column.type)])
    with pyarrow.ipc.new_file(str(home / "ids.arrow"), schema) as file:
        file.write_table(pyarrow.table([column], schema=schema))
    card = home / "graph.toml"
    card.write_text('ids = "ids.arrow"\n' + card.read_text())
    return home
