"""Tables and notes that fit the terminal: no word or number is broken."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column

_WIDE = 100_000
_APART = 2  # blanks between columns


def terminal() -> "Console":
    """Standard output: as wide as the terminal or as COLUMNS says; a pipe or a file has no width."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdigit():
        return console
    return Console(highlight=False, markup=False, width=_WIDE)


def print_listing(columns: "Sequence[Column]", rows: Iterable[Sequence[str]], spare: Sequence[str] = ()) -> None:
    """Print a table. Where it is too wide, columns named in ``spare`` are left out, the first named first.

    A line below says which. Columns that may wrap do so between words.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console, cells = terminal(), [list(row) for row in rows]
    kept = list(range(len(columns)))
    gone = []
    for name in spare:
        if sum(_least(columns[place], cells, place) + _APART for place in kept) <= console.width:
            break
        kept = [place for place in kept if columns[place].header != name]
        gone.append(name)
    widths = {place: _least(columns[place], cells, place) for place in kept}
    for place in kept:  # the room that is left goes to the columns that wrap, the first first
        room = console.width - sum(widths.values()) - _APART * len(widths)
        longest = max(map(len, [str(columns[place].header), *(row[place] for row in cells)]))
        widths[place] = min(longest, widths[place] + max(0, room))
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for place in kept:
        column = columns[place]
        table.add_column(column.header, justify=column.justify, no_wrap=column.no_wrap, width=widths[place])
    for row in cells:
        table.add_row(*(row[place] for place in kept))
    Console(width=max(console.width, sum(widths.values()) + _APART * len(widths)), highlight=False, markup=False).print(
        table
    )
    if gone:
        console.print(f"not shown, as the terminal is narrow: {', '.join(gone)}; --json has all")


def _least(column: "Column", cells: Sequence[Sequence[str]], place: int) -> int:
    """The least width at which nothing in a column is broken."""
    texts = [str(column.header), *(row[place] for row in cells)]
    words = texts if column.no_wrap else [word for text in texts for word in text.split()]
    return max(column.min_width or 0, *map(len, words))


def say(text: str) -> None:
    """Print a sentence, wrapped between words in a terminal. Commands in backticks are bold, or in quotes."""
    from rich.text import Text

    console = terminal()
    if console.color_system is None:
        console.print(re.sub(r"`([^`]+)`", r"'\1'", text), soft_wrap=console.width == _WIDE)
        return
    line = Text()
    for place, part in enumerate(re.split(r"`([^`]+)`", text)):
        line.append(part, style="bold" if place % 2 else "")
    console.print(line, soft_wrap=console.width == _WIDE)
