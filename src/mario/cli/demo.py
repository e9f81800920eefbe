"""``mario demo``."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mario.cli.progress import follow
from mario.lab.launch import launch
from mario.lab.studies.plan import collect, make_plan
from mario.lab.studies.read import find_study
from mario.report import tabulate, to_rich, verdict, write_report


def run_demo(out: Path, *, seeds: int, epochs: int, workers: int) -> None:
    console = Console()
    study = find_study("demo")
    study = replace(study, cases=tuple(replace(case, epochs=epochs) for case in study.cases))
    command = f"mario demo --seeds {seeds} --epochs {epochs}"
    plan = make_plan(study, seeds=seeds, command=command)
    case = plan.cases[0]
    labels = ", ".join(row.label for row in study.rows)
    console.print(f"{labels} on {case.dataset}, {case.shift} shift: {epochs * 10} steps each, {seeds} splits and seeds")
    runs = out / "runs"
    plan.write(runs)
    follow(console, launch(plan.jobs(), runs, workers=workers))
    collected = collect(plan, runs)
    table = tabulate(collected.cases[0].results, reference="grace", asked=seeds)
    console.print(to_rich(table))
    console.print(verdict(table, subject="mario"), highlight=False, markup=False)

    console.print("drawing the curves and the maps of the embeddings ...")
    page = write_report(out / "index.html", [collected], title=study.title, command=command)
    console.print(f"open {page.resolve().as_uri()}", highlight=False, markup=False, soft_wrap=True)
