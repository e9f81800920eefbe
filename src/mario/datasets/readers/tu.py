"""The text files of TUDataset (Morris et al. 2020): many graphs, whose nodes are numbered from 1 across all graphs."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops

from mario.errors import MarioError


def read_tu(edges: Path, indicator: Path, graph_labels: Path, node_labels: Path) -> Data:
    """The set of graphs in NAME_A.txt, NAME_graph_indicator.txt, NAME_graph_labels.txt and NAME_node_labels.txt.

    ``x`` is the one-hot node label and ``y`` the graph label, numbered from 0. Like PyG's ``TUDataset`` without node
    attributes: self-loops and duplicate edges are removed.
    """
    graph = _numbers(indicator, columns=1)[:, 0] - 1
    if graph[0] != 0 or not np.isin(np.diff(graph), (0, 1)).all():
        raise MarioError(f"{indicator.name} is damaged: it must number the graphs from 1, one number per node")
    label = _numbers(node_labels, columns=1)[:, 0]
    if len(label) != len(graph):
        raise MarioError(f"{node_labels.name} has {len(label)} lines for {len(graph)} nodes")
    target = _numbers(graph_labels, columns=1)[:, 0]
    graphs = int(graph[-1]) + 1
    if len(target) != graphs:
        raise MarioError(f"{graph_labels.name} has {len(target)} lines for {graphs} graphs")
    ends = _numbers(edges, columns=2).T - 1
    if ends.size and not (ends.min() >= 0 and ends.max() < len(graph)):
        raise MarioError(f"{edges.name} is damaged: it names nodes outside 1..{len(graph)}")
    if (graph[ends[0]] != graph[ends[1]]).any():
        raise MarioError(f"{edges.name} is damaged: it links nodes of two graphs")
    edge_index, _ = remove_self_loops(torch.from_numpy(np.ascontiguousarray(ends)))
    batch = torch.from_numpy(graph)
    sizes = torch.bincount(batch)
    return Data(
        x=F.one_hot(torch.from_numpy(label - label.min())).float(),
        edge_index=coalesce(edge_index, num_nodes=len(graph)),
        y=torch.from_numpy(np.unique(target, return_inverse=True)[1]).long(),
        batch=batch,
        ptr=torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]),
        num_graphs=graphs,
    )


def _numbers(path: Path, *, columns: int) -> np.ndarray:
    try:
        rows = np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2, comments=None)
    except (OSError, ValueError) as error:
        raise MarioError(f"{path.name} cannot be read: {error}") from None
    if rows.shape[1] != columns or not rows.size:
        raise MarioError(f"{path.name} must have {columns} whole numbers per line, got {rows.shape[1]}")
    return rows
