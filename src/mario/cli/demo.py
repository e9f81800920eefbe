"""``mario demo``."""

from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

import mario
from mario.cli.progress import follow
from mario.errors import MarioError
from mario.experiments.launch import launch
from mario.experiments.plan import collect, make_plan
from mario.experiments.study_files import find_study
from mario.report import tabulate, to_rich, verdict, write_page

MAPPED = ("random-init", "erm", "grace", "mario")


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
    found = collect(plan, runs).cases[0].results
    table = tabulate(found, reference="grace", asked=seeds)
    console.print(to_rich(table))
    console.print(verdict(table, subject="mario"), highlight=False)

    console.print("drawing the curves and the maps of the embeddings ...")
    embeddings = {}
    for method in MAPPED:
        first = next((result for result in found if result["label"] == method), None)
        if first is None:
            raise MarioError(f"the demo has no finished run of {method}")
        data = mario.load_dataset(case.dataset, domain=case.domain, shift=case.shift, split_seed=first["split_seed"])
        z = mario.load(Path(first["folder"]) / "model.safetensors").transform(data)
        ood = data.ood_val_mask | data.ood_test_mask
        embeddings[method] = (z.numpy(), data.y.numpy(), ood.to(torch.bool).numpy())
    page = write_page(
        out / "index.html", title=study.title, results=found, embeddings=embeddings, command=command, asked=seeds
    )
    console.print(f"open {page.resolve().as_uri()}", highlight=False, soft_wrap=True)
