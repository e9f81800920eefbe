"""The table of nodes, read once: checked, with its columns of roles as codes, and kept in a temporary Arrow file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mario.errors import MarioError, RunFailedError
from mario.graphs.tables.columns import Column
from mario.graphs.tables.dates import dates, find_formats
from mario.graphs.tables.formats import MemoryPart, Part, WrongTypeError, empty_to_null
from mario.graphs.tables.ids import INTEGERS, DuplicateIdError, IdIndex, as_keys, integer_types, key_type
from mario.graphs.tables.sources import Meter
from mario.graphs.tables.values import plain, texts

MISSING = -1
MISSING_TIME = int(np.iinfo(np.int64).min)
MOST_CLASSES = 10_000
MOST_DOMAINS = 100_000
GRAPH = "\x00graph"
"""The name that the graph of each row has among the domains until its column is named."""
_SHOWN = 60


class Codes:
    """Numbers for the different values of a column, in the order of the values at the end.

    Args:
        known: Values that have a number already, which they keep.
        most: More different values are an error.
    """

    def __init__(self, known: Sequence[str] = (), most: int = MOST_DOMAINS) -> None:
        self._known = len(known)
        self._codes: dict[str, int] = {value: code for code, value in enumerate(known)}
        self._parts: list[NDArray[np.int32]] = []
        self._most = most

    def add(self, array: pa.Array) -> None:
        """Add the values of some rows; null is missing."""
        found = array.dictionary_encode()
        values = found.dictionary.to_pylist()
        codes = np.array([self._codes.setdefault(value, len(self._codes)) for value in values] or [0], np.int32)
        if len(self._codes) > self._most + self._known:
            raise MarioError(f"it has more than {self._most:,} different values")
        index = found.indices
        rows = np.asarray(pc.fill_null(index, 0).to_numpy(zero_copy_only=False), np.int64)
        made = codes[rows]
        made[np.asarray(pc.is_null(index).to_numpy(zero_copy_only=False), bool)] = MISSING
        self._parts.append(made)

    def finish(self) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """The code of each row, and the values in the order of their codes; whole numbers are in their own order."""
        values = list(self._codes)
        new = values[self._known :]
        whole = all(_is_whole(value) for value in new)
        new = sorted(new, key=(lambda text: (int(text), text)) if whole else str)
        order = {value: code for code, value in enumerate([*values[: self._known], *new])}
        table = np.array([*(order[value] for value in values), MISSING], np.int64)
        parts = self._parts or [np.zeros(0, np.int32)]
        return table[np.concatenate(parts)], tuple(order)


@dataclass
class Nodes:
    """What was read of the nodes.

    Attributes:
        count: how many there are.
        key: the type that ids are compared in.
        ids: the ids in this type, by part of the table.
        kind: the type of the ids in ``ids.arrow``.
        prefixed: whether ids got the name of their graph, as they are not unique without.
        graphs: names of the graphs, and the code of each row; empty without.
        labels, label_names: the class of each row; None without.
        domains: codes and values of each column that is a domain.
        times: one number per row; None without a column of time.
        missing: rows without a value, by column.
        rows: rows of each part.
        path: the Arrow file with the other columns, one batch after the other.
    """

    path: Path
    key: pa.DataType
    kind: pa.DataType
    count: int = 0
    ids: list[pa.Array] = field(default_factory=list)
    prefixed: bool = False
    graphs: tuple[str, ...] = ()
    graph_codes: NDArray[np.int64] | None = None
    labels: NDArray[np.int64] | None = None
    label_names: tuple[str, ...] = ()
    domains: dict[str, tuple[NDArray[np.int64], tuple[str, ...]]] = field(default_factory=dict)
    times: NDArray[np.int64] | None = None
    missing: dict[str, int] = field(default_factory=dict)
    rows: list[int] = field(default_factory=list)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, from the beginning, with the columns that become features."""
        with pa.memory_map(str(self.path)) as file, pa.ipc.open_file(file) as reader:
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def index(self, graphs: Sequence[str]) -> "dict[str, IdIndex]":
        """Where ids are, by the graphs of the parts; under the empty name if these are empty."""
        scopes: dict[str, list[int]] = {}
        for number, graph in enumerate(graphs):
            scopes.setdefault(graph, []).append(number)
        begins = np.concatenate([[0], np.cumsum(self.rows)]).astype(np.int64)
        found = {}
        for graph, numbers in scopes.items():
            rows = None
            if len(numbers) != len(graphs):
                rows = np.concatenate([np.arange(begins[number], begins[number + 1]) for number in numbers])
            arrays = [self.ids[number] for number in numbers]
            try:
                found[graph] = IdIndex(arrays, rows)
            except DuplicateIdError as error:
                first, second = (int(at if rows is None else rows[at]) for at in (error.first, error.second))
                raise _TwiceError(first, second) from None
        return found

    def locate(self, row: int) -> tuple[int, int]:
        """The part that a node is in, and its row there."""
        begins = np.concatenate([[0], np.cumsum(self.rows)])
        part = int(np.searchsorted(begins, row, side="right")) - 1
        return part, row - int(begins[part])

    def id_of(self, row: int) -> Any:
        """The id of a node."""
        part, place = self.locate(row)
        return self.ids[part][place].as_py()


