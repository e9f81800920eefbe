"""A table: columns, lines and cells. One renderer each turns it into HTML, LaTeX, Markdown and terminal text."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class TableColumn:
    """The head of a column. Neighboring columns with the same ``group`` share a head above theirs.

    ``unit`` is set in small print. ``case`` names the case that the column belongs to, so that a page can filter by it.
    A column that ``names`` its line holds the line's head; text columns are left-aligned. An ``optional`` column is
    left out where there is no room.
    """

    head: str
    unit: str = ""
    group: str = ""
    case: str = ""
    names: bool = False
    text: bool = False
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one cell shows. Renderers leave out what they have no room for.

    Attributes:
        text: the value.
        sort: the number that a page sorts by; cells without one come last.
        emphasis: ``best`` and ``second`` of the compared methods, or ``strong`` text.
        count: the number of runs, ``5`` or ``3 of 5``; ``short`` if runs are missing.
        direction: ``above`` or ``below`` the reference, where a test shows it; ``test`` is that test in words.
        paper: the paper's number; ``off`` is our distance from it, ``far`` beyond two standard deviations.
        detail: a second line.
        items: a list in place of ``text``.
        note: an explanation, shown on hover.
        href: where ``text`` links to.
        kind: names for a style sheet.
    """

    text: str = "–"
    sort: str = ""
    emphasis: Literal["", "best", "second", "strong"] = ""
    count: str = ""
    short: bool = False
    direction: Literal["", "above", "below"] = ""
    test: str = ""
    paper: str = ""
    off: str = ""
    far: bool = False
    detail: str = ""
    items: tuple[str, ...] = ()
    note: str = ""
    href: str = ""
    kind: str = ""

    @property
    def arrow(self) -> str:
        return {"above": "↑", "below": "↓", "": ""}[self.direction]

    @property
    def second_line(self) -> str:
        """The paper's number and our distance from it, or the detail."""
        return ", ".join(part for part in (self.paper, self.off) if part) or self.detail


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a table, with a cell per column. A page filters lines by ``label`` and ``case``.

    ``kind`` is a name for a style sheet, such as ``subject`` or ``control``.
    """

    cells: tuple[Cell, ...]
    label: str | None = None
    case: str | None = None
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table: ``lines[i].cells[j]`` belongs to ``columns[j]``. ``notes`` go below it.

    ``style`` is the class of the HTML table. ``wide``, ``long``, ``choice`` and ``claims`` can be sorted on a page.
    """

    name: str
    title: str
    columns: tuple[TableColumn, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    style: str = "choice"

    @property
    def spans(self) -> list[tuple[TableColumn, int]]:
        """The first column of each group, and how many columns the group has."""
        found: list[tuple[TableColumn, int]] = []
        for column in self.columns:
            if found and column.group and found[-1][0].group == column.group:
                found[-1] = (found[-1][0], found[-1][1] + 1)
            else:
                found.append((column, 1))
        return found

    @property
    def grouped(self) -> bool:
        return any(column.group for column in self.columns)

    def cell(self, label: str, head: str, case: str = "") -> Cell:
        """The cell of the line ``label`` under ``head``; ``case`` is needed where several columns have that head."""
        place = next(j for j, c in enumerate(self.columns) if c.head == head and case in ("", c.case))
        return next(line for line in self.lines if line.label == label).cells[place]

    def without_optional(self) -> "Table":
        return self._only([j for j, column in enumerate(self.columns) if not column.optional])

    def parts(self, at_most: int, *, whole_groups: bool = True) -> Iterator["Table"]:
        """The table cut into parts of about equal width, with ``at_most`` columns beside those that name the lines.

        ``whole_groups`` keeps the columns of a group in one part, which may then be wider.
        """
        names = [j for j, column in enumerate(self.columns) if column.names]
        blocks: list[list[int]] = []
        for j in (j for j in range(len(self.columns)) if j not in names):
            group = self.columns[j].group
            if whole_groups and blocks and group and self.columns[blocks[-1][-1]].group == group:
                blocks[-1].append(j)
            else:
                blocks.append([j])
        total = max(1, sum(map(len, blocks)))
        widest = math.ceil(total / math.ceil(total / at_most))
        parts: list[list[int]] = [[]]
        for block in blocks:
            if parts[-1] and len(parts[-1]) + len(block) > widest:
                parts.append([])
            parts[-1] += block
        yield from (self._only([*names, *part]) for part in parts)

    def _only(self, places: Sequence[int]) -> "Table":
        lines = tuple(replace(line, cells=tuple(line.cells[j] for j in places)) for line in self.lines)
        return replace(self, columns=tuple(self.columns[j] for j in places), lines=lines)
