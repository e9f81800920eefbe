"""The card of a graph of your own: ``graph.toml``, which a person can read and edit. No torch here."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mario.errors import MarioError, nearest
from mario.files import write_text
from mario.graphs.declared import DeclaredSplit, KeyedError, read_split
from mario.graphs.rules import SETTINGS, SHIFTS, SplitRule, choose
from mario.untrusted import parse_toml, read_text, safe_name

CARD_FILE = "graph.toml"
CARD_BYTES = 16 * 2**20
"""The largest card: one of 10,000 columns has about 1.3 MB."""
ROLES = ("id", "source", "target", "label", "domain", "time", "weight", "feature", "drop")
KINDS = ("numeric", "categorical", "text", "date", "list", "boolean", "none")
TABLES = ("nodes", "edges")

_COUNTS = ("nodes", "edges", "features", "classes")
_REQUIRED = ("name", "file", "metric", "setting", *_COUNTS)
_TEXTS = {"what": "a graph of your own", "source": "your own", "license": "not stated", "level": "node"}
_FILES = ("ids", "plan")
_NAMES = ("domains", "shifts")
_LISTS = ("notes", "faults", "class_names")
_OPTIONAL = (*_NAMES, *_TEXTS, *_LISTS, "graphs", "labeled", *_FILES, "like", "columns", "sources", "split")
_KNOWN = (*_REQUIRED, *_OPTIONAL)


@dataclass(frozen=True, kw_only=True)
class CardColumn:
    """A column of the tables that a graph was built from.

    Attributes:
        name: its name in the table. The card's key of the column, unless the card says otherwise: a column of the edges
            that has the name of one of the nodes needs another key. The key of a domain is its attribute of the graph.
        role: one of `ROLES`.
        kind: one of `KINDS`.
        table: ``nodes`` or ``edges``.
        missing: the number of missing values.
        features: the number of columns of ``x`` that it became.
        values: the names of the codes of a domain, in order.
    """

    name: str
    role: str
    kind: str
    table: str = "nodes"
    missing: int = 0
    features: int = 0
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CardSource:
    """A file that a graph was built from, as it was then."""

    file: str
    sha256: str
    bytes: int
    rows: int
    table: str = "nodes"


@dataclass(frozen=True, kw_only=True)
class GraphCard:
    """What ``graph.toml`` says; `read_card` reads it.

    Attributes:
        folder: the folder that holds the card, with links resolved.
        name, what, source, license, metric, setting, level, notes, faults: see `mario.datasets.DatasetCard`.
        file: the graph, in the folder: a file of `mario.graphs.save_graph` or a folder of `mario.graphs.save_mapped`.
        nodes, edges, features, classes, graphs: counts, which must be those of the graph.
        domains, shifts: as in a `DatasetCard`; empty if the card leaves them to ``split`` and ``columns``.
        labeled: how many nodes have a label; None if the card does not say.
        class_names: names of the classes, in the order of the codes in ``y``; empty if there are none.
        ids, plan: files in the folder with the ids of the nodes and with the fitted features; None if there are none.
        like: the digest of the plan of the graph that this one was built like; empty if it has its own.
        columns: the columns of its tables, by the card's key.
        sources: the files it was built from.
        split: how it is split; None if the card has no ``[split]``.
    """

    folder: Path
    name: str
    file: str
    metric: str
    setting: str
    nodes: int
    edges: int
    features: int
    classes: int
    domains: tuple[str, ...] = ()
    shifts: tuple[str, ...] = ()
    what: str = _TEXTS["what"]
    source: str = _TEXTS["source"]
    license: str = _TEXTS["license"]
    level: str = _TEXTS["level"]
    graphs: int = 1
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    labeled: int | None = None
    class_names: tuple[str, ...] = ()
    ids: str | None = None
    plan: str | None = None
    like: str = ""
    columns: Mapping[str, CardColumn] = field(default_factory=dict)
    sources: tuple[CardSource, ...] = ()
    split: DeclaredSplit | SplitRule | None = None

    @property
    def path(self) -> Path:
        """The file or the folder of the graph."""
        return self.folder / self.file

    def column(self, role: str, table: str = "nodes") -> CardColumn | None:
        """The first column of a role."""
        return next((found for found in self.columns.values() if (found.role, found.table) == (role, table)), None)

    def domain_columns(self) -> dict[str, tuple[str, ...]]:
        """The names of the codes of each column that is a domain of the nodes, by the card's key of the column."""
        domains = {key: one for key, one in self.columns.items() if (one.role, one.table) == ("domain", "nodes")}
        return {key: column.values for key, column in domains.items()}


