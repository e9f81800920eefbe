"""``mario reproduce``: the runs and the tables of ``docs/results.md``."""

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console

from mario.cli.run import progress_bar
from mario.errors import MarioError, RunFailedError
from mario.experiments.comparison import Job, results, run_jobs
from mario.experiments.results import CASES, variant_jobs
from mario.experiments.statistics import summarise
from mario.files import write_text
from mario.report import far_from_paper, groups_to_markdown, tabulate, to_markdown, to_rich, verdict

BEGIN, END = "<!-- table {}: written by `mario reproduce` -->", "<!-- end of table {} -->"


def reproduce_results(
    out: Path,
    *,
    only: list[str],
    methods: list[str],
    quick: bool,
    workers: int,
    root: Path | None,
    document: Path | None,
    dry_run: bool,
) -> None:
    console = Console()
    cases = {case.name: case for case in CASES}
    unknown = sorted(set(only) - {*cases, "variants"})
    if unknown:
        raise MarioError(f"there is no case '{unknown[0]}'; there are {', '.join([*cases, 'variants'])}")
    if (methods or quick) and not only:
        raise MarioError("--method and --quick are of one case: name it, such as --only systems-good-cbas-concept")
    if (methods or quick) and document:
        raise MarioError("a document holds whole cases: leave --method and --quick out, or --document")
    if (methods or quick) and "variants" in only:
        raise MarioError("the variants are all of MARIO and run whole: leave --method and --quick out")
    batches: dict[str, list[Job]] = {}
    for name in only or [*cases, "variants"]:
        batches[name] = cases[name].jobs(methods, quick=quick) if name in cases else variant_jobs()
    if document:
        check_markers(document, batches)
    failures = []
    for name, jobs in batches.items():
        if dry_run:
            labels = "; ".join(dict.fromkeys(job.label for job in jobs))
            console.print(f"{name}: {len(jobs)} runs of {labels}", highlight=False)
            continue
        with progress_bar(console) as progress:
            task = progress.add_task(name, total=None, note="starting")
            try:
                for standing in run_jobs(jobs, out, workers=workers, root=root):
                    note = f"{standing.done_runs}/{standing.total_runs} runs  {', '.join(standing.running)}"
                    progress.update(task, completed=standing.done_steps, total=standing.total_steps, note=note)
            except RunFailedError as error:
                failures.append(f"{name}: {error}")
        found = results(jobs, out)
        if name != "variants" and found:
            console.print(to_rich(tabulate(found, reference="grace")))
    if document and not dry_run:
        write_tables(document, batches, out)
        console.print(f"tables written into {document}", highlight=False)
    if failures:
        raise RunFailedError("; ".join(failures))


def check_markers(document: Path, names: Iterable[str]) -> str:
    """The text of ``document``, which must have a place for each table."""
    if not document.is_file():
        raise MarioError(f"there is no file {document}")
    text = document.read_text(encoding="utf-8")
    for name in names:
        begin, end = BEGIN.format(name), END.format(name)
        if begin not in text or end not in text:
            raise MarioError(f"{document} has no place for the table {name}: it needs the lines {begin} and {end}")
    return text


def write_tables(document: Path, batches: dict[str, list[Job]], out: Path) -> None:
    """Replace what stands between the markers of each table by the runs that are done; without a run it stays."""
    text = check_markers(document, batches)
    for name, jobs in batches.items():
        found = results(jobs, out)
        if not found:
            continue
        head, rest = text.split(BEGIN.format(name), 1)
        tail = rest.split(END.format(name), 1)[1]
        text = f"{head}{BEGIN.format(name)}\n\n{_section(name, jobs, found)}\n\n{END.format(name)}{tail}"
    write_text(document, text)


def _section(name: str, jobs: list[Job], found: list[dict]) -> str:
    if name == "variants":
        return _variants(jobs, found)
    table = tabulate(found, reference="grace", asked=len(jobs) // len({job.label for job in jobs}))
    parts = [f"### {name}", to_markdown(table)]
    if name.startswith(("systems-", "full-")):
        parts += [groups_to_markdown(found), far_from_paper(table)]
    else:
        parts.append(verdict(table, subject="mario"))
    return "\n\n".join(part.strip() for part in parts if part)


def _variants(jobs: list[Job], found: list[dict]) -> str:
    lines = [
        "### Paper or released code: validation scores on good-cbas, concept",
        "",
        "| variant | n | id_val | ood_val |",
        "|---|---|---|---|",
    ]
    for label in dict.fromkeys(job.label for job in jobs):
        runs = [result for result in found if result["method"] == label]
        if runs:
            cells = []
            for key in ("id_val", "ood_val"):
                summary = summarise([run["scores"][key] for run in runs])
                cells.append(f"{100 * summary.mean:.2f} ± {100 * (summary.sd or 0):.2f}")
            lines.append(f"| {label} | {len(runs)} | {' | '.join(cells)} |")
    return "\n".join(lines)
