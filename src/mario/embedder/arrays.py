"""A graph for rows that have none: each row has edges from the rows of the training that are nearest to it."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.rules import choose

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRAPHS = ("knn", "none")


class RowGraph:
    """The rows of a training, and the edges that they and other rows have.

    Edges lead from a training row to each row that it is near to. Other rows have no edges to anything, so that what a
    row becomes depends on the training and on this row alone.

    Args:
        rows: Of the training, float32.
        graph: ``knn``, or ``none`` for no edges.
        neighbors: The edges of each row, fewer if there are fewer training rows.
        domains: The name of the domain of each row, or ``None`` in the list for an unknown one; ``None`` without
            domains.

    Example:
        >>> graph = RowGraph(np.array([[0.0], [1.0], [5.0]], np.float32), "knn", 1)
        >>> graph.training().edge_index.tolist()
        [[1, 0, 1], [0, 1, 2]]
        >>> graph.beside(np.array([[4.0]], np.float32)).edge_index[:, 3:].tolist()
        [[2], [3]]
    """

    def __init__(
        self, rows: "NDArray[np.float32]", graph: str, neighbors: int, domains: list[str | None] | None = None
    ) -> None:
        self.rows, self.graph, self.neighbors = rows, choose("graph", graph, GRAPHS), neighbors
        self.domains = domains
        self._nearest: NearestNeighbors | None = None
        if graph == "knn" and len(rows) > 1:
            self._nearest = NearestNeighbors(n_neighbors=min(neighbors, len(rows) - 1)).fit(rows)
        self._edges = self._from_training(None)

    def training(self) -> Data:
        """The training rows as a graph."""
        return _with_domains(Data(x=torch.from_numpy(self.rows.copy()), edge_index=self._edges), self.domains)

    def joined(self, rows: "NDArray[np.float32]", domains: list[str | None] | None = None) -> "RowGraph":
        """The graph of these rows and other ones, all of which are training rows then."""
        known = None if self.domains is None else self.domains + (domains or [None] * len(rows))
        return RowGraph(np.concatenate([self.rows, rows]), self.graph, self.neighbors, known)

    def beside(self, rows: "NDArray[np.float32]", domains: list[str | None] | None = None) -> Data:
        """The training rows, then other ones."""
        both = torch.from_numpy(np.concatenate([self.rows, rows]))
        data = Data(x=both, edge_index=torch.cat([self._edges, self._from_training(rows)], 1))
        known = None if self.domains is None else self.domains + (domains or [None] * len(rows))
        return _with_domains(data, known)

    def _from_training(self, rows: "NDArray[np.float32] | None") -> Tensor:
        if self._nearest is None:
            return torch.empty(2, 0, dtype=torch.long)
        found = np.sort(self._nearest.kneighbors(rows, return_distance=False), axis=1)
        start = 0 if rows is None else len(self.rows)
        ends = np.repeat(np.arange(start, start + len(found)), found.shape[1])
        return torch.from_numpy(np.stack([found.reshape(-1), ends]).astype(np.int64))


def _with_domains(data: Data, domains: list[str | None] | None) -> Data:
    if domains is not None:
        names = sorted({name for name in domains if name is not None})
        place = {name: number for number, name in enumerate(names)}
        data.domain_id = torch.tensor([-1 if name is None else place[name] for name in domains])
        data.domain_names, data.domain = names, "domain"
    return data
