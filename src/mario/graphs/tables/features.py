"""From columns to features: a plan that is fitted once, on rows of training domains, and repeated bit for bit."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from mario.arguments import check_count, check_seed
from mario.errors import MarioError, nearest
from mario.files import check_path, write_json
from mario.graphs.rules import choose
from mario.graphs.tables.columns import Column
from mario.graphs.tables.encoding.boolean import BooleanEncoder, BooleanLearner
from mario.graphs.tables.encoding.category import CategoryLearner, OneHotEncoder
from mario.graphs.tables.encoding.date import DateEncoder, DateLearner
from mario.graphs.tables.encoding.encoder import ColumnReport, Encoder, Learner
from mario.graphs.tables.encoding.grams import GramEncoder, TextLearner
from mario.graphs.tables.encoding.lists import ItemsEncoder, ListLearner, VectorEncoder
from mario.graphs.tables.encoding.numeric import NumericEncoder, NumericLearner
from mario.graphs.tables.sample import Sample
from mario.graphs.tables.values import plain
from mario.untrusted import read_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Batches = Callable[[], Iterator[pa.RecordBatch]]
    Keep = Callable[[pa.RecordBatch], Any]

FORMAT = 1
ENCODERS: dict[str, type[Encoder]] = {
    cls.form: cls
    for cls in (NumericEncoder, BooleanEncoder, DateEncoder, OneHotEncoder, GramEncoder, ItemsEncoder, VectorEncoder)
}
"""Forms of a column in a plan, by the names in its file."""
LIMIT = 50_000
"""The most rows that quartiles and words are learned from."""

_SAMPLE_BYTES = 2**28
_LEAST_SAMPLE = 1_000
_BYTES = {"text": 2_000, "list": 4_000, "categorical": 40}  # of a value in the sample; 16 for other kinds
_DIRECTION_BYTES = 2**21  # of one column of text; fewer if there are many


@dataclass
class Report:
    """What a plan met in the rows that it transformed: a `ColumnReport` for each column that is read.

    Example:
        >>> import pyarrow as pa
        >>> old, new = pa.record_batch({"color": ["red", "blue"]}), pa.record_batch({"color": ["red", "green", None]})
        >>> plan = FeaturePlan.fit(lambda: iter([old]), [Column("color", "feature", "categorical")])
        >>> _ = plan.transform(new)
        >>> print(plan.report)
        color: 1 of 3 rows without a value, 1 value that training rows do not have ('green')
    """

    columns: dict[str, ColumnReport] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """One line per column in which something was missing, unparsable, infinite or unseen."""
        return [line for name, column in self.columns.items() if (line := _line(name, column))]

    def as_json(self) -> dict[str, Any]:
        """The counts by column."""
        return {name: asdict(column) for name, column in self.columns.items()}

    def __str__(self) -> str:
        return "\n".join(self.lines())


@dataclass(frozen=True)
class Part:
    """A column and how its values become features."""

    column: str
    kind: str
    encoder: Encoder
    names: tuple[str, ...]


class FeaturePlan:
    """How the columns of a table become features. It is fitted by :meth:`fit` or read by :meth:`load`.

    The features of a row depend on the plan and on this row alone: batches, the order of rows and of columns, and other
    columns of the table change no bit of them. New rows never change the plan.

    Attributes:
        parts: the columns that are read, each with its encoder.
        dropped: columns without features, and why.
        rows: training rows that it was fitted on.
        report: what :meth:`transform` met so far; assign ``Report()`` to count anew.

    Example:
        >>> import pyarrow as pa
        >>> batch = pa.record_batch({"pages": [4, 12, None, 8], "field": ["ai", "db", "ai", "os"]})
        >>> columns = [Column("pages", "feature", "numeric"), Column("field", "feature", "categorical")]
        >>> plan = FeaturePlan.fit(lambda: iter([batch]), columns)
        >>> plan.names
        ['pages', 'pages is missing', 'field=ai', 'field=db', 'field=os']
        >>> plan.transform(batch).shape
        (4, 5)
    """

    def __init__(self, parts: Sequence[Part], dropped: Mapping[str, str], *, rows: int, seed: int) -> None:
        self.parts = tuple(parts)
        self.dropped = dict(dropped)
        self.rows, self.seed = rows, seed
        self.report = Report()
        self._digest = _digest_of(self._content())

    @classmethod
    def fit(
        cls,
        batches: "Batches",
        columns: Sequence[Column],
        *,
        keep: "Keep | None" = None,
        seed: int = 0,
        limit: int = LIMIT,
    ) -> "FeaturePlan":
        """Fit a plan in one pass over the rows of training domains.

        Args:
            batches: Called for an iterator over the table. The sizes of the batches do not matter.
            columns: Columns of the table; those with the role ``feature`` are used.
            keep: The rows of a batch that are in training domains, as a mask; ``None`` for all.
            seed: Of the sample of rows.
            limit: The most rows in that sample. Counts, ranges and categories are of all rows.
        """
        check_seed("seed", seed)
        check_count("limit", limit)
        used = [column for column in columns if column.role == "feature" and column.kind != "none"]
        learners = _learners(used, seed)
        sample, rows = Sample([column.name for column in used], _fitting(limit, used), seed), 0
        for batch in batches():
            if keep is not None:
                mask = np.asarray(keep(batch), bool)
                if mask.shape != (batch.num_rows,):
                    raise MarioError(f"keep must return one value per row, got {mask.shape} for {batch.num_rows} rows")
                batch = batch.filter(pa.array(mask))
            if not batch.num_rows:
                continue
            rows += batch.num_rows
            read = {name: _column(batch, name) for name in learners}
            seen = {name: learner.see(read[name], name) for name, learner in learners.items()}
            sample.add(seen, batch.num_rows)
        if not rows:
            raise MarioError("no row is in a training domain, so no features can be fitted; change the split")
        parts, dropped = [], {}
        for column in used:
            made = learners[column.name].finish(sample.column(column.name), column.name)
            if isinstance(made, str):
                dropped[column.name] = made
            else:
                parts.append(_part(column.name, column.kind, made))
        return cls(parts, dropped, rows=rows, seed=seed)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [part.column for part in self.parts]

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [name for part in self.parts for name in part.names]

    @property
    def width(self) -> int:
        """The number of features."""
        return sum(len(part.names) for part in self.parts)

    @property
    def widths(self) -> dict[str, int]:
        """The number of features of each column; 0 for one that was dropped."""
        return {part.column: len(part.names) for part in self.parts} | dict.fromkeys(self.dropped, 0)

    @property
    def sparse(self) -> bool:
        """Whether :meth:`transform` returns a sparse matrix."""
        return any(part.encoder.sparse for part in self.parts)

    @property
    def digest(self) -> str:
        """A checksum of everything in the plan. Plans with the same one make the same features."""
        return self._digest

    def transform(self, batch: "pa.RecordBatch | pa.Table") -> "NDArray[np.float32] | sp.csr_matrix":
        """The features of some rows, in float32; a CSR matrix if :attr:`sparse`.

        `MarioError` names a column that is missing or that cannot be read at all. Values that cannot be read count as
        missing, in :attr:`report`.
        """
        rows, blocks = batch.num_rows, []
        for part in self.parts:
            report = self.report.columns.setdefault(part.column, ColumnReport())
            blocks.append(part.encoder.encode(_column(batch, part.column), part.column, report))
        if self.sparse:
            whole = sp.hstack([sp.csr_matrix(block) for block in blocks], format="csr", dtype=np.float32)
            whole.sort_indices()
            return whole
        made = np.empty((rows, self.width), np.float32)
        start = 0
        for block in blocks:
            made[:, start : start + block.shape[1]] = block
            start += block.shape[1]
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON."""
        write_json(check_path("path", path), {**self._content(), "digest": self.digest})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "FeaturePlan":
        """The plan in a file of :meth:`save`; `MarioError` if that is damaged or was edited."""
        path = Path(check_path("path", path))
        advice = "build the graph again"
        written = read_json(path, advice)
        try:
            if not isinstance(written, dict) or written["format"] != FORMAT:
                raise ValueError("it has another format")
            content = {key: value for key, value in written.items() if key != "digest"}
            if _digest_of(content) != written["digest"]:
                raise ValueError("its digest is not that of its content")
            parts = []
            for part in written["columns"]:
                encoder = ENCODERS[choose("encoder", part["encoder"], tuple(ENCODERS))].from_json(part["state"])
                parts.append(_part(str(part["name"]), str(part["kind"]), encoder))
            dropped = {str(name): str(why) for name, why in written["dropped"].items()}
            made = cls(parts, dropped, rows=int(written["rows"]), seed=int(written["seed"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise MarioError(f"{path} is no feature plan, or is damaged ({error}); {advice}") from None
        if made.digest != written["digest"]:
            raise MarioError(f"{path} has values that mario does not write; {advice}")
        return made

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "rows": self.rows,
            "seed": self.seed,
            "columns": [
                {
                    "name": part.column,
                    "kind": part.kind,
                    "encoder": part.encoder.form,
                    "state": part.encoder.as_json(),
                }
                for part in self.parts
            ],
            "dropped": self.dropped,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeaturePlan) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"FeaturePlan({len(self.parts)} columns, {self.width} features, {self.digest})"


def _learners(columns: Sequence[Column], seed: int) -> dict[str, Learner]:
    worded = sum(column.kind in ("text", "categorical") for column in columns)
    width = 64 if worded <= 64 else 8
    slots = max(64, min(_DIRECTION_BYTES, 8 * _DIRECTION_BYTES // max(worded, 1)) // (4 * width))
    kinds: dict[str, Callable[[], Learner]] = {
        "numeric": NumericLearner,
        "boolean": BooleanLearner,
        "date": DateLearner,
        "list": ListLearner,
        "categorical": lambda: CategoryLearner(slots, width, seed),
        "text": lambda: TextLearner(slots, width, seed),
    }
    return {column.name: kinds[column.kind]() for column in columns}


def _fitting(limit: int, columns: Sequence[Column]) -> int:
    """The rows of the sample, fewer than the limit where rows are large."""
    row = sum(_BYTES.get(column.kind, 16) for column in columns)
    return min(limit, max(_LEAST_SAMPLE, _SAMPLE_BYTES // max(row, 1)))


def _part(column: str, kind: str, encoder: Encoder) -> Part:
    return Part(column, kind, encoder, tuple(encoder.names(column)))


def _column(batch: "pa.RecordBatch | pa.Table", name: str) -> pa.Array:
    places = batch.schema.get_all_field_indices(name)
    if len(places) == 1:
        return plain(batch.column(places[0]), name)
    if places:
        raise MarioError(f"the table has {len(places)} columns named {name!r}; rename all but one")
    names = [str(one) for one in batch.schema.names]
    meant = nearest(name, names, f"it has {', '.join(names[:12])}")
    raise MarioError(f"the table has no column {name!r}, which the features are made of; {meant}")


def _digest_of(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _line(name: str, column: ColumnReport) -> str:
    parts = []
    if column.missing:
        parts.append(f"{column.missing:,} of {column.rows:,} rows without a value")
    for number, what in (
        (column.unparsable, "that cannot be read"),
        (column.infinite, "that {are} infinite"),
        (column.unseen, "that training rows do not have"),
    ):
        if number:
            word, are = ("value", "is") if number == 1 else ("values", "are")
            parts.append(f"{number:,} {word} {what.format(are=are)}")
    shown = f" ({', '.join(repr(one) for one in column.examples)})" if column.examples else ""
    return f"{name}: {', '.join(parts)}{shown}" if parts else ""
