"""Dates in the forms that files have them, as seconds since 1970 in UTC. A form is found once and then kept."""

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mario.graphs.tables.values import (
    MISSING_WORDS,
    Read,
    is_plain_number,
    is_text,
    line_of,
    mask_of,
    nothing,
    numbers,
    plain,
    refuse,
    texts,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

ISO = "ISO 8601"
_MONTH_FIRST, _DAY_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m.%d.%Y"), ("%d/%m/%Y", "%d-%m-%Y", "%d.%m.%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMATS = (
    ISO,
    *(f"%Y/%m/%d{time}" for time in _TIMES),
    *(f"{date}{time}" for date in (*_MONTH_FIRST, *_DAY_FIRST) for time in _TIMES),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%b %Y", "%B %Y", "%Y.%m.%d"),
    *("%a, %d %b %Y %H:%M:%S %z", "%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S %z"),
)
"""Forms of dates in texts, as in ``strptime``."""
UNITS = {"epoch s": 1.0, "epoch ms": 1e3, "epoch us": 1e6, "epoch ns": 1e9}
"""Dates that are numbers: time since 1970."""
YEAR, COMPACT = "year", "yyyymmdd"

_LOOKED = 1_000  # different texts from which the form is found
_FEW = 0.02  # a form that reads fewer of them is left out
_ISO = re.compile(r"\d{4}(-?\d{2}){0,2}([T ].*)?")
_DAY = 86_400.0


def find_formats(array: "pa.Array | pa.ChunkedArray", name: str) -> tuple[str, ...]:
    """The forms of the dates in a column, the commonest first; empty if none is found or none is needed.

    Where days and months cannot be distinguished, the month is first, as in the United States.

    Example:
        >>> find_formats(pa.array(["30.06.2017", "01.07.2017", None]), "day")
        ('%d.%m.%Y',)
    """
    array = plain(array, name)
    if is_plain_number(array.type):
        return _form_of_numbers(numbers(array, name))
    if not is_text(array.type):
        return ()
    left = texts(array, name).unique().drop_null().slice(0, _LOOKED)
    left = left.filter(pc.invert(pc.is_in(pc.utf8_lower(left), pa.array(MISSING_WORDS, left.type))))
    whole, found, allowed = len(left), list[str](), list(FORMATS)
    while len(left):
        parsed = {form: ~np.isnan(_parsed(left, form)) for form in allowed}
        best = max(allowed, key=lambda form: int(parsed[form].sum()))
        if parsed[best].sum() < max(1, _FEW * whole):
            break
        found.append(best)
        other = _DAY_FIRST if best.startswith(_MONTH_FIRST) else _MONTH_FIRST if best.startswith(_DAY_FIRST) else ()
        allowed = [form for form in allowed if form != best and not (other and form.startswith(other))]
        left = left.filter(pa.array(~parsed[best]))
    return tuple(found)


def is_ambiguous(array: "pa.Array | pa.ChunkedArray", name: str, formats: tuple[str, ...]) -> bool:
    """Whether the dates could be read as well with day and month exchanged."""
    first = next((form for form in formats if form.startswith(_MONTH_FIRST)), None)
    if first is None:
        return False
    text = texts(plain(array, name), name).unique().drop_null().slice(0, _LOOKED)
    exchanged = first.replace("%m", "%?").replace("%d", "%m").replace("%?", "%d")
    return bool((np.isnan(_parsed(text, first)) | ~np.isnan(_parsed(text, exchanged))).all())


def dates(array: "pa.Array | pa.ChunkedArray", name: str, formats: tuple[str, ...]) -> Read:
    """The dates of a column as seconds since 1970 in UTC; a date without a zone is in UTC.

    Args:
        array: The column.
        name: Its name.
        formats: Of :func:`find_formats`. A column of a type of dates needs none.
    """
    array = plain(array, name)
    kind = array.type
    if pa.types.is_null(kind):
        return nothing(len(array))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        missing = mask_of(pc.is_null(array))
        return Read(_seconds(array), missing, np.zeros(len(array), bool))
    if is_plain_number(kind):
        if _number_form(formats) or not formats:
            return _of_numbers(numbers(array, name), formats)
        array = texts(array, name)
    if not is_text(kind) and not is_text(array.type):
        raise refuse(name, f"holds {kind}, which cannot be read as dates; name another kind, or drop it")
    text = texts(array, name)
    if _number_form(formats):
        return _of_numbers(numbers(text, name), formats)
    missing = mask_of(pc.is_null(text)) | mask_of(pc.is_in(pc.utf8_lower(text), pa.array(MISSING_WORDS, text.type)))
    coded = text.dictionary_encode()
    codes = np.asarray(pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False), np.int64)
    known = np.full(len(coded.dictionary), np.nan)
    for form in formats or (ISO,):
        left = np.flatnonzero(np.isnan(known))
        if len(left):
            known[left] = _parsed(coded.dictionary.take(pa.array(left)), form)
    values = known[codes] if len(known) else np.full(len(text), np.nan)
    return Read(values, missing, ~missing & np.isnan(values))


