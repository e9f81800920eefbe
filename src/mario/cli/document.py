"""The parts of a Markdown document between markers: outcomes and tables of studies, claims, convergence, a summary."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mario.errors import MarioError
from mario.files import write_text
from mario.lab.studies.collect import Collected, labeled_frame
from mario.report import (
    Registered,
    claims,
    claims_table,
    outcome,
    registered,
    registered_tables,
    study_table,
    to_markdown,
    validation_table,
)
from mario.report.convergence import convergence, convergence_table
from mario.report.pictures.registered import registered_lines, registered_picture
from mario.report.summary import summary_table
from mario.report.svg import to_svg
from mario.report.tables.markdown import escape_markdown
from mario.report.tables.table import Table
from mario.untrusted import file_name, read_text


def markers(part: str) -> tuple[str, str]:
    """The lines around ``part``: ``study NAME``, ``outcome NAME``, ``claims``, ``convergence`` or ``summary``."""
    return f"<!-- {part}: written by `mario reproduce` -->", f"<!-- end of {part} -->"


def check_markers(document: Path, names: Iterable[str]) -> str:
    """The text of ``document``, which must have a place for each study, or for the summary of all."""
    text = read_text(document)
    for name in () if _has(text, "summary") else names:
        if not _has(text, f"study {name}"):
            begin, end = markers(f"study {name}")
            raise MarioError(f"{document} has no place for the study {name}: it needs the lines {begin} and {end}")
    return text


def places(document: Path, names: Sequence[str]) -> list[str]:
    """The studies that ``document`` has a place for; an error if it has none."""
    text = check_markers(document, ())
    found = [name for name in names if _has(text, f"study {name}")]
    if not found:
        check_markers(document, names)
    return found


def write_document(document: Path, studies: Sequence[Collected], whole: Sequence[Collected] = ()) -> None:
    """Replace the text between the markers of each study; a study without a finished run keeps its text.

    ``whole``, all that has been run, decides the claims, the convergence of the schedules, and the summary, which are
    about the paper: without a study of the paper among it, they keep their text. The outcome of a registered study has
    a picture, which is written beside the document.
    """
    text = check_markers(document, (study.plan.study for study in studies))
    whole = whole or studies
    for study in studies:
        found = registered(study, whole)
        if found and _has(text, f"outcome {study.plan.study}"):
            text = _replace(text, f"outcome {study.plan.study}", outcome_part(found, document.parent))
        if len(study.frame):
            text = _replace(text, f"study {study.plan.study}", section(study, found))
    for part, make in PARTS.items() if any(study.plan.paper for study in whole) else ():
        if _has(text, part):
            text = _replace(text, part, to_markdown(make(whole)).strip())
    write_text(document, text)


def section(study: Collected, found: Registered | None = None) -> str:
    """What a document says about a study: its note and its table, or the tables of its registered analysis."""
    if found:
        tables: Iterable[Table] = registered_tables(found)
    elif "validation" in study.plan.show:
        tables = map(validation_table, study.cases)
    else:
        tables = [study_table(study)]
    return "\n\n".join(part.strip() for part in (study.plan.note, *map(to_markdown, tables)) if part)


def outcome_part(found: Registered, folder: Path) -> str:
    """The outcome of a registered study in sentences and, if a column is done, one picture in ``folder``."""
    said = " ".join(map(escape_markdown, outcome(found)))
    lines = registered_lines(found)
    if not lines:
        return said
    drawing, name = registered_picture(found), f"{file_name(found.study)}-columns"
    svg = to_svg(drawing.figure, name=name, title=drawing.title, description=drawing.description)
    # The ink is the text color of the page around it, which an image does not have: make it dark on white.
    write_text(folder / f"{name}.svg", svg.replace('style="', 'style="background: #fff; ', 1) + "\n")
    return f"{said}\n\n![{drawing.title}]({name}.svg)\n\n{escape_markdown(drawing.caption)}"


def _convergence(studies: Sequence[Collected]) -> Table:
    runs = (run for study in studies for case in study.cases for run in case.runs)
    return convergence_table(convergence(labeled_frame(runs)))


PARTS: dict[str, Callable[[Sequence[Collected]], Table]] = {
    "claims": lambda studies: replace(claims_table(claims(studies)), title=""),  # a heading of the document names it
    "convergence": _convergence,
    "summary": summary_table,
}
"""What a document may have besides tables of studies."""


def _has(text: str, part: str) -> bool:
    begin, end = markers(part)
    return begin in text and end in text.split(begin, 1)[1]


def _replace(text: str, part: str, new: str) -> str:
    if not _has(text, part):
        return text
    begin, end = markers(part)
    head, rest = text.split(begin, 1)
    return f"{head}{begin}\n\n{new}\n\n{end}{rest.split(end, 1)[1]}"