def read_card(folder: str | os.PathLike[str]) -> GraphCard:
    """The card in a folder, checked; `MarioError` names the file, the line and the key of what is wrong.

    Example:
        >>> import tempfile
        >>> facts = {"name": "mine", "file": "graph", "metric": "accuracy", "setting": "transductive"}
        >>> with tempfile.TemporaryDirectory() as home:
        ...     (Path(home) / "graph").mkdir()
        ...     write_card(home, facts | {"nodes": 2, "edges": 1, "features": 1, "classes": 0})
        ...     read_card(home).nodes
        2
    """
    home = Path(folder).resolve()
    path = home / CARD_FILE
    text = read_text(path, CARD_BYTES)
    table = parse_toml(text, str(path), dates=True)
    try:
        card = _card(home, table)
        for key in ("file", *_FILES):
            if getattr(card, key) is not None:
                _inside(home, key, getattr(card, key))
    except CardError as error:
        raise MarioError(f"{path}{_line_of(text, error.table, error.key)}: {error}") from None
    except MarioError as error:
        raise MarioError(f"{path}: {error}") from None
    return card


def write_card(folder: str | os.PathLike[str], table: Mapping[str, Any]) -> None:
    """Write ``graph.toml`` from the values of its keys, after the checks of `read_card`; None is left out.

    ``columns`` maps a key to the fields of a `CardColumn`, ``sources`` is a list of those of `CardSource`, and
    ``split`` is a table that `mario.graphs.declared.read_split` reads. The files that the card names need not exist
    yet.
    """
    write_text(Path(folder) / CARD_FILE, check_card(table))


def check_card(table: Mapping[str, Any]) -> str:
    """The text that `write_card` writes; `MarioError` if a value is not what its key takes."""
    text = _toml({key: value for key, value in table.items() if value is not None})
    _card(Path(), parse_toml(text, f"the new {CARD_FILE}"))  # nothing is written that cannot be read
    return text


def replace_split(folder: str | os.PathLike[str], split: Mapping[str, Any] | None) -> GraphCard:
    """Write another ``[split]`` into a card, or none, and return the card. All other lines and comments stay."""
    card = read_card(folder)
    path = card.folder / CARD_FILE
    before = read_text(path, CARD_BYTES)
    lines, old = before.splitlines(), parse_toml(before, str(path), dates=True)
    start, end = _section(lines, "split")
    while end > start and lines[end - 1].strip().startswith("#"):  # of what follows
        end -= 1
    kept = "\n".join([*lines[:start], *lines[end:]]).rstrip()
    text = f"{kept}\n" + ("" if split is None else f"\n[split]\n{_toml(split)}")
    try:
        new = parse_toml(text, str(path), dates=True)
    except MarioError:
        new = {}
    written = None if split is None else parse_toml(_toml(split), "the split")
    if {**old, "split": None} != {**new, "split": None} or new.get("split") != written:
        raise MarioError(f"{path} has a split in a form that cannot be replaced; remove it by hand and try again")
    _card(card.folder, new)
    write_text(path, text)
    return read_card(folder)


class CardError(MarioError):
    """A wrong value in a card: the key, and the table that has it."""

    def __init__(self, what: str, key: str, table: str = "") -> None:
        super().__init__(what)
        self.key, self.table = key, table


