"""``mario run``."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch_geometric.data import Data

from mario import ranks
from mario.cli.tracking import show, sinks_of
from mario.datasets import find as find_dataset
from mario.files import read_json
from mario.lab.presets.file import read_preset
from mario.lab.runs.execute import Run, claim, execute
from mario.lab.sinks import Sink, followed
from mario.methods import find
from mario.methods.base import choose_device

RULE = {"id_test": "id_val", "ood_test": "ood_val", "ood_test_by_id_val": "id_val"}  # results before chosen_on


def progress_bar(console: Console) -> Progress:
    """The one look of progress: what, how far, time left, and whatever ``note`` says."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )


def score_table(result: Mapping[str, Any]) -> Table:
    """The scores of a run and what chose the checkpoint of each; test groups stand below the score they average to."""
    scores = result["scores"]
    table = Table("score", result["metric"].replace("_", " "), "checkpoint chosen on")
    for name, rule in scores.get("chosen_on", RULE).items():
        if name not in scores:
            continue
        table.add_row(name, f"{100 * scores[name]:.2f} %", rule)
        if name == "ood_test":
            for group, value in scores.get("groups", {}).items():
                table.add_row(f"  {group}", f"{100 * value:.2f} %", rule)
    return table


def run_one(
    dataset: str,
    method: str | None,
    *,
    shift: str | None,
    domain: str | None,
    setting: str | None,
    split_seed: int,
    seed: int,
    given: Mapping[str, Any],
    settings_file: Path | None,
    out: Path | None,
    device: str,
    root: Path | None,
    threads: int,
    quiet: bool,
    tensorboard: Path | None = None,
    wandb: str | None = None,
) -> None:
    choose_device(device)
    if threads:
        torch.set_num_threads(threads)
    if settings_file is not None:
        said = read_preset(settings_file)
        method = method or said.method
        given = {**said.of(find(method or "mario").name), **given}
        # The domain and shift of another dataset do not apply to this one.
        if said.dataset in (None, dataset, find_dataset(dataset).card.identity):
            domain, shift, setting = domain or said.domain, shift or said.shift, setting or said.setting
    run = Run.plan(
        dataset,
        method or "mario",
        domain=domain,
        shift=shift,
        setting=setting,
        split_seed=split_seed,
        seed=seed,
        given=given,
    )
    folder = out or Path("runs") / run.digest()
    with ranks.running(device):
        data = run.load(root)
        ranks.first(partial(claim, run, folder))  # a sink may lie in it, and none is opened for a run that is refused
        with sinks_of(run, folder, tensorboard, wandb) as sinks:
            _carry_out(run, data, folder, sinks, device=device, root=root, quiet=quiet)


def _carry_out(
    run: Run, data: Data, folder: Path, sinks: Sequence[Sink], *, device: str, root: Path | None, quiet: bool
) -> None:
    spoken = ranks.rank() == 0  # one of the ranks is enough
    console = Console(quiet=quiet or not spoken)
    complaints = Console(stderr=True, quiet=not spoken)
    for fault in data.faults:
        complaints.print(f"known fault of {run.dataset}: {fault}", style="yellow", highlight=False, markup=False)
    done = (folder / "result.json").exists()
    over = f", {ranks.size()} ranks" if ranks.size() > 1 else ""
    console.print(
        f"{run.method} on {run.dataset}, {run.domain}, {run.shift}, {run.setting}; "
        f"seed {run.seed}, split {run.split_seed}{over}"
    )
    with progress_bar(console) as progress:
        task = progress.add_task("epochs", total=run.settings["epochs"], note="")
        for epoch in followed(execute(run, data, folder, device=device), folder, sinks):
            note = f"loss {epoch.losses['loss']:.3f}" if "loss" in epoch.losses else ""
            for key in ("id_val", "ood_val"):
                if key in epoch.record:
                    note += f"  {key} {epoch.record[key]:.3f}"
            progress.update(task, completed=epoch.number, note=note)
        if done:
            progress.update(task, completed=run.settings["epochs"], note="was done already")
    show(sinks, folder, data, root)
    if spoken:
        console.print(score_table(read_json(folder / "result.json")))
        console.print(f"written to {folder}", highlight=False, markup=False, soft_wrap=True)
