"""The values of a column, whatever its type in the file: numbers, texts, dates, booleans and lists, each counted.

A value is missing, or it is read, or it cannot be read as what the column is. Nothing here depends on other rows.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mario.errors import MarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MISSING_WORDS = ("na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "?", ".", "missing", "unknown")
"""Texts that mean a missing number, date or boolean. A category is missing only if it is empty: NA may be Namibia."""
TRUE_WORDS = ("true", "t", "yes", "y", "1", "1.0", "on")
FALSE_WORDS = ("false", "f", "no", "n", "0", "0.0", "off")
JSON_LIST = "json"
"""The separator of a list that is written as JSON."""

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITY = r"^[+-]?inf(inity)?$"
_EXACT = 2.0**53


@dataclass(frozen=True)
class Read:
    """Values that were read, and which of them could not be.

    Attributes:
        values: one per row; what they are where nothing was read has no meaning.
        missing: whether a row has no value.
        unparsable: whether it has one that cannot be read.
    """

    values: "NDArray[Any]"
    missing: "NDArray[np.bool_]"
    unparsable: "NDArray[np.bool_]"

    @property
    def there(self) -> "NDArray[np.bool_]":
        """Whether a row has a value that was read."""
        return ~(self.missing | self.unparsable)


def plain(array: "pa.Array | pa.ChunkedArray", name: str) -> pa.Array:
    """A column as one array without dictionaries and extension types."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunk, or of more than an array can hold
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array.type, pa.BaseExtensionType):
        if array.type.extension_name == "arrow.uuid":
            array = pa.array([None if one is None else str(one) for one in array.to_pylist()], pa.string())
        else:
            array = array.storage
    return array


def texts(array: pa.Array, name: str) -> pa.Array:
    """The values as texts: composed Unicode without space around them, null where there is none.

    A whole number has the same text whether the file holds it as an integer, a float or a text.
    """
    kind = array.type
    try:
        if pa.types.is_floating(kind):
            array = _texts_of_floats(array)
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_nested(kind):
            raise MarioError(f"column {name!r} holds {kind}, which cannot be read as text; drop it")
        text = array.cast(pa.large_string())
        text = pc.utf8_normalize(pc.utf8_trim_whitespace(text), form="NFC")
        return pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    except (pa.ArrowException, UnicodeError) as error:
        raise MarioError(f"column {name!r} cannot be read as text: {_line(error)}") from None


def numbers(array: pa.Array, name: str) -> Read:
    """The values as float64; infinities stay."""
    kind = array.type
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        return _read(array, _seconds(array), pc.is_null(array))
    if (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    ):
        if pa.types.is_boolean(kind):
            array = array.cast(pa.int8())
        found = array.cast(pa.float64(), safe=False)
        return _read(found, _numpy(found), pc.is_null(found, nan_is_null=True))
    if pa.types.is_null(kind):
        return _nothing(len(array))
    if not _is_text(kind):
        raise MarioError(f"column {name!r} holds {kind}, which cannot be read as numbers; see `kinds`, or drop it")
    text = pc.utf8_lower(texts(array, name))
    missing = _missing(text)
    infinite = pc.fill_null(pc.match_substring_regex(text, _INFINITY), False)
    plainly = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
    digits = pc.if_else(plainly, pc.utf8_ltrim(text, "+"), pa.scalar(None, text.type))
    values = _numpy(digits.cast(pa.float64()))
    if pc.any(infinite).as_py():
        negative = _mask(pc.fill_null(pc.starts_with(text, "-"), False))
        values = np.where(_mask(infinite), np.where(negative, -np.inf, np.inf), values)
    return Read(values, missing, ~missing & ~_mask(plainly) & ~_mask(infinite))