def _card(folder: Path, table: Mapping[str, Any]) -> GraphCard:
    """The card that the tables of a TOML text describe."""
    for key in table:
        try:
            choose("key", key, _KNOWN)
        except MarioError as error:
            raise CardError(str(error), key) from None
    if missing := [key for key in _REQUIRED if key not in table]:
        raise MarioError(f"missing {', '.join(missing)}; it needs {', '.join(_REQUIRED)}")
    for key, value in table.items():
        right, kind = _right(key, value)
        if not right:
            raise CardError(f"{key} must be {kind}, got {value!r}", key)
    _check_values(table)
    split = _split(table)
    if isinstance(split, SplitRule):
        if absent := [key for key in _NAMES if key not in table]:
            raise MarioError(
                f"missing {', '.join(absent)}, which a [split] without by needs: the domains it is split by"
            )
        for shift in table["shifts"]:
            choose("shift", shift, SHIFTS)
    columns = {key: _column(key, value) for key, value in table.get("columns", {}).items()}
    sources = tuple(_source(number, value) for number, value in enumerate(table.get("sources", ()), 1))
    facts = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    made = facts | {"columns": columns, "sources": sources, "split": split}
    return GraphCard(folder=folder, **made)


def _right(key: str, value: Any) -> tuple[bool, str]:
    """Whether a value has the type of its key, and what that is."""
    if key in (*_COUNTS, "graphs", "labeled"):
        return _is_count(value), "a whole number"
    if key in (*_NAMES, *_LISTS):
        texts = isinstance(value, list) and all(isinstance(text, str) and text for text in value)
        return texts and (bool(value) or key in _LISTS), "a list of names"
    if key in ("split", "columns"):
        return isinstance(value, dict), "a table"
    if key == "sources":
        return isinstance(value, list) and all(isinstance(part, dict) for part in value), "a list of tables"
    return isinstance(value, str) and (bool(value) or key == "like"), "a text"


def _check_values(table: Mapping[str, Any]) -> None:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", table["name"]):
        raise CardError(f"name must consist of letters, digits, '.', '_' and '-', got {table['name']!r}", "name")
    safe_name(table["name"], "name")
    for key, known in (("setting", SETTINGS), ("level", ("node", "graph"))):
        try:
            choose(key, table.get(key, _TEXTS.get(key)), known)
        except MarioError as error:
            raise CardError(str(error), key) from None
    names, classes = table.get("class_names", []), table["classes"]
    if names and len(names) != classes:
        raise CardError(f"class_names has {len(names)} names, but classes = {classes}", "class_names")
    rows = table.get("graphs", 1) if table.get("level") == "graph" else table["nodes"]
    if table.get("labeled", 0) > rows:
        raise CardError(f"labeled = {table['labeled']}, but there are {rows} to have a label", "labeled")


def _split(table: Mapping[str, Any]) -> DeclaredSplit | SplitRule | None:
    if "split" not in table:
        return None
    try:
        return read_split(table["split"])
    except KeyedError as error:
        raise CardError(f"{error}", error.key, "split") from None
    except MarioError as error:
        raise CardError(f"{error}", "[split]", "split") from None


def _column(key: str, table: Any) -> CardColumn:
    where = f"columns.{key}"
    if not isinstance(table, dict):
        raise CardError(f"{where} must be a table, got {table!r}", key, "columns")
    kinds = {"name": "text", "role": ROLES, "kind": KINDS, "table": TABLES, "missing": 0, "features": 0, "values": []}
    values = _checked(where, where, table, kinds, needed=("role", "kind"))
    return CardColumn(**{"name": key, **values})


def _source(number: int, table: Mapping[str, Any]) -> CardSource:
    kinds = {"file": "text", "sha256": "text", "bytes": 0, "rows": 0, "table": TABLES}
    where, needed = f"sources (number {number})", ("file", "sha256", "bytes", "rows")
    return CardSource(**_checked(where, "sources" if number == 1 else "", table, kinds, needed))


