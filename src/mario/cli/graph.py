"""``mario graph``: graphs of your own, from tables to a folder."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli import graph_split
from mario.cli.options import AsJson, Quiet, assignments, listed
from mario.errors import MarioError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from mario.graphs.tables.build import Built, Progress
    from mario.graphs.tables.columns import Column

app = typer.Typer(
    name="graph",
    rich_markup_mode=None,
    help="Graphs of your own: from tables to a folder, and how it is split.",
    no_args_is_help=True,
)
app.command(short_help="Show how a graph is split, or declare it.")(graph_split.split)

Files = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Table of nodes: CSV, TSV, Parquet, JSON lines or JSON, compressed or not; repeatable. A pattern such as "
        "'parts/*.csv' is many files, and NAME=FILE is one of several graphs.",
    ),
]
_SHOWN_COLUMNS = 60


@app.command(short_help="Build a graph folder from tables.")
def build(
    nodes: Files = None,
    edges: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Table of edges, like --nodes; repeatable.")
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="A whole graph instead: .npz, .mat, .graphml, .gml, .gexf, or .pt of PyG."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="New folder of the graph.")] = Path(
        "graph"
    ),
    id_: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Ids of the nodes.")] = None,
    source: Annotated[str | None, typer.Option(metavar="COLUMN", help="Where an edge begins.")] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="Where an edge ends.")] = None,
    label: Annotated[str | None, typer.Option(metavar="COLUMN", help="Classes of the nodes.")] = None,
    domain: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Groups of nodes that may differ; repeatable.")
    ] = None,
    time: Annotated[str | None, typer.Option(metavar="COLUMN", help="Dates, or numbers, of the nodes.")] = None,
    weight: Annotated[str | None, typer.Option(metavar="COLUMN", help="Weights of the edges.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Columns not to use; repeatable.")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=KIND",
            help="Read a column as numeric, categorical, text, date, list or boolean; repeatable.",
        ),
    ] = None,
    by_file: Annotated[
        str | None, typer.Option(metavar="NAME", help="Each file is a graph of its own: the domain NAME says which.")
    ] = None,
    directed: Annotated[
        bool | None,
        typer.Option(
            "--directed/--undirected",
            help="Whether edges have a direction. Default: as the file says; in tables, none.",
        ),
    ] = None,
    drop_dangling: Annotated[
        bool,
        typer.Option("--drop-dangling", help="Leave out edges to nodes that are not in the table, and count them."),
    ] = False,
    fit_on: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE", help="Fit the features on these values of the first domain only; repeatable."),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Graph whose features, classes and domains this one gets, too."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the graph. Default: that of the folder.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Build a graph folder from tables of nodes and edges, or of edges alone.

    The roles of columns are found by name and type, and shown before anything is built; options override them. Numbers,
    categories, texts, dates and lists become features. The folder is a dataset for all other commands, and `graph.toml`
    in it says what was done.
    """
    from rich.console import Console

    from mario.graphs.tables.build import Wishes, build_graph
    from mario.graphs.tables.columns import Roles
    from mario.graphs.tables.opening import open_graph, open_tables

    roles = Roles(
        id=id_,
        source=source,
        target=target,
        label=label,
        time=time,
        weight=weight,
        domain=tuple(listed(domain)),
        drop=tuple(drop or ()),
        kinds=assignments(kind, "--kind", "zip=categorical", "COLUMN=KIND"),
    )
    wishes = Wishes(
        roles=roles,
        directed=directed,
        drop_dangling=drop_dangling,
        like=like,
        name=name,
        keep=tuple(fit_on or ()),
        graph_column=by_file or "graph",
    )
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    if graph is not None:
        if nodes or edges:
            raise MarioError("--graph is a whole graph, so --nodes and --edges cannot be given with it")
        tables, roles = open_graph(graph, roles)
        wishes = replace(wishes, roles=roles)
    else:
        tables = open_tables(nodes or (), edges or (), graphs_by_file=by_file is not None)
    with _watched(console, quiet or as_json) as watch:
        built = build_graph(tables, out, wishes, announce=lambda found: console.print(_columns(found)), watch=watch)
    if as_json:
        typer.echo(json.dumps(_as_json(built), indent=2))
    else:
        _conclude(console, built, out)


@app.command(short_help="Write tables to try the commands on.")
def example(
    folder: Annotated[Path, typer.Argument(help="New folder of the tables.")] = Path("example"),
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
) -> None:
    """Write made-up tables of 1,600 shops and their trade, and those of next month, when shops in a new region open.

    Shops have ids, a region, a date, numbers, a category, a text, missing values, and a kind that is known of two in
    five. `next/answers.csv` has the kinds of the new shops.
    """
    from mario.graphs.tables.example import write_example

    for path in write_example(folder, seed=seed):
        typer.echo(path)


def _conclude(console: "Console", built: "Built", out: Path) -> None:
    card = built.card
    labels = f"{card.labeled:,} labels of {card.classes} classes" if card.classes else "no labels"
    domains = ", ".join(f"{key} ({len(values):,})" for key, values in card.domain_columns().items())
    console.print(
        f"{card.nodes:,} nodes, {card.edges:,} edges, {card.features:,} features, {labels}, "
        f"{f'domains: {domains}' if domains else 'no domains'}"
    )
    for line in built.lines:
        console.print(f"  {line}")
    console.print(f"written to {out}", style="bold")
    console.print(_forecast(built))


def _forecast(built: "Built") -> str:
    """What training and embedding will take."""
    from mario.graphs.tables.forecast import forecast

    card = built.card
    return str(forecast(card.nodes, card.edges, built.entries, card.features))


def _columns(found: "Mapping[str, tuple[Column, ...]]") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("table", "column", "role", "kind", "reason"):
        table.add_column(heading, no_wrap=heading != "reason")
    for name, columns in found.items():
        for column in columns[:_SHOWN_COLUMNS]:
            role = "-" if column.role == "drop" else column.role
            table.add_row(name, column.name, role, column.kind, column.reason)
        if len(columns) > _SHOWN_COLUMNS:
            table.add_row(name, f"{len(columns) - _SHOWN_COLUMNS:,} more", "", "", "")
    return table


def _as_json(built: "Built") -> dict[str, Any]:
    from mario.graphs.tables.forecast import forecast

    card = built.card
    keys = ("name", "nodes", "edges", "features", "classes", "labeled", "class_names", "like")
    columns = {table: [asdict(column) for column in columns] for table, columns in built.columns.items()}
    return {
        "graph": str(card.folder),
        **{key: getattr(card, key) for key in keys},
        "domains": card.domain_columns(),
        "edge_rows": asdict(built.edges),
        "forecast": asdict(forecast(card.nodes, card.edges, built.entries, card.features)),
        "columns": columns,
        "notes": list(built.lines),
    }


@contextmanager
def _watched(console: "Console", quiet: bool) -> "Iterator[Callable[[Progress], None]]":
    """A bar in a terminal, nothing elsewhere."""
    if quiet or not console.is_terminal:
        yield lambda progress: None
        return
    from rich.progress import BarColumn, Progress as Bars, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=console) as bars:
        tasks: dict[str, Any] = {}

        def show(progress: "Progress") -> None:
            if progress.stage not in tasks:
                tasks[progress.stage] = bars.add_task(progress.stage, total=None)
            bars.update(tasks[progress.stage], completed=progress.done, total=max(progress.total, 1))

        yield show
