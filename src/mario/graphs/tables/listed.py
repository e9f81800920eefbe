"""Lists in a column: of a type of lists, as JSON, or as a text with separators; lists of items, or of numbers."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mario.graphs.tables.values import Read, is_list, is_text, mask_of, nothing, numbers, plain, texts

if TYPE_CHECKING:
    from numpy.typing import NDArray

JSON_LIST = "json"
"""The separator of a list that is written as JSON."""
SEPARATORS = ("|", ";", ",")

_MOST = 0.9  # share of the rows that must have the form
_SOME = 0.3  # share of the rows that must have the separator
_REPEATED = 0.5  # items that are different from all others, as a share, up to which a text is a list
_LEAST_VECTOR = 8  # whole numbers in a row that may be a vector


def lists(array: pa.Array, name: str, separator: str = "") -> "tuple[pa.Array, NDArray[np.int64], Read]":
    """The items as texts, the row of each, and which rows have no list.

    Args:
        array: Lists, or texts with a separator in them.
        name: The name of the column.
        separator: Between the items of a text; `JSON_LIST` for a text that is JSON.
    """
    array, missing, unparsable = _as_lists(array, name, separator)
    if pa.types.is_null(array.type):
        return pa.array([], pa.large_string()), np.zeros(0, np.int64), nothing(len(array))
    rows = np.asarray(pc.list_parent_indices(array), np.int64)
    items = texts(plain(pc.list_flatten(array), name), name)
    there = mask_of(pc.is_valid(items))
    return items.filter(pa.array(there)), rows[there], Read(unparsable, missing, unparsable)


def vectors(array: pa.Array, name: str, length: int, separator: str = "") -> Read:
    """Numbers, ``length`` in each row, NaN for one that is missing; a row with more or fewer is unparsable."""
    rows = len(array)
    array, missing, unparsable = _as_lists(array, name, separator)
    values = np.zeros((rows, length))
    if pa.types.is_null(array.type):
        return Read(values, ~unparsable, unparsable)
    right = mask_of(pc.fill_null(pc.equal(pc.list_value_length(array), length), False))
    flat = numbers(plain(pc.list_flatten(array.filter(pa.array(right))), name), name)
    broken = flat.unparsable.reshape(-1, length).any(axis=1)
    values[right] = np.where(flat.missing, np.nan, flat.values).reshape(-1, length)
    read = right.copy()
    read[right] = ~broken
    values[~read] = 0
    return Read(values, missing, ~missing & ~read)


def list_form(arrays: Sequence[pa.Array], name: str) -> tuple[str, int]:
    """The separator of lists in the first rows of a column, and how many numbers each row has; 0 for lists of items."""
    arrays = [array for array in arrays if len(array)]
    if not arrays:
        return SEPARATORS[0], 0
    separator = ""
    if all(not is_list(array.type) for array in arrays):
        text = pa.concat_arrays([texts(array, name) for array in arrays])
        separator = separator_of(text) or _commonest(text)
        array, _, _ = _as_lists(text, name, separator)
    else:
        kind = next(array.type for array in arrays if is_list(array.type))
        array = pa.concat_arrays([array for array in arrays if array.type == kind])
    array = array.drop_null()
    lengths = np.asarray(pc.list_value_length(array).to_numpy(zero_copy_only=False), np.int64)
    if not len(lengths) or lengths[0] < 2 or (lengths == lengths[0]).mean() < _MOST:
        return separator, 0
    inner = array.type.value_type
    length = int(lengths[0])
    if pa.types.is_floating(inner) or pa.types.is_decimal(inner):
        return separator, length
    array = array.filter(pa.array(lengths == length))
    values = plain(pc.list_flatten(array), name)
    if is_text(inner):
        read = numbers(values, name)
        if read.unparsable.any() or not pc.any(pc.match_substring_regex(values, r"[0-9.][.eE]")).as_py():
            return separator, 0
        return separator, length
    if not pa.types.is_integer(inner) or length < _LEAST_VECTOR:
        return separator, 0
    table = np.sort(numbers(values, name).values.reshape(-1, length), axis=1)
    twice = (np.diff(table, axis=1) == 0).any(axis=1)  # a list of ids names none twice
    return separator, length if twice.mean() > 0.5 else 0


def separator_of(text: pa.Array) -> str:
    """What separates the items, if texts are lists: `JSON_LIST`, one of `SEPARATORS`, or nothing if they are none."""
    there = text.drop_null()
    if not len(there):
        return ""
    if _share(pc.match_substring_regex(there, r"^\[.*\]$")) >= _MOST:
        return JSON_LIST
    for separator in SEPARATORS:
        having = pc.match_substring(there, separator)
        if _share(having) < _SOME:
            continue
        if separator == "," and pc.any(pc.match_substring_regex(there, r"\s")).as_py():
            continue  # a sentence
        items = texts(pc.list_flatten(pc.split_pattern(there, separator)), "").drop_null()
        if len(items) and len(items.unique()) <= _REPEATED * len(items):
            return separator
    return ""


def _commonest(text: pa.Array) -> str:
    there = text.drop_null()
    return max((*SEPARATORS, " "), key=lambda one: _share(pc.match_substring(there, one)))


def _as_lists(array: pa.Array, name: str, separator: str) -> "tuple[pa.Array, NDArray[np.bool_], NDArray[np.bool_]]":
    """The column as a type of lists, and which rows are missing or unparsable."""
    unparsable = np.zeros(len(array), bool)
    if pa.types.is_null(array.type):
        return array, np.ones(len(array), bool), unparsable
    if not is_list(array.type):
        text = texts(array, name)
        if separator == JSON_LIST:
            array, unparsable = _json_lists(text)
        else:
            array = pc.split_pattern(text, separator or SEPARATORS[0])
    return array, mask_of(pc.is_null(array)) & ~unparsable, unparsable


def _json_lists(text: pa.Array) -> "tuple[pa.Array, NDArray[np.bool_]]":
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


def _share(mask: pa.Array) -> float:
    return float(mask_of(mask).mean()) if len(mask) else 0.0
