"""Which column is what: roles and kinds found by name and by type, with reasons. No torch here."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mario.errors import MarioError, nearest
from mario.graphs.card import KINDS, ROLES, TABLES
from mario.graphs.rules import choose
from mario.graphs.tables.kinds import Facts, look
from mario.graphs.tables.values import plain, texts

if TYPE_CHECKING:
    import pyarrow as pa

NAMES: dict[str, dict[str, tuple[str, ...]]] = {
    "nodes": {
        "id": ("id", "node_id", "node", "nodeid", "uuid", "guid", "key", "identifier", "paper_id", "user_id"),
        "label": ("label", "labels", "class", "classes", "y", "target", "node_label", "class_label", "label_id"),
        "domain": (
            "domain", "domain_id", "environment", "env", "region", "country", "university", "school", "lang",
            "language", "site", "hospital", "state", "city", "continent", "locale", "platform", "market",
        ),
        "time": (
            "time", "timestamp", "date", "datetime", "created_at", "created", "year", "published", "published_at",
            "day", "month", "time_step", "timestep", "time_id",
        ),
    },
    "edges": {
        "source": ("source", "src", "from", "source_id", "src_id", "from_id", "from_node", "node_1", "node1", "u",
                   "head", "start", "id1", "id_1", "citing", "follower", "sender", "txid1", "tx_id1"),
        "target": ("target", "dst", "dest", "to", "target_id", "dst_id", "to_id", "to_node", "node_2", "node2", "v",
                   "tail", "end", "id2", "id_2", "cited", "followee", "receiver", "txid2", "tx_id2", "destination"),
        "weight": ("weight", "edge_weight", "w", "weights"),
        "time": ("time", "timestamp", "date", "datetime", "created_at", "created", "year"),
    },
}  # fmt: skip
"""Names that have a role, the likeliest first. Letter case, spaces, dots and dashes do not matter."""
SPLITS = (
    "split", "fold", "train_mask", "val_mask", "test_mask", "valid_mask", "validation_mask", "is_train", "is_test",
    "is_val",
)  # fmt: skip
"""Names of columns that say how the rows are split; such a column is no feature."""

_LEAST_UNIQUE = 20  # rows that must all differ before a column counts as another id
_CODES = 0.5  # share of rows that may be different domains


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: its name in the table.
        role: one of `mario.graphs.card.ROLES`.
        kind: one of `mario.graphs.card.KINDS`; ``none`` if it is not read.
        reason: why it has its role and its kind.
    """

    name: str
    role: str
    kind: str
    reason: str = ""

    def __post_init__(self) -> None:
        choose("role", self.role, ROLES)
        choose("kind", self.kind, KINDS)


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What the user says of columns; all else is found.

    Attributes:
        id, source, target, label, time, weight: the column with this role.
        domain, drop, feature: columns with this role. ``feature`` takes what would be left out otherwise.
        kinds: kinds of columns, by their names.
    """

    id: str | None = None
    source: str | None = None
    target: str | None = None
    label: str | None = None
    time: str | None = None
    weight: str | None = None
    domain: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    feature: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)

    def by_column(self) -> dict[str, str]:
        """The role of each column that is named; `MarioError` if one has two."""
        found: dict[str, str] = {}
        for role in ROLES:
            value = getattr(self, role)
            for name in (value,) if isinstance(value, str) else value or ():
                if found.setdefault(name, role) != role:
                    raise MarioError(f"column {name!r} is given as {found[name]} and as {role}; give it one role")
        return found


def infer_columns(
    schema: "pa.Schema", sample: "pa.Table", *, table: str = "nodes", given: Roles | None = None
) -> list[Column]:
    """The role and the kind of each column of a table, in its order, with reasons.

    A role that is given wins. Otherwise a column has the role of its name (`NAMES`), if its values allow it, and is a
    feature if nothing else. What is constant, empty or different in each row without being a text is dropped.

    Args:
        schema: of the table.
        sample: some of its rows.
        table: ``nodes`` or ``edges``.
        given: what the user says.

    Example:
        >>> import pyarrow as pa
        >>> rows = pa.table({"paper": ["a", "b", "c"], "Class": [0, 1, 0], "pages": [4, 12, 9]})
        >>> for column in infer_columns(rows.schema, rows):
        ...     print(column.name, column.role, column.kind)
        paper id categorical
        Class label categorical
        pages feature numeric
    """
    choose("table", table, TABLES)
    given = given or Roles()
    names = [str(name) for name in schema.names]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise MarioError(f"the {table} have two columns named {twice!r}; rename one of them")
    said = given.by_column()
    for name in (*said, *given.kinds):
        if name not in names:
            meant = nearest(name, names, f"they have {_listed(names)}")
            raise MarioError(f"the {table} have no column {name!r}; {meant}")
    for name, kind in given.kinds.items():
        choose(f"kind of {name}", kind, KINDS)
    facts = {name: look(sample.column(name), name) for name in names}
    found = _Finder(table, names, facts, said, given.kinds).columns()
    label = next((column for column in found if column.role == "label"), None)
    if label is None:
        return found
    return [
        replace(column, role="drop", kind="none", reason=f"says the same as the label {label.name}")
        if column.role == "feature" and column.name not in said and _same(sample, facts, column.name, label.name)
        else column
        for column in found
    ]


class _Finder:
    """Finds roles and kinds from names and from what the sample shows."""

    def __init__(
        self,
        table: str,
        names: Sequence[str],
        facts: Mapping[str, Facts],
        said: Mapping[str, str],
        kinds: Mapping[str, str],
    ) -> None:
        self.table, self.names, self.facts, self.said, self.kinds = table, names, facts, said, kinds
        self.roles: dict[str, tuple[str, str]] = {name: (role, "given") for name, role in said.items()}

    def columns(self) -> list[Column]:
        for role, known in NAMES[self.table].items():
            if role == "domain":
                self._domains(known)
            elif role not in self.said.values():
                self._by_name(role, known)
        if self.table == "nodes":
            self._first_as_id()
        else:
            self._first_as_ends()
        return [self._column(name) for name in self.names]

    def _by_name(self, role: str, known: Sequence[str]) -> None:
        wanted = {plain_name(name): name for name in reversed(self.names) if name not in self.roles}
        for name in known:
            if name in wanted:
                column = wanted[name]
                if role == "label" and self.facts[column].continuous and self.kinds.get(column) != "categorical":
                    self.roles[column] = ("drop", "named as a label, but its values are no classes")
                    continue
                if role == "time" and self.facts[column].kind not in ("date", "numeric"):
                    continue
                self.roles[column] = (role, f"named {column}")
                return

    def _domains(self, known: Sequence[str]) -> None:
        if "domain" in self.said.values():
            return
        for name in self.names:
            facts = self.facts[name]
            if name in self.roles or plain_name(name) not in known or facts.continuous:
                continue
            if 1 < facts.distinct <= max(2, _CODES * facts.rows):
                self.roles[name] = ("domain", f"named {name}, with {facts.distinct} values in the sample")
                return

    def _first_as_id(self) -> None:
        """Without a column that has the name of an id, the first one is the id if no value occurs twice."""
        if any(role == "id" for role, _ in self.roles.values()) or not self.names:
            return
        first, facts = self.names[0], self.facts[self.names[0]]
        whole = facts.kind in ("categorical", "text") or facts.whole
        if first not in self.roles and whole and facts.unique:
            self.roles[first] = ("id", "the first column, with another value in each row")

    def _first_as_ends(self) -> None:
        ends = [role for role, _ in self.roles.values() if role in ("source", "target")]
        free = [name for name in self.names if name not in self.roles]
        if not ends and len(free) > 1 and free[:2] == list(self.names[:2]):
            self.roles[free[0]] = ("source", "the first column")
            self.roles[free[1]] = ("target", "the second column")

    def _column(self, name: str) -> Column:
        facts = self.facts[name]
        kind = self.kinds.get(name, facts.kind)
        role, reason = self.roles.get(name) or self._feature(name, facts)
        if role == "drop":
            return Column(name, role, self.kinds.get(name, "none"), reason)
        if role in ("id", "source", "target", "label", "domain") and name not in self.kinds:
            kind = "categorical"
        elif role == "feature":
            given = " given" if name in self.kinds else ""
            reason = f"{reason}; {kind}{given or f': {facts.why}'}" if reason else f"{kind}{given or f': {facts.why}'}"
        return Column(name, role, kind, reason)

    def _feature(self, name: str, facts: Facts) -> tuple[str, str]:
        key = plain_name(name)
        if self.table == "edges":
            return "drop", "of edges, only the weight and the time are read"
        if key in SPLITS:
            return "drop", "says how rows are split"
        if key in NAMES["nodes"]["label"]:
            return "drop", "named as a label, and another column is the label"
        if name in self.kinds and self.kinds[name] != "none":
            return "feature", ""
        if facts.kind == "none":
            return "drop", facts.why
        if facts.constant and facts.rows >= _LEAST_UNIQUE:
            return "drop", "constant"
        if facts.kind == "categorical" and facts.unique and facts.rows >= _LEAST_UNIQUE:
            return "drop", "another text in each row, as an id"
        if facts.whole and facts.unique and facts.rows >= _LEAST_UNIQUE and key.endswith("id"):
            return "drop", "named as an id, with another number in each row"
        return "feature", ""


def plain_name(name: str) -> str:
    """A name in lower case with words joined by underscores.

    Example:
        >>> plain_name("Node ID"), plain_name("createdAt")
        ('node_id', 'created_at')
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip().strip("\ufeff"))
    return re.sub(r"[\s.\-:/]+", "_", split).lower().strip("_")


def _same(sample: "pa.Table", facts: Mapping[str, Facts], name: str, label: str) -> bool:
    """Whether each value of a column goes with one label and the other way round, as a name of the label does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    one, other = facts[name], facts[label]
    if one.kind not in ("categorical", "boolean", "numeric") or one.distinct != other.distinct or one.distinct < 2:
        return False
    table = pa.table(
        {
            key: texts(plain(sample.column(column), column), column)
            for key, column in zip("ab", (name, label), strict=True)
        }
    )
    table = table.filter(pc.and_(pc.is_valid(table["a"]), pc.is_valid(table["b"])))
    if table.num_rows < max(_LEAST_UNIQUE, 2 * one.distinct):
        return False
    pairs = table.group_by(["a", "b"]).aggregate([])
    return bool(pairs.num_rows == pc.count_distinct(pairs["a"]).as_py() == pc.count_distinct(pairs["b"]).as_py() > 1)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:12])
    return f"{shown} and {len(names) - 12} more" if len(names) > 12 else shown or "none"
