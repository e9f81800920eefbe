"""``mario demo``."""

from pathlib import Path

import torch
from rich.console import Console

import mario
from mario.cli.run import progress_bar
from mario.errors import MarioError
from mario.experiments.comparison import results, run_jobs, side_by_side
from mario.experiments.results import CHECKPOINTS, METHODS
from mario.report import tabulate, to_rich, verdict, write_page

DATASET, DOMAIN, SHIFT = "good-cbas", "color", "concept"
MAPPED = ("random-init", "erm", "grace", "mario")


def run_demo(out: Path, *, seeds: int, epochs: int, workers: int) -> None:
    console = Console()
    console.print(
        f"{', '.join(METHODS)} on {DATASET}, {SHIFT} shift: {epochs * 10} steps each, {seeds} splits and seeds"
    )
    jobs = side_by_side(
        DATASET,
        METHODS,
        domain=DOMAIN,
        shift=SHIFT,
        pairs=[(seed, seed) for seed in range(seeds)],
        epochs=epochs,
        checkpoints=CHECKPOINTS,
    )
    runs = out / "runs"
    with progress_bar(console) as progress:
        task = progress.add_task("steps", total=None, note="starting")
        for standing in run_jobs(jobs, runs, workers=workers):
            note = f"{standing.done_runs}/{standing.total_runs} runs  {', '.join(standing.running)}"
            progress.update(task, completed=standing.done_steps, total=standing.total_steps, note=note)
    found = results(jobs, runs)
    table = tabulate(found, reference="grace", asked=seeds)
    console.print(to_rich(table))
    console.print(verdict(table, subject="mario"), highlight=False)

    console.print("drawing the curves and the maps of the embeddings ...")
    embeddings = {}
    for method in MAPPED:
        first = next((result for result in found if result["method"] == method), None)
        if first is None:
            raise MarioError(f"the demo has no finished run of {method}")
        data = mario.load_dataset(DATASET, domain=DOMAIN, shift=SHIFT, split_seed=first["split_seed"])
        z = mario.load(Path(first["folder"]) / "model.safetensors").transform(data)
        ood = data.ood_val_mask | data.ood_test_mask
        embeddings[method] = (z.numpy(), data.y.numpy(), ood.to(torch.bool).numpy())
    page = write_page(
        out / "index.html",
        title="MARIO on a graph that shifts",
        results=found,
        embeddings=embeddings,
        command=f"mario demo --seeds {seeds} --epochs {epochs}",
        asked=seeds,
    )
    console.print(f"open {page.resolve().as_uri()}", highlight=False, soft_wrap=True)
