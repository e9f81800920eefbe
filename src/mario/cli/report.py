"""``mario report``: what runs have come to, as tables, pictures and one page."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console

from mario.cli.document import places, write_document
from mario.errors import MarioError
from mario.lab.runs.loose import plan_of_runs
from mario.lab.studies.plan import Collected, collect, read_plans
from mario.report import to_rich, wide_table, write_report


def report_runs(runs: Path, out: Path, *, documents: Sequence[Path] = (), root: Path | None = None) -> None:
    """Collect the runs in a folder by its plans, or as they are where it has none, and write page and pictures."""
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
    """The tables of the studies that have one, in the terminal."""
    for study in collected:
        if "table" in study.plan.show:
            console.print(to_rich(wide_table(study)))


def write_tables(
    console: Console, document: Path, collected: Sequence[Collected], everything: Sequence[Collected]
) -> None:
    """The tables of ``collected`` between the markers of ``document``; claims are judged by ``everything``."""
    write_document(document, collected, everything)
    console.print(f"tables written into {document}", highlight=False, markup=False, soft_wrap=True)


def write_pages(console: Console, collected: Sequence[Collected], path: Path, *, root: Path | None = None) -> None:
    """The page at ``path`` and the pictures in the folder ``pictures`` beside it."""
    console.print("drawing the pictures and writing the page ...")
    title = "MARIO: the paper’s tables and figures" if len(collected) > 1 else collected[0].plan.title
    command = "\n".join(dict.fromkeys(line for study in collected for line in study.plan.command.splitlines()))
    page = write_report(path, collected, title=title, command=command, root=root)
    console.print(f"open {page.resolve().as_uri()}", highlight=False, markup=False, soft_wrap=True)