class _TwiceError(MarioError):
    def __init__(self, first: int, second: int) -> None:
        super().__init__("an id is there twice")
        self.first, self.second = first, second


def read_nodes(
    parts: Sequence[Part],
    columns: Sequence[Column],
    folder: Path,
    meter: Meter,
    *,
    lists: Sequence[MemoryPart] = (),
    classes: Sequence[str] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> Nodes:
    """Read the table of nodes.

    Args:
        parts: The table.
        columns: Its columns with their roles.
        folder: For a temporary file.
        meter: What counts the bytes.
        lists: Lists for the ids of nodes, which become another column.
        classes: The classes of a graph that this one is like: others count as missing.
        values: The values of its domains, which keep their codes.
    """
    joined = [Lists.column] if lists else []
    kinds = _types(parts, [column for column in columns if column.name not in joined])
    begin, seen, text = meter.done, dict(meter.digests), 0
    while True:
        reading = _Reading(parts, columns, kinds, folder, meter, lists, classes, values or {})
        try:
            nodes = reading.read()
            break
        except WrongTypeError as error:
            column = next((one for one in columns if one.name == error.column), None)
            if column is None or column.role != "feature" or all(part.typed for part in parts):
                raise
            if kinds[column.name] == pa.string():
                raise
            # A number in all rows so far, and a word now: read the column as text, whose numbers the plan reads.
            text += 1
            for one in columns if text > 3 else (column,):
                if one.role == "feature" and one.name in kinds and not any(part.typed for part in parts):
                    kinds[one.name] = pa.string()
            if kinds[column.name] != pa.string():
                raise
            meter.done = begin
            meter.digests = dict(seen)
    return nodes


class _Reading:
    """One pass over the table."""

    def __init__(
        self,
        parts: Sequence[Part],
        columns: Sequence[Column],
        kinds: dict[str, pa.DataType],
        folder: Path,
        meter: Meter,
        lists: Sequence[MemoryPart],
        classes: Sequence[str] | None,
        values: Mapping[str, Sequence[str]],
    ) -> None:
        self.parts, self.columns, self.kinds, self.meter = parts, columns, kinds, meter
        self.path = folder / "nodes.arrow"
        self.id = next(column.name for column in columns if column.role == "id")
        roles = {column.name: column.role for column in columns}
        self.label = next((name for name, role in roles.items() if role == "label"), None)
        self.time = next((name for name, role in roles.items() if role == "time"), None)
        self.features = [name for name, role in roles.items() if role == "feature"]
        self.lists = Lists(lists) if lists else None
        self.known = classes
        self.labels = Codes(classes or (), MOST_CLASSES)
        self.domains = {name: Codes(values.get(name, ())) for name, role in roles.items() if role == "domain"}
        self.graphs = Codes(values.get(GRAPH, ()))
        self.times: list[NDArray[np.int64]] = []
        self.date_forms: tuple[str, ...] = ()
        self.missing = dict.fromkeys((name for name, role in roles.items() if role != "drop"), 0)

    def read(self) -> Nodes:
        nodes = Nodes(self.path, key_type(self.kinds[self.id]), self.kinds[self.id])
        whole = () if any(part.typed for part in self.parts) else INTEGERS  # what ids of text files may be
        writer = None
        try:
            with pa.OSFile(str(self.path), "wb") as file:
                for part in self.parts:
                    row, ids = 0, []
                    for batch in part.read({n: self.kinds[n] for n in self.missing if n in self.kinds}, self.meter):
                        if not batch.num_rows:
                            continue
                        given = self._ids(part, batch, row)
                        whole = integer_types(given, whole)
                        ids.append(given)
                        made = self._batch(part, batch, row, given)
                        if writer is None:
                            writer = pa.ipc.new_file(file, made.schema)
                        writer.write_batch(made)
                        row += batch.num_rows
                    nodes.ids.append(pa.concat_arrays(ids) if ids else pa.array([], nodes.key))
                    nodes.rows.append(row)
                    if self.lists is not None:
                        self.lists.check(part)
                if writer is not None:
                    writer.close()
        except OSError as error:
            raise RunFailedError(
                f"cannot write {self.path.parent}: {error.strerror or error}; free some space, or choose another folder"
            ) from error
        nodes.count = sum(nodes.rows)
        if not nodes.count:
            raise MarioError(f"{self.parts[0].name} has no rows")
        if whole:
            nodes.ids = [part.cast(whole[0]) for part in nodes.ids]
            nodes.key = nodes.kind = whole[0]
        self._finish(nodes)
        return nodes

    def _finish(self, nodes: Nodes) -> None:
        nodes.missing = self.missing
        if self.label is not None:
            nodes.labels, nodes.label_names = self.labels.finish()
            if self.known is not None:
                nodes.labels[nodes.labels >= len(self.known)] = MISSING
        nodes.domains = {name: codes.finish() for name, codes in self.domains.items()}
        if any(part.graph for part in self.parts):
            nodes.graph_codes, nodes.graphs = self.graphs.finish()
        if self.time is not None:
            nodes.times = np.concatenate(self.times)

    def _ids(self, part: Part, batch: pa.RecordBatch, row: int) -> pa.Array:
        array = batch.column(self.id) if part.typed else empty_to_null(batch.column(self.id))
        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        if array.null_count:
            at = row + int(np.flatnonzero(np.asarray(array.is_null().to_numpy(zero_copy_only=False)))[0])
            raise MarioError(f"{part.where(at, self.id)}: there is no id; each node needs one")
        return as_keys(array, key_type(self.kinds[self.id]))

    def _batch(self, part: Part, batch: pa.RecordBatch, row: int, ids: pa.Array) -> pa.RecordBatch:
        made: dict[str, pa.Array] = {}
        features = frozenset(self.features)
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            array = plain(column, name)
            array = array if part.typed else empty_to_null(array)
            self.missing[name] += array.null_count
            if name in features:
                made[name] = column
            try:
                if name == self.label:
                    self.labels.add(texts(array, name))
                elif name in self.domains:
                    self.domains[name].add(texts(array, name))
            except MarioError as error:
                end = f"{part.name}, column {name}"
                advice = "a label is one of some classes" if name == self.label else "a domain is one of some groups"
                raise MarioError(f"{end}: {error}; {advice}, so name another column, or --drop this one") from None
            if name == self.time:
                self.times.append(self._times(part, array, row))
        if part.graph:
            self.graphs.add(pa.array([part.graph] * batch.num_rows, pa.string()))
        if self.lists is not None:
            lists = self.lists.take(part, ids)
            self.missing[Lists.column] += lists.null_count
            made[Lists.column] = lists
        if self.id not in made:  # a batch needs a column to have a number of rows
            made[self.id] = ids
        return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))

    def _times(self, part: Part, array: pa.Array, row: int) -> NDArray[np.int64]:
        assert self.time is not None
        missing = np.asarray(array.is_null().to_numpy(zero_copy_only=False), bool)
        kind = array.type
        if pa.types.is_temporal(kind) and not (pa.types.is_time(kind) or pa.types.is_duration(kind)):
            found = array.cast(pa.timestamp("s", tz=getattr(kind, "tz", None)), safe=False).cast(pa.int64())
        elif pa.types.is_integer(kind):
            found = array.cast(pa.int64())
        elif pa.types.is_floating(kind):
            numbers = np.asarray(array.to_numpy(zero_copy_only=False), np.float64)
            missing = ~np.isfinite(numbers)
            found = pa.array(
                np.where(missing, 0, np.clip(np.floor(np.where(missing, 0, numbers)), -9e18, 9e18)).astype(np.int64)
            )
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            found = self._dates(part, array, row)
        else:
            raise MarioError(f"{part.name}, column {self.time}: {kind} is no time; use dates or numbers, or --drop it")
        missing = missing | np.asarray(found.is_null().to_numpy(zero_copy_only=False), bool)
        result = np.asarray(pc.fill_null(found, 0).to_numpy(zero_copy_only=False), np.int64).copy()
        result[missing] = MISSING_TIME
        return result

    def _dates(self, part: Part, array: pa.Array, row: int) -> pa.Array:
        """Seconds since 1970 of dates in the forms of the first ones."""
        assert self.time is not None
        if not self.date_forms:
            self.date_forms = find_formats(array, self.time)
        read = dates(array, self.time, self.date_forms)
        wrong = read.unparsable if self.date_forms else ~read.missing
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise MarioError(
                f"{part.where(row + at, self.time)}: {_short(array[at].as_py())} is no date in the form of the other "
                "rows; write all dates as 2017-06-30 or 2017-06-30 12:00:00, or --drop the column"
            )
        return pa.array(np.floor(np.where(read.there, read.values, 0)).astype(np.int64), mask=~read.there)


