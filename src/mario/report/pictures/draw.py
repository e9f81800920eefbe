"""All pictures that a study shows."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mario.errors import MarioError
from mario.lab.studies.collect import Collected
from mario.report.pictures.picture import Drawing, Picture, save_picture
from mario.report.pictures.registry import TABLES, Sketch, find_picture
from mario.report.svg import to_svg
from mario.untrusted import file_name


def draw(
    study: Collected,
    folder: Path,
    *,
    root: Path | None = None,
    complain: Callable[[str], None] | None = None,
    leave_out: tuple[str, ...] = (),
) -> list[Picture]:
    """Draw the pictures in the plan's ``show``, as files in ``folder`` and as SVG for a page.

    A case without a finished run has no picture. A ``table`` comes with a picture of our scores beside the paper's, if
    the paper prints any. ``root`` is the folder of datasets: label rates and maps that are not in the cache need the
    graph. A picture that cannot be drawn is left out and reported to ``complain``.

    Example:
        >>> import tempfile
        >>> from mario.lab.studies.collect import collect
        >>> from mario.lab.studies.plan import make_plan
        >>> from mario.lab.studies.read import find_study
        >>> folder = Path(tempfile.mkdtemp())
        >>> draw(collect(make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1), folder), folder)
        []
    """
    pictures = []
    for kind, sketch in _sketches(study, root, leave_out):
        name = "-".join(part for part in (study.plan.study, kind, sketch.case, sketch.suffix) if part)
        try:
            drawing = sketch.draw()
        except Exception as error:  # one picture must not cost a page that hours of runs are behind
            known = isinstance(error, MarioError)
            if not known and complain is None:
                raise
            if complain:
                complain(f"no picture {name}: {error if known else f'a fault of mario, {error!r}'}")
            continue
        pictures.append(
            Picture(
                name=name,
                kind=kind,
                case=sketch.case,
                title=drawing.title,
                description=drawing.description,
                caption=drawing.caption,
                width=drawing.figure.get_figwidth(),
                svg=to_svg(drawing.figure, name=name, title=drawing.title, description=drawing.description),
                paths=tuple(save_picture(drawing.figure, folder / file_name(name), title=drawing.title)),
            )
        )
    return pictures


def _sketches(study: Collected, root: Path | None, leave_out: tuple[str, ...]) -> Iterator[tuple[str, Sketch]]:
    for kind in (kind for shown in study.plan.show for kind in TABLES.get(shown, (shown,)) if kind not in leave_out):
        try:
            found = find_picture(kind)
        except MarioError as error:  # of a package that is not installed here
            yield kind, Sketch(partial(_refuse, error))
        else:
            yield from ((kind, sketch) for sketch in found(study, root))


def _refuse(error: MarioError) -> Drawing:
    raise error
