"""Numbers: scaled by median and quartiles and bent at the ends, as in skrub's SquashingScaler."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner, count, flag, number
from mario.graphs.tables.values import Read, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST = 3.0
"""What the largest number becomes, and minus that the smallest."""
_FAR = 1e8  # squares of larger numbers add nothing that float32 can hold
_LEAST = 1e-300  # a smaller spread is none


@dataclass(frozen=True)
class Scale:
    """A robust scale: zero at the median, one at a distance of one spread, at most `LARGEST`."""

    center: float
    spread: float

    @classmethod
    def of(cls, sample: "NDArray[np.float64]", low: float, high: float) -> "Scale":
        """The scale of finite numbers, which are a sample of some between ``low`` and ``high``.

        The spread is the distance of the quartiles; if it is zero, half the range; 0 if that is zero too.
        """
        half = sample / 2
        first, middle, last = (float(one) for one in np.quantile(half, (0.25, 0.5, 0.75)))
        spread = 2 * (last - first)
        if not _LEAST < spread < np.inf:
            spread = min(last - first, np.finfo(float).max / 2) * 2 if spread == np.inf else high / 2 - low / 2
        return cls(2 * middle, spread if spread > _LEAST else 0.0)

    def of_values(self, values: "NDArray[np.float64]") -> "NDArray[np.float32]":
        """Numbers on this scale; infinite ones are at its ends."""
        return squash(values, self.center, self.spread) if self.spread else np.zeros(len(values), np.float32)

    def as_json(self) -> dict[str, Any]:
        return {"center": self.center, "spread": self.spread}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> "Scale":
        """The scale of `as_json`."""
        found = cls(number(written, "center"), number(written, "spread"))
        if found.spread < 0:
            raise ValueError("spread is below zero")
        return found


def squash(
    values: "NDArray[np.float64]", center: "float | NDArray[np.float64]", spread: "float | NDArray[np.float64]"
) -> "NDArray[np.float32]":
    """Distances from the center in units of the spread, bent so that none is beyond `LARGEST`."""
    with np.errstate(over="ignore"):
        far = (values / 2 - center / 2) / (spread / 2)  # halves cannot overflow when they are subtracted
    far = np.clip(far, -_FAR, _FAR)
    bent: NDArray[np.float32] = (far / np.sqrt(1 + (far / LARGEST) ** 2)).astype(np.float32)
    return bent


class Range:
    """The smallest and the largest finite number met so far, and how many are missing."""

    def __init__(self) -> None:
        self.low, self.high, self.missing, self.there = np.inf, -np.inf, 0, 0

    def see(self, read: Read) -> None:
        there = read.there
        found = read.values[there]
        self.there += len(found)
        self.missing += len(there) - len(found)
        finite = found[np.isfinite(found)]
        if len(finite):
            self.low = min(self.low, float(finite.min()))
            self.high = max(self.high, float(finite.max()))


@dataclass(frozen=True)
class NumericEncoder(Encoder):
    """One scaled number, and one that is 1 where it is missing if the training rows miss some.

    A missing number is at the median.
    """

    form = "numeric"
    scale: Scale
    indicator: bool

    def names(self, column: str) -> list[str]:
        return [column] * bool(self.scale.spread) + [f"{column} is missing"] * self.indicator

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32]":
        read = numbers(array, name)
        count(read, array, report)
        report.infinite += int(np.isinf(read.values[read.there]).sum())
        return columns_of(self.scale, read, self.indicator)

    def as_json(self) -> dict[str, Any]:
        return {**self.scale.as_json(), "indicator": self.indicator}

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        return cls(Scale.from_json(written), flag(written, "indicator"))


class NumericLearner(Learner):
    """Median and quartiles of the sample, ends and missing values of all rows."""

    def __init__(self) -> None:
        self.range = Range()

    def see(self, array: pa.Array, name: str) -> pa.Array:
        read = numbers(array, name)
        self.range.see(read)
        return pa.array(np.where(read.there, read.values, np.nan))

    def finish(self, sample: pa.Array, name: str) -> "NumericEncoder | str":
        values = np.asarray(sample)
        scale = scale_of(values[np.isfinite(values)], self.range)
        return scale if isinstance(scale, str) else NumericEncoder(scale, self.range.missing > 0)


def scale_of(sample: "NDArray[np.float64]", found: Range) -> "Scale | str":
    """The scale of a sample, or why there is none."""
    if found.low > found.high:
        return "empty" if not found.there else "infinite in each row"
    if found.low == found.high and not found.missing:
        return "constant"
    if not len(sample):  # the only numbers are in rows that were not sampled
        sample = np.array([found.low, found.high])
    return Scale.of(sample, found.low, found.high)


def columns_of(scale: Scale, read: Read, indicator: bool) -> "NDArray[np.float32]":
    """The scaled values, then the indicator."""
    there = read.there
    parts = []
    if scale.spread:
        scaled = scale.of_values(np.where(there, read.values, scale.center))
        parts.append(np.where(there, scaled, np.float32(0)))
    if indicator:
        parts.append((~there).astype(np.float32))
    return np.stack(parts, axis=1) if parts else np.zeros((len(there), 0), np.float32)
