"""The view induced by a set of nodes, for one graph or a batch of graphs."""

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.subgraph import count_nodes, subgraph


def graph_of_nodes(data: Data) -> Tensor:
    """The graph of each node: ``data.batch``, or zeros if ``data`` is a single graph."""
    batch = data.get("batch")
    return batch if batch is not None else torch.zeros(count_nodes(data), dtype=torch.int64, device=_device(data))


def induced_view(data: Data, nodes: Tensor) -> Data:
    """``data`` itself, reduced to ``nodes`` (ascending), with ``n_id``; graph-level attributes are kept."""
    graphs = data.num_graphs if "batch" in data and hasattr(data, "num_graphs") else None
    whole = {"ptr": data.ptr} if "ptr" in data else {}
    if graphs is not None and graphs != count_nodes(data):
        # If there are as many graphs as edges, only the name distinguishes edge attributes.
        whole |= {key: value for key, value in data if _rows(value) == graphs and "edge" not in key}
    bare = Data.from_dict({key: value for key, value in data if key not in whole})
    bare.num_nodes = count_nodes(data)
    for key, value in subgraph(bare, nodes):
        data[key] = value
    data.num_nodes = nodes.numel()
    if "ptr" in whole:
        sizes = torch.bincount(data.batch, minlength=whole["ptr"].numel() - 1)
        data.ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    # The former offsets of each graph in a Batch. Without them, PyG refuses to separate the batch instead of failing.
    for stale in ("_slice_dict", "_inc_dict"):
        data._store.__dict__.pop(stale, None)
    return data


def _rows(value: object) -> int | None:
    return value.size(0) if isinstance(value, Tensor) and value.dim() else None


def _device(data: Data) -> torch.device:
    return data.edge_index.device if data.edge_index is not None else torch.device("cpu")
