"""Any number of edges, grouped by source in bounded memory: pairs go through files, in parts that are sorted."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mario.errors import RunFailedError

PART_EDGES = 1 << 23
"""Edges that are sorted at a time; of one source there may be more."""
_BLOCK = 1 << 20
_HEADER = 128

Watch = Callable[[int, int], None]


@dataclass
class EdgeCounts:
    """What became of the rows of the tables of edges.

    Attributes:
        rows: that were read.
        dangling: that name a node which is not there, and were left out.
        repeated: that name an edge which another row names, and were merged with it.
        loops: that link a node to itself.
        edges: columns of ``edge_index``.
    """

    rows: int = 0
    dangling: int = 0
    repeated: int = 0
    loops: int = 0
    edges: int = 0


class EdgeSpool:
    """Takes pairs of nodes in any order and writes ``edge_index.npy``, ``starts.npy`` and ``edge_weight.npy``.

    Edges are sorted by source, then target. Rows that name the same edge become one, with the sum of their weights.
    Undirected, an edge is there in both directions, with the same weight: if both were listed, with the larger one.

    Args:
        folder: For temporary files.
        num_nodes: Number of nodes.
        directed: Whether an edge goes from source to target only.
        weighted: Whether each pair has a weight.
    """

    def __init__(self, folder: Path, num_nodes: int, *, directed: bool, weighted: bool) -> None:
        self.folder, self.num_nodes, self.directed, self.weighted = folder, num_nodes, directed, weighted
        self.counts = EdgeCounts()
        self._pairs = _Rows(folder / "pairs.part", np.int32 if num_nodes < 2**31 else np.int64)
        self._weights = _Rows(folder / "weights.part", np.float32) if weighted else None
        self._degrees = np.zeros(num_nodes, np.int64)

    def add(self, source: NDArray[np.int64], target: NDArray[np.int64], weight: NDArray[Any] | None = None) -> None:
        """Add pairs of rows of nodes."""
        np.add.at(self._degrees, source, 1)
        if not self.directed:
            np.add.at(self._degrees, target, 1)
        self.counts.loops += int((source == target).sum())
        pairs = np.empty((len(source), 2), self._pairs.dtype)
        pairs[:, 0], pairs[:, 1] = source, target
        self._pairs.write(pairs)
        if self._weights is not None and weight is not None:
            self._weights.write(weight)

    def finish(self, home: Path, watch: Watch = lambda done, total: None) -> EdgeCounts:
        """Write the arrays into ``home`` and remove the temporary files."""
        parts = self._partition(watch)
        targets = _Rows(self.folder / "targets.part", np.int64)
        weights = _Rows(self.folder / "merged.part", np.float32) if self.weighted else None
        degrees = np.zeros(self.num_nodes, np.int64)
        total = self._pairs.count // 2
        done = loops = 0
        for rows, extra in parts:
            source, target, weight = self._merged(rows, extra)
            if len(source):
                low = int(source[0])
                found = np.bincount(source - low)
                degrees[low : low + len(found)] += found
                loops += int((source == target).sum())
            targets.write(target)
            if weights is not None and weight is not None:
                weights.write(weight)
            done += rows.count // 2
            rows.remove()
            if extra is not None:
                extra.remove()
            watch(total + (done if self.directed else done // 2), 2 * total)
        self._pairs.remove()
        if self._weights is not None:
            self._weights.remove()
        counts = self.counts
        counts.edges = targets.count
        distinct = targets.count if self.directed else (targets.count - loops) // 2 + loops
        counts.repeated = total - distinct
        starts = np.zeros(self.num_nodes + 1, np.int64)
        np.cumsum(degrees, out=starts[1:])
        from mario.graphs.mapped import write_array

        write_array(home / "starts.npy", np.int64, starts.shape, [starts])
        write_array(home / "edge_index.npy", np.int64, (2, targets.count), _both(degrees, targets))
        targets.remove()
        if weights is not None:
            write_array(home / "edge_weight.npy", np.float32, (weights.count,), weights.read())
            weights.remove()
        return counts

    def _partition(self, watch: Watch) -> "list[tuple[_Rows, _Rows | None]]":
        """Pairs in files by source, each of which is sorted in memory later."""
        total = int(self._degrees.sum())
        ends = np.cumsum(self._degrees)
        # The part of a source is that of its first edge, so that a part has at most PART_EDGES and one source more.
        part_of = ((ends - self._degrees) // PART_EDGES).astype(np.int32)
        count = int(-(-total // PART_EDGES)) if total else 0
        kind = self._pairs.dtype
        files = [
            (
                _Rows(self.folder / f"part{number}.part", kind),
                _Rows(self.folder / f"weight{number}.part", np.float32) if self.weighted else None,
            )
            for number in range(count)
        ]
        weights = self._weights.read() if self._weights is not None else None
        done, rows = 0, self._pairs.count // 2
        for block in self._pairs.read(2 * _BLOCK):
            pairs = block.reshape(-1, 2)
            weight = None if weights is None else next(weights)
            done += len(pairs)
            if not self.directed:
                pairs = np.concatenate([pairs, pairs[:, ::-1]])
                # The sign of a weight tells in which direction its edge was listed.
                weight = None if weight is None else np.concatenate([weight, -weight])
            part = part_of[pairs[:, 0]]
            order = np.argsort(part, kind="stable") if count > 1 else np.arange(len(pairs))
            cuts = np.searchsorted(part[order], np.arange(count + 1)) if count > 1 else np.array([0, len(pairs)])
            for number, (file, extra) in enumerate(files):
                chosen = order[cuts[number] : cuts[number + 1]]
                if len(chosen):
                    file.write(pairs[chosen])
                    if extra is not None and weight is not None:
                        extra.write(weight[chosen])
            watch(done, 2 * rows)
        return files

    def _merged(
        self, rows: "_Rows", extra: "_Rows | None"
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32] | None]:
        """The edges of a part, sorted, each once."""
        if not rows.count:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), None if extra is None else np.zeros(0, np.float32)
        keys = np.empty(rows.count // 2, np.int64)
        done = 0
        for block in rows.read(2 * _BLOCK):
            pairs = block.reshape(-1, 2)
            keys[done : done + len(pairs)] = pairs[:, 0].astype(np.int64) * self.num_nodes + pairs[:, 1]
            done += len(pairs)
        weight = None
        if extra is None:
            keys.sort()
            first = np.flatnonzero(np.diff(keys, prepend=-1))
        else:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            values = np.concatenate(list(extra.read()))[order].astype(np.float64)
            first = np.flatnonzero(np.diff(keys, prepend=-1))
            listed = np.add.reduceat(np.where(np.signbit(values), 0.0, values), first)
            reverse = np.add.reduceat(np.where(np.signbit(values), -values, 0.0), first)
            weight = np.maximum(listed, reverse).astype(np.float32)
        keys = keys[first]
        return keys // self.num_nodes, keys % self.num_nodes, weight


def _both(degrees: NDArray[np.int64], targets: "_Rows") -> Iterator[NDArray[np.int64]]:
    """The two rows of ``edge_index`` in blocks."""
    ends = np.cumsum(degrees)
    total = int(ends[-1]) if len(ends) else 0
    for begin in range(0, total, _BLOCK):
        end = min(begin + _BLOCK, total)
        first, last = (int(one) for one in np.searchsorted(ends, [begin, end - 1], side="right"))
        counts = degrees[first : last + 1].copy()
        counts[0] = min(int(ends[first]), end) - begin
        if last > first:
            counts[-1] = end - int(ends[last] - degrees[last])
        yield np.repeat(np.arange(first, last + 1), counts)
    yield from targets.read()


class _Rows:
    """Numbers in a temporary file, written at its end and read from its beginning."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self.path, self.dtype, self.count = path, np.dtype(dtype), 0
        self._kept: list[NDArray[Any]] = []
        self._size = 0

    def write(self, values: NDArray[Any]) -> None:
        """Add numbers; small additions are kept until they are worth a write."""
        flat = np.ascontiguousarray(values, self.dtype).reshape(-1)
        self.count += len(flat)
        self._kept.append(flat)
        self._size += flat.nbytes
        if self._size >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        try:
            with self.path.open("ab") as file:
                for part in self._kept:
                    file.write(part.data)
        except OSError as error:
            raise RunFailedError(
                f"cannot write {self.path.parent}: {error.strerror or error}; free some space, or choose another folder"
            ) from error
        self._kept, self._size = [], 0

    def read(self, size: int = _BLOCK) -> Iterator[NDArray[Any]]:
        """All numbers, ``size`` at a time."""
        self._flush()
        if not self.count:
            return
        with self.path.open("rb") as file:
            while len(block := np.fromfile(file, self.dtype, size)):
                yield block

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink(missing_ok=True)


def free_bytes(folder: Path) -> int:
    """Bytes that are free on the disk of a folder."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
