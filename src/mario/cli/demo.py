"""``mario demo``: five methods on a small graph, and a page about them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mario.cli.options import MOST_SEEDS, Workers
from mario.cli.progress import follow
from mario.cli.starting import starting

WORKERS = min(2, os.cpu_count() or 1)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the page.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, max=MOST_SEEDS, help="Runs per method, each on its own split.")] = 3,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of ten optimizer steps.")] = 20,
    workers: Workers = WORKERS,
) -> None:
    """Compare MARIO, GRACE, ERM and two controls on GOOD-CBAS under concept shift, and write a page."""
    from rich.console import Console

    with starting("demo: importing torch"):
        from mario.cli.report import print_link
        from mario.lab.launch import launch
        from mario.lab.studies.collect import collect
        from mario.lab.studies.plan import make_plan
        from mario.lab.studies.plan_files import write_plan
        from mario.lab.studies.read import find_study
        from mario.report import entries, study_table, to_rich, verdict, write_report

    console = Console()
    study = find_study("demo")
    cases = (replace(case, schedule=replace(case.schedule, epochs=epochs)) for case in study.cases)
    study = replace(study, cases=tuple(cases))
    command = f"mario demo --seeds {seeds} --epochs {epochs}"
    plan = make_plan(study, seeds=seeds, command=command)
    case = plan.cases[0].case
    labels = ", ".join(row.label for row in study.rows)
    console.print(f"{labels} on {case.dataset}, {case.shift} shift: {epochs * 10} steps each, {seeds} splits and seeds")
    runs = out / "runs"
    write_plan(plan, runs)
    follow(console, launch(plan.jobs(), runs, workers=workers))
    collected = collect(plan, runs)
    console.print(to_rich(study_table(collected, detail=True)))
    found = {entry.label: entry for entry in entries(collected)}
    said = verdict(found[str(plan.subject)], found[str(plan.reference)])
    console.print(said, highlight=False, markup=False)
    console.print("drawing the curves and the maps of the embeddings ...")
    print_link(console, write_report(out / "index.html", [collected], title=study.title, command=command))
