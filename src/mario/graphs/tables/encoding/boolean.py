"""True and false."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner, count, flag
from mario.graphs.tables.values import booleans

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class BooleanEncoder(Encoder):
    """0 or 1, and one that is 1 where it is missing if the training rows miss some. A missing value is the commoner."""

    form = "boolean"
    common: bool
    indicator: bool

    def names(self, column: str) -> list[str]:
        return [column] + [f"{column} is missing"] * self.indicator

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32]":
        read = booleans(array, name)
        count(read, array, report)
        there = read.there
        parts = [np.where(there, read.values, float(self.common)), *([~there] * self.indicator)]
        return np.stack(parts, axis=1).astype(np.float32)

    def as_json(self) -> dict[str, Any]:
        return {"common": self.common, "indicator": self.indicator}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        return cls(flag(written, "common"), flag(written, "indicator"))


class BooleanLearner(Learner):
    """Counts both values."""

    def __init__(self) -> None:
        self.true, self.false, self.missing = 0, 0, 0

    def see(self, array: pa.Array, name: str) -> pa.Array:
        read = booleans(array, name)
        there = read.there
        true = int(read.values[there].sum())
        self.true += true
        self.false += int(there.sum()) - true
        self.missing += int((~there).sum())
        return pa.nulls(len(array))

    def finish(self, sample: pa.Array, name: str) -> "BooleanEncoder | str":
        if not self.true + self.false:
            return "empty"
        if not self.missing and not (self.true and self.false):
            return "constant"
        return BooleanEncoder(self.true > self.false, self.missing > 0)
