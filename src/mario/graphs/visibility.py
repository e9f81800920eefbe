"""The part of a graph that a method may see during training."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.graph_sets import select_graphs
from mario.graphs.paging import release
from mario.graphs.rules import EDGE_DATA, PARTS, SEES, choose
from mario.graphs.subgraph import subgraph
from mario.graphs.validation import check_graph

_GRAPH = ("x", "edge_index", *EDGE_DATA)
_KEPT = (*_GRAPH, "n_id", "name", "domain", "shift", "setting", "split_seed", "metric", "num_classes", "faults")


def training_graph(data: Data, *, sees: str = "all") -> Data:
    """The graph that training sees, with the labels and mask of the training nodes only.

    Transductive: all nodes and edges, ``train_mask``, and ``y`` with -1 outside of it; or, with
    ``sees="training domains"``, the subgraph induced by the nodes that are neither in ``ood_val_mask`` nor in
    ``ood_test_mask``. Of the nodes in no mask at all it keeps those whose ``domain_id`` a training node has.

    Inductive: the subgraph induced by the training nodes, or by ``visible_mask`` if the data has one (all nodes of the
    training graphs, labeled or not). For a set of graphs, in either setting: the training graphs. ``edge_weight`` and
    ``edge_attr`` follow the edges. ``n_id`` holds the ids of the nodes in ``data``.

    Args:
        data: A graph, or a set of graphs, with a ``train_mask``.
        sees: ``all`` nodes, or those of the ``training domains``; of effect in the transductive setting of one graph.

    Example:
        >>> from mario import load_dataset
        >>> seen = training_graph(load_dataset("good-cbas", shift="concept", setting="inductive"))
        >>> seen.num_nodes, "ood_test_mask" in seen
        (140, False)
    """
    check_graph(data)
    choose("sees", sees, SEES)
    if "train_mask" not in data:
        raise MarioError(
            "data has no train_mask; load it with mario.load_dataset or split it with mario.graphs.split_graph"
        )
    if "batch" in data:
        kept = (*_KEPT, "batch", "ptr", "num_graphs", "train_mask", "env_id", "y")
        return select_graphs(Data.from_dict({key: data[key] for key in kept if key in data}), data.train_mask)
    train = data.train_mask
    seen = Data(train_mask=train, n_id=torch.arange(train.numel(), device=train.device))
    for key in _KEPT:
        if key in data:
            seen[key] = data[key]
    if "env_id" in data:
        seen.env_id = data.env_id.masked_fill(~train, -1)
    if "y" in data:
        seen.y = data.y.masked_fill(~train, -1)
    if data.get("setting") == "inductive":
        shown = data.get("visible_mask", train)
    elif sees == "training domains":
        shown = _of_training_domains(data)
    else:
        return seen
    cut = subgraph(seen, shown)
    for key in _GRAPH:
        if key in data:
            release(data[key])
    return cut


def _of_training_domains(data: Data) -> Tensor:
    """Bool [nodes]: not in an OOD part and, if in no part, of a domain that has training nodes.

    Masks come first: under concept shift all parts have the same domains.
    """
    masks = {part: data[f"{part}_mask"] for part in PARTS if f"{part}_mask" in data}
    if masks.keys() <= {"train", "id_val", "id_test"} and "domain_id" not in data:
        raise MarioError(
            "sees='training domains' needs ood_val_mask, ood_test_mask or domain_id to distinguish other domains from "
            "those of training; the graph has none of them: use sees='all'"
        )
    shown = torch.ones_like(data.train_mask)
    if "domain_id" in data:
        in_a_part = torch.stack(list(masks.values())).any(0)
        shown = in_a_part | torch.isin(data.domain_id, data.domain_id[data.train_mask].unique())
    for part in ("ood_val", "ood_test"):
        if part in masks:
            shown = shown & ~masks[part]
    return shown
