"""Lists: of ids, a column per item; of numbers that are as many in each row, a column per number."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from mario.arguments import check_count
from mario.graphs.tables.encoding.category import Vocabulary
from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner, count, flag, pack, unpack, words
from mario.graphs.tables.encoding.numeric import Scale, squash
from mario.graphs.tables.listed import list_form, lists, vectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

NARROW = 256
"""The most items for which the columns are dense."""
WIDE = 2**14
"""The most items that have a column each; of more, the commonest have one."""
_LOOKED = 1_000  # rows from which the form is found


@dataclass(frozen=True)
class ItemsEncoder(Encoder):
    """1 for each item that the list has; sparse if there are many.

    Attributes:
        items: with a column each.
        separator: between items in a text.
        known: whether all items of the training rows have a column, so that another one is unseen.
        indicator: whether training rows miss some.
    """

    form = "items"
    items: tuple[str, ...]
    separator: str
    known: bool
    indicator: bool

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        return len(self.items) > NARROW

    def names(self, column: str) -> list[str]:
        return [f"{column}={item}" for item in self.items] + [f"{column} is missing"] * self.indicator

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32] | sp.csr_matrix":
        items, rows, read = lists(array, name, self.separator)
        count(read, array, report)
        known = pa.array(self.items, pa.large_string())
        codes = np.asarray(pc.fill_null(pc.index_in(items, known), -1).to_numpy(zero_copy_only=False), np.int64)
        new = np.flatnonzero(codes < 0) if self.known else np.zeros(0, np.int64)
        report.unseen += len(new)
        if len(new):
            report.show(items.take(pa.array(new)).unique().slice(0, 5).to_pylist())
        width = len(self.items) + self.indicator
        there = codes >= 0
        rows, codes = rows[there], codes[there]
        if self.indicator:
            absent = np.flatnonzero(~read.there)
            rows = np.concatenate([rows, absent])
            codes = np.concatenate([codes, np.full(len(absent), width - 1)])
        if not self.sparse:
            made = np.zeros((len(array), width), np.float32)
            made[rows, codes] = 1
            return made
        whole = sp.csr_matrix((np.ones(len(rows), np.float32), (rows, codes)), shape=(len(array), width))
        whole.sum_duplicates()
        whole.data[:] = 1
        return whole

    def as_json(self) -> dict[str, Any]:
        return {
            "items": list(self.items),
            "separator": self.separator,
            "known": self.known,
            "indicator": self.indicator,
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        if not isinstance(written["separator"], str):
            raise ValueError("separator is no text")
        return cls(words(written, "items"), written["separator"], flag(written, "known"), flag(written, "indicator"))


@dataclass(frozen=True, eq=False)
class VectorEncoder(Encoder):
    """Each number scaled as a numeric column is; a row without the right number of them is at the median."""

    form = "vector"
    center: "NDArray[np.float64]"
    spread: "NDArray[np.float64]"
    separator: str
    indicator: bool

    def names(self, column: str) -> list[str]:
        return [f"{column}[{place}]" for place in range(len(self.center))] + [f"{column} is missing"] * self.indicator

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32]":
        read = vectors(array, name, len(self.center), self.separator)
        count(read, array, report)
        there, values = read.there, read.values
        report.infinite += int(np.isinf(values[there]).any(axis=1).sum())
        constant = (self.spread == 0) | np.isnan(values) | ~there[:, None]
        scaled = squash(
            np.where(constant, self.center, values), self.center, np.where(self.spread == 0, 1.0, self.spread)
        )
        made = np.where(constant, np.float32(0), scaled)
        return np.concatenate([made, ~there[:, None]], axis=1, dtype=np.float32) if self.indicator else made

    def as_json(self) -> dict[str, Any]:
        return {
            "center": pack(self.center),
            "spread": pack(self.spread),
            "separator": self.separator,
            "indicator": self.indicator,
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        center, spread = unpack(written["center"], "float64", 1), unpack(written["spread"], "float64", 1)
        if len(center) != len(spread) or (spread < 0).any() or not isinstance(written["separator"], str):
            raise ValueError("center and spread do not go together")
        check_count("the length of a vector", len(center))
        return cls(center, spread, written["separator"], flag(written, "indicator"))


class ListLearner(Learner):
    """Finds the form of the lists in the first rows, and counts the items of all."""

    def __init__(self) -> None:
        self.vocabulary, self.missing = Vocabulary(), 0
        self.waiting: list[pa.Array] = []
        self.separator: str | None = None
        self.length = 0

    def see(self, array: pa.Array, name: str) -> pa.Array:
        if self.separator is None:
            self.waiting.append(array)
            if sum(len(one) - one.null_count for one in self.waiting) >= _LOOKED:
                self._find(name)
        else:
            self._count(array, name)
        return array

    def finish(self, sample: pa.Array, name: str) -> "Encoder | str":
        if self.separator is None:
            self._find(name)
        assert self.separator is not None
        if self.length:
            return self._vector(sample, name)
        if not self.vocabulary.counts and not self.vocabulary.many:
            return "empty"
        known = self.vocabulary.counts
        if self.vocabulary.many:  # of the sample, then
            again = Vocabulary(most=len(sample) * 1_000)
            again.see(lists(sample, name, self.separator)[0])
            known = again.counts
        common = sorted(known, key=lambda item: (-known[item], item))[:WIDE]
        return ItemsEncoder(
            tuple(sorted(common)),
            self.separator,
            len(common) == len(known) and not self.vocabulary.many,
            self.missing > 0,
        )

    def _find(self, name: str) -> None:
        """Decide by the first rows with a value, whatever the batches are."""
        first, wanted = [], _LOOKED
        for array in self.waiting:
            there = array.drop_null().slice(0, wanted)
            wanted -= len(there)
            first.append(there)
        kinds = [array for array in first if len(array)]
        self.separator, self.length = list_form(kinds, name)
        for array in self.waiting:
            self._count(array, name)
        self.waiting = []

    def _count(self, array: pa.Array, name: str) -> None:
        assert self.separator is not None
        if self.length:
            self.missing += int((~vectors(array, name, self.length, self.separator).there).sum())
            return
        items, _, read = lists(array, name, self.separator)
        self.missing += int((~read.there).sum())
        self.vocabulary.see(items)

    def _vector(self, sample: pa.Array, name: str) -> "VectorEncoder | str":
        assert self.separator is not None
        read = vectors(sample, name, self.length, self.separator)
        values = read.values[read.there]
        if not len(values):
            return "empty"
        center, spread = np.zeros(self.length), np.zeros(self.length)
        for place in range(self.length):
            column = values[:, place]
            column = column[np.isfinite(column)]
            if len(column):
                scale = Scale.of(column, float(column.min()), float(column.max()))
                center[place], spread[place] = scale.center, scale.spread
        if not spread.any() and not self.missing:
            return "constant"
        return VectorEncoder(center, spread, self.separator, self.missing > 0)
