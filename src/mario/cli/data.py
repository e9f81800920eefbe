"""`mario data`: the datasets, where their files are, and whether these are the published ones."""

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from mario.datasets import CATALOG, REGISTRY, Dataset, DatasetCard, find, load_dataset
from mario.datasets.files import FileState
from mario.files import cache_folder
from mario.graphs.rules import PARTS

app = typer.Typer(
    name="data",
    rich_markup_mode=None,
    help="Datasets: their facts, sources, files and known faults.",
    no_args_is_help=True,
)


def _names(incomplete: str) -> list[str]:
    return [name for name in CATALOG if name.startswith(incomplete)]


Name = Annotated[
    str, typer.Argument(help="Dataset, e.g. good-cbas, or a folder with a graph.toml.", autocompletion=_names)
]
Root = Annotated[
    Path | None, typer.Option(help="Folder of raw files to search before $MARIO_DATA and the user's cache.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command("list")
def list_datasets(root: Root = None, as_json: AsJson = False) -> None:
    """List all datasets, and where their files are."""
    rows = [_facts(dataset, root) for dataset in REGISTRY.values()]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = _table("dataset", "nodes", "edges", "features", "classes", "files", "size", "license")
    for row in rows:
        counts = [f"{row[key]:,}" for key in ("nodes", "edges", "features", "classes")]
        name = f"{row['name']}[red]*[/red]" if row["faults"] else row["name"]
        table.add_row(name, *counts, *_files_cells(row), row["license"])
    _print(table)
    for row in rows:
        if row["where"] not in ("absent", "generated", "at first use"):
            typer.echo(f"{row['name']}: {row['where']}")
    for row in rows:
        for fault in row["faults"]:
            typer.echo(f"* {fault}")


@app.command(short_help="Facts, files, faults and splits of a dataset.")
def show(name: Name, root: Root = None, as_json: AsJson = False) -> None:
    """Show one dataset: its facts, its files, its known faults, and the sizes of its splits (split seed 0)."""
    dataset = find(name)
    card, facts = dataset.card, _facts(dataset, root)
    loadable = facts["where"] not in ("absent", "at first use")
    facts["splits"] = _split_sizes(card, root) if loadable else []
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    files, size = _files_cells(facts)
    typer.echo(f"{card.name}: {card.what}")
    many = f"{card.graphs:,} graphs, " if card.level == "graph" else ""
    typer.echo(f"{many}{card.nodes:,} nodes, {card.edges:,} edges, {card.features:,} features, {card.classes} classes")
    typer.echo(f"domains: {', '.join(card.domains)}; shifts: {', '.join(card.shifts)}; metric: {card.metric}")
    typer.echo(f"setting: {card.setting} by default")
    typer.echo(f"files: {files}" + (f" in {facts['where']} ({size})" if files in ("here", "made") else ""))
    typer.echo(f"source: {card.source}; license: {card.license}")
    for note in card.notes:
        typer.echo(f"note: {note}")
    for fault in card.faults:
        typer.echo(f"fault: {fault}")
    if facts["where"] == "at first use":
        typer.echo(f"It takes {size} in {cache_folder() / 'graphs'}; `mario data fetch {name}` makes it now.")
        return
    if facts["where"] == "absent":
        typer.echo(f"The files are absent, so the splits cannot be shown; `mario data fetch {name}` downloads them.")
        return
    table = _table("domain", "shift", *PARTS, "domains", "envs")
    for split in facts["splits"]:
        table.add_row(*("none" if v is None else f"{v:,}" if isinstance(v, int) else v for v in split.values()))
    _print(table)


@app.command(short_help="Find a dataset's files, or download or make them.")
def fetch(name: Name, root: Root = None) -> None:
    """Find a dataset's files, or download them (or make generated ones) into the user's cache."""
    dataset = find(name)
    folder = dataset.fetch(root)
    if folder is None:
        typer.echo(f"{name} is generated and needs no files")
        return
    files = len(dataset.card.files)
    typer.echo(f"{name}: {_count(files) if files else 'made'} in {folder}")
    _print_faults(dataset.card)


@app.command(short_help="Compare checksums of files with the published ones.")
def verify(name: Name, root: Root = None, as_json: AsJson = False) -> None:
    """Compare the checksum of each file with the published one; exit code 1 unless every file is OK."""
    dataset = find(name)
    states = dataset.states(root)
    sound = all(state.state == "OK" for state in states)
    if as_json:
        typer.echo(json.dumps({"name": name, "ok": sound, "files": [_state(state) for state in states]}, indent=2))
    elif not states:
        typer.echo(f"{name} is generated and needs no files")
    else:
        for state in states:
            size = "?" if state.file.size is None else f"{state.file.size:,}"
            checksum = (state.file.sha256 or "none known")[:16]
            typer.echo(f"{state.state:<8}  {checksum:<16}  {size:>11}  {state.where or state.file.path}")
        if not sound:
            for note in dataset.card.notes:
                typer.echo(f"note: {note}")
        _print_faults(dataset.card)
    if not sound:
        raise typer.Exit(1)


def _facts(dataset: Dataset, root: Path | None) -> dict[str, Any]:
    card = dataset.card
    keys = ("name", "what", "nodes", "edges", "features", "classes", "domains", "shifts", "setting", "metric")
    facts = {key: getattr(card, key) for key in (*keys, "level", "graphs", "source", "license", "faults", "notes")}
    known = [file.size for file in card.files if file.size is not None]
    size = sum(known) if len(known) == len(card.files) else None
    return facts | {"files": len(card.files), "bytes": card.cached or size, "where": dataset.where(root)}


def _state(state: FileState) -> dict[str, Any]:
    where = None if state.where is None else str(state.where)
    return {"path": state.file.path, "where": where, "state": state.state, "sha256": state.file.sha256}


def _files_cells(row: dict[str, Any]) -> tuple[str, str]:
    if row["where"] == "generated":
        return "none needed", ""
    size = "unknown" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f} MB"
    if not row["files"]:
        return "made at first use" if row["where"] == "at first use" else "made", size
    return "absent" if row["where"] == "absent" else "here", size


def _split_sizes(card: DatasetCard, root: Path | None) -> list[dict[str, Any]]:
    rows = []
    for domain in card.domains:
        for shift in card.shifts if domain not in card.parts else ("covariate",):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the faults are printed above the table
                data = load_dataset(card.identity, domain=domain, shift=shift, root=root, download=False)
            masks = {part: data.get(f"{part}_mask") for part in PARTS}
            sizes = {part: None if mask is None else int(mask.sum()) for part, mask in masks.items()}
            domains = int(data.domain_id.unique().numel()) if "domain_id" in data else None
            environments = int(data.env_id[data.train_mask].unique().numel()) if "env_id" in data else None
            rows.append({"domain": domain, "shift": shift} | sizes | {"domains": domains, "environments": environments})
    return rows


def _count(files: int) -> str:
    return f"{files} file{'s' if files > 1 else ''}"


def _table(*headings: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in headings:
        number = heading not in ("dataset", "files", "license", "domain", "shift")
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    return table


def _print(table: Any) -> None:
    from rich.console import Console

    # A table cut to a narrow terminal or pipe would lose numbers; let the terminal wrap it instead.
    whole = Console(width=1000).measure(table).maximum
    Console(width=max(Console().width, whole), highlight=False).print(table)


def _print_faults(card: DatasetCard) -> None:
    for fault in card.faults:
        typer.echo(f"fault: {fault}", err=True)
