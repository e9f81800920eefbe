"""Tensors that stay on disk: files mapped into memory, whose pages are dropped after reading.

Pages of a mapped file that were touched count as memory of the process until they are dropped. Samplers and checks read
such tensors by :func:`gather` and :func:`blocks`, which drop pages, so that memory grows with what is read at a time
and not with all that was ever read. The file's bytes stay in the system's cache as long as there is room.

The system kills a process that reads a mapped file beyond its end. So whatever reads one asks :func:`check_file` first,
which raises an error if somebody has cut or rewritten the file. Only a change during a read itself is not noticed.
"""

import math
import mmap
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakValueDictionary, finalize

import numpy as np
import torch
from torch import Tensor

from mario.errors import MarioError
from mario.untrusted import npy_header, open_file

# A page fault maps 64 KiB to 2 MiB around the touched address. So rows are read in file order and dropped after every
# 16 such stretches, 32 MiB at most. CPU time to read 10,000 random rows of 1,000,000, 512 bytes each: 5 ms (7 ms
# unsorted), 10.5 ms with one pread per row, 1.7 ms from memory.
_STRETCH, _STRETCHES = 1 << 21, 16
_BLOCK_BYTES = 1 << 24


class Mapping(mmap.mmap):
    """A mapped file, and what is known about the numbers in it.

    If the file is an ``edge_index`` grouped by source, ``starts`` are the first columns of each source node's edges,
    and ``symmetric`` says that it holds both directions of each edge. ``facts`` are results of scans of the whole file;
    it is read-only, so one scan is enough.
    """

    starts: Tensor | None
    symmetric: bool
    facts: dict[str, Any]
    path: Path
    descriptor: int | None
    """``None`` if the file has no name: nobody else can change it, and this process may."""
    written: tuple[int, int]

    def check(self) -> None:
        """Raise a `MarioError` if the file was cut or written to since it was mapped."""
        if self.descriptor is None:
            return
        now = _written(self.descriptor)
        if now != self.written:
            cut = f": it had {self.written[0]:,} bytes and has {now[0]:,}" if now[0] != self.written[0] else ""
            raise MarioError(
                f"{self.path} was changed while it was in use{cut}. Load the graph again once the file is complete; "
                "to replace it, write another file and rename it"
            )


_MAPPINGS: "WeakValueDictionary[int, Mapping]" = WeakValueDictionary()
"""The mapping behind a storage, by its address; an entry lives as long as a tensor that uses it."""


