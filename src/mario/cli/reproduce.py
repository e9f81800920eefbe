"""``mario reproduce``: the runs and the tables of ``docs/results.md``."""

from pathlib import Path

from rich.console import Console

from mario.cli.run import progress_bar
from mario.errors import MarioError, RunFailedError
from mario.experiments.comparison import Job, results, run_jobs
from mario.experiments.results import CASES, variant_jobs
from mario.experiments.statistics import summarise
from mario.files import write_text
from mario.report import tabulate, to_markdown, to_rich, verdict

BEGIN, END = "<!-- tables: written by `mario reproduce` -->", "<!-- end of tables -->"


def reproduce_results(
    out: Path, *, only: list[str], workers: int, root: Path | None, document: Path | None, dry_run: bool
) -> None:
    console = Console()
    batches: dict[str, list[Job]] = {case.name: case.jobs() for case in CASES} | {"variants": variant_jobs()}
    unknown = sorted(set(only) - set(batches))
    if unknown:
        raise MarioError(f"there is no case '{unknown[0]}'; there are {', '.join(batches)}")
    if document:
        check_markers(document)
    failures = []
    for name in only or list(batches):
        jobs = batches[name]
        if dry_run:
            console.print(f"{name}: {len(jobs)} runs", highlight=False)
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


def check_markers(document: Path) -> str:
    """The text of ``document``, which must have a place for tables."""
    if not document.is_file():
        raise MarioError(f"there is no file {document}")
    text = document.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        raise MarioError(f"{document} has no place for tables: it needs the lines {BEGIN} and {END}")
    return text


def write_tables(document: Path, batches: dict[str, list[Job]], out: Path) -> None:
    """Replace what stands between the markers of ``document`` by the tables of all runs that are done."""
    text = check_markers(document)
    parts = []
    for name, jobs in batches.items():
        found = results(jobs, out)
        if not found:
            continue
        if name == "variants":
            parts.append(_variants(jobs, found))
            continue
        table = tabulate(found, reference="grace", asked=len(jobs) // len({job.label for job in jobs}))
        parts += [f"### {name}", to_markdown(table), verdict(table, subject="mario")]
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    whole = f"{head}{BEGIN}\n\n" + "\n\n".join(parts) + f"\n\n{END}{tail}"
    write_text(document, whole)


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
