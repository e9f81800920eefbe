"""``mario report``: the results of runs as tables, pictures and one page."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from mario.cli.document import places, write_document
from mario.errors import MarioError
from mario.lab.studies.collect import Collected, collect
from mario.lab.studies.loose import plan_of_runs
from mario.lab.studies.plan_files import read_plans
from mario.report import study_table, to_rich, write_report


def report_runs(runs: Path, out: Path, *, documents: Sequence[Path] = (), root: Path | None = None) -> None:
    """Collect the runs in a folder by its plans, or by case and method if it has none, and write page and pictures."""
    if not runs.is_dir():
        raise MarioError(f"there is no folder {runs}")
    console = Console()
    plans = read_plans(runs) or [plan_of_runs(runs, partial(console.print, highlight=False, markup=False))]
    placed = {document: places(document, [plan.study for plan in plans]) for document in documents}
    collected = [collect(plan, runs) for plan in plans]
    show_tables(console, collected)
    for document, studies in placed.items():
        write_tables(console, document, [study for study in collected if study.plan.study in studies], collected)
    write_pages(console, collected, out, root=root)


def show_tables(console: Console, collected: Sequence[Collected]) -> None:
    """Print the tables of the studies that show one."""
    for study in collected:
        if "table" in study.plan.show:
            console.print(to_rich(study_table(study)))


def write_tables(
    console: Console, document: Path, collected: Sequence[Collected], everything: Sequence[Collected]
) -> None:
    """Write the tables of ``collected`` between the markers of ``document``; ``everything`` decides the claims."""
    write_document(document, collected, everything)
    console.print(f"tables written into {document}", highlight=False, markup=False, soft_wrap=True)


def write_pages(console: Console, collected: Sequence[Collected], path: Path, *, root: Path | None = None) -> None:
    """Write the page at ``path`` and the pictures in the folder ``pictures`` beside it."""
    console.print("drawing the pictures and writing the page ...")
    title = "MARIO: the paper’s tables and figures" if len(collected) > 1 else collected[0].plan.title
    command = "\n".join(dict.fromkeys(line for study in collected for line in study.plan.command.splitlines()))
    print_link(console, write_report(path, collected, title=title, command=command, root=root))


def print_link(console: Console, page: Path) -> None:
    console.print(f"open {page.resolve().as_uri()}", highlight=False, markup=False, soft_wrap=True)
