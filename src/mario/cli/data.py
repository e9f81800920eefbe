"""`mario data`: what datasets there are, whether their files are here, and whether they are the published ones."""

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from mario.graphs.catalog import CATALOG, DatasetCard, find_card
from mario.graphs.files import FileState, file_states, is_made, locate, made_folder
from mario.graphs.rules import PARTS

app = typer.Typer(
    name="data",
    rich_markup_mode=None,
    help="Datasets: what is there, where from, and what is wrong with it.",
    no_args_is_help=True,
)


def _names(incomplete: str) -> list[str]:
    return [name for name in CATALOG if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(help="Dataset, e.g. good-cbas.", autocompletion=_names)]
Root = Annotated[
    Path | None, typer.Option(help="Folder of raw files to look in before $MARIO_DATA and the user's cache.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


@app.command("list")
def list_datasets(root: Root = None, as_json: AsJson = False) -> None:
    """Every dataset, and where its files are."""
    rows = [_card(card) | {"where": _where(card, root)} for card in CATALOG.values()]
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


@app.command(short_help="What a dataset is, its files, faults and splits.")
def show(name: Name, root: Root = None, as_json: AsJson = False) -> None:
    """One dataset: what it is, its files, its known faults, and the sizes of its splits (split seed 0)."""
    card = find_card(name)
    facts = _card(card) | {"where": _where(card, root)}
    there = facts["where"] not in ("absent", "at first use")
    facts["splits"] = _split_sizes(card, root) if there else []
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    files, size = _files_cells(facts)
    typer.echo(f"{card.name}: {card.what}")
    many = f"{card.graphs:,} graphs, " if card.level == "graph" else ""
    typer.echo(f"{many}{card.nodes:,} nodes, {card.edges:,} edges, {card.features:,} features, {card.classes} classes")
    typer.echo(f"domains: {', '.join(card.domains)}; shifts: {', '.join(card.shifts)}; metric: {card.metric}")
    typer.echo(f"setting: {card.setting} unless told")
    typer.echo(f"files: {files}" + (f" in {facts['where']} ({size})" if files in ("here", "made") else ""))
    typer.echo(f"source: {card.source}; license: {card.license}")
    for note in card.notes:
        typer.echo(f"note: {note}")
    for fault in card.faults:
        typer.echo(f"fault: {fault}")
    if not facts["splits"] and card.cached:
        typer.echo(f"It takes {size} in {made_folder(card).parent} once made; `mario data fetch {name}` makes it now.")
        return
    if not facts["splits"]:
        typer.echo(f"The files are absent, so the splits cannot be shown; `mario data fetch {name}` would get them.")
        return
    table = _table("domain", "shift", *PARTS, "domains", "envs")
    for split in facts["splits"]:
        table.add_row(*(f"{value:,}" if isinstance(value, int) else value or "none" for value in split.values()))
    _print(table)


@app.command(short_help="Find a dataset's files, or download or make them.")
def fetch(name: Name, root: Root = None) -> None:
    """Find a dataset's files, or download them (or make what is generated) into the user's cache."""
    card = find_card(name)
    if card.cached:
        from mario.graphs.datasets import load_dataset

        load_dataset(name)
        typer.echo(f"{name}: made in {made_folder(card)}")
        return
    if not card.files:
        typer.echo(f"{name} is generated and needs no files")
        return
    from mario.graphs.sources import find_files

    typer.echo(f"{name}: {len(card.files)} files in {find_files(card, root=root)}")
    _print_faults(card)


@app.command(short_help="Compare checksums of files with the published ones.")
def verify(name: Name, root: Root = None, as_json: AsJson = False) -> None:
    """Compare the checksum of each file with the published one; exit code 1 unless every file is OK."""
    card = find_card(name)
    states = file_states(card, root)
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
            for note in card.notes:
                typer.echo(f"note: {note}")
        _print_faults(card)
    if not sound:
        raise typer.Exit(1)


def _card(card: DatasetCard) -> dict[str, Any]:
    keys = ("name", "what", "nodes", "edges", "features", "classes", "domains", "shifts", "setting", "metric")
    facts = {key: getattr(card, key) for key in (*keys, "level", "graphs", "source", "license", "faults", "notes")}
    known = [file.size for file in card.files if file.size is not None]
    size = sum(known) if len(known) == len(card.files) else None
    return facts | {"files": len(card.files), "bytes": card.cached or size}


def _state(state: FileState) -> dict[str, Any]:
    where = None if state.where is None else str(state.where)
    return {"path": state.file.path, "where": where, "state": state.state, "sha256": state.file.sha256}


def _where(card: DatasetCard, root: Path | None) -> str:
    if card.cached:
        return str(made_folder(card)) if is_made(card) else "at first use"
    if not card.files:
        return "generated"
    folder = locate(card, root)
    return "absent" if folder is None else str(folder)


def _files_cells(row: dict[str, Any]) -> tuple[str, str]:
    if row["where"] == "generated":
        return "none needed", ""
    size = "unknown" if row["bytes"] is None else f"{row['bytes'] / 1e6:.1f} MB"
    if not row["files"]:
        return "made at first use" if row["where"] == "at first use" else "made", size
    return "absent" if row["where"] == "absent" else "here", size


def _split_sizes(card: DatasetCard, root: Path | None) -> list[dict[str, Any]]:
    from mario.graphs.datasets import load_dataset

    rows = []
    for domain in card.domains:
        for shift in card.shifts if domain not in card.parts else ("covariate",):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the faults are printed above the table
                data = load_dataset(card.name, domain=domain, shift=shift, root=root, download=False)
            masks = {part: data.get(f"{part}_mask") for part in PARTS}
            sizes = {part: None if mask is None else int(mask.sum()) for part, mask in masks.items()}
            domains, environments = int(data.domain_id.unique().numel()), int(data.env_id.unique().numel()) - 1
            rows.append({"domain": domain, "shift": shift} | sizes | {"domains": domains, "environments": environments})
    return rows


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

    # Cut to a narrow terminal or pipe the table would lose its numbers; let the terminal wrap it instead.
    whole = Console(width=1000).measure(table).maximum
    Console(width=max(Console().width, whole), highlight=False).print(table)


def _print_faults(card: DatasetCard) -> None:
    for fault in card.faults:
        typer.echo(f"fault: {fault}", err=True)
