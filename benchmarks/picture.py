"""docs/performance.svg: time and memory of a step, mini-batches, and shares of the machine's limits."""

from collections.abc import Mapping
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from benchmarks.measuring import GIB, MIB
from mario.report.pictures.palette import BLUE, GREEN, ORANGE, VERMILLION
from mario.report.svg import INK, style, to_svg

# Okabe and Ito's colors, and a marker and a dash for each, so that no line is told by its color alone.
OURS: dict[str, Any] = {"color": BLUE, "marker": "o", "label": "ours"}
PLAIN: dict[str, Any] = {"color": VERMILLION, "marker": "s", "linestyle": "--", "label": "plain reference"}


def draw(figures: Mapping[str, dict[str, Any]]) -> str:
    """The picture as SVG; a panel whose figures are missing says so."""
    with rc_context(style("performance")):
        figure = Figure(figsize=(9.5, 6.8), layout="constrained")
        panels = figure.subplots(2, 2)
        for axes, (part, panel) in zip(panels.flat, PANELS, strict=True):
            if part in figures:
                panel(axes, figures[part])
            else:
                axes.text(0.5, 0.5, f"{part}: not measured yet", ha="center", transform=axes.transAxes)
                axes.set_axis_off()
        return to_svg(
            figure,
            name="performance",
            title="Time and memory of mario",
            description="CPU time and peak memory of one MARIO step against the number of nodes, ours and the plain "
            "reference; time of an epoch in mini-batches; throughput of ranks.",
        )


def step_time(axes: Axes, step: dict[str, Any]) -> None:
    _both(axes, step, lambda found: found["cpu"])
    axes.set(title="One step, CPU time", xlabel="nodes", ylabel="seconds")


def step_memory(axes: Axes, step: dict[str, Any]) -> None:
    _both(axes, step, lambda found: found["bytes"] / MIB)
    axes.set(title="One step, peak over the inputs", xlabel="nodes", ylabel="MiB")


def _both(axes: Axes, step: dict[str, Any], value: Any) -> None:
    rows = [row for row in step["rows"] if not row["wide"]]
    for name, look in (("plain", PLAIN), ("ours", OURS)):
        there = [row for row in rows if name in row]
        axes.loglog([row["nodes"] for row in there], [value(row[name]) for row in there], **look)
    _plain_numbers(axes, [row["nodes"] for row in rows])
    axes.legend()


def _plain_numbers(axes: Axes, nodes: list[int]) -> None:
    """Ticks at the sizes that were measured, and no powers: a page's SVG has no mathematics in its text."""
    axes.set_xticks(nodes, [f"{n // 1000}k" if n % 1000 == 0 else str(n) for n in nodes])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major")


def epochs(axes: Axes, batches: dict[str, Any]) -> None:
    rows = batches["rows"]
    nodes = [row["nodes"] for row in rows]
    axes.loglog(nodes, [row["epoch_wall"] for row in rows], color=BLUE, marker="o", label="an epoch, s")
    first = rows[0]
    proportional = [first["epoch_wall"] * n / first["nodes"] for n in nodes]
    axes.loglog(nodes, proportional, color=INK, linestyle=":", label="in proportion to nodes, s")
    axes.set(title="Mini-batches from disk", xlabel="nodes", ylabel="seconds")
    other = axes.twinx()
    other.plot(nodes, [row["peak"] / GIB for row in rows], color=ORANGE, marker="^", linestyle="--", label="peak, GiB")
    other.set(ylabel="GiB", ylim=(0, None))
    lines = [*axes.get_lines(), *other.get_lines()]
    axes.legend(lines, [str(line.get_label()) for line in lines])
    _plain_numbers(axes, nodes)


def throughput(axes: Axes, ranks: dict[str, Any]) -> None:
    kinds = ranks["kinds"]
    alone = kinds["1"]["batches_per_second"]
    names = {"1": "1 rank", "2": "2 ranks", "4": "4 ranks,\n2 cores", "2 apart": "2 apart"}
    heights = [kinds[kind]["batches_per_second"] / alone for kind in names]
    bars = axes.bar(list(names.values()), heights, color=[BLUE, BLUE, BLUE, GREEN], width=0.6)
    bars[-1].set_hatch("//")
    for bar, height in zip(bars, heights, strict=True):
        axes.text(bar.get_x() + bar.get_width() / 2, height, f"{height:.2f}", ha="center", va="bottom")
    axes.axhline(1.6, color=INK, linestyle=":", linewidth=1)
    axes.set(title="Throughput (one rank on one core: 1)", ylim=(0, 2.2))


PANELS = (("step", step_time), ("step", step_memory), ("batches", epochs), ("ranks", throughput))