class Lists:
    """A list for some ids, from JSON files, as a column of the nodes."""

    column = "features"

    def __init__(self, parts: Sequence[MemoryPart]) -> None:
        self._parts = {part.graph: part for part in parts}
        self._tables: dict[str, tuple[IdIndex, pa.Array, NDArray[np.bool_]]] = {}
        for part in parts:
            table = pa.Table.from_batches(part.read({"id": pa.large_string(), "features": _LISTS}, Meter()))
            ids = table.column("id").combine_chunks()
            values = table.column("features").combine_chunks()
            self._tables[part.graph] = IdIndex([ids]), values, np.zeros(len(ids), bool)

    def take(self, part: Part, ids: pa.Array) -> pa.Array:
        """The lists of some nodes, null where there is none."""
        index, values, used = self._tables[self._scope(part)]
        rows = index.rows(ids.cast(pa.large_string()))
        used[rows[rows >= 0]] = True
        return values.take(pa.array(rows, mask=rows < 0))

    def check(self, part: Part) -> None:
        """Raise an error if no node of a part has a list, which tells that ids are in another column."""
        _, _, used = self._tables[self._scope(part)]
        if not used.any():
            name = self._parts[self._scope(part)].name
            raise MarioError(f"{part.name}: none of its ids is in {name}; name the column that has these ids with --id")

    def unused(self) -> Iterator[tuple[MemoryPart, str]]:
        """Files with an id that no node has, and the first such id."""
        for graph, (_, _, used) in self._tables.items():
            if not used.all():
                table = self._parts[graph].sample.column("id")
                at = int(np.flatnonzero(~used)[0])
                yield self._parts[graph], str(table[at].as_py()) if at < len(table) else "?"

    def _scope(self, part: Part) -> str:
        if part.graph in self._tables:
            return part.graph
        if "" in self._tables:
            return ""
        raise MarioError(f"{part.name}: there is no file of lists for the graph {part.graph!r}")