def _parsed(text: pa.Array, form: str) -> "NDArray[np.float64]":
    """Seconds since 1970, NaN for what has another form. Each text is read by itself."""
    import pandas as pd

    found = np.full(len(text), np.nan)
    raw = text.to_pylist()
    if form == ISO:
        here = np.array([one is not None and _ISO.fullmatch(one) is not None for one in raw], bool)
    else:
        here = np.array([one is not None for one in raw], bool)
    if not here.any():
        return found
    chosen = pd.Series([one for one, use in zip(raw, here, strict=True) if use], dtype=object)
    try:
        read = pd.to_datetime(chosen, format="ISO8601" if form == ISO else form, errors="coerce", utc=True)
    except (ValueError, OverflowError) as error:
        raise refuse("of dates", f"cannot be read as {form}: {line_of(error)}") from None
    micro = read.dt.as_unit("us")
    seconds = micro.astype("int64").to_numpy() / 1e6
    found[here] = np.where(micro.isna().to_numpy(), np.nan, seconds)
    return found


def _seconds(array: pa.Array) -> "NDArray[np.float64]":
    kind = array.type
    if pa.types.is_date32(kind):
        return _floats(array.view(pa.int32())) * _DAY
    if pa.types.is_date64(kind):
        return _floats(array.view(pa.int64())) / 1e3
    return _floats(array.view(pa.int64())) / {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]


def _floats(array: pa.Array) -> "NDArray[np.float64]":
    return np.asarray(array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _number_form(formats: tuple[str, ...]) -> str:
    return next((form for form in formats if form in (*UNITS, YEAR, COMPACT)), "")


def _form_of_numbers(read: Read) -> tuple[str, ...]:
    values = np.abs(read.values[read.there & np.isfinite(read.values)])
    if not len(values):
        return ()
    middle = float(np.median(values))
    if middle < 3_000:
        return (YEAR,)
    if 19_000_101 <= middle <= 21_001_231 and (values == np.trunc(values)).all():
        return (COMPACT,)
    return (next(unit for unit, bound in zip(UNITS, (1e11, 1e14, 1e17, np.inf), strict=True) if middle < bound),)


def _of_numbers(read: Read, formats: tuple[str, ...]) -> Read:
    form = _number_form(formats) or "epoch s"
    values, there = read.values, read.there & np.isfinite(read.values)
    if form in UNITS:
        made = np.asarray(values / UNITS[form], np.float64)
    else:
        whole = np.where(there & (np.abs(values) < 1e8), values, 19_700_101 if form == COMPACT else 1970)
        ones = np.ones_like(whole)
        if form == YEAR:
            year, month, day = np.floor(whole), ones, ones
        else:
            year, month, day = np.trunc(whole) // 10_000, np.trunc(whole) // 100 % 100, np.trunc(whole) % 100
        right = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1) & (year <= 9_999)
        month, day, year = (np.where(right, one, instead) for one, instead in ((month, 1), (day, 1), (year, 1970)))
        months = (year.astype(np.int64) - 1970) * 12 + month.astype(np.int64) - 1
        days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day - 1
        if form == COMPACT:  # the 31st of June is no day
            right &= days < (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
        made = np.asarray(days * _DAY, np.float64)
        there = there & right
    return Read(made, read.missing, ~read.missing & ~there)
