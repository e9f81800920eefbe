"""Ids of nodes: read in any type, checked, found again by a hash table, and kept unchanged in ``ids.arrow``."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mario.errors import MarioError
from mario.files import write_whole
from mario.graphs.card import read_card

IDS_FILE = "ids.arrow"
_INTEGER = r"^(0|-?[1-9][0-9]*)$"
"""A text that is an integer and is written as we would write it: not 007, not +5."""
_MIX = tuple(np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SEEDS = (0x2545F4914F6CDD1D, 0xD6E8FEB86659FD93)
_SPARSE = 4  # a range of integers this many times as long as the ids are many is a plain table
_ROWS_AT_ONCE = 1 << 20

Integers = NDArray[np.int64]
Hashes = NDArray[np.uint64]


class DuplicateIdError(MarioError):
    """Two rows with one id."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"rows {first} and {second} have the same id")
        self.first, self.second = first, second


class IdIndex:
    """Where the row of an id is.

    Integers that are nearly consecutive are looked up in a plain table; other integers and texts in a table of hashes,
    which takes about 16 bytes per integer and 24 per text.

    Args:
        ids: The ids, in parts, without nulls; all of type int64, uint64 or large_string.
        rows: Their rows. ``None`` means 0, 1, 2, ...

    Example:
        >>> index = IdIndex([pa.array(["b", "a"], pa.large_string())])
        >>> index.rows(pa.array(["a", "c"], pa.large_string())).tolist()
        [1, -1]
    """

    def __init__(self, ids: Sequence[pa.Array], rows: Integers | None = None) -> None:
        self.kind = ids[0].type if ids else pa.large_string()
        self.count = sum(len(part) for part in ids)
        self._plain: Integers | None = None
        self._second: Hashes | None = None
        if self.kind == pa.int64() and self._in_a_table(ids, rows):
            return
        first = _filled(self.count, (hashes(part, 0) for part in ids))
        order = np.argsort(first, kind="stable")
        self._first = first[order]
        del first
        if not pa.types.is_integer(self.kind):
            self._second = _filled(self.count, (hashes(part, 1) for part in ids))[order]
        same = self._first[1:] == self._first[:-1]
        if self._second is not None and same.any():
            same &= self._second[1:] == self._second[:-1]
        if same.any():
            seconds = order[1:][same]
            place = int(np.argmin(seconds))
            raise DuplicateIdError(int(order[:-1][same][place]), int(seconds[place]))
        self._rows = order if rows is None else rows[order]
        bits = max(1, int(self.count).bit_length())
        self._shift = np.uint64(64 - bits)
        counts = np.bincount((self._first >> self._shift).astype(np.int64), minlength=1 << bits)
        self._starts = np.zeros((1 << bits) + 1, np.int64)
        np.cumsum(counts, out=self._starts[1:])

    def _in_a_table(self, ids: Sequence[pa.Array], rows: Integers | None) -> bool:
        ends = [pc.min_max(part).as_py() for part in ids if len(part)]
        if not ends:
            return False
        self._low, high = min(end["min"] for end in ends), max(end["max"] for end in ends)
        if high - self._low >= _SPARSE * self.count + 1024:
            return False
        table = np.full(high - self._low + 1, -1, np.int64)
        begin = 0
        for part in ids:
            places = part.to_numpy() - self._low
            new = np.arange(begin, begin + len(part))
            before = table[places]
            table[places] = new
            wrong = (before >= 0) | (table[places] != new)
            if wrong.any():
                self._name_duplicate(ids)
            begin += len(part)
        if rows is not None:
            there = table >= 0
            table[there] = rows[table[there]]
        self._plain = table
        return True

    def _name_duplicate(self, ids: Sequence[pa.Array]) -> None:
        values = np.concatenate([part.to_numpy() for part in ids])
        order = np.argsort(values, kind="stable")
        same = values[order][1:] == values[order][:-1]
        seconds = order[1:][same]
        place = int(np.argmin(seconds))
        raise DuplicateIdError(int(order[:-1][same][place]), int(seconds[place]))

    def rows(self, keys: pa.Array) -> Integers:
        """The row of each key, -1 where there is none. Keys have the type of the ids and no nulls."""
        if self._plain is not None:
            places = keys.to_numpy() - np.int64(self._low)
            inside = (places >= 0) & (places < len(self._plain))
            # A difference of 64-bit integers can wrap around into the range.
            inside &= keys.to_numpy() >= self._low
            found = self._plain[np.where(inside, places, 0)]
            found[~inside] = -1
            return found
        found = np.full(len(keys), -1, np.int64)
        if not self.count or not len(keys):
            return found
        first = hashes(keys, 0)
        second = None if self._second is None else hashes(keys, 1)
        bucket = (first >> self._shift).astype(np.int64)
        place, end = self._starts[bucket], self._starts[bucket + 1]
        active = np.flatnonzero(place < end)
        place, end = place[active], end[active]
        while len(active):
            hit = self._first[place] == first[active]
            if second is not None and self._second is not None:
                hit &= self._second[place] == second[active]
            found[active[hit]] = self._rows[place[hit]]
            place = place + 1
            on = ~hit & (place < end)
            active, place, end = active[on], place[on], end[on]
        return found


