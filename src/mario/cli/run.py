"""``mario run``: one run, from its spec to its result."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.options import (
    MOST_THREADS,
    Anonymous,
    Dataset,
    Device,
    Domain,
    Encoder,
    Root,
    Set,
    Setting,
    Shift,
    complete_method,
    given_settings,
)
from mario.cli.progress import progress_bar
from mario.cli.starting import starting
from mario.datasets import find_case
from mario.percent import percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.table import Table
    from torch_geometric.data import Data

    from mario.lab.result import RunResult
    from mario.lab.spec import RunSpec
    from mario.training import Epoch


def run(
    dataset: Dataset,
    method: Annotated[
        str | None,
        typer.Option(help="Method: see `mario methods`. The default is mario.", autocompletion=complete_method),
    ] = None,
    shift: Shift = None,
    domain: Domain = None,
    setting: Setting = None,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of weights, views and batches.")] = 0,
    encoder: Encoder = None,
    settings: Set = None,
    preset: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Settings in TOML or JSON, from `mario tune` or a run's settings.json; other options override it.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run. The default is runs/DIGEST.")] = None,
    device: Device = "auto",
    root: Root = None,
    threads: Annotated[
        int, typer.Option(min=0, max=MOST_THREADS, help="Number of torch threads; 0 leaves it to torch.")
    ] = 0,
    controls: Annotated[
        bool, typer.Option(help="Also score raw features, hops and an untrained encoder by the same head.")
    ] = True,
    anonymous: Anonymous = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; result.json has the scores.")] = False,
    tensorboard: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also log to TensorBoard; runs can share a folder.")
    ] = None,
    wandb: Annotated[
        str | None, typer.Option(metavar="PROJECT", help="Also log to a project of Weights & Biases.")
    ] = None,
) -> None:
    """Train one method on one dataset and score it in and out of distribution.

    Repeat the same command to continue a run that was stopped from its last checkpoint.
    """
    if preset is None:
        find_case(dataset, domain, shift, setting)  # a wrong name is an error now, not after torch is imported
    with starting(f"{method or 'mario'} on {dataset}: importing torch", quiet=quiet):
        import torch

        from mario import ranks
        from mario.cli.tracking import open_sinks, show
        from mario.lab.anonymous import ask
        from mario.lab.process import AWAKE
        from mario.lab.result import RunResult
        from mario.lab.runs.controls import control_scores
        from mario.lab.runs.execute import claim, execute, load_on_ranks
        from mario.lab.sinks import followed
        from mario.methods.base import choose_device

    choose_device(device)
    if threads:
        torch.set_num_threads(threads)
    spec = make_spec(
        dataset,
        method,
        preset=preset,
        given=given_settings(settings, encoder),
        domain=domain,
        shift=shift,
        setting=setting,
        split_seed=split_seed,
        seed=seed,
    )
    if anonymous:
        ask([spec.case])
    folder = out or Path("runs") / spec.digest
    with ranks.running(device, awake=AWAKE):
        with starting(f"reading {dataset}", quiet=quiet):
            data = load_on_ranks(spec, root)
        ranks.first(partial(claim, spec, folder))  # before a sink is opened, which may be in the same folder
        with open_sinks(spec, folder, tensorboard, wandb) as sinks:
            say = _Speaker(spec, quiet=quiet, rank=ranks.rank())
            say.begin(data, ranks.size())
            done = (folder / "result.json").exists()
            say.progress(followed(execute(spec, data, folder, device=device), folder, sinks), done=done)
            show(sinks, folder, data, root)
            if ranks.rank() == 0:
                result = RunResult.read(folder)
                with starting("scoring the controls", quiet=quiet or not controls):
                    beside = control_scores(result, data) if controls and not quiet else {}
                say.end(result, beside)


def make_spec(
    dataset: str,
    method: str | None,
    *,
    preset: Path | None,
    given: dict[str, Any],
    domain: str | None,
    shift: str | None,
    setting: str | None,
    split_seed: int,
    seed: int,
) -> "RunSpec":
    """The run that the options and the preset describe; options override the preset."""
    from mario.lab.case import Case
    from mario.lab.presets.file import read_preset
    from mario.lab.spec import RunSpec
    from mario.methods import find

    if preset is not None:
        read = read_preset(preset)
        method = read.method if method is None else method
        given = {**read.of(find("mario" if method is None else method).name), **given}
        if read.dataset in (None, dataset, Case.find(dataset).dataset):  # another dataset has other shifts
            domain, shift, setting = domain or read.domain, shift or read.shift, setting or read.setting
    case = Case.find(dataset, domain=domain, shift=shift, setting=setting)
    return RunSpec.plan(case, "mario" if method is None else method, given=given, split_seed=split_seed, seed=seed)


class _Speaker:
    """What ``mario run`` prints: on rank 0 only."""

    def __init__(self, spec: "RunSpec", *, quiet: bool, rank: int) -> None:
        from rich.console import Console

        self.spec = spec
        self.out = Console(quiet=quiet or rank != 0)
        self.err = Console(stderr=True, quiet=rank != 0)

    def begin(self, data: "Data", size: int) -> None:
        from mario.graphs.facts import remarks

        spec = self.spec
        for fault in data.faults:
            text = f"known fault of {spec.case.dataset}: {fault}"
            self.err.print(text, style="yellow", highlight=False, markup=False)
        for remark in remarks(data):
            self.err.print(remark, style="yellow", highlight=False, markup=False, soft_wrap=True)
        over = f", {size} ranks" if size > 1 else ""
        self.out.print(f"{spec.method} on {spec.case}; seed {spec.seed}, split {spec.split_seed}{over}")

    def progress(self, epochs: "Iterator[Epoch]", *, done: bool) -> None:
        total = self.spec.settings["epochs"]
        with progress_bar(self.out) as bar:
            task = bar.add_task("epochs", total=total, note="")
            for epoch in epochs:
                note = f"loss {epoch.losses['loss']:.3f}" if "loss" in epoch.losses else ""
                for key in ("id_val", "ood_val"):
                    if key in epoch.record:
                        note += f"  {key} {percent(epoch.record[key])}"
                bar.update(task, completed=epoch.number, note=note)
            if done:
                bar.update(task, completed=total, note="was done already")

    def end(self, result: "RunResult", beside: "dict[str, Any] | None") -> None:
        if result.scores.chosen_on:
            self.out.print(score_table(result, (beside or {}).get("scores", {})))
        else:
            self.out.print("nothing was scored, as no label is in train; the embeddings are those of model.safetensors")
        if beside is None:
            self.out.print("no controls: the features are wide; --set probe=logistic scores them too", highlight=False)
        elif "warning" in beside:
            self.err.print(beside["warning"], style="yellow", highlight=False, markup=False)
        for decision in result.decisions or ():
            self.out.print(decision, highlight=False, markup=False)
        self.out.print(f"written to {result.folder}", highlight=False, markup=False, soft_wrap=True)


def score_table(result: "RunResult", controls: "Mapping[str, Mapping[str, float]] | None" = None) -> "Table":
    """The scores of a run, the rule that chose the checkpoint of each, and the controls beside them.

    Test groups are below their average.
    """
    from rich.table import Table

    beside = controls or {}
    table = Table("score", result.metric.replace("_", " "), "checkpoint chosen on", *beside)

    def add(name: str, value: float, rule: str, shown: str) -> None:
        # A control is the same at every checkpoint. Only a head that chooses C has a score by id_val of its own.
        other = [
            scores.get(name, scores.get("ood_test" if name == "ood_test_by_id_val" else name))
            for scores in beside.values()
        ]
        table.add_row(shown, percent(value), rule, *map(percent, other))

    for name, rule in result.scores.chosen_on.items():
        add(name, getattr(result.scores, name), rule, name)
        if name == "ood_test":
            for group, value in (result.scores.groups or {}).items():
                add(group, value, rule, f"  {group}")
    return table
