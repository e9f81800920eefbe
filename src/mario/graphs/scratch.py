"""Matrices that do not fit in memory, in temporary files without a name, which are gone when the process is.

Nothing uses files unless it runs under a :class:`Scratch`. Then results that would need more memory than that allows
are on disk: plain tensors whose pages are dropped after reading, like those of a graph on disk (`mario.graphs.paging`).
"""

import os
import shutil
import tempfile
from contextvars import ContextVar, Token
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
import torch
from torch import Tensor

from mario.arguments import check_count
from mario.errors import RunFailedError
from mario.graphs.paging import map_unnamed

_IN_USE: ContextVar["Scratch | None"] = ContextVar("scratch", default=None)
_SPARE = 2**26
"""Bytes of a disk that are left free."""
_ZEROS = 2**24
_EVEN = 8
"""Columns of a panel are a multiple of this: what a processor handles at once."""


class Scratch:
    """A folder for temporary files, and how much memory may be used instead; a context.

    Args:
        folder: Where the files are; ``None`` is the system's folder for temporary files.
        memory: Bytes that matrices of nodes and of edges may take. What does not fit is on disk.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas")
        >>> model = mario.GRACE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data)
        >>> with Scratch(memory=2**30):
        ...     model.transform(data).shape  # larger graphs are embedded layer by layer through files
        torch.Size([700, 16])
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, memory: int = 2**31) -> None:
        self.folder = Path(tempfile.gettempdir() if folder is None else folder)
        self.memory = check_count("memory", memory)
        self._before: list[Token[Scratch | None]] = []

    def __enter__(self) -> Self:
        self._before.append(_IN_USE.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _IN_USE.reset(self._before.pop())

    def tensor(self, rows: int, columns: int, dtype: torch.dtype) -> Tensor:
        """A matrix on disk to write into: `mario.graphs.paging.release` drops the pages that were touched."""
        size = rows * columns * dtype.itemsize
        file = self.file(size)
        try:
            # A page that cannot be written when the disk is full would end the process.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                for first in range(0, size, _ZEROS):
                    file.write(bytes(min(_ZEROS, size - first)))
                file.flush()
        except OSError as error:
            raise _full(error) from error
        return map_unnamed(file, numpy_type(dtype), (rows, columns))

    def panels(self, rows: int, columns: int, dtype: torch.dtype, *, memory: int) -> "Panels":
        """A matrix on disk in panels of columns, one of which fits in ``memory`` bytes if that is possible at all."""
        size = rows * columns * dtype.itemsize
        width = -(-columns // max(1, -(-size // max(1, memory))))
        return Panels(self.file(size), rows, columns, min(columns, -(-width // _EVEN) * _EVEN), dtype)

    def file(self, size: int) -> BinaryIO:
        """A new file without a name; `MarioError` if the disk has no room for ``size`` bytes."""
        advice = "free some space, or name another folder for temporary files"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
            if size > free - _SPARE:
                raise RunFailedError(
                    f"{self.folder} has {free / 2**30:.1f} GiB free, and {size / 2**30:.1f} GiB are needed: {advice}"
                )
            # No context: the file is there as long as something refers to it.
            return tempfile.TemporaryFile(dir=self.folder)
        except OSError as error:
            raise RunFailedError(f"cannot use {self.folder}: {error.strerror or error}; {advice}") from None


def scratch_for(size: int) -> Scratch | None:
    """The :class:`Scratch` in use, if there is one and ``size`` bytes are more than it has memory for."""
    used = _IN_USE.get()
    return used if used is not None and size > used.memory else None


class Panels:
    """A matrix [rows, columns] in a file, one panel of ``width`` columns after the other.

    Blocks of rows are written and read, and a whole panel can be in memory, where its rows are read at random.

    Example:
        >>> matrix = Scratch().panels(3, 2, torch.float32, memory=2**20)
        >>> matrix.write(slice(1, 3), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> matrix.read(slice(1, 2)).tolist(), matrix.panel(0)[2].tolist()
        ([[1.0, 2.0]], [3.0, 4.0])
    """

    def __init__(self, file: BinaryIO, rows: int, columns: int, width: int, dtype: torch.dtype) -> None:
        self.rows, self.columns, self.dtype = rows, columns, dtype
        self.parts = [slice(first, min(first + width, columns)) for first in range(0, columns, width)]
        self._file = file

    def __len__(self) -> int:
        """The number of panels."""
        return len(self.parts)

    def write(self, rows: slice, block: Tensor) -> None:
        """Write all columns of a block of rows."""
        for number, columns in enumerate(self.parts):
            self.write_panel(number, rows, block[:, columns])

    def write_panel(self, number: int, rows: slice, block: Tensor) -> None:
        """Write the columns of one panel in a block of rows."""
        write_numbers(self._file, self._offset(number, rows.start), block)

    def read(self, rows: slice) -> Tensor:
        """All columns of a block of rows."""
        found = torch.empty(rows.stop - rows.start, self.columns, dtype=self.dtype)
        for number, columns in enumerate(self.parts):
            part = torch.empty(found.size(0), columns.stop - columns.start, dtype=self.dtype)
            found[:, columns] = read_numbers(self._file, self._offset(number, rows.start), part)
        return found

    def panel(self, number: int) -> Tensor:
        """All rows of the columns ``parts[number]``, in memory."""
        columns = self.parts[number]
        whole = torch.empty(self.rows, columns.stop - columns.start, dtype=self.dtype)
        return read_numbers(self._file, self._offset(number, 0), whole)

    def _offset(self, number: int, row: int) -> int:
        columns = self.parts[number]
        return (columns.start * self.rows + (columns.stop - columns.start) * row) * self.dtype.itemsize


def write_numbers(file: BinaryIO, offset: int, part: Tensor) -> None:
    """Write a tensor to a file of :meth:`Scratch.file`, from byte ``offset`` on."""
    try:
        file.seek(offset)
        file.write(part.detach().contiguous().numpy().data.cast("B") if part.numel() else b"")
    except OSError as error:
        raise _full(error) from error


def read_numbers(file: BinaryIO, offset: int, into: Tensor) -> Tensor:
    """Fill a contiguous tensor with the bytes of a file of :meth:`Scratch.file`, from ``offset`` on."""
    if into.numel():
        try:
            file.seek(offset)
            got = file.readinto(into.numpy().data.cast("B"))  # type: ignore[attr-defined]
        except OSError as error:
            raise RunFailedError(f"cannot read a temporary file: {error.strerror or error}") from error
        if got != into.nbytes:
            raise RunFailedError(f"a temporary file has {got:,} of {into.nbytes:,} bytes at {offset:,}")
    return into


def numpy_type(dtype: torch.dtype) -> "np.dtype[np.generic]":
    """The same type of numbers for numpy."""
    return torch.empty(0, dtype=dtype).numpy().dtype


def _full(error: OSError) -> RunFailedError:
    return RunFailedError(
        f"cannot write a temporary file: {error.strerror or error}; free some space, or name another folder for them"
    )
