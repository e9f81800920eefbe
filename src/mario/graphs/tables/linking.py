"""Tables of edges read: ids become rows of nodes, and what is wrong is named."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mario.errors import MarioError
from mario.graphs.tables.columns import Column
from mario.graphs.tables.edges import EdgeSpool
from mario.graphs.tables.formats import Part, WrongTypeError, empty_to_null
from mario.graphs.tables.ids import INTEGERS, IdIndex, as_keys, integer_types, key_type
from mario.graphs.tables.nodes import Nodes
from mario.graphs.tables.sources import Meter

_SHOWN = 60


class Ends:
    """The columns of the tables of edges that are read: both ends, and the weight if there is one."""

    def __init__(self, columns: Sequence[Column]) -> None:
        names = {column.role: column.name for column in columns}
        for role in ("source", "target"):
            if role not in names:
                there = ", ".join(column.name for column in columns)
                raise MarioError(f"the edges need a column with the {role}, and have {there}; name it with --{role}")
        self.source, self.target = names["source"], names["target"]
        self.weight = names.get("weight")

    def types(self, part: Part, key: pa.DataType) -> dict[str, pa.DataType]:
        """The type in which each column of a part is read, for ids of a type."""
        kinds = {}
        for name in (self.source, self.target):
            kind = part.schema.field(name).type if name in part.names else pa.string()
            text = pa.string() if key not in (pa.int64(), pa.uint64()) else key
            kinds[name] = kind if part.typed else text
        if self.weight is not None:
            kinds[self.weight] = pa.float64() if not part.typed else part.schema.field(self.weight).type
        return kinds


def add_edges(
    spool: EdgeSpool,
    parts: Sequence[Part],
    ends: Ends,
    nodes: Nodes,
    index: Mapping[str, IdIndex],
    meter: Meter,
    *,
    drop_dangling: bool = False,
    hint: str = "",
) -> list[int]:
    """Put the edges of all parts into ``spool`` and return the number of rows of each part.

    Args:
        spool: What takes pairs of nodes.
        parts: The tables.
        ends: Their columns.
        nodes: What the ids are of.
        index: Where ids are, by graph.
        meter: What counts the bytes.
        drop_dangling: Leave out edges to ids that no node has, instead of raising an error.
        hint: What to say about such an edge.
    """
    rows = []
    for part in parts:
        where = index.get(part.graph if "" not in index else "")
        if where is None:
            raise MarioError(
                f"{part.name}: there are no nodes of the graph {part.graph!r}; the graphs are {', '.join(index)}"
            )
        row = 0
        for batch in _batches(part, ends.types(part, nodes.key), meter):
            both, known = [], np.ones(batch.num_rows, bool)
            for name in (ends.source, ends.target):
                keys = _keys(part, batch.column(name), name, row, nodes.key)
                found = where.rows(keys)
                absent = found < 0
                if absent.any() and not drop_dangling:
                    at = int(np.flatnonzero(absent)[0])
                    raise MarioError(
                        f"{part.where(row + at, name)}: no node has the id {_short(keys[at].as_py())}; {hint}add the "
                        "node, remove the edge, or leave out all such edges with --drop-dangling"
                    )
                known &= ~absent
                both.append(found)
            weight = None
            if ends.weight is not None:
                weight = _weights(part, batch.column(ends.weight), ends.weight, row)
            row += batch.num_rows
            spool.counts.dangling += int((~known).sum())
            if not known.all():
                both = [one[known] for one in both]
                weight = None if weight is None else weight[known]
            spool.add(both[0], both[1], weight)
        rows.append(row)
        spool.counts.rows += row
    return rows


def nodes_of_edges(parts: Sequence[Part], ends: Ends, meter: Meter, path: Any) -> Nodes:
    """The nodes that edges name, in the order in which they are first named."""
    typed = [part.schema.field(name).type for part in parts for name in (ends.source, ends.target) if part.typed]
    key = key_type(typed[0]) if typed else pa.large_string()
    whole = () if typed else INTEGERS
    known, fresh, pending = pa.array([], key), [], 0
    for part in parts:
        row = 0
        kinds = {
            name: part.schema.field(name).type if part.typed else pa.string() for name in (ends.source, ends.target)
        }
        for batch in _batches(part, kinds, meter):
            columns = [_keys(part, batch.column(name), name, row, key) for name in kinds]
            both = pa.concat_arrays(columns).take(pa.array(np.arange(2 * batch.num_rows).reshape(2, -1).T.reshape(-1)))
            found = both.unique()
            whole = integer_types(found, whole)
            fresh.append(found)
            pending += len(found)
            if pending > max(len(known), 1 << 20):
                known, fresh, pending = pa.concat_arrays([known, *fresh]).unique(), [], 0
            row += batch.num_rows
    known = pa.concat_arrays([known, *fresh]).unique()
    if not len(known):
        raise MarioError(f"{parts[0].name} has no edges")
    if whole:
        known, key = known.cast(whole[0]), whole[0]
    kind = typed[0] if typed and all(one == typed[0] for one in typed) else key
    return Nodes(path, key, kind, count=len(known), ids=[known], rows=[len(known)])


def _batches(part: Part, kinds: Mapping[str, pa.DataType], meter: Meter) -> Iterator[pa.RecordBatch]:
    try:
        yield from part.read(kinds, meter)
    except WrongTypeError as error:
        if error.column in list(kinds)[:2] and not part.typed:
            said = str(error).split(", as the rows")[0]
            raise MarioError(f"{said}, as the ids of the nodes are; correct it, or add a node with that id") from None
        raise


def _keys(part: Part, array: pa.Array, name: str, row: int, kind: pa.DataType) -> pa.Array:
    array = array if part.typed else empty_to_null(array)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    if array.null_count:
        at = row + int(np.flatnonzero(np.asarray(array.is_null().to_numpy(zero_copy_only=False)))[0])
        raise MarioError(f"{part.where(at, name)}: there is no id; each edge needs two, so remove the row or fill it")
    try:
        return as_keys(array, kind)
    except pa.ArrowException:
        for at, value in enumerate(array):
            try:
                as_keys(pa.array([value.as_py()], array.type), kind)
            except pa.ArrowException:
                raise MarioError(
                    f"{part.where(row + at, name)}: {_short(value.as_py())} is no id like those of the nodes, which "
                    f"are {kind}; write ids in one type"
                ) from None
        raise


def _weights(part: Part, array: pa.Array, name: str, row: int) -> NDArray[np.float64]:
    try:
        found = array.cast(pa.float64(), safe=False)
    except pa.ArrowException:
        raise MarioError(
            f"{part.name}, column {name}: {array.type} cannot be weights; name another with --weight"
        ) from None
    values = np.asarray(found.to_numpy(zero_copy_only=False), np.float64)
    wrong = ~np.isfinite(values) | (values < 0) | (values > float(np.finfo(np.float32).max))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        given = "no weight" if np.isnan(values[at]) else f"the weight {values[at]:g}"
        raise MarioError(f"{part.where(row + at, name)}: {given}; weights are finite and at least 0")
    return values


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
