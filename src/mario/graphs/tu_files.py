"""The text files of TUDataset (Morris et al., 2020): many graphs, numbered from 1 in one go."""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops

from mario.errors import MarioError


def read_tu(folder: Path, name: str) -> Data:
    """The set of graphs in ``folder/TUDataset/NAME/raw``: node labels as one-hot ``x``, graph labels from 0 as ``y``.

    As PyG's ``TUDataset`` reads them without node attributes: self-loops and repeated edges are left out.
    """
    graph = _column(folder, name, "graph_indicator") - 1
    if graph[0] != 0 or not np.isin(np.diff(graph), (0, 1)).all():
        raise MarioError(
            f"{name}_graph_indicator.txt is damaged: it must count the graphs up from 1, one number a node"
        )
    label = _column(folder, name, "node_labels")
    if len(label) != len(graph):
        raise MarioError(f"{name}_node_labels.txt has {len(label)} lines for {len(graph)} nodes")
    target = _column(folder, name, "graph_labels")
    graphs = int(graph[-1]) + 1
    if len(target) != graphs:
        raise MarioError(f"{name}_graph_labels.txt has {len(target)} lines for {graphs} graphs")
    ends = _numbers(folder, name, "A", columns=2).T - 1
    if ends.size and not (ends.min() >= 0 and ends.max() < len(graph)):
        raise MarioError(f"{name}_A.txt is damaged: it names nodes outside 1..{len(graph)}")
    if (graph[ends[0]] != graph[ends[1]]).any():
        raise MarioError(f"{name}_A.txt is damaged: it links nodes of two graphs")
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


def _column(folder: Path, name: str, part: str) -> np.ndarray:
    return _numbers(folder, name, part, columns=1)[:, 0]


def _numbers(folder: Path, name: str, part: str, columns: int) -> np.ndarray:
    path = folder / "TUDataset" / name / "raw" / f"{name}_{part}.txt"
    try:
        rows = np.loadtxt(path, dtype=np.int64, delimiter=",", ndmin=2, comments=None)
    except (OSError, ValueError) as error:
        raise MarioError(f"{path.name} cannot be read: {error}") from None
    if rows.shape[1] != columns or not rows.size:
        raise MarioError(f"{path.name} must have {columns} whole numbers a line, got {rows.shape[1]}")
    return rows