class _Exported:
    """Read-only memory, described to numpy as writable.

    torch has no read-only tensors and warns about an array that is one.
    """

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array  # keeps the memory alive
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def map_array(path: Path) -> Tensor:
    """The array of an ``.npy`` file as a tensor whose values are read from disk when accessed.

    It is read-only: writing to it crashes the process, so ``clone()`` it first. Views of it and ``to`` the same dtype
    share the file; the results of all other operations are in memory.
    """
    dtype, shape, offset = npy_header(path)
    count = math.prod(shape)
    if count == 0:
        return torch.from_numpy(np.empty(shape, dtype))
    with open_file(path) as file:
        mapping = Mapping(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapping.path, mapping.written, mapping.descriptor = path, _written(file.fileno()), os.dup(file.fileno())
    # Not at exit: a thread that draws batches may still run.
    finalize(mapping, os.close, mapping.descriptor).atexit = False
    flat = np.frombuffer(_prepared(mapping), dtype=dtype, count=count, offset=offset)
    tensor = torch.from_numpy(np.asarray(_Exported(flat.reshape(shape))))
    _MAPPINGS[tensor.untyped_storage().data_ptr()] = mapping
    return tensor


def map_unnamed(file: BinaryIO, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    """The numbers in a temporary file without a name, as a tensor like that of `map_array`, which may be written to.

    The file is there until the last tensor that uses it is gone.
    """
    mapping = Mapping(file.fileno(), 0)
    mapping.path, mapping.written, mapping.descriptor = Path("a temporary file"), (0, 0), None
    tensor = torch.from_numpy(np.frombuffer(_prepared(mapping), dtype=dtype, count=math.prod(shape)).reshape(shape))
    _MAPPINGS[tensor.untyped_storage().data_ptr()] = mapping
    return tensor


def _prepared(mapping: Mapping) -> Mapping:
    mapping.starts, mapping.symmetric, mapping.facts = None, False, {}
    # Reading ahead is faster as long as the file fits in memory; beyond that it evicts pages that are needed.
    if hasattr(mapping, "madvise") and len(mapping) > machine_memory() // 2:
        mapping.madvise(mmap.MADV_RANDOM)
    return mapping


def mapping_of(tensor: Tensor) -> Mapping | None:
    """The file behind a tensor or a view of one; ``None`` if it is in memory."""
    if not _MAPPINGS or tensor.layout != torch.strided or tensor.device.type != "cpu":
        return None
    return _MAPPINGS.get(tensor.untyped_storage().data_ptr())


def check_file(tensor: object) -> None:
    """Raise a `MarioError` if ``tensor`` is on disk and its file was cut or written to since it was mapped."""
    if _MAPPINGS and isinstance(tensor, Tensor) and (mapping := mapping_of(tensor)) is not None:
        mapping.check()


def gather(tensor: Tensor, rows: Tensor) -> Tensor:
    """``tensor.index_select(0, rows)``, in memory; at most 32 MiB of a mapped file are resident meanwhile."""
    mapping = mapping_of(tensor)
    if mapping is None:
        return tensor.index_select(0, rows)
    ascending = not bool((rows[1:] < rows[:-1]).any())
    ordered, order = (rows, None) if ascending else rows.sort()
    stretch = ordered * (tensor.stride(0) * tensor.element_size()) // _STRETCH
    passed = torch.zeros_like(ordered)
    torch.cumsum(stretch[1:] != stretch[:-1], 0, out=passed[1:])
    sizes = (passed // _STRETCHES).unique_consecutive(return_counts=True)[1].tolist()
    found = tensor.new_empty((rows.numel(), *tensor.shape[1:]))
    first = 0
    for size in sizes:
        mapping.check()
        torch.index_select(tensor, 0, ordered[first : first + size], out=found[first : first + size])
        _drop(mapping)
        first += size
    return found if order is None else torch.empty_like(found).index_copy_(0, order, found)


def blocks(tensor: Tensor, rows: int | None = None) -> Iterator[Tensor]:
    """Consecutive rows of a tensor, 16 MiB or ``rows`` at a time; each block is dropped before the next is read.

    Example:
        >>> [block.tolist() for block in blocks(torch.arange(5), rows=2)]
        [[0, 1], [2, 3], [4]]
    """
    mapping = mapping_of(tensor)
    size = max(1, tensor[:1].numel() * tensor.element_size())
    for block in tensor.split(rows or max(1, _BLOCK_BYTES // size)):
        if mapping is not None:
            mapping.check()
        yield block
        if mapping is not None:
            _drop(mapping)


def release(tensor: Tensor) -> None:
    """Drop the pages of a tensor on disk; they are read again on the next access."""
    if (mapping := mapping_of(tensor)) is not None:
        _drop(mapping)


def extremes(tensor: Tensor) -> tuple[int, int]:
    """The smallest and the largest integer in a tensor that is not empty, in one pass."""
    facts = _facts(tensor)
    if "extremes" not in facts:
        parts = [tensor] if mapping_of(tensor) is None else blocks(tensor.reshape(-1))
        ends = [part.aminmax() for part in parts]
        facts["extremes"] = int(min(low for low, _ in ends)), int(max(high for _, high in ends))
    low, high = facts["extremes"]
    return low, high


def count_not_finite(values: Tensor) -> int:
    """The number of NaN or infinite entries."""
    facts = _facts(values)
    if "not_finite" in facts:
        return int(facts["not_finite"])
    # A sum is finite unless an entry is not, or it overflows. So a sound tensor needs no mask of its size.
    parts = [values] if mapping_of(values) is None else blocks(values)
    facts["not_finite"] = bad = sum(
        0 if bool(torch.isfinite(part.sum())) else int((~torch.isfinite(part)).sum()) for part in parts
    )
    return bad


def count_negative(values: Tensor) -> int:
    """The number of entries below zero."""
    facts = _facts(values)
    if "negative" not in facts:
        facts["negative"] = sum(int((part < 0).sum()) for part in blocks(values))
    return int(facts["negative"])


def count_beyond(values: Tensor, limit: float) -> int:
    """The number of entries larger than ``limit`` in size."""
    facts, key = _facts(values), f"beyond {limit}"
    if key not in facts:
        facts[key] = sum(_beyond(part, limit) for part in blocks(values))
    return int(facts[key])


def _beyond(part: Tensor, limit: float) -> int:
    low, high = part.aminmax() if part.numel() else (0.0, 0.0)
    return int((part.abs() > limit).sum()) if max(-low, high) > limit else 0


def _facts(tensor: Tensor) -> dict[str, Any]:
    """Cached results for a whole file; a new dict for a part of a file, or for memory, which may change."""
    mapping = mapping_of(tensor)
    if mapping is None or mapping.descriptor is None or tensor.nbytes != tensor.untyped_storage().nbytes():
        return {}
    return mapping.facts


def _written(descriptor: int) -> tuple[int, int]:
    """The size of a file and when it was last written."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_mtime_ns


def _drop(mapping: Mapping) -> None:
    if hasattr(mapping, "madvise"):  # not on Windows
        mapping.madvise(mmap.MADV_DONTNEED)


def machine_memory() -> int:
    """Bytes of memory of this machine, or fewer if ``ulimit -v`` limits this process; a huge number if unknown."""
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        there = 1 << 62
    if sys.platform != "win32":
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        there = there if limit == resource.RLIM_INFINITY else min(there, limit)
    return there
