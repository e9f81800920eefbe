"""What kind of values a column has, by its type and by a sample of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mario.graphs.tables.dates import dates, find_formats, is_ambiguous
from mario.graphs.tables.listed import separator_of
from mario.graphs.tables.values import FALSE_WORDS, TRUE_WORDS, booleans, is_plain_number, numbers, plain, texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PARSED = 0.9  # share of the texts that must be numbers, dates or lists, for the column to be one of these
_WORDS = 2.5  # mean number of words of a text
_LOOKED = 2_000  # rows whose texts are looked into


@dataclass(frozen=True)
class Facts:
    """What a sample says of a column.

    Attributes:
        kind: one of `mario.graphs.card.KINDS`.
        why: in a few words.
        rows: with a value.
        distinct: different values.
        missing: rows without a value.
        whole: whether all are whole numbers.
    """

    kind: str
    why: str
    rows: int
    distinct: int
    missing: int
    whole: bool = False

    @property
    def constant(self) -> bool:
        """Whether all rows have the same value, and all have one."""
        return self.distinct <= 1 and not self.missing

    @property
    def unique(self) -> bool:
        """Whether no value occurs twice and none is missing."""
        return self.rows > 0 and self.distinct == self.rows and not self.missing

    @property
    def continuous(self) -> bool:
        """Whether the values are measured rather than named."""
        return self.kind == "numeric" and not self.whole


def look(column: "pa.ChunkedArray", name: str) -> Facts:
    """The facts of a column of a sample."""
    array = plain(column, name)
    kind = array.type
    missing = array.null_count
    rows = len(array) - missing
    if pa.types.is_null(kind) or not rows:
        return Facts("none", "empty", 0, 0, missing)
    if pa.types.is_boolean(kind):
        return Facts("boolean", "true and false", rows, pc.count_distinct(array).as_py(), missing, whole=True)
    if pa.types.is_temporal(kind) and not (pa.types.is_time(kind) or pa.types.is_duration(kind)):
        return Facts("date", f"type {kind}", rows, pc.count_distinct(array).as_py(), missing)
    if is_plain_number(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return _of_numbers(array, name, f"type {kind}")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _of_texts(texts(array, name), name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = kind.value_type
        if not pa.types.is_nested(inner) and not pa.types.is_binary(inner) and not pa.types.is_large_binary(inner):
            return Facts("list", f"type {kind}", rows, rows, missing)
    return Facts("none", f"type {kind} is not read", rows, 0, missing)


def _of_numbers(array: pa.Array, name: str, why: str) -> Facts:
    read = numbers(array, name)
    values = read.values[read.there]
    finite = values[np.isfinite(values)]
    whole = bool(len(finite) == len(values) and (finite == np.trunc(finite)).all())
    distinct = pc.count_distinct(array, mode="only_valid").as_py()
    missing = int(read.missing.sum())
    if not len(values):
        return Facts("none", "empty", 0, 0, missing)
    return Facts("numeric", why, len(values), distinct, missing, whole=whole)


def _of_texts(text: pa.Array, name: str) -> Facts:
    there = text.drop_null()
    missing, rows = len(text) - len(there), len(there)
    if not rows:
        return Facts("none", "empty", 0, 0, missing)
    distinct = pc.count_distinct(there).as_py()
    known = there.unique()
    lower = pc.utf8_lower(known)
    words = {word for word in lower.slice(0, 10).to_pylist() if word not in ("1", "0")}
    if len(known) <= 6 and words and words <= {*TRUE_WORDS, *FALSE_WORDS} and _share(booleans(known, name).there) == 1:
        return Facts("boolean", "yes and no", rows, distinct, missing)
    read = numbers(there, name)
    padded = pc.any(pc.match_substring_regex(there, r"^[+-]?0[0-9]")).as_py()  # as in a code
    if _share(read.there[~read.missing]) >= _PARSED and not padded:
        return Facts("numeric", "texts that are numbers", rows, distinct, missing + int(read.missing.sum()))
    looked = known.slice(0, _LOOKED)
    if pc.any(pc.match_substring_regex(looked, r"[0-9]")).as_py():
        formats = find_formats(looked, name)
        found = dates(looked, name, formats)
        if _share(found.there[~found.missing]) >= _PARSED:
            unsure = ", the month first, though nothing says so" * is_ambiguous(looked, name, formats)
            return Facts("date", f"texts that are dates{unsure}", rows, distinct, missing)
    if separator := separator_of(there.slice(0, _LOOKED)):
        return Facts("list", f"texts with items between {separator!r}", rows, distinct, missing)
    if float(np.mean(_words(there.slice(0, _LOOKED)))) >= _WORDS and distinct > 0.5 * rows:
        return Facts("text", "several words in a row", rows, distinct, missing)
    return Facts("categorical", f"{distinct} different texts", rows, distinct, missing)


def _words(text: pa.Array) -> "NDArray[np.int64]":
    pattern = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]|\S+"
    return np.asarray(pc.count_substring_regex(text, pattern).to_numpy(zero_copy_only=False), np.int64)


def _share(mask: "NDArray[np.bool_]") -> float:
    return float(mask.mean()) if len(mask) else 0.0