def hashes(keys: pa.Array, which: int) -> Hashes:
    """A 64-bit hash of each key; of integers, another 64-bit integer for each.

    Texts are hashed eight bytes at a time, with two independent functions, ``which`` 0 and 1.
    """
    if pa.types.is_integer(keys.type):
        return _mixed(keys.to_numpy().astype(np.uint64, copy=False) + np.uint64(_SEEDS[which]))
    if not len(keys):
        return np.zeros(0, np.uint64)
    _, offsets, content = keys.buffers()
    ends = np.frombuffer(offsets, np.int64)[keys.offset : keys.offset + len(keys) + 1]
    begin, length = ends[:-1], np.diff(ends)
    first, last = int(ends[0]), int(ends[-1])
    padded = np.zeros(last - first + 8, np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(content, np.uint8)[first:last]
    words: NDArray[np.uint64] = np.ndarray((last - first + 1,), "<u8", padded, strides=(1,))
    found = _mixed(length.astype(np.uint64) + np.uint64(_SEEDS[which]))
    place = begin - first
    active, left = np.arange(len(keys)), length
    while True:
        on = left > 0
        if not on.all():
            active, place, left = active[on], place[on], left[on]
        if not len(active):
            return found
        word = words[place]
        short = left < 8
        if short.any():
            keep = (np.uint64(8) * left[short].astype(np.uint64)).astype(np.uint64)
            word[short] &= (np.uint64(1) << keep) - np.uint64(1)
        found[active] = _mixed((found[active] ^ word) + np.uint64(_SEEDS[which]))
        place, left = place + 8, left - 8


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64, which maps 64-bit integers one to one."""
    values = values + _MIX[0]
    values = (values ^ (values >> np.uint64(30))) * _MIX[1]
    values = (values ^ (values >> np.uint64(27))) * _MIX[2]
    return values ^ (values >> np.uint64(31))


def _filled(count: int, parts: Iterator[Hashes]) -> Hashes:
    made, done = np.empty(count, np.uint64), 0
    for part in parts:
        made[done : done + len(part)] = part
        done += len(part)
    return made


INTEGERS = (pa.int64(), pa.uint64())


def integer_types(texts: pa.Array, among: tuple[pa.DataType, ...] = INTEGERS) -> tuple[pa.DataType, ...]:
    """The types of integers that can hold all texts, if these are written as we would write them.

    Example:
        >>> integer_types(pa.array(["7", "18446744073709551615"]))
        (DataType(uint64),)
        >>> integer_types(pa.array(["007"]))
        ()
    """
    if not among or not pc.all(pc.match_substring_regex(texts, _INTEGER), min_count=0).as_py():
        return ()
    found = []
    for kind in among:
        try:
            texts.cast(kind)
            found.append(kind)
        except pa.ArrowException:
            continue
    return tuple(found)


def key_type(kind: pa.DataType) -> pa.DataType:
    """The type that ids of a type are compared in; `MarioError` if they cannot be ids."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if kind == pa.uint64():
        return kind
    if pa.types.is_integer(kind):
        return pa.int64()
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    if text or binary:
        return pa.large_string() if text else pa.large_binary()
    if pa.types.is_floating(kind) or pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return pa.large_string()
    raise MarioError(f"ids cannot be of type {kind}; they are integers, texts, UUIDs, bytes or dates")


def as_keys(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Ids in the type that they are compared in. Raises what pyarrow raises if a value has no such form."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    given = array.type
    if given == kind:
        return array
    if pa.types.is_floating(given):
        if pa.types.is_integer(kind):
            return array.cast(kind)
        whole = array.cast(pa.int64(), safe=False)
        same = pc.equal(whole.cast(given, safe=False), array)
        return pc.if_else(same, whole.cast(kind), array.cast(kind))
    if pa.types.is_fixed_size_binary(given) or pa.types.is_binary(given):
        return array.cast(pa.large_binary()) if kind == pa.large_binary() else array.cast(pa.large_binary()).cast(kind)
    return array.cast(kind)


def write_ids(path: Path, parts: Iterator[pa.Array], kind: pa.DataType) -> None:
    """Write ``ids.arrow``: one column ``id``, one row per node."""

    def write(name: str) -> None:
        schema = pa.schema([pa.field("id", kind, nullable=False)])
        with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, schema) as writer:
            for part in parts:
                writer.write_batch(pa.record_batch([part], schema=schema))

    write_whole(path, write)


def open_ids(folder: str | os.PathLike[str]) -> pa.ChunkedArray:
    """The ids of the nodes of a graph folder, in their type, read from disk when accessed."""
    card = read_card(folder)
    if card.ids is None:
        raise MarioError(f"{folder} has no ids; `mario graph build` writes a graph with ids")
    path = card.folder / card.ids
    try:
        table = pa.ipc.open_file(pa.memory_map(os.fspath(path))).read_all()
        found = table.column("id")
        table.validate(full=True)
    except (pa.ArrowException, OSError, KeyError, MemoryError) as error:
        raise MarioError(f"{path} is damaged ({str(error).splitlines()[0][:200]}); build the graph again") from None
    if len(found) != card.nodes:
        raise MarioError(
            f"{path} has {len(found):,} ids, but {card.folder.name} has {card.nodes:,} nodes; build it again"
        )
    return found


def read_ids(folder: str | os.PathLike[str]) -> "NDArray[Any]":
    """The ids of the nodes of a graph folder, in memory: integers, or objects such as texts.

    Row i is the id of node i.
    """
    found = open_ids(folder).combine_chunks()
    if isinstance(found.type, pa.BaseExtensionType):
        return np.array(found.to_pylist(), dtype=object)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def find_rows(ids: pa.ChunkedArray, wanted: pa.Array) -> Integers:
    """The rows of some ids, -1 where there is none; ids in texts are found among integers."""
    kind = key_type(ids.type)
    index = IdIndex([as_keys(part, kind) for part in ids.chunks])
    return index.rows(as_keys(wanted, kind))
