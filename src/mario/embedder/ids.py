"""The names of the rows of a graph: those of ``ids.arrow``, or their numbers."""

import dataclasses
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mario.errors import MarioError
from mario.untrusted import open_file

if TYPE_CHECKING:
    import pyarrow

COLUMN = "id"
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_COMPARED = 5_000
"""Ids that a misspelled one is compared with."""


@dataclasses.dataclass(frozen=True)
class Ids:
    """One id per row, in order. Without ``column`` a row's id is its number, from 0.

    Args:
        count: The number of rows.
        column: A pyarrow array, or ``None``.

    Example:
        >>> ids = Ids.of(["anna", "ben", "carl"])
        >>> ids.values(1, 3), ids.find("ben")
        (['ben', 'carl'], 1)
        >>> ids.find("beN")
        Traceback (most recent call last):
            ...
        mario.errors.MarioError: there is no id 'beN' among 3 ids such as 'anna'; did you mean 'ben'?
        >>> Ids(4).values(2, 4), Ids(4).find("3")
        ([2, 3], 3)
    """

    count: int
    column: Any = None

    @classmethod
    def of(cls, values: Sequence[Any]) -> "Ids":
        """Ids from a list or an array of texts or numbers."""
        arrow = _pyarrow()
        try:
            try:
                column = arrow.array(values)
            except OverflowError:
                column = arrow.array(values, arrow.uint64())
        except (arrow.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise MarioError(f"ids must be texts or numbers of one type ({error})") from None
        return cls(len(column), column)

    @classmethod
    def read(cls, path: Path, count: int) -> "Ids":
        """The column ``id`` of an Arrow file, which stays on disk; it must have ``count`` rows."""
        arrow = _pyarrow()
        import pyarrow.ipc

        open_file(path).close()
        try:
            table = pyarrow.ipc.open_file(arrow.memory_map(str(path))).read_all()
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise MarioError(f"{path} is no Arrow file with ids, or it is damaged ({_line(error)})") from None
        if table.column_names != [COLUMN]:
            raise MarioError(f"{path} must have one column, {COLUMN}; it has {', '.join(table.column_names) or 'none'}")
        if table.num_rows != count:
            raise MarioError(f"{path} has {table.num_rows:,} ids for {count:,} rows: build the graph again")
        try:
            table.validate(full=count < 1_000_000)
        except arrow.ArrowException as error:
            raise MarioError(f"{path} is damaged ({_line(error)})") from None
        return cls(count, table.column(COLUMN))

    def __len__(self) -> int:
        """The number of rows."""
        return self.count

    @property
    def named(self) -> bool:
        """Whether they are other than row numbers."""
        return self.column is not None

    def values(self, start: int, stop: int) -> list[Any]:
        """The ids of some consecutive rows, in their own type."""
        if self.column is None:
            return list(range(start, min(stop, self.count)))
        found: list[Any] = self.column.slice(start, stop - start).to_pylist()
        return found

    def value(self, row: int) -> Any:
        """The id of one row."""
        return self.values(row, row + 1)[0]

    def arrow(self, start: int, stop: int) -> "pyarrow.Array":
        """The ids of some consecutive rows, as a pyarrow array."""
        arrow = _pyarrow()
        if self.column is None:
            return arrow.array(range(start, min(stop, self.count)), arrow.int64())
        part = self.column.slice(start, stop - start)
        return part.combine_chunks() if isinstance(part, arrow.ChunkedArray) else part

    def take(self, rows: Sequence[int]) -> "Ids":
        """The ids of these rows."""
        if self.column is None:
            arrow = _pyarrow()
            return Ids(len(rows), arrow.array(rows, arrow.int64()))
        return Ids(len(rows), self.column.take(_pyarrow().array(rows)))

    def find(self, text: str) -> int:
        """The row whose id is written ``text``; `MarioError` with the nearest spelled ids if there is none."""
        row = self._place(str(text).strip()) if self.column is None or self._whole else self._place(str(text))
        if row >= 0:
            return row
        like = self._nearest(str(text))
        shown = repr(self.value(0)) if self.count else "none"
        raise MarioError(
            f"there is no id {str(text)[:100]!r} among {self.count:,} ids such as {shown}"
            + (f"; did you mean {' or '.join(map(repr, like))}?" if like else "")
        )

    def absent_from(self, other: "Ids") -> Any:
        """Whether each id is not among the ids of ``other``, compared as texts: a NumPy array of booleans.

        Example:
            >>> Ids.of(["anna", "dora"]).absent_from(Ids.of(["anna", "ben"])).tolist()
            [False, True]
        """
        if self.column is None and other.column is None:
            return np.arange(self.count) >= other.count
        import pyarrow.compute

        mine, theirs = self._texts(), other._texts()
        return ~np.asarray(pyarrow.compute.is_in(mine, value_set=theirs))

    @property
    def _whole(self) -> bool:
        """Whether the ids are whole numbers."""
        return self.column is None or bool(_pyarrow().types.is_integer(self.column.type))

    def _place(self, text: str) -> int:
        if self._whole and not _WHOLE.fullmatch(text):
            return -1
        if self.column is None:
            return int(text) if 0 <= int(text) < self.count else -1
        arrow = _pyarrow()
        import pyarrow.compute

        kind = self.column.type
        try:
            wanted = arrow.scalar(int(text) if self._whole else text, arrow.string() if _is_odd(arrow, kind) else kind)
        except (arrow.ArrowException, OverflowError, TypeError, ValueError):
            return -1
        column = self._texts() if _is_odd(arrow, kind) else self.column
        return int(pyarrow.compute.index(column, wanted).as_py())

    def _nearest(self, text: str) -> list[str]:
        if self.column is None:
            return []
        arrow = _pyarrow()
        import pyarrow.compute as compute

        try:
            texts = self._texts()
            near = texts.filter(compute.starts_with(texts, text[:2], ignore_case=True))
            length = compute.binary_length(near)
            near = near.filter(compute.less_equal(compute.abs(compute.subtract(length, len(text.encode()))), 2))
            some = near.slice(0, _COMPARED).to_pylist() + texts.slice(0, _COMPARED).to_pylist()
        except arrow.ArrowException:
            return []
        known = {one.lower(): one for one in reversed(some) if one is not None}
        return [known[one] for one in get_close_matches(text.lower(), known, n=3, cutoff=0.7)]

    def _texts(self) -> Any:
        """All ids as a column of texts."""
        arrow = _pyarrow()
        if self.column is None:
            return self.arrow(0, self.count).cast(arrow.string())
        try:
            return self.column.cast(arrow.string())
        except arrow.ArrowException:  # such as UUIDs
            return arrow.array(["" if one is None else str(one) for one in self.values(0, self.count)])


def _is_odd(arrow: Any, kind: Any) -> bool:
    """Whether ids of this type are compared by what they look like."""
    return not (arrow.types.is_integer(kind) or arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _pyarrow() -> Any:
    return needed("ids in Arrow files")


def needed(what: str) -> Any:
    """pyarrow; `MarioError` that says how to install it if it is missing."""
    try:
        import pyarrow
    except ImportError:
        raise MarioError(f"{what} need pyarrow: pip install 'mario-gcl[tables]'") from None
    return pyarrow
