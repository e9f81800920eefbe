"""What a Markdown document gets between its markers: tables of studies, claims, ends of schedules, a summary."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mario.errors import MarioError
from mario.files import read_text, write_text
from mario.lab.statistics.paired import summarize
from mario.lab.studies.plan import Collected, CollectedCase
from mario.report import claims, claims_to_markdown, to_markdown, wide_table
from mario.report.convergence import convergence, convergence_to_markdown
from mario.report.numbers import to_md
from mario.report.summary import summary_to_markdown

BEGIN, END = "<!-- study {}: written by `mario reproduce` -->", "<!-- end of study {} -->"
BEGIN_CLAIMS, END_CLAIMS = "<!-- claims: written by `mario reproduce` -->", "<!-- end of claims -->"
BEGIN_CONVERGENCE, END_CONVERGENCE = "<!-- convergence: written by `mario reproduce` -->", "<!-- end of convergence -->"

BEGIN_SUMMARY, END_SUMMARY = "<!-- summary: written by `mario reproduce` -->", "<!-- end of summary -->"


def check_markers(document: Path, names: Iterable[str]) -> str:
    """The text of ``document``, which must have a place for each study, or for the summary of all."""
    text = read_text(document)
    for name in () if _has(text, BEGIN_SUMMARY, END_SUMMARY) else names:
        begin, end = BEGIN.format(name), END.format(name)
        if not _has(text, begin, end):
            raise MarioError(f"{document} has no place for the study {name}: it needs the lines {begin} and {end}")
    return text


def places(document: Path, names: Sequence[str]) -> list[str]:
    """Those of the studies that ``document`` has a place for; an error if it has none at all."""
    text = check_markers(document, ())
    found = [name for name in names if _has(text, BEGIN.format(name), END.format(name))]
    if not found:
        check_markers(document, names)
    return found


def _has(text: str, begin: str, end: str) -> bool:
    return begin in text and end in text.split(begin, 1)[1]


def write_document(document: Path, studies: Sequence[Collected], whole: Sequence[Collected] = ()) -> None:
    """Replace what stands between the markers of each study; without a finished run it stays.

    The claims are judged by ``whole``, all that has been run, and so is whether the schedules were long enough; the
    summary is of all of it.
    """
    text = check_markers(document, (collected.plan.study for collected in studies))
    for collected in studies:
        begin, end = BEGIN.format(collected.plan.study), END.format(collected.plan.study)
        if _has(text, begin, end) and any(case.results for case in collected.cases):
            text = _between(text, begin, end, section(collected))
    for begin, end, write in (
        (BEGIN_CLAIMS, END_CLAIMS, lambda runs: claims_to_markdown(claims(runs))),
        (BEGIN_CONVERGENCE, END_CONVERGENCE, lambda runs: convergence_to_markdown(convergence(runs))),
        (BEGIN_SUMMARY, END_SUMMARY, summary_to_markdown),
    ):
        if _has(text, begin, end):
            text = _between(text, begin, end, write(whole or studies).strip())
    write_text(document, text)


def _between(text: str, begin: str, end: str, new: str) -> str:
    head, rest = text.split(begin, 1)
    return f"{head}{begin}\n\n{new}\n\n{end}{rest.split(end, 1)[1]}"


def section(collected: Collected) -> str:
    """What a document says of a study: its note and its table."""
    if "validation" in collected.plan.show:
        body = "\n\n".join(validation_table(case) for case in collected.cases)
    else:
        body = to_markdown(wide_table(collected))
    return "\n\n".join(part.strip() for part in (collected.plan.note, body) if part)


def validation_table(case: CollectedCase) -> str:
    """Rows by their validation scores alone, for what is chosen without looking at a test set."""
    lines = [
        f"**{to_md(case.name)}, validation scores**",
        "",
        "| variant | n | id_val | ood_val |",
        "|:---|---:|---:|---:|",
    ]
    for label in dict.fromkeys(result["label"] for result in case.results):
        runs = [result["scores"] for result in case.results if result["label"] == label]
        cells = []
        for key in ("id_val", "ood_val"):
            scores = [run[key] for run in runs if run.get(key) is not None]
            summary = summarize(scores) if scores else None
            spread = f" ± {100 * summary.sd:.2f}" if summary and summary.sd is not None else ""
            cells.append(f"{100 * summary.mean:.2f}{spread}" if summary else "–")
        lines.append(f"| {to_md(label)} | {len(runs)} | {' | '.join(cells)} |")
    return "\n".join(lines)
