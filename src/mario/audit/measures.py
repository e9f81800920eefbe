"""What is compared between domains, column by column: events that happen to a node or do not."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray[Any, Any]

CUTS = 16
"""A column of numbers is cut at its quantiles into about as many parts."""
_VALUES = 12  # different values up to which each is an event


@dataclasses.dataclass(frozen=True)
class Feature:
    """A column of the tables, or of ``x``: its name, which columns of ``x`` it became, and the names of these.

    ``kind`` is ``feature``, or ``missing`` for one that says whether a value is there.
    """

    name: str
    columns: tuple[int, ...]
    labels: tuple[str, ...] = ()
    kind: str = "feature"


@dataclasses.dataclass(frozen=True, eq=False)
class Measures:
    """Columns and their events.

    Attributes:
        names: Of each column.
        kinds: What each is: ``feature``, ``structure``, ``label`` or ``missing``.
        events: What may happen, in words; those of a column are beside each other.
        owner: The column of each event.
        happened: [nodes, events], 1 where it did.
        known: [nodes, columns of it], where a column has a value for the node; the first column is of ones.
        known_of: The column of ``known`` of each column.
        values: The numbers of a column, or ``None`` where it has no order.
    """

    names: list[str]
    kinds: list[str]
    events: list[str]
    owner: Array
    happened: Any
    known: Array
    known_of: Array
    values: list[Array | None]


class Builder:
    """Collects columns.

    Example:
        >>> builder = Builder(4)
        >>> builder.numbers("age", "feature", np.array([1.0, 2.0, 3.0, 3.0]))
        >>> builder.build().events
        ['age ≤ 1', 'age ≤ 2']
    """

    def __init__(self, nodes: int) -> None:
        self.nodes = nodes
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.events: list[str] = []
        self.owner: list[int] = []
        self.parts: list[Any] = []
        self.known: list[Array] = [np.ones(nodes, dtype=np.float32)]
        self.known_of: list[int] = []
        self.values: list[Array | None] = []

    def numbers(self, name: str, kind: str, values: Array) -> None:
        """A column of numbers; NaN is no value. Nothing is added if all are the same."""
        missing = np.isnan(values)
        cuts = cuts_of(values[~missing])
        if not len(cuts):
            return
        happened = (values[:, None] <= cuts).astype(np.float32)
        self._add(name, kind, [f"{name} ≤ {cut:.4g}" for cut in cuts], happened, missing, values)

    def categories(self, name: str, kind: str, codes: Array, labels: Sequence[str]) -> None:
        """A column of categories, whole numbers; -1 is no value."""
        missing = codes < 0
        there = np.unique(codes[~missing])
        if len(there) < 2:
            return
        there = there[1:] if len(there) == 2 else there
        self._add(name, kind, [f"{name} = {labels[code]}" for code in there], codes[:, None] == there, missing, None)

    def yes(self, name: str, kind: str, happened: Array) -> None:
        """Something that is so or is not; the name is the event."""
        if happened.any() and not happened.all():
            self._add(name, kind, [name], happened[:, None], np.zeros(self.nodes, dtype=bool), None)

    def features(self, x: Any, features: Sequence[Feature]) -> None:
        """The columns of ``x``, dense or sparse CSR; those that are the same everywhere are left out."""
        columns = x.tocsc() if sparse.issparse(x) else None
        for feature in features:
            events, parts, values = [], [], None
            for place, column in enumerate(feature.columns):
                found = x[:, column] if columns is None else _column(columns, column)
                cuts = cuts_of(found) if columns is None or len(feature.columns) == 1 else np.zeros(1)
                if not len(cuts) or (len(cuts) == 1 and not (found > cuts[0]).any()):
                    continue
                label = feature.labels[place] if place < len(feature.labels) else feature.name
                if len(cuts) == 1:
                    # Of two values the higher one is the event.
                    plain = "=" in label or feature.kind == "missing"
                    events.append(label if plain and cuts[0] == 0 else f"{label} > {cuts[0]:.4g}")
                    parts.append(sparse.csc_matrix((found > cuts[0]).astype(np.float32)[:, None]))
                else:
                    events += [f"{label} ≤ {cut:.4g}" for cut in cuts]
                    parts.append(sparse.csc_matrix((found[:, None] <= cuts).astype(np.float32)))
                values = found if len(feature.columns) == 1 else None
            if events:
                none = np.zeros(self.nodes, dtype=bool)
                self._add(feature.name, feature.kind, events, sparse.hstack(parts, "csc"), none, values)

    def build(self) -> Measures:
        """All columns together."""
        if self.parts:
            happened = sparse.hstack([sparse.csc_matrix(part) for part in self.parts], "csr", dtype=np.float32)
        else:
            happened = sparse.csr_matrix((self.nodes, 0), dtype=np.float32)
        return Measures(
            names=self.names,
            kinds=self.kinds,
            events=self.events,
            owner=np.array(self.owner, dtype=np.int64),
            happened=happened,
            known=np.stack(self.known, 1),
            known_of=np.array(self.known_of, dtype=np.int64),
            values=self.values,
        )

    def _add(
        self, name: str, kind: str, events: list[str], happened: Any, missing: Array, values: Array | None
    ) -> None:
        self.owner += [len(self.names)] * len(events)
        self.names.append(name)
        self.kinds.append(kind)
        self.events += events
        self.values.append(values)
        if missing.any():
            self.known.append((~missing).astype(np.float32))
            happened = np.where(missing[:, None], 0, happened)
        self.known_of.append(len(self.known) - 1 if missing.any() else 0)
        self.parts.append(happened.astype(np.float32) if isinstance(happened, np.ndarray) else happened)


def cuts_of(values: Array) -> Array:
    """Where numbers are cut: at each value if there are few, else at quantiles; never at the largest.

    Example:
        >>> cuts_of(np.array([0.0, 1.0, 1.0])).tolist(), len(cuts_of(np.arange(1000.0)))
        ([0.0], 15)
    """
    if not len(values):
        return values
    found = np.unique(values)
    if len(found) > _VALUES:
        found = np.unique(np.quantile(values, np.linspace(0, 1, CUTS + 1)[1:], method="inverted_cdf"))
    kept: Array = found[found < values.max()]
    return kept


def _column(columns: sparse.csc_matrix, place: int) -> Array:
    found = np.zeros(columns.shape[0], dtype=np.float64)
    some = slice(columns.indptr[place], columns.indptr[place + 1])
    found[columns.indices[some]] = columns.data[some]
    return found
