"""``mario neighbors``: the nodes that are most like others."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.embed import Memory, ModelIn, rows_watched
from mario.cli.options import AsJson, Device, Quiet, Root, size
from mario.errors import MarioError

if TYPE_CHECKING:
    from torch import Tensor

    from mario.embedder.neighbors import Vectors

_FILES = (".csv", ".tsv", ".parquet")


def neighbors(
    model: ModelIn,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Ids of nodes.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, max=10_000, help="Neighbors per node.")] = 10,
    graph: Annotated[
        str | None, typer.Option(help="Graph to search in. Default: that of the fit, whose vectors the model keeps.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="The neighbors of all nodes, into a file.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="A .csv, .tsv or .parquet file.")
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--approximate",
            help="Compare all pairs, or search an index (usearch). Default: an index where pairs are too many.",
        ),
    ] = None,
    memory: Memory = "2g",
    root: Root = None,
    device: Device = "auto",
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """The nodes whose vectors have the largest cosine with those of some nodes."""
    from rich.console import Console

    if not ids and not every:
        raise MarioError("name the ID of a node, or use --all with -o FILE")
    if ids and every:
        raise MarioError("--all is for all nodes: name no ID beside it")
    if every and out is None:
        raise MarioError("--all needs -o FILE, a .csv, .tsv or .parquet file")
    if out is not None:
        from mario.embedder.output import check_out

        check_out(out, _FILES)
    limit = size("--memory", memory)
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    import torch

    from mario.embedder import ModelFolder
    from mario.embedder.neighbors import nearest, vectors

    found = vectors(ModelFolder.read(model), graph, root=root, memory=limit, device=device)
    rows = torch.arange(len(found.z)) if every else torch.tensor([found.find(one) for one in ids or ()])
    with rows_watched(console) as watch:
        near, cosines = nearest(found.z, rows, k, approximate=None if exact is None else not exact, watch=watch)
    if out is not None:
        _write(found, rows, near, cosines, out)
        console.print(f"{len(rows):,} nodes with {near.size(1)} neighbors each, written to {out}")
        return
    names = _names(found, rows, near)
    if as_json:
        told = [
            {
                "id": own,
                "neighbors": [
                    {"id": one, "cosine": round(cosine, 6)} for one, cosine in zip(others, part.tolist(), strict=True)
                ],
            }
            for (own, others), part in zip(names, cosines, strict=True)
        ]
        typer.echo(json.dumps(told, indent=2, default=str))
        return
    console.print(_table(names, cosines))


def _names(found: "Vectors", rows: "Tensor", near: "Tensor") -> list[tuple[Any, list[Any]]]:
    """The id of each row and those of its neighbors."""
    if found.place is not None:
        back = found.place.new_empty(len(found.z))
        kept = (found.place >= 0).nonzero().view(-1)
        back[found.place[kept]] = kept
        rows, near = back[rows], back[near]
    own = found.ids.take(rows.tolist()).values(0, len(rows)) if found.ids.named else rows.tolist()
    flat = near.reshape(-1).tolist()
    others = found.ids.take(flat).values(0, len(flat)) if found.ids.named else flat
    width = near.size(1)
    return [(one, others[i * width : (i + 1) * width]) for i, one in enumerate(own)]


def _table(names: list[tuple[Any, list[Any]]], cosines: "Tensor") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("id", "neighbor", "cosine"):
        table.add_column(heading, justify="right" if heading == "cosine" else "left", no_wrap=heading == "cosine")
    for (own, others), part in zip(names, cosines.tolist(), strict=True):
        for number, (one, cosine) in enumerate(zip(others, part, strict=True)):
            table.add_row("" if number else str(own), str(one), f"{cosine:.4f}")
    return table


def _write(found: "Vectors", rows: "Tensor", near: "Tensor", cosines: "Tensor", out: Path) -> None:
    from mario.embedder.ids import Ids
    from mario.embedder.output import check_out
    from mario.files import write_whole

    check_out(out, _FILES)
    names = _names(found, rows, near)
    own = [one for one, others in names for _ in others]
    others = [one for _, some in names for one in some]
    flat = cosines.reshape(-1).tolist()
    if out.suffix.lower() == ".parquet":
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.table({"id": Ids.of(own).column, "neighbor": Ids.of(others).column, "cosine": flat})
        write_whole(out, lambda name: pyarrow.parquet.write_table(table, name))
        return

    def write(name: str) -> None:
        with open(name, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, delimiter="\t" if out.suffix.lower() == ".tsv" else ",", lineterminator="\n")
            lines.writerow(["id", "neighbor", "cosine"])
            lines.writerows((a, b, f"{cosine:.6g}") for a, b, cosine in zip(own, others, flat, strict=True))

    write_whole(out, write)
