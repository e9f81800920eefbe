"""``mario report``: the results of runs as tables, pictures and one page."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mario.cli.options import Anonymous, Documents, Root
from mario.errors import MarioError

if TYPE_CHECKING:
    from rich.console import Console

    from mario.lab.studies.collect import Collected


def report(
    runs: Annotated[
        Path, typer.Argument(help="Folder that contains folders of runs, from `mario reproduce` or `mario run`.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page; pictures go beside it.")] = Path("report.html"),
    document: Documents = None,
    root: Root = None,
    anonymous: Anonymous = False,
) -> None:
    """Write one page about the results of runs, with its pictures.

    The runs are collected by the plans in the folder, or by case and method if it has none.
    """
    from rich.console import Console

    from mario.cli.document import places
    from mario.lab.anonymous import ask
    from mario.lab.studies.collect import collect_all
    from mario.lab.studies.loose import plan_of_runs
    from mario.lab.studies.plan_files import read_plans

    if not runs.is_dir():
        raise MarioError(f"there is no folder {runs}")
    console = Console()
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    plans = read_plans(runs, say) or [plan_of_runs(runs, say)]
    placed = {path: places(path, [plan.study for plan in plans]) for path in document or ()}
    if anonymous:
        ask(case.case for plan in plans for case in plan.cases)
    collected = collect_all(plans, runs)
    show_left_out(console, collected)
    show_tables(console, collected)
    for path, studies in placed.items():
        write_tables(console, path, [study for study in collected if study.plan.study in studies], collected)
    write_pages(console, collected, out, root=root, anonymous=anonymous)


def show_left_out(console: "Console", collected: Sequence["Collected"]) -> None:
    """Print which finished runs are not in the tables and pictures because of their data."""
    from mario.lab.runs.store import DONE

    said = {
        run.job.spec.digest: f"{run.job.name} is left out: {run.reason}"
        for study in collected
        for case in study.cases
        for run in case.failed
        if run.state == DONE
    }
    for line in said.values():
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def show_tables(console: "Console", collected: Sequence["Collected"]) -> None:
    """Print the tables of the studies that show one; of a registered study its outcome and comparisons."""
    from mario.report import outcome, registered, registered_tables, study_table, to_rich

    for study in collected:
        if found := registered(study, collected):
            console.print(" ".join(outcome(found)), highlight=False, markup=False)
            for table in registered_tables(found):
                console.print(to_rich(table))
        elif "table" in study.plan.show:
            console.print(to_rich(study_table(study)))


def write_tables(
    console: "Console", document: Path, collected: Sequence["Collected"], everything: Sequence["Collected"]
) -> None:
    """Write the tables of ``collected`` between the markers of ``document``; ``everything`` decides the claims."""
    from mario.cli.document import write_document

    write_document(document, collected, everything)
    console.print(f"tables written into {document}", highlight=False, markup=False, soft_wrap=True)


def write_pages(
    console: "Console",
    collected: Sequence["Collected"],
    path: Path,
    *,
    root: Path | None = None,
    anonymous: bool = False,
) -> None:
    """Write the page at ``path`` and the pictures in the folder ``pictures`` beside it."""
    from mario.report import write_report

    console.print("drawing the pictures and writing the page ...")
    title = "MARIO: the paper’s tables and figures" if len(collected) > 1 else collected[0].plan.title
    command = "\n".join(dict.fromkeys(line for study in collected for line in study.plan.command.splitlines()))
    print_link(console, write_report(path, collected, title=title, command=command, root=root, anonymous=anonymous))


def print_link(console: "Console", page: Path) -> None:
    console.print(f"open {page.resolve().as_uri()}", highlight=False, markup=False, soft_wrap=True)
