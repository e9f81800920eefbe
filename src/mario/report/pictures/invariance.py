"""Invariance over training: average alignment of views against worst-case alignment (the paper's Section 3.1)."""

from collections.abc import Iterable, Sequence

from mario.report.pictures.palette import looks
from mario.report.pictures.picture import PAGE, Drawing, sheet
from mario.report.pictures.rows import Result, band, chosen_rows, over_steps, row_labels

_PANELS = (("align_mean", "average over views"), ("align_worst", "worst case"))


def rows_with_invariance(results: Iterable[Result]) -> list[str]:
    """Rows whose runs measured alignment at two checkpoints or more (the setting ``invariance``)."""
    return row_labels(r for r in results if sum("align_worst" in point for point in r.get("curve") or ()) > 1)


def invariance_curves(results: Iterable[Result], *, rows: Sequence[str] | None = None, title: str = "") -> Drawing:
    """Two panels on one scale, average and worst case; a line a row, mean over runs with a band of one sd.

    Alignment is a squared distance: low is invariant.

    Example:
        >>> from mario.report.pictures import invariance_curves
        >>> curve = [{"step": s, "align_mean": 0.1 * s, "align_worst": 0.2 * s} for s in (1, 2)]
        >>> invariance_curves([{"method": "mario", "curve": curve}]).description
        'At the last checkpoint, average and worst case: mario 0.200 and 0.400.'
    """
    results = list(results)
    shown = chosen_rows(rows, rows_with_invariance(results), "alignment at two checkpoints or more")
    look = looks(shown)
    ends: dict[str, list[float]] = {}
    top = 0.0
    with sheet(PAGE, 2.7) as figure:
        axes = figure.subplots(1, len(_PANELS), sharey=True)
        for axis, (key, name) in zip(axes, _PANELS, strict=True):
            for row in shown:
                steps, mean, sd = band(over_steps(results, row, key))
                axis.fill_between(steps, mean - sd, mean + sd, color=look[row].color, alpha=0.13, linewidth=0)
                axis.plot(
                    *(steps, mean),
                    color=look[row].color,
                    label=row,
                    linewidth=1.6,
                    marker=look[row].marker,
                    markersize=4,
                    markevery=max(1, len(steps) // 6),
                    **({"dashes": look[row].dash} if look[row].dash else {}),
                )
                ends.setdefault(row, []).append(float(mean[-1]))
                top = max(top, float((mean + sd).max()))
            axis.set_title(name, loc="left")
            axis.set_xlabel("optimizer steps")
            axis.locator_params(axis="x", nbins=5)
            axis.grid(axis="y")
        axes[0].set_ylim(0, 1.05 * top or 1.0)
        axes[0].set_ylabel("alignment (low: invariant)")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(shown)), handlelength=2.6)
    each = "; ".join(f"{row} {average:.3f} and {worst:.3f}" for row, (average, worst) in ends.items())
    return Drawing(
        figure,
        title or f"Invariance of {', '.join(shown)}",
        f"At the last checkpoint, average and worst case: {each}.",
    )
