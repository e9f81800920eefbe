"""Tensors that stay on disk: files mapped into memory, whose pages are let go of once they were read.

Pages of a mapped file that were touched count as memory of the process until they are dropped. Samplers and checks read
such tensors by :func:`gather` and :func:`blocks`, which drop them, so that memory grows with what is read at a time
and not with what was ever read. The file's bytes stay in the system's cache as long as there is room.
"""

import mmap
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

# A page fault maps 64 KiB to 2 MiB around what was touched. So rows are read in their order in the file, and let go of
# after every 16 such stretches: 32 MiB at most. Measured on 10,000 random ones of 1,000,000 rows of 512 bytes, in CPU
# time: 5 ms so (7 unsorted), 10.5 ms by a pread each, 1.7 ms from memory.
_STRETCH, _STRETCHES = 1 << 21, 16
_BLOCK_BYTES = 1 << 24


class Mapping(mmap.mmap):
    """A file in memory, and what is known of the numbers in it.

    ``starts`` are the first columns of each source node's edges, where the file is an ``edge_index`` grouped by source,
    and ``symmetric`` says that each of its edges is there in both directions. ``facts`` are results of scans of the
    whole file: it is read-only, so one scan is enough.
    """

    starts: Tensor | None
    symmetric: bool
    facts: dict[str, Any]


_MAPPINGS: "WeakValueDictionary[int, Mapping]" = WeakValueDictionary()
"""The mapping behind a storage, by its address; an entry lives as long as a tensor that uses it."""


def map_array(path: Path) -> Tensor:
    """The array of an ``.npy`` file as a tensor that reads from disk what is touched.

    It is read-only: a write to it ends the process, so ``clone()`` it first. Views of it and ``to`` the same type share
    the file; whatever else torch does with it has a result in memory.
    """
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim > 1 and not array.flags.c_contiguous:
        raise ValueError(f"{path.name} is in column-major order; write it in row-major order")
    if array.size == 0:
        return torch.from_numpy(np.array(array))
    with path.open("rb") as file:
        mapping = Mapping(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapping.starts, mapping.symmetric, mapping.facts = None, False, {}
    # Reading ahead is quicker until the file no longer fits; then it pushes out what is needed.
    if hasattr(mapping, "madvise") and len(mapping) > _memory() // 2:
        mapping.madvise(mmap.MADV_RANDOM)
    flat = np.frombuffer(mapping, dtype=array.dtype, count=array.size, offset=array.offset)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        tensor = torch.from_numpy(flat.reshape(array.shape))
    _MAPPINGS[tensor.untyped_storage().data_ptr()] = mapping
    return tensor


def mapping_of(tensor: Tensor) -> Mapping | None:
    """The file behind a tensor or a view of one; ``None`` where it is in memory."""
    if not _MAPPINGS or tensor.layout != torch.strided or tensor.device.type != "cpu":
        return None
    return _MAPPINGS.get(tensor.untyped_storage().data_ptr())


def gather(tensor: Tensor, rows: Tensor) -> Tensor:
    """``tensor.index_select(0, rows)``, in memory; of a file no more than 32 MiB are in memory besides."""
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
        torch.index_select(tensor, 0, ordered[first : first + size], out=found[first : first + size])
        _drop(mapping)
        first += size
    return found if order is None else torch.empty_like(found).index_copy_(0, order, found)


def blocks(tensor: Tensor, rows: int | None = None) -> Iterator[Tensor]:
    """Consecutive rows of a tensor, 16 MiB or ``rows`` at a time; each is let go of when the next is asked for.

    Example:
        >>> [block.tolist() for block in blocks(torch.arange(5), rows=2)]
        [[0, 1], [2, 3], [4]]
    """
    mapping = mapping_of(tensor)
    size = max(1, tensor[:1].numel() * tensor.element_size())
    for block in tensor.split(rows or max(1, _BLOCK_BYTES // size)):
        yield block
        if mapping is not None:
            _drop(mapping)


def release(tensor: Tensor) -> None:
    """Let go of the pages of a tensor on disk; they are read again when they are touched again."""
    if (mapping := mapping_of(tensor)) is not None:
        _drop(mapping)


def extremes(tensor: Tensor) -> tuple[int, int]:
    """The smallest and the largest of the whole numbers in a tensor that is not empty, in one pass."""
    facts = _facts(tensor)
    if "extremes" not in facts:
        parts = [tensor] if mapping_of(tensor) is None else blocks(tensor.reshape(-1))
        ends = [part.aminmax() for part in parts]
        facts["extremes"] = int(min(low for low, _ in ends)), int(max(high for _, high in ends))
    low, high = facts["extremes"]
    return low, high


def count_not_finite(values: Tensor) -> int:
    """How many entries are NaN or infinite."""
    facts = _facts(values)
    if "not_finite" in facts:
        return int(facts["not_finite"])
    # A sum is finite unless an entry is not (or the entries overflow): no mask as large as x on the way to "yes".
    parts = [values] if mapping_of(values) is None else blocks(values)
    facts["not_finite"] = bad = sum(
        0 if bool(torch.isfinite(part.sum())) else int((~torch.isfinite(part)).sum()) for part in parts
    )
    return bad


def _facts(tensor: Tensor) -> dict[str, Any]:
    """What is remembered of a whole file; nothing is of a part of one, or of what is in memory and may change."""
    mapping = mapping_of(tensor)
    whole = mapping is not None and tensor.nbytes == tensor.untyped_storage().nbytes()
    return mapping.facts if mapping is not None and whole else {}


def _drop(mapping: Mapping) -> None:
    if hasattr(mapping, "madvise"):  # not on Windows
        mapping.madvise(mmap.MADV_DONTNEED)


def _memory() -> int:
    """Bytes of memory of this machine; without bounds where it does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1 << 62