def _checked(
    where: str, section: str, table: Mapping[str, Any], kinds: Mapping[str, Any], needed: tuple[str, ...]
) -> dict[str, Any]:
    """The values of a small table: texts, counts, lists of texts, or one of some words."""
    for key in needed:
        if key not in table:
            raise CardError(f"{where} has no {key}; it needs {', '.join(needed)}", "", section)
    for key, value in table.items():
        if key not in kinds:
            meant = nearest(key, list(kinds))
            raise CardError(
                f"{key} is no key of {where}; it takes {', '.join(kinds)}{meant and f'; {meant}'}", key, section
            )
        kind = kinds[key]
        if isinstance(kind, tuple):
            try:
                choose(f"{key} of {where}", value, kind)
            except MarioError as error:
                raise CardError(str(error), key, section) from None
            continue
        texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
        right = _is_count(value) if kind == 0 else texts if kind == [] else isinstance(value, str)
        due = "a whole number" if kind == 0 else "a list of texts" if kind == [] else "a text"
        if not right:
            raise CardError(f"{key} of {where} must be {due}, got {value!r}", key, section)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _inside(folder: Path, key: str, file: str) -> Path:
    """The path of a file that the card names; it must be in the folder."""
    if "\0" in file:
        raise CardError(f"{key} cannot have a null character, got {file!r}", key)
    try:
        path = (folder / file).resolve()
    except (OSError, RuntimeError) as error:
        raise CardError(f"{key} = {file!r} cannot be read ({error})", key) from None
    if not path.is_relative_to(folder) or path == folder:
        raise CardError(f"{key} must be in the folder of {CARD_FILE}, got {file!r}", key)
    if not path.exists():
        raise CardError(f"{key} = {file!r}, but the folder has no such file", key)
    return path


def _line_of(text: str, table: str, key: str) -> str:
    """Where a key is, such as ", line 7"; nothing if it is not found, as in an inline table."""
    lines = text.splitlines()
    start, end = _section(lines, table)
    here = re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*=""")
    found = next((number for number in range(start, end) if key and here.match(lines[number])), None)
    if found is None and table and start < len(lines):
        found = start
    return "" if found is None else f", line {found + 1}"


def _section(lines: list[str], table: str) -> tuple[int, int]:
    """The first line of a table and the line after its last; those before any table if it has no name."""
    heads = [number for number, line in enumerate(lines) if re.match(r"\s*\[", line) and "=" not in line]
    heads = [number for number in heads if not lines[number].rstrip().endswith(",")]  # a row of a list of lists
    if not table:
        return 0, heads[0] if heads else len(lines)
    bare = [re.sub(r"""[\s"']""", "", lines[number].split("#")[0].strip(" []\t")) for number in heads]
    for place, name in enumerate(bare):
        if name == re.sub(r"""[\s"']""", "", table):
            return heads[place], heads[place + 1] if place + 1 < len(heads) else len(lines)
    return len(lines), len(lines)


def _toml(table: Mapping[str, Any], under: str = "") -> str:
    """A table as TOML: values first, then tables. Numbers, texts and lists have the same form in JSON and in TOML."""
    text, tables = "", ""
    for key, value in table.items():
        name = key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)
        whole = f"{under}.{name}" if under else name
        if isinstance(value, Mapping):
            inner = all(isinstance(part, Mapping) for part in value.values()) and value
            tables += _toml(value, whole) if inner else f"\n[{whole}]\n{_toml(value, whole)}"
        elif isinstance(value, list | tuple) and value and all(isinstance(part, Mapping) for part in value):
            tables += "".join(f"\n[[{whole}]]\n{_toml(part, whole)}" for part in value)
        elif value is not None:
            text += f"{name} = {_text(list(value) if isinstance(value, tuple) else value)}\n"
    return text + tables


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
