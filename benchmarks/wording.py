"""Formatting of figures: numbers with units, Markdown tables, and sections that name missing parts."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import GIB, MIB

Figures = Mapping[str, dict[str, Any]]
Section = Callable[[Figures, Path], str]


def seconds(value: float) -> str:
    for unit, size in (("h", 3600.0), ("min", 120.0), ("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / (60.0 if unit == 'min' else size):.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def size(value: float) -> str:
    return f"{value / GIB:.2f} GiB" if value >= GIB else f"{value / MIB:.0f} MiB"


def rate(value: float, unit: str) -> str:
    return f"{value / 1e9:.1f} G{unit}/s"


def times(value: float) -> str:
    return f"{value:.1f}×" if value < 100 else f"{value:.0f}×"


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A Markdown table whose first ``left`` columns are text."""
    line = "|" + "|".join(["---"] * left + ["---:"] * (len(head) - left)) + "|"
    return "\n".join(["| " + " | ".join(head) + " |", line, *("| " + " | ".join(row) + " |" for row in rows)])


def needs(*parts: str) -> Callable[[Callable[[Figures], str]], Section]:
    """A section that is rendered if all ``parts`` have figures, and names the missing parts otherwise."""

    def wrap(render: Callable[[Figures], str]) -> Section:
        def write(figures: Figures, where: Path) -> str:
            missing = [part for part in parts if part not in figures]
            return f"Not measured yet: {', '.join(missing)}." if missing else render(figures)

        return write

    return wrap


def gap_of(paired: Mapping[str, Any]) -> str:
    """A difference in points, with its interval if there are enough pairs for one."""
    gap = f"{100 * paired['mean_difference']:+.1f} points"
    if paired["ci_low"] is None:
        return gap
    return f"{gap} ({100 * paired['ci_low']:+.1f} to {100 * paired['ci_high']:+.1f})"


def p_value(paired: Mapping[str, Any]) -> str:
    return "–" if paired["p_wilcoxon"] is None else f"{paired['p_wilcoxon']:.2f}"
