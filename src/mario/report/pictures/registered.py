"""The primary comparison of a registered study: a difference per column that is done, and the mean over all columns."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mario.report.pictures.forest import ForestLine, forest
from mario.report.pictures.picture import Drawing
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.registered import Registered, registered

if TYPE_CHECKING:
    from mario.lab.studies.collect import Collected


def registered_lines(found: Registered) -> list[ForestLine]:
    """A line per column that is done, and one for all of them once they are; only the last one has a test."""
    label, against = found.protocol.primary
    columns = found.primary.found.columns if found.primary.found else {}
    lines = [
        ForestLine(name=name, label=label, against=against, test=test, case=name) for name, test in columns.items()
    ]
    if over := found.primary.over:
        together = ForestLine(
            name=f"all {over.n} columns",
            label=label,
            against=against,
            test=over,
            p=over.p_wilcoxon,
            pooled=True,
            over="column",
        )
        lines.append(together)
    return lines


def registered_picture(found: Registered) -> Drawing:
    """The forest plot of :func:`registered_lines`."""
    label, against = found.protocol.primary
    title = f"{label} minus {against}, domains without labels, points"
    return forest(registered_lines(found), title=title)


@register_picture("registered")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    found = registered(study)
    if found and found.primary.found:
        yield Sketch(partial(registered_picture, found))
