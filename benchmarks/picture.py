"""docs/performance.svg: time and memory of a step, mini-batches, and what further processes give."""

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.measuring import GIB, MIB
from mario.report.pictures.palette import BLUE, GREEN, ORANGE, VERMILLION
from mario.report.svg import INK, style, to_image

# Okabe and Ito's colors, and a marker and a dash for each, so that no line is told by its color alone.
OURS: dict[str, Any] = {"color": BLUE, "marker": "o", "label": "mario"}
PLAIN: dict[str, Any] = {"color": VERMILLION, "marker": "s", "linestyle": "--", "label": "plain reference"}
_WHISKERS: dict[str, Any] = {"capsize": 2.5, "elinewidth": 1}


def draw(figures: Mapping[str, dict[str, Any]]) -> str:
    """The picture as an SVG file; a panel whose figures are missing says so."""
    with rc_context(style("performance")):
        figure = Figure(figsize=(9.5, 7.4), layout="constrained")
        panels = figure.subplots(2, 2)
        for axes, (part, panel) in zip(panels.flat, PANELS, strict=True):
            if part in figures:
                panel(axes, figures[part])
            else:
                axes.text(0.5, 0.5, f"{part}: not measured yet", ha="center", transform=axes.transAxes)
                axes.set_axis_off()
        return to_image(
            figure,
            name="performance",
            title="Time and memory of mario",
            description="CPU time and peak memory of one MARIO step against the number of nodes, of mario and of the "
            "plain reference; time and peak memory of an epoch in mini-batches; batches per second of one, two and "
            "four processes, relative to one. Points and bars are medians; whiskers go from the least to the largest "
            "of all rounds.",
        )


def step_time(axes: Axes, step: dict[str, Any]) -> None:
    _both(axes, step, lambda found: found["cpu"], lambda found: found.get("cpu_all", ()))
    axes.set(title="One step: CPU time", xlabel="nodes in the batch", ylabel="seconds")


def step_memory(axes: Axes, step: dict[str, Any]) -> None:
    _both(axes, step, lambda found: found["bytes"] / MIB, lambda found: ())
    axes.set(title="One step: peak memory above the inputs", xlabel="nodes in the batch", ylabel="MiB")


def _both(axes: Axes, step: dict[str, Any], value: Callable[[Any], float], every: Callable[[Any], Any]) -> None:
    rows = [row for row in step["rows"] if not row["wide"]]
    axes.set(xscale="log", yscale="log")
    for name, look in (("plain", PLAIN), ("ours", OURS)):
        there = [row for row in rows if name in row]
        middle = [value(row[name]) for row in there]
        spread = [_from(value(row[name]), every(row[name])) for row in there]
        lines = axes.errorbar([row["nodes"] for row in there], middle, yerr=_sides(spread), **look, **_WHISKERS)
        _whole(lines)
    _plain_numbers(axes, [row["nodes"] for row in rows])
    _legend_above(axes)


def _plain_numbers(axes: Axes, nodes: list[int]) -> None:
    """Ticks at the sizes that were measured, and no powers: a page's SVG has no mathematics in its text."""
    axes.set_xticks(nodes, [f"{n:,}" for n in nodes], rotation=30 if len(nodes) > 5 else 0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major")


def epochs(axes: Axes, batches: dict[str, Any]) -> None:
    rows = batches["rows"]
    nodes = [row["nodes"] for row in rows]
    axes.set(xscale="log", yscale="log")
    _whole(axes.errorbar(nodes, [row["epoch_wall"] for row in rows], color=BLUE, marker="o", label="time (left)"))
    first = rows[0]
    proportional = [first["epoch_wall"] * n / first["nodes"] for n in nodes]
    axes.plot(nodes, proportional, color=INK, linestyle=":", label="proportional to nodes (left)")
    axes.set(title="One epoch of mini-batches from disk", xlabel="nodes in the graph", ylabel="seconds")
    other = axes.twinx()
    peaks = [row["peak"] / GIB for row in rows]
    _whole(other.errorbar(nodes, peaks, color=ORANGE, marker="^", linestyle="--", label="peak memory (right)"))
    other.set(ylabel="GiB", ylim=(0, 1.6 * max(peaks)))
    lines, words = axes.get_legend_handles_labels()
    more, other_words = other.get_legend_handles_labels()
    _legend_above(axes, [*lines, *more], [*words, *other_words])
    _plain_numbers(axes, nodes)


def throughput(axes: Axes, ranks: dict[str, Any]) -> None:
    kinds = ranks["kinds"]
    alone = kinds["1"]
    names = {
        "1": "1 process\non 1 core",
        "2": "2 ranks\non 2 cores",
        "4": "4 ranks\non 2 cores",
        "2 apart": "2 unrelated\nprocesses",
    }
    heights = [kinds[kind]["batches_per_second"] / alone["batches_per_second"] for kind in names]
    spread = [_from(height, _gains(kinds[kind], alone)) for kind, height in zip(names, heights, strict=True)]
    colors = [BLUE, BLUE, BLUE, GREEN]
    sides = _sides(spread)
    bars = axes.bar(list(names.values()), heights, color=colors, width=0.6, yerr=sides, ecolor=INK, capsize=3)
    bars[-1].set_hatch("//")
    for bar, height, (_, above) in zip(bars, heights, spread, strict=True):
        place = (bar.get_x() + bar.get_width() / 2, height + above)
        axes.annotate(f"{height:.2f}", place, (0, 3), textcoords="offset points", ha="center", va="bottom")
    axes.axhline(1.6, color=INK, linestyle=":", linewidth=1, label="target for 2 ranks: 1.6")
    axes.set(title="Batches per second, relative to 1 process", ylabel="times", ylim=(0, 2.2))
    _legend_above(axes)


def _gains(one: dict[str, Any], alone: dict[str, Any]) -> list[float]:
    """Ratios within a round, because the speed of the machine varies between rounds."""
    pairs = zip(one.get("by_round", ()), alone.get("by_round", ()), strict=True)
    return [] if one is alone else [mine / other for mine, other in pairs]


def _from(middle: float, every: Any) -> tuple[float, float]:
    """How far the least and the largest of all rounds are from the median."""
    return (max(0.0, middle - min(every)), max(0.0, max(every) - middle)) if len(every) > 1 else (0.0, 0.0)


def _sides(spread: list[tuple[float, float]]) -> Any:
    return [list(side) for side in zip(*spread, strict=True)] if any(map(any, spread)) else None


def _whole(lines: Any) -> None:
    """Markers at the edge of a panel are drawn whole."""
    lines.lines[0].set_clip_on(False)


def _legend_above(axes: Axes, *entries: Any) -> None:
    """Beside the data, not on it."""
    axes.legend(*entries, loc="lower left", bbox_to_anchor=(0, 1.1), ncols=3, borderaxespad=0, columnspacing=1.2)


PANELS = (("step", step_time), ("step", step_memory), ("batches", epochs), ("ranks", throughput))
