"""``mario predict``: labels of any graph by a model, with probabilities."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from mario.cli.embed import GraphIn, Memory, ModelIn, Temporary, rows_watched, say_notes
from mario.cli.options import AsJson, Device, Quiet, Root, size
from mario.cli.progress import lasting


def predict(
    model: ModelIn,
    graph: GraphIn,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="A .parquet, .csv or .tsv file.")],
    at_least: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Leave the label empty where its probability is lower.")
    ] = 0.0,
    memory: Memory = "2g",
    temporary: Temporary = None,
    root: Root = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict the label of every node, with calibrated probabilities.

    The file has the columns id, the label by its own name, probability, and p_CLASS for each class.
    """
    from rich.console import Console

    from mario.embedder.output import PREDICTIONS, check_out

    check_out(out, PREDICTIONS)
    limit = size("--memory", memory)
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    began = time.monotonic()
    from mario.embedder import ModelFolder
    from mario.embedder.embedding import predict as predict_graph
    from mario.embedder.output import write_predictions

    folder = ModelFolder.read(model)
    found = predict_graph(folder, graph, root=root, memory=limit, temporary=temporary, device=device)
    with rows_watched(console) as watch:
        path, empty = write_predictions(found, out, at_least=at_least, watch=watch)
    notes = (*found.warnings, *found.embeddings.notes)
    if as_json:
        told = {
            "file": str(path),
            "rows": len(found),
            "label": found.label,
            "classes": list(found.class_names),
            "empty": empty,
            "model": found.embeddings.digest,
            "graph": found.embeddings.graph.fingerprint,
            "notes": list(notes),
        }
        typer.echo(json.dumps(told, indent=2))
        return
    shown = ", ".join(found.class_names[:10]) + (", ..." if len(found.class_names) > 10 else "")
    console.print(f"{found.embeddings.graph.name}: {len(found):,} rows, {found.label} is one of {shown}")
    if at_least:
        console.print(f"{empty:,} rows without a label: no class has a probability of {at_least:g}")
    say_notes(console, notes)
    about = folder.about
    if about.score is not None and about.interval is not None:
        low, high = (100 * end for end in about.interval)
        where = "nodes like those of the fit" if about.rule == "id_val" else "another domain"
        console.print(f"expect {100 * about.score:.1f} % ({low:.1f} to {high:.1f}) {about.metric} on {where}")
    console.print(f"written to {path} in {lasting(time.monotonic() - began)}")
