"""``mario embed``: vectors of any graph by a model."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mario.cli.options import AsJson, Device, Quiet, Root, size
from mario.cli.progress import lasting, progress_bar

if TYPE_CHECKING:
    from rich.console import Console

    from mario.embedder.output import Watch

ModelIn = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `mario fit` wrote.")]
GraphIn = Annotated[str, typer.Argument(metavar="GRAPH", help="Folder with a graph.toml, or a dataset's name.")]
Memory = Annotated[
    str, typer.Option(metavar="SIZE", help="Memory for matrices, such as 2g; larger ones are in temporary files.")
]
Temporary = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Folder of temporary files. Default: the system's.")
]


def embed(
    model: ModelIn,
    graph: GraphIn,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="A .parquet, .npy, .tsv or .vec (word2vec) file.")
    ],
    columns: Annotated[
        bool, typer.Option("--columns", help="In .parquet, one column per number rather than one of vectors.")
    ] = False,
    narrow: Annotated[
        bool, typer.Option("--narrow", help="Project blocks of more than 1,024 columns to 256, keeping distances.")
    ] = False,
    memory: Memory = "2g",
    temporary: Temporary = None,
    root: Root = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Embed a graph: that of the fit, next month's, or another one with the same columns.

    One row per node, with its id. A .parquet file has the columns id and embedding; its metadata has the digest of the
    model and the fingerprint of the graph. Ids of .npy are in NAME.ids.npy.
    """
    from rich.console import Console

    from mario.embedder.output import EMBEDDINGS, check_out

    check_out(out, EMBEDDINGS)
    limit = size("--memory", memory)
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    began = time.monotonic()
    from mario.embedder import ModelFolder
    from mario.embedder.embedding import embed as embed_graph
    from mario.embedder.output import write_embeddings

    folder = ModelFolder.read(model)
    z = embed_graph(folder, graph, root=root, memory=limit, temporary=temporary, device=device)
    with rows_watched(console) as watch:
        files = write_embeddings(z, out, columns=columns, narrow=narrow, watch=watch)
    if as_json:
        told = {
            "files": [str(file) for file in files],
            "rows": len(z),
            "columns": z.width(narrow=narrow),
            "blocks": {name: [part.start, part.stop] for name, part in z.blocks.columns.items()},
            "model": z.digest,
            "graph": z.graph.fingerprint,
            "notes": list(z.notes),
        }
        typer.echo(json.dumps(told, indent=2))
        return
    blocks = ", ".join(f"{name} {block.shape[1]:,}" for name, block in z.blocks.items())
    narrowed = f", projected to {z.width(narrow=True):,}" if narrow and z.width(narrow=True) < z.width() else ""
    console.print(f"{z.graph.name}: {len(z):,} rows, {z.width():,} columns ({blocks}){narrowed}")
    say_notes(console, z.notes)
    written = " and ".join(str(file) for file in files)
    space = sum(file.stat().st_size for file in files)
    console.print(f"written to {written}, {space / 1e6:,.1f} MB, in {lasting(time.monotonic() - began)}")


@contextmanager
def rows_watched(console: "Console") -> "Iterator[Watch]":
    """A bar over rows in a terminal, nothing elsewhere."""
    if not console.is_terminal or console.quiet:
        yield lambda done, total: None
        return
    with progress_bar(console) as bar:
        task = bar.add_task("writing rows", total=None, note="")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def say_notes(console: "Console", notes: tuple[str, ...]) -> None:
    """What a user should know, one line each."""
    for note in notes:
        console.print(note, style="yellow")
