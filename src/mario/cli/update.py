"""``mario update``: a model goes on training with a new graph."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.embed import GraphIn, Memory, ModelIn, say_notes
from mario.cli.fit import watched
from mario.cli.options import AsJson, Device, Quiet, Root, size
from mario.cli.progress import lasting
from mario.errors import MarioError

if TYPE_CHECKING:
    from mario.embedder import ModelFolder


def update(
    model: ModelIn,
    graph: GraphIn,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the updated model.")],
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="GRAPH", help="The graph of the fit, to train on it, too. Default: where it was, if it is there."
        ),
    ] = None,
    no_replay: Annotated[bool, typer.Option("--no-replay", help="Do not use the graph of the fit.")] = False,
    keep: Annotated[float, typer.Option(min=0.0, help="Weight of what is kept; 0 lets the model forget.")] = 1.0,
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="Optimizer steps.")] = 50,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 3e-3,
    budget: Annotated[str | None, typer.Option(metavar="TIME", help="Training stops after this, such as 5m.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of batches and views.")] = 0,
    memory: Memory = "2g",
    root: Root = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Go on training with next month's graph, while known nodes stay where they are.

    The new model has the same columns, so that old and new vectors can be compared, and a center for each new domain.
    Labels of the new graph are used if a classifier with them is clearly better. Repeat the same command to continue an
    update that was stopped.
    """
    from rich.console import Console

    from mario.embedder.clock import parse_budget

    limit = size("--memory", memory)
    seconds = None if budget is None else parse_budget(budget)
    if replay is not None and no_replay:
        raise MarioError("--replay and --no-replay contradict each other: give one of them")
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    began = time.monotonic()
    from mario.embedder import ModelFolder
    from mario.embedder.folder import ABOUT, CHECKPOINT
    from mario.embedder.updating import graph_of_fit, update as update_model
    from mario.embedder.writing import write_update

    before = ModelFolder.read(model)
    if out.is_file() or (out.is_dir() and any(out.iterdir()) and not _ours(out, ABOUT, CHECKPOINT)):
        raise MarioError(f"{out} is there and is no model: choose another folder for -o")
    if out.resolve() == before.path.resolve():
        raise MarioError("-o is the model itself: choose another folder, so that the old model stays")
    known = replay if replay is not None else None if no_replay else graph_of_fit(before, root=root)
    asked: dict[str, Any] = {"update": before.digest, "keep": keep, "steps": steps, "lr": lr, "seed": seed}
    asked |= {"graph": graph, "replay": replay or ("" if known is None else before.about.graph.source)}
    if (out / ABOUT).exists():
        there = ModelFolder.read(out)
        if there.about.asked != asked:
            raise MarioError(f"{out} holds another model: choose another folder for -o, or remove it")
        console.print("was done already")
        _conclude(console, there, as_json)
        return
    with watched(console, quiet or as_json) as watch:
        updated = update_model(
            before,
            graph,
            replay=known,
            keep=keep,
            steps=steps,
            lr=lr,
            seed=seed,
            checkpoint=out / CHECKPOINT / "update",
            root=root,
            memory=limit,
            device=device,
            budget=seconds,
            watch=watch,
        )
        folder = write_update(updated, before, out, asked=asked)
    say_notes(console, updated.embeddings.notes)
    _conclude(console, folder, as_json)
    console.print(f"written to {out} in {lasting(time.monotonic() - began)}")


def _ours(out: Path, *names: str) -> bool:
    return any((out / name).exists() for name in names)


def _conclude(console: Any, folder: "ModelFolder", as_json: bool) -> None:
    entry = folder.about.history[-1]
    if as_json:
        typer.echo(json.dumps({"model": str(folder.path), "digest": folder.digest, **entry}, indent=2))
        return
    moved, graph = entry["moved"], entry["graph"]
    how = {
        "replay": "the graph of the fit was there and was trained on, too",
        "shared ids": "the graph of the fit was not there; nodes with known ids were kept where they are",
        "distillation": "the graph of the fit was not there and no ids are known; all embeddings were kept near",
    }[entry["kept_by"]]
    console.print(f"{graph['name']}: {graph['nodes']:,} rows, {entry['steps']} steps; {how}")
    if not entry["steps"]:
        console.print("the model has no weights to train: only centers and the classifier could change")
    console.print(
        f"{moved['of']}: mean cosine of vectors before and after {moved['mean']:.4f}, 5 % are below {moved['low']:.4f}"
    )
    console.print(f"classifier: {entry['head']}")
