"""The normalized adjacency in files, built and read in blocks of rows, for graphs whose edges do not fit in memory."""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

from mario.arguments import check_count
from mario.encoders.adjacency import CSRParts, Normalization
from mario.errors import MarioError
from mario.graphs.paging import blocks
from mario.graphs.scratch import Scratch, read_numbers, write_numbers
from mario.graphs.validation import check_edges

_EDGES = 2**22
"""Edges that are read, sorted or multiplied at once: 32 MiB for one end of each."""
_HIGH = 2**32
_LOOP = _HIGH + 1  # times i is the edge from i to i, target · 2³² + source


class StoredAdjacency:
    """The rows of :func:`mario.encoders.adjacency.propagation_matrix`, on disk.

    Memory holds about 40 bytes per node and a few hundred MiB, whatever the number of edges.

    Args:
        edge_index: int64 [2, E], which may be on disk.
        num_nodes: Number of rows and columns.
        normalization: As of :func:`propagation_matrix`. ``None`` stores no values: one self-loop takes the place of
            those that a node has, as attention needs it.
        dtype: Of the values.
        edge_weight: Non-negative float [E], or ``None``.
        scratch: Where the files are.

    Attributes:
        starts: int64 [N + 1], the first entry of each row.

    Example:
        >>> edges = torch.tensor([[0, 1], [2, 2]])
        >>> mean = StoredAdjacency(edges, 3, "mean", torch.float32, None, Scratch())
        >>> mean.rows(slice(2, 3))
        (tensor([0, 2], dtype=torch.int32), tensor([0, 1], dtype=torch.int32), tensor([0.5000, 0.5000]))
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        normalization: Normalization | None,
        dtype: torch.dtype,
        edge_weight: Tensor | None,
        scratch: Scratch,
    ) -> None:
        check_count("num_nodes", num_nodes, low=0, high=2**31 - 1)
        check_edges(edge_index, num_nodes)
        if edge_weight is not None and edge_weight.shape != edge_index.shape[1:]:
            raise MarioError(f"edge_weight must have one number for each of {edge_index.size(1)} edges")
        self.num_nodes, self.normalization, self.dtype = num_nodes, normalization, dtype
        self._edges, self._weight = edge_index, edge_weight
        self._replaced = normalization in ("symmetric", None)  # given self-loops are
        self._looped = normalization != "mean"
        counts, totals, self._loops = self._count()
        if self._looped:
            counts += 1
        self.starts = torch.zeros(num_nodes + 1, dtype=torch.int64)
        torch.cumsum(counts, 0, out=self.starts[1:])
        self._scale = self._scales(counts if totals is None else totals)
        entries = int(self.starts[-1])
        self._columns = scratch.file(4 * entries)
        self._values = None if normalization is None else scratch.file(dtype.itemsize * entries)
        self._sort(scratch)
        del self._edges, self._weight, self._scale, self._loops

    def rows(self, rows: slice) -> CSRParts:
        """Row starts, columns and values of a block of rows; without values, an empty tensor."""
        first, last = int(self.starts[rows.start]), int(self.starts[rows.stop])
        index = torch.int32 if last - first < 2**31 else torch.int64
        columns = read_numbers(self._columns, 4 * first, torch.empty(last - first, dtype=torch.int32)).to(index)
        values = torch.empty(0 if self._values is None else last - first, dtype=self.dtype)
        if self._values is not None:
            read_numbers(self._values, self.dtype.itemsize * first, values)
        return (self.starts[rows.start : rows.stop + 1] - first).to(index), columns, values

    def blocks(self, most: int) -> Iterator[slice]:
        """All rows, in blocks of at most ``most`` rows that have few enough entries to be in memory together."""
        start = 0
        while start < self.num_nodes:
            full = int(torch.searchsorted(self.starts, int(self.starts[start]) + _EDGES, right=True)) - 1
            stop = min(start + most, max(full, start + 1), self.num_nodes)
            yield slice(start, stop)
            start = stop

    def _read(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """Sources, targets and weights of the edges, in blocks."""
        ends = zip(blocks(self._edges[0], _EDGES), blocks(self._edges[1], _EDGES), strict=True)
        if self._weight is None:
            yield from ((source, target, None) for source, target in ends)
        else:
            for (source, target), weight in zip(ends, blocks(self._weight, _EDGES), strict=True):
                yield source, target, weight.to(self.dtype)

    def _count(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """For each node its edges without added self-loops, the sum of their weights with them, and its loop's weight.

        Sums and loops are ``None`` without weights.
        """
        weighted = self._weight is not None and self.normalization is not None
        counts = torch.zeros(self.num_nodes, dtype=torch.int64)
        totals = torch.zeros(self.num_nodes, dtype=torch.float64) if weighted else None
        loops = torch.ones(self.num_nodes, dtype=self.dtype) if weighted and self._looped else None
        for source, target, weight in self._read():
            if self._replaced:
                own = source == target
                if loops is not None and weight is not None:
                    loops[target[own]] = weight[own]
                target = target[~own]
                weight = None if weight is None else weight[~own]
            counts += torch.bincount(target, minlength=self.num_nodes)
            if totals is not None and weight is not None:
                totals += torch.bincount(target, weights=weight.double(), minlength=self.num_nodes)
        if totals is not None and loops is not None:
            totals += loops
        return counts, totals, loops

    def _scales(self, totals: Tensor) -> Tensor | None:
        if self.normalization in ("sum", None):
            return None
        scale = totals.to(self.dtype).pow_(-0.5 if self.normalization == "symmetric" else -1)
        return scale.masked_fill_(scale.isinf(), 0)  # nothing at all reaches the node

    def _sort(self, scratch: Scratch) -> None:
        """Write columns and values: edges are put into buckets of consecutive rows, which are sorted one by one."""
        added = torch.arange(self.num_nodes + 1) if self._looped else 0
        given = self.starts - added
        total = int(given[-1])
        cuts = torch.arange(_EDGES, max(total, _EDGES), _EDGES)
        bounds = torch.cat([torch.searchsorted(given, cuts), torch.tensor([self.num_nodes])]).unique()
        keys = scratch.file(8 * total)
        weights = None if self._weight is None or self._values is None else scratch.file(self.dtype.itemsize * total)
        free = given[torch.cat([torch.zeros(1, dtype=torch.int64), bounds[:-1]])].tolist()
        for source, target, weight in self._read():
            if self._replaced:
                kept = source != target
                source, target = source[kept], target[kept]
                weight = None if weight is None else weight[kept]
            bucket = torch.bucketize(target, bounds, right=True)
            order = bucket.argsort(stable=True)
            key = torch.add(source, target, alpha=_HIGH)[order]
            ends = torch.bincount(bucket, minlength=len(free)).cumsum(0).tolist()
            for number, (first, last) in enumerate(pairwise([0, *ends])):
                write_numbers(keys, 8 * free[number], key[first:last])
                if weights is not None and weight is not None:
                    write_numbers(weights, self.dtype.itemsize * free[number], weight[order[first:last]])
                free[number] += last - first
        for start, stop in pairwise([0, *bounds.tolist()]):
            first, last = int(given[start]), int(given[stop])
            key = read_numbers(keys, 8 * first, torch.empty(last - first, dtype=torch.int64))
            value = None
            if weights is not None:
                value = torch.empty(last - first, dtype=self.dtype)
                read_numbers(weights, self.dtype.itemsize * first, value)
            self._write(start, stop, *self._sorted(start, stop, key, value))

    def _sorted(self, start: int, stop: int, key: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """The edges into a bucket of nodes, with its self-loops, by target and then by source."""
        if self._looped:
            key = torch.cat([key, torch.arange(start * _LOOP, stop * _LOOP, _LOOP)])
            if weight is not None and self._loops is not None:
                weight = torch.cat([weight, self._loops[start:stop]])
        if weight is not None:
            order = key.argsort(stable=True)
            return key[order], weight[order]
        key.numpy().sort()
        return key, None

    def _write(self, start: int, stop: int, key: Tensor, weight: Tensor | None) -> None:
        first = int(self.starts[start])
        column = key.bitwise_and(_HIGH - 1)
        write_numbers(self._columns, 4 * first, column.to(torch.int32))
        if self._values is None:
            return
        value = torch.ones(key.numel(), dtype=self.dtype) if self._scale is None else self._scale[key >> 32]
        if self._scale is not None and self.normalization == "symmetric":
            value *= self._scale[column]
        write_numbers(self._values, self.dtype.itemsize * first, value if weight is None else weight * value)
