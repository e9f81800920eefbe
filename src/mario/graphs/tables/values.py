"""The values of a column, whatever its type in the file: numbers, texts, dates, booleans and lists, each counted.

A value is missing, or it is read, or it cannot be read as what the column is. Nothing here depends on other rows.
"""

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
        raise MarioError(f"column {name!r} cannot be read as text: {line_of(error)}") from None


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
        return nothing(len(array))
    if not is_text(kind):
        raise MarioError(f"column {name!r} holds {kind}, which cannot be read as numbers; see `kinds`, or drop it")
    text = pc.utf8_lower(texts(array, name))
    missing = _missing(text)
    infinite = pc.fill_null(pc.match_substring_regex(text, _INFINITY), False)
    plainly = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
    digits = pc.if_else(plainly, pc.utf8_ltrim(text, "+"), pa.scalar(None, text.type))
    values = _numpy(digits.cast(pa.float64()))
    if pc.any(infinite).as_py():
        negative = mask_of(pc.fill_null(pc.starts_with(text, "-"), False))
        values = np.where(mask_of(infinite), np.where(negative, -np.inf, np.inf), values)
    return Read(values, missing, ~missing & ~mask_of(plainly) & ~mask_of(infinite))


def booleans(array: pa.Array, name: str) -> Read:
    """The values as 0 and 1."""
    if pa.types.is_boolean(array.type):
        return _read(array, _numpy(array.cast(pa.int8()).cast(pa.float64())), pc.is_null(array))
    if is_text(array.type):
        text = pc.utf8_lower(texts(array, name))
        true, false = (pc.is_in(text, pa.array(words, text.type)) for words in (TRUE_WORDS, FALSE_WORDS))
        missing = _missing(text)
        return Read(mask_of(true).astype(np.float64), missing, ~missing & ~mask_of(true) & ~mask_of(false))
    found = numbers(array, name)
    return Read(found.values, found.missing, found.unparsable | (found.there & ~np.isin(found.values, (0.0, 1.0))))


def is_plain_number(kind: "pa.DataType") -> bool:
    """Whether a type is one of numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


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
    return mask_of(pc.is_null(text)) | mask_of(pc.is_in(text, pa.array(MISSING_WORDS, text.type)))


def _read(array: pa.Array, values: "NDArray[Any]", missing: pa.Array) -> Read:
    return Read(values, mask_of(missing), np.zeros(len(array), bool))


def nothing(rows: int) -> Read:
    """Rows without a value."""
    return Read(np.full(rows, np.nan), np.ones(rows, bool), np.zeros(rows, bool))


def _numpy(array: pa.Array) -> "NDArray[np.float64]":
    return np.asarray(array.to_numpy(zero_copy_only=False), np.float64)


def mask_of(array: pa.Array) -> "NDArray[np.bool_]":
    """An array of booleans without nulls in numpy."""
    return np.asarray(array.to_numpy(zero_copy_only=False), bool)


def is_text(kind: "pa.DataType") -> bool:
    """Whether a type is one of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: "pa.DataType") -> bool:
    """Whether a type is one of lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def line_of(error: BaseException) -> str:
    """The first line of an error."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__


def refuse(name: str, what: str) -> MarioError:
    """An error about a column."""
    return MarioError(f"column {name!r} {what}")
