"""Categories: one column per value where there are few of them, else what their letters say."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner, flag, words
from mario.graphs.tables.encoding.grams import LETTERS, GramEncoder, hashes, learn
from mario.graphs.tables.values import texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW = 64
"""The most values with a column each."""
WIDTH = 30
"""The most columns of more values."""
KNOWN = 100_000
"""The most values that are remembered, to recognize new ones."""


@dataclass(frozen=True)
class OneHotEncoder(Encoder):
    """A column per value, and one for missing values if the training rows miss some. An unseen value is all zeros."""

    form = "one-hot"
    values: tuple[str, ...]
    indicator: bool

    def names(self, column: str) -> list[str]:
        return [f"{column}={value}" for value in self.values] + [f"{column} is missing"] * self.indicator

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32]":
        text = texts(array, name)
        known = pa.array(self.values, text.type)
        codes = np.asarray(pc.fill_null(pc.index_in(text, known), -1).to_numpy(zero_copy_only=False), np.int64)
        missing = np.asarray(pc.is_null(text).to_numpy(zero_copy_only=False), bool)
        report.rows += len(text)
        report.missing += int(missing.sum())
        unseen = np.flatnonzero((codes < 0) & ~missing)
        report.unseen += len(unseen)
        if len(unseen):
            report.show(text.take(pa.array(unseen)).unique().slice(0, 5).to_pylist())
        made = np.zeros((len(text), len(self.values) + self.indicator), np.float32)
        rows = np.flatnonzero(codes >= 0)
        made[rows, codes[rows]] = 1
        if self.indicator:
            made[missing, -1] = 1
        return made

    def as_json(self) -> dict[str, Any]:
        return {"values": list(self.values), "indicator": self.indicator}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        return cls(words(written, "values"), flag(written, "indicator"))


class Vocabulary:
    """Counts of texts, until there are more than ``most`` different ones."""

    def __init__(self, most: int = KNOWN) -> None:
        self.counts: Counter[str] = Counter()
        self.most, self.many = most, False

    def see(self, text: pa.Array) -> None:
        """Count texts; nulls do not count."""
        if self.many:
            return
        found = pc.value_counts(text)
        for value, number in zip(found.field(0).to_pylist(), found.field(1).to_pylist(), strict=True):
            if value is not None:
                self.counts[value] += number
        if len(self.counts) > self.most:
            self.many, self.counts = True, Counter()


class CategoryLearner(Learner):
    """Counts the values of all training rows."""

    def __init__(self, slots: int, width: int, seed: int) -> None:
        self.vocabulary, self.missing = Vocabulary(), 0
        self.slots, self.width, self.seed = slots, width, seed

    def see(self, array: pa.Array, name: str) -> pa.Array:
        text = texts(array, name)
        self.missing += text.null_count
        self.vocabulary.see(text)
        return text

    def finish(self, sample: pa.Array, name: str) -> "Encoder | str":
        values = sorted(self.vocabulary.counts)
        if not values and not self.vocabulary.many:
            return "empty"
        if len(values) == 1 and not self.missing:
            return "constant"
        if not self.vocabulary.many and len(values) <= FEW:
            return OneHotEncoder(tuple(values), self.missing > 0 and len(values) > 1)
        sampled = sorted(sample.unique().drop_null().to_pylist())
        learned = learn(sampled, LETTERS, self.slots, min(self.width, WIDTH), self.seed)
        if isinstance(learned, str):
            return learned
        known = None if self.vocabulary.many else np.sort(hashes(values))
        return GramEncoder(LETTERS, *learned, known, self.missing > 0)
