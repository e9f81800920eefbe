"""Texts, and categories with many values: what their words or letters say, in few columns.

Words, or groups of three and four letters, are counted by scikit-learn's ``HashingVectorizer``, weighted by how rare
they are (TF-IDF), and reduced by its ``TruncatedSVD``, as in skrub's ``StringEncoder``. Only what is fitted is kept:
rarities and the directions of the decomposition. The product with them goes entry by entry, because the bits of a
product of dense matrices depend on how many rows it has.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner, flag, pack, unpack
from mario.graphs.tables.values import mask_of, texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS, LETTERS = "words", "letters"
CHARACTERS = 10_000
"""How much of a text is read."""
_SLOTS = 2**20
_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_UNITS: dict[str, dict[str, Any]] = {
    WORDS: {"analyzer": "word", "token_pattern": rf"(?u)[{_CJK}]|[^\W{_CJK}][^\W{_CJK}]+"},  # no spaces in Chinese
    LETTERS: {"analyzer": "char_wb", "ngram_range": (3, 4)},
}


@dataclass(frozen=True, eq=False)
class GramEncoder(Encoder):
    """A few directions in the space of words or letters, and a column that is 1 where the text is missing.

    Attributes:
        units: `WORDS` or `LETTERS`.
        slots: which slots of the hash table are used.
        rarity: the weight of each slot.
        directions: one column per feature; None if the slots are the features.
        known: hashes of the values of training rows, to recognize new ones; None if those are no categories, or too
            many.
        indicator: whether training rows miss some.
    """

    form = "grams"
    units: str
    slots: "NDArray[np.int32]"
    rarity: "NDArray[np.float64]"
    directions: "NDArray[np.float64] | None"
    known: "NDArray[np.uint64] | None"
    indicator: bool

    def names(self, column: str) -> list[str]:
        width = len(self.slots) if self.directions is None else self.directions.shape[1]
        return [f"{column}[{place}]" for place in range(width)] + [f"{column} is missing"] * self.indicator

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32]":
        text = texts(array, name)
        missing = mask_of(pc.is_null(text))
        coded = text.dictionary_encode()
        values = coded.dictionary.to_pylist()
        codes = np.asarray(pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False), np.int64)
        report.rows += len(text)
        report.missing += int(missing.sum())
        if self.known is not None and values:
            new = ~np.isin(hashes(values), self.known)
            report.unseen += int(new[codes[~missing]].sum())
            report.show([values[place] for place in np.flatnonzero(new)[:5]])
        made = np.zeros((len(text), len(self.names(name))), np.float32)
        if values:
            width = made.shape[1] - self.indicator
            made[~missing, :width] = self._project(values)[codes[~missing]]
        if self.indicator:
            made[:, -1] = missing
        return made

    def _project(self, values: list[str]) -> "NDArray[np.float32]":
        weighted = weighted_grams(values, self.units, self.slots, self.rarity)
        found = weighted.toarray() if self.directions is None else weighted @ self.directions
        return np.asarray(found, np.float32)

    def as_json(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "slots": pack(self.slots),
            "rarity": pack(self.rarity),
            "directions": None if self.directions is None else pack(self.directions.astype(np.float32)),
            "known": None if self.known is None else pack(self.known),
            "indicator": self.indicator,
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        slots, rarity = unpack(written["slots"], "int32", 1), unpack(written["rarity"], "float64", 1)
        if not len(slots) or (np.diff(slots) <= 0).any() or slots[0] < 0 or slots[-1] >= _SLOTS:
            raise ValueError("slots are out of order")
        directions = None if written["directions"] is None else unpack(written["directions"], "float32", 2)
        if len(rarity) != len(slots) or (directions is not None and len(directions) != len(slots)):
            raise ValueError("slots, rarity and directions are of different lengths")
        if written["units"] not in _UNITS:
            raise ValueError(f"units must be one of {', '.join(_UNITS)}")
        return cls(
            str(written["units"]),
            slots,
            rarity,
            None if directions is None else directions.astype(np.float64),
            None if written["known"] is None else unpack(written["known"], "uint64", 1),
            flag(written, "indicator"),
        )


class TextLearner(Learner):
    """Learns words and directions from the sample."""

    def __init__(self, slots: int, width: int, seed: int) -> None:
        self.slots, self.width, self.seed = slots, width, seed
        self.missing = 0

    def see(self, array: pa.Array, name: str) -> pa.Array:
        text = texts(array, name)
        self.missing += text.null_count
        return pc.utf8_slice_codeunits(text, 0, CHARACTERS)

    def finish(self, sample: pa.Array, name: str) -> "GramEncoder | str":
        found = learn(sample.drop_null().to_pylist(), WORDS, self.slots, self.width, self.seed)
        if isinstance(found, str):
            return found
        return GramEncoder(WORDS, *found, None, self.missing > 0)


def learn(
    values: list[str], units: str, most: int, width: int, seed: int
) -> "tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64] | None] | str":
    """Slots, rarities and directions of some texts, or why there are none.

    Args:
        values: The texts.
        units: `WORDS` or `LETTERS`.
        most: The most slots, those that most texts have.
        width: The most directions.
        seed: Of the decomposition.
    """
    from sklearn.decomposition import TruncatedSVD

    if not values:
        return "empty"
    counts = _counts(values, units)
    frequency = np.bincount(counts.indices, minlength=_SLOTS)
    least = 2 if (frequency > 1).sum() > width else 1
    used = np.flatnonzero(frequency >= least)
    if not len(used):
        return "no words"
    used = np.sort(used[np.argsort(-frequency[used], kind="stable")[:most]])
    total = len(values)
    table = [math.log((1 + total) / (1 + one)) + 1 for one in frequency[used].tolist()]
    slots, rarity = used.astype(np.int32), np.array(table)
    weighted = weighted_grams(values, units, slots, rarity)
    if len(slots) <= width:
        return "the same words in each row" if _spread(weighted.toarray()) == 0 else (slots, rarity, None)
    size = min(width, len(slots) - 1, len(values))
    svd = TruncatedSVD(n_components=size, random_state=seed).fit(weighted)
    directions = svd.components_.T.astype(np.float32)
    spread = _spread(weighted @ directions.astype(np.float64))
    if spread <= 1e-9:
        return "the same words in each row"
    directions = (directions / np.float32(spread)).astype(np.float32)
    return slots, rarity, np.ascontiguousarray(directions, np.float64)


def weighted_grams(
    values: list[str], units: str, slots: "NDArray[np.int32]", rarity: "NDArray[np.float64]"
) -> sp.csr_matrix:
    """The TF-IDF weights of texts, one row each, of unit length; a row is zero if it has no known word."""
    from sklearn.preprocessing import normalize

    counts = _counts(values, units)
    place = np.full(_SLOTS, -1, np.int64)
    place[slots] = np.arange(len(slots))
    columns = place[counts.indices]
    kept = columns >= 0
    rows = np.repeat(np.arange(len(values)), np.diff(counts.indptr))[kept]
    columns = columns[kept]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(values)))])
    data = counts.data[kept] * rarity[columns]
    return normalize(sp.csr_matrix((data, columns, starts), shape=(len(values), len(slots))), copy=False)


def hashes(values: Iterable[str]) -> "NDArray[np.uint64]":
    """64 bits of each text."""
    content = b"".join(hashlib.blake2b(value.encode(), digest_size=8).digest() for value in values)
    return np.frombuffer(content, "<u8").astype(np.uint64)


def _counts(values: list[str], units: str) -> sp.csr_matrix:
    from sklearn.feature_extraction.text import HashingVectorizer

    vectorizer = HashingVectorizer(n_features=_SLOTS, alternate_sign=False, norm=None, **_UNITS[units])
    counts = vectorizer.transform([value[:CHARACTERS] for value in values])
    counts.sum_duplicates()
    return counts


def _spread(projected: "NDArray[np.float64]") -> float:
    """The length of the standard deviations: all columns together then have the variance of one number."""
    return float(np.linalg.norm(projected.std(axis=0)))