def booleans(array: pa.Array, name: str) -> Read:
    """The values as 0 and 1."""
    if pa.types.is_boolean(array.type):
        return _read(array, _numpy(array.cast(pa.int8()).cast(pa.float64())), pc.is_null(array))
    if _is_text(array.type):
        text = pc.utf8_lower(texts(array, name))
        true, false = (pc.is_in(text, pa.array(words, text.type)) for words in (TRUE_WORDS, FALSE_WORDS))
        missing = _missing(text)
        return Read(_mask(true).astype(np.float64), missing, ~missing & ~_mask(true) & ~_mask(false))
    found = numbers(array, name)
    return Read(found.values, found.missing, found.unparsable | (found.there & ~np.isin(found.values, (0.0, 1.0))))


def is_plain_number(kind: "pa.DataType") -> bool:
    """Whether a type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def lists(array: pa.Array, name: str, separator: str = "") -> tuple[pa.Array, "NDArray[np.int64]", Read]:
    """The items as texts, the row of each, and which rows have no list.

    Args:
        array: Lists, or texts with a separator in them.
        name: The name of the column.
        separator: Between the items of a text; `JSON_LIST` for a text that is JSON.
    """
    unparsable = np.zeros(len(array), bool)
    if pa.types.is_null(array.type):
        return pa.array([], pa.large_string()), np.zeros(0, np.int64), _nothing(len(array))
    if _is_text(array.type):
        text = texts(array, name)
        if separator == JSON_LIST:
            array, unparsable = _json_lists(text)
        else:
            array = pc.split_pattern(text, separator or "|")
    elif not _is_list(array.type):
        array = pc.split_pattern(texts(array, name), separator or "|")  # one item, which the reader took for a number
    missing = _mask(pc.is_null(array)) & ~unparsable
    rows = np.asarray(pc.list_parent_indices(array), np.int64)
    items = texts(plain(pc.list_flatten(array), name), name)
    there = _mask(pc.is_valid(items))
    return items.filter(pa.array(there)), rows[there], Read(unparsable, missing, unparsable)


def _json_lists(text: pa.Array) -> tuple[pa.Array, "NDArray[np.bool_]"]:
    found: list[list[str] | None] = []
    broken = np.zeros(len(text), bool)
    for row, one in enumerate(text.to_pylist()):
        found.append(None)
        if one is None:
            continue
        try:
            items = json.loads(one)
            if not isinstance(items, list) or any(isinstance(item, list | dict) for item in items):
                raise ValueError("not a list of plain values")
            found[-1] = [str(item) for item in items if item is not None]
        except (ValueError, RecursionError):
            broken[row] = True
    return pa.array(found, pa.large_list(pa.large_string())), broken


def _texts_of_floats(array: pa.Array) -> pa.Array:
    values = _numpy(array.cast(pa.float64(), safe=False))
    missing = np.isnan(values)
    whole = ~missing & (np.abs(values) < _EXACT)
    whole[whole] = values[whole] == np.trunc(values[whole])
    integers = pa.array(np.where(whole, values, 0).astype(np.int64)).cast(pa.large_string())
    text = pc.if_else(pa.array(whole), integers, array.cast(pa.large_string()))
    return pc.if_else(pa.array(missing), pa.scalar(None, pa.large_string()), text)


def _seconds(array: pa.Array) -> "NDArray[np.float64]":
    unit = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[array.type.unit]
    whole = pa.int32() if array.type.bit_width == 32 else pa.int64()
    return _numpy(array.view(whole).cast(pa.float64(), safe=False)) / unit


def _missing(text: pa.Array) -> "NDArray[np.bool_]":
    return _mask(pc.is_null(text)) | _mask(pc.is_in(text, pa.array(MISSING_WORDS, text.type)))


def _read(array: pa.Array, values: "NDArray[Any]", missing: pa.Array) -> Read:
    return Read(values, _mask(missing), np.zeros(len(array), bool))


def _nothing(rows: int) -> Read:
    return Read(np.full(rows, np.nan), np.ones(rows, bool), np.zeros(rows, bool))


def _numpy(array: pa.Array) -> "NDArray[np.float64]":
    return np.asarray(array.to_numpy(zero_copy_only=False), np.float64)


def _mask(array: pa.Array) -> "NDArray[np.bool_]":
    return np.asarray(array.to_numpy(zero_copy_only=False), bool)


def _is_text(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_list(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
