"""Dates: how late it is, and where in the year, the week and the day, as in skrub's DatetimeEncoder."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mario.graphs.tables.dates import dates, find_formats
from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner, count, flag, words
from mario.graphs.tables.encoding.numeric import Scale, columns_of
from mario.graphs.tables.values import MISSING_WORDS, Read, is_text, mask_of, texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

CIRCLES = {"month": 12, "weekday": 7, "hour": 24}
"""Parts of a date that come back, and how many steps each circle has."""
_EARLIEST, _LATEST = -62_135_596_800.0, 253_402_300_799.0  # of the years 1 to 9999


@dataclass(frozen=True)
class DateEncoder(Encoder):
    """The time since 1970, scaled as a number is, and two columns for each circle: sine and cosine.

    A missing date is at the median and in the middle of each circle.
    """

    form = "date"
    formats: tuple[str, ...]
    scale: Scale
    circles: tuple[str, ...]
    indicator: bool

    def names(self, column: str) -> list[str]:
        parts = [f"{column} {circle} {wave}" for circle in self.circles for wave in ("sine", "cosine")]
        return [column] * bool(self.scale.spread) + [f"{column} is missing"] * self.indicator + parts

    def encode(self, array: pa.Array, name: str, report: ColumnReport) -> "NDArray[np.float32]":
        read = readable(dates(array, name, self.formats))
        count(read, array, report)
        there = read.there
        parts = [columns_of(self.scale, read, self.indicator)]
        for circle in self.circles:
            waves = _waves(CIRCLES[circle])[_step(np.where(there, read.values, 0.0), circle)]
            parts.append(np.where(there[:, None], waves, np.float32(0)))
        return np.concatenate(parts, axis=1)

    def as_json(self) -> dict[str, Any]:
        return {
            "formats": list(self.formats),
            **self.scale.as_json(),
            "circles": list(self.circles),
            "indicator": self.indicator,
        }

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> Self:
        circles = words(written, "circles")
        if not set(circles) <= set(CIRCLES):
            raise ValueError(f"circles must be some of {', '.join(CIRCLES)}")
        return cls(words(written, "formats"), Scale.from_json(written), circles, flag(written, "indicator"))


class DateLearner(Learner):
    """Finds the form of the dates, their quartiles, and which parts of them differ, in the sample."""

    def __init__(self) -> None:
        self.missing = 0

    def see(self, array: pa.Array, name: str) -> pa.Array:
        if is_text(array.type):
            array = texts(array, name)
            self.missing += int(mask_of(pc.is_in(pc.utf8_lower(array), pa.array(MISSING_WORDS, array.type))).sum())
        self.missing += array.null_count
        return array

    def finish(self, sample: pa.Array, name: str) -> "DateEncoder | str":
        formats = find_formats(sample, name)
        read = readable(dates(sample, name, formats))
        values = read.values[read.there]
        missing = self.missing > 0 or len(values) < len(sample)
        if not len(values):
            return "no dates" if read.unparsable.any() else "empty"
        low, high = float(values.min()), float(values.max())
        if low == high and not missing:
            return "constant"
        circles = [circle for circle in CIRCLES if len(np.unique(_step(values, circle))) > 1]
        if bool((values % 86_400 == 0).all()):
            circles = [circle for circle in circles if circle != "hour"]
        if bool((_step(values, "day") == 0).all()):  # months or years alone say nothing about the week
            circles = [circle for circle in circles if circle != "weekday"]
        return DateEncoder(formats, Scale.of(values, low, high), tuple(circles), missing)


def readable(read: Read) -> Read:
    """Dates beyond the calendar, which has the years 1 to 9999, count as unparsable."""
    with np.errstate(invalid="ignore"):
        right = (read.values >= _EARLIEST) & (read.values <= _LATEST)
    return Read(read.values, read.missing, ~read.missing & (read.unparsable | ~right))


def _step(seconds: "NDArray[np.float64]", circle: str) -> "NDArray[np.int64]":
    """Where on a circle a moment is, from 0."""
    whole = np.floor(seconds).astype(np.int64)
    days = whole // 86_400
    if circle == "hour":
        return whole % 86_400 // 3_600
    if circle == "weekday":
        return (days + 3) % 7  # 1970 began on a Thursday
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    if circle == "day":
        return days - months.astype("datetime64[D]").astype(np.int64)
    return months.astype(np.int64) % 12


def _waves(steps: int) -> "NDArray[np.float32]":
    """Sine and cosine of each step."""
    angles = [2 * math.pi * step / steps for step in range(steps)]
    return np.array([[math.sin(angle), math.cos(angle)] for angle in angles], np.float32)
