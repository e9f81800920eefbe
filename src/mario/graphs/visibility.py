"""What a method may see of a graph while it trains."""

import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import select_graphs
from mario.graphs.paging import release
from mario.graphs.subgraph import subgraph

_KEPT = ("x", "n_id", "name", "domain", "shift", "setting", "split_seed", "metric", "num_classes", "faults")


def training_graph(data: Data) -> Data:
    """The graph that training sees: no label and no mask but those of the training nodes.

    Transductive: all nodes and edges, ``train_mask``, and ``y`` with -1 outside it. Inductive: the subgraph that the
    training nodes span, and nothing of any other node; where the data has a ``visible_mask`` (all nodes of the training
    graphs, labeled or not) the one that those span. Of a set of graphs, in either setting, it
    is the training graphs. ``n_id`` gives the nodes' ids in ``data``.

    Example:
        >>> from mario import load_dataset
        >>> seen = training_graph(load_dataset("good-cbas", shift="concept", setting="inductive"))
        >>> seen.num_nodes, "ood_test_mask" in seen
        (140, False)
    """
    if "train_mask" not in data:
        raise MarioError(
            "data has no train_mask; load it with mario.load_dataset or cut it with mario.graphs.split_graph"
        )
    if "batch" in data:
        shown = (*_KEPT, "edge_index", "batch", "ptr", "num_graphs", "train_mask", "env_id", "y")
        return select_graphs(Data.from_dict({key: data[key] for key in shown if key in data}), data.train_mask)
    train = data.train_mask
    seen = Data(edge_index=data.edge_index, train_mask=train, n_id=torch.arange(train.numel(), device=train.device))
    for key in _KEPT:
        if key in data:
            seen[key] = data[key]
    if "env_id" in data:
        seen.env_id = data.env_id.masked_fill(~train, -1)
    if "y" in data:
        seen.y = data.y.masked_fill(~train, -1)
    if data.get("setting") != "inductive":
        return seen
    cut = subgraph(seen, data.get("visible_mask", train))
    release(data.x)
    release(data.edge_index)
    return cut
