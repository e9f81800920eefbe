"""A sample of rows of a table that is read in batches: the same rows whatever the batches are."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from mario.graphs.tables.values import texts

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Sample:
    """Up to ``limit`` rows, each with the same chance, in the order of the table.

    Each row draws a number, and those with the smallest are kept.
    """

    def __init__(self, names: Sequence[str], limit: int, seed: int) -> None:
        self.limit = limit
        self._names = list(names)
        self._generator = np.random.Generator(np.random.PCG64(seed))
        self._drawn: list[NDArray[np.float64]] = []
        self._columns: dict[str, list[pa.Array]] = {name: [] for name in names}
        self._rows, self._bound = 0, np.inf

    def add(self, columns: Mapping[str, pa.Array], rows: int) -> None:
        """Draw for some rows."""
        drawn = self._generator.random(rows)
        here = np.flatnonzero(drawn < self._bound)
        if not len(here):
            return
        self._drawn.append(drawn[here])
        taken = pa.array(here)
        for name in self._names:
            self._columns[name].append(columns[name] if len(here) == rows else columns[name].take(taken))
        self._rows += len(here)
        if self._rows > 2 * self.limit:
            self._shrink()

    def column(self, name: str) -> pa.Array:
        """The values of a column in the rows of the sample."""
        if self._rows > self.limit or len(self._drawn) > 1:
            self._shrink()
        return self._columns[name][0]

    def _shrink(self) -> None:
        drawn = np.concatenate(self._drawn)
        order = np.sort(np.argsort(drawn, kind="stable")[: self.limit])
        taken = pa.array(order)
        self._drawn = [drawn[order]]
        self._rows = len(order)
        if self._rows == self.limit:
            self._bound = float(drawn[order].max())
        for name, arrays in self._columns.items():
            self._columns[name] = [_joined(arrays, name).take(taken)]


def _joined(arrays: Sequence[pa.Array], name: str) -> pa.Array:
    """One array of several. Types may differ between files: texts win."""
    kinds = {array.type for array in arrays}
    if len(kinds) == 1:
        return pa.concat_arrays(arrays)
    return pa.concat_arrays([texts(array, name) for array in arrays])
