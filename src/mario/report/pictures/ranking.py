"""Critical-difference diagrams (Demšar, 2006): average ranks on a line, and bars over methods that do not differ."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.lab.statistics.ranking import Ranking
from mario.report.numbers import counted
from mario.report.pictures.palette import VERMILLION
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.svg import INK
from mario.report.tables.ranking import ranking_of

if TYPE_CHECKING:
    from mario.lab.studies.collect import Collected


def critical_difference(
    ranking: Ranking, *, subject: str | None = "mario", over: str = "block", title: str = ""
) -> Drawing:
    """The better half is named on the left from the top down, the rest on the right; ``subject`` is in color.

    ``over`` is the name of one block of the ranking.

    Example:
        >>> from mario.lab.statistics.ranking import average_ranks
        >>> cases = {"a": {"mario": 0.9, "grace": 0.8}, "b": {"mario": 0.7, "grace": 0.6}}
        >>> critical_difference(average_ranks(cases)).description[:59]
        'Average rank over 2 blocks, 1 is best: mario 1.00, grace 2.'
    """
    k = len(ranking.methods)
    if k < 2:
        raise MarioError(f"ranking must have two methods or more, got {k}")
    left = (k + 1) // 2
    bars = len(ranking.groups)
    step, bar = 0.2, 0.13  # inches between names, and between the bars of groups
    below = 0.15 + bar * bars
    height = 0.75 + below + step * left + 0.1
    with sheet(PAGE, height, layout=None) as figure:
        axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        # Inches throughout, from the top down.
        axis.set_xlim(0, PAGE)
        axis.set_ylim(height, 0)
        axis.set_axis_off()
        begin, end, line = 1.6, PAGE - 1.6, 0.75

        def at(rank: float) -> float:
            return begin + (end - begin) * (rank - 1) / (k - 1)

        _ink(axis, [begin, end], [line, line], 1.2)
        for tick in range(1, k + 1):
            _ink(axis, [at(tick)] * 2, [line - 0.07, line], 1.0)
            axis.text(at(tick), line - 0.1, str(tick), ha="center", va="bottom", fontsize=8)
        _difference(axis, ranking, at, end)
        for place, (method, rank) in enumerate(zip(ranking.methods, ranking.average, strict=True)):
            first = place < left
            y = line + below + step * ((place if first else k - 1 - place) + 0.5)
            edge = begin - 0.25 if first else end + 0.25
            own = method == subject
            color = VERMILLION if own else INK
            axis.plot(
                [at(rank), at(rank), edge],
                [line, y, y],
                color=color,
                linewidth=1.6 if own else 0.8,
                zorder=3 if own else 2,
            )
            axis.plot([at(rank)], [line], marker="o", markersize=4, color=color, zorder=5 if own else 4)
            name = f"{method}  {rank:.2f}" if first else f"{rank:.2f}  {method}"
            axis.text(
                *(edge - 0.05 if first else edge + 0.05, y, name),
                ha="right" if first else "left",
                va="center",
                fontsize=8,
                fontweight="bold" if own else "normal",
            )
        where = dict(zip(ranking.methods, ranking.average, strict=True))
        for place, group in enumerate(ranking.groups):
            ends = [where[method] for method in group]
            y = line + 0.12 + bar * place
            axis.plot(
                [at(min(ends)) - 0.05, at(max(ends)) + 0.05], [y, y], color=INK, linewidth=3, solid_capstyle="round"
            )
    return Drawing(figure, title or _caption(ranking, over), _in_words(ranking, over))


def _caption(ranking: Ranking, over: str) -> str:
    said = (
        f"Average ranks over {counted(len(ranking.blocks), over)}, with the critical difference at level "
        f"{ranking.alpha:g} (Friedman’s p = {ranking.p_friedman:.2g})"
    )
    lacking = [f"{block} ({len(names)} rows lacking)" for block, names in ranking.left_out.items()]
    return said + (f"; left out: {', '.join(lacking)}" if lacking else "")


def _ink(axis: Any, x: list[float], y: list[float], width: float) -> None:
    axis.plot(x, y, color=INK, linewidth=width, solid_capstyle="butt")


def _difference(axis: Any, ranking: Ranking, at: Any, end: float) -> None:
    wide = at(1 + ranking.critical_difference) > end
    text = f"CD = {ranking.critical_difference:.2f}"
    x, y = at(1), 0.3
    if wide:
        # With so few blocks no two methods can differ, and the bar would not fit.
        axis.text(x, y, f"{text}, more than the whole line: no two can differ", ha="left", va="bottom", fontsize=8)
        return
    other = at(1 + ranking.critical_difference)
    _ink(axis, [x, other], [y, y], 1.4)
    for edge in (x, other):
        _ink(axis, [edge, edge], [y - 0.05, y + 0.05], 1.4)
    axis.text((x + other) / 2, y - 0.04, text, ha="center", va="bottom", fontsize=8)


def _in_words(ranking: Ranking, over: str) -> str:
    each = ", ".join(f"{method} {rank:.2f}" for method, rank in zip(ranking.methods, ranking.average, strict=True))
    alike = "; ".join(", ".join(group) for group in ranking.groups) or "none"
    return (
        f"Average rank over {counted(len(ranking.blocks), over)}, 1 is best: {each}. "
        f"Critical difference {ranking.critical_difference:.2f} at level {ranking.alpha:g}; "
        f"groups that do not differ: {alike}. Friedman's p = {ranking.p_friedman:.3g}."
    )


@register_picture("ranking")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    """Over cases; if there is only one, over its runs."""
    there = sum(len(case.runs) > 0 for case in study.cases)
    if there:
        by, over = ("case", "case") if there > 1 else ("pair", "run")
        subject = study.plan.subject
        yield Sketch(lambda: critical_difference(ranking_of(study.frame, by=by), subject=subject, over=over))