_LISTS = pa.large_list(pa.large_string())


def _types(parts: Sequence[Part], columns: Sequence[Column]) -> dict[str, pa.DataType]:
    """The type that each column is read in, in all parts."""
    kinds: dict[str, pa.DataType] = {}
    for column in columns:
        if column.role == "drop":
            continue
        for part in parts:
            if column.name not in part.names:
                raise MarioError(
                    f"{part.name} has no column {column.name!r}, which {parts[0].name} has; add it, or --drop it"
                )
        found = [(part, part.schema.field(column.name).type) for part in parts]
        kinds[column.name] = _common(column, found)
    return kinds


def _common(column: Column, found: Sequence[tuple[Part, pa.DataType]]) -> pa.DataType:
    nested = any(pa.types.is_nested(kind) for _, kind in found)
    if any(not part.typed for part, _ in found) and not nested:
        if column.role in ("id", "label", "domain") or column.kind in ("categorical", "text", "list"):
            return pa.string() if all(not part.typed for part, _ in found) else pa.large_string()
        if column.kind == "numeric" and column.role == "feature" and all(_is_number(kind) for _, kind in found):
            return pa.float64()
    schemas = [pa.schema([pa.field(column.name, plain_type(kind))]) for _, kind in found]
    try:
        kind = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        if all(not part.typed for part, _ in found):
            return pa.string()
        first, other = found[0], next(one for one in found if plain_type(one[1]) != plain_type(found[0][1]))
        raise MarioError(
            f"column {column.name} is {first[1]} in {first[0].name} and {other[1]} in {other[0].name}; write it in one "
            "type"
        ) from None
    return pa.string() if pa.types.is_null(kind) else kind


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def index_nodes(nodes: Nodes, parts: Sequence[Part], column: str, *, by_graph: bool) -> dict[str, IdIndex]:
    """Where ids are: by graph if edges are given by graph, else under the empty name. `MarioError` if one is twice."""
    graphs = [part.graph for part in parts]
    try:
        whole = nodes.index([""] * len(parts))
        return nodes.index(graphs) if by_graph else whole
    except _TwiceError as error:
        first, second = nodes.locate(error.first), nodes.locate(error.second)
        here = f"{parts[second[0]].where(second[1], column)}: the id {_short(nodes.id_of(error.second))} is already in "
        other = "" if first[0] == second[0] else f"{parts[first[0]].name}, "
        here += f"{other}row {first[1] + parts[first[0]].first:,}"
        if graphs[first[0]] != graphs[second[0]] and by_graph:
            nodes.prefixed = True
        elif graphs[first[0]] != graphs[second[0]]:
            raise MarioError(f"{here}; give the edges by graph too, as --edges {graphs[0]}=FILE") from None
        else:
            raise MarioError(
                f"{here}; each node needs an id of its own: remove one, or name another column with --id"
            ) from None
    try:
        return nodes.index(graphs)
    except _TwiceError as error:
        first, second = nodes.locate(error.first), nodes.locate(error.second)
        raise MarioError(
            f"{parts[second[0]].where(second[1], column)}: the id {_short(nodes.id_of(error.second))} is already in "
            f"row {first[1] + parts[first[0]].first:,}; each node of a graph needs an id of its own"
        ) from None


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind))


def _is_whole(text: str) -> bool:
    return text.isascii() and (text.isdigit() or (text[:1] == "-" and text[1:].isdigit())) and len(text) < 19


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
