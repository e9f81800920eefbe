"""``mario export``: a model for other programs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from mario.cli.embed import ModelIn
from mario.cli.options import AsJson, Quiet, Root


def export(
    model: ModelIn,
    to: Annotated[str, typer.Option(help="torch (torch.export), onnx or huggingface.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="PATH", help="A .pt2 or .onnx file, or a new folder for huggingface.")
    ],
    sample: Annotated[
        str | None,
        typer.Option(metavar="GRAPH", help="Graph to compare the exported model on. Default: a small random one."),
    ] = None,
    root: Root = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a model for other programs; what was written is run and compared with the model.

    An exported model takes features, edges, their normalized values and the number of each node's domain, and returns
    the embeddings. NAME.json beside it says what these are. The folder for Hugging Face has the weights, config.json
    and a model card; no vectors and no ids of the graph of the fit.
    """
    from rich.console import Console

    from mario.embedder import ModelFolder
    from mario.embedder.export import export as export_model

    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    done = export_model(ModelFolder.read(model), to, out, sample=sample, root=root)
    if as_json:
        told = {"files": [str(file) for file in done.files], "difference": done.difference, "nodes": done.nodes}
        typer.echo(json.dumps(told, indent=2))
        return
    if done.difference is not None:
        console.print(f"equal on {done.nodes:,} nodes up to {done.difference:.0e} of the largest number")
    console.print(f"written to {' and '.join(map(str, done.files)) if to != 'huggingface' else out}")
