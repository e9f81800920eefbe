"""The part of a graph that a method may see during training."""

import torch
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import select_graphs
from mario.graphs.paging import release
from mario.graphs.rules import EDGE_DATA
from mario.graphs.subgraph import subgraph
from mario.graphs.validation import check_graph

_GRAPH = ("x", "edge_index", *EDGE_DATA)
_KEPT = (*_GRAPH, "n_id", "name", "domain", "shift", "setting", "split_seed", "metric", "num_classes", "faults")


def training_graph(data: Data) -> Data:
    """The graph that training sees, with the labels and mask of the training nodes only.

    Transductive: all nodes and edges, ``train_mask``, and ``y`` with -1 outside of it. Inductive: the subgraph induced
    by the training nodes, or by ``visible_mask`` if the data has one (all nodes of the training graphs, labeled or
    not). For a set of graphs, in either setting: the training graphs. ``edge_weight`` and ``edge_attr`` follow the
    edges. ``n_id`` holds the ids of the nodes in ``data``.

    Example:
        >>> from mario import load_dataset
        >>> seen = training_graph(load_dataset("good-cbas", shift="concept", setting="inductive"))
        >>> seen.num_nodes, "ood_test_mask" in seen
        (140, False)
    """
    check_graph(data)
    if "train_mask" not in data:
        raise MarioError(
            "data has no train_mask; load it with mario.load_dataset or split it with mario.graphs.split_graph"
        )
    if "batch" in data:
        shown = (*_KEPT, "batch", "ptr", "num_graphs", "train_mask", "env_id", "y")
        return select_graphs(Data.from_dict({key: data[key] for key in shown if key in data}), data.train_mask)
    train = data.train_mask
    seen = Data(train_mask=train, n_id=torch.arange(train.numel(), device=train.device))
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
    for key in _GRAPH:
        if key in data:
            release(data[key])
    return cut
