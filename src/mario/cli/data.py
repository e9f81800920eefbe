"""`mario data`: the datasets, where their files are, and whether these are the published ones."""

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from mario.cli.graph_split import print_facts
from mario.cli.listing import print_listing, say
from mario.cli.options import AsJson, Dataset as Name, Root
from mario.cli.starting import starting
from mario.datasets import REGISTRY, Dataset, DatasetCard, find, load_dataset
from mario.datasets.files import FileState
from mario.datasets.folder import FolderDataset
from mario.errors import MarioError
from mario.files import cache_folder
from mario.graphs.rules import PARTS

if TYPE_CHECKING:
    from rich.table import Column

    from mario.graphs.facts import SplitFacts

app = typer.Typer(
    name="data",
    rich_markup_mode=None,
    help="Datasets: their facts, sources, files and known faults.",
    no_args_is_help=True,
)


@app.command("list")
def list_datasets(root: Root = None, as_json: AsJson = False) -> None:
    """List all datasets, and where their files are."""
    places = {dataset.card: dataset.where(root) for dataset in REGISTRY.values()}
    if as_json:
        typer.echo(json.dumps([_facts(card, where) for card, where in places.items()], indent=2))
        return
    cells = []
    for card, where in places.items():
        counts = [f"{count:,}" for count in (card.nodes, card.edges, card.features, card.classes)]
        name = f"{card.name}*" if card.faults else card.name
        cells.append([name, *counts, *_files_cells(card, where), card.license])
    columns = _columns("dataset", "nodes", "edges", "features", "classes", "files", "size", "license")
    print_listing(columns, cells, spare=("license", "size", "files", "classes"))
    for where, names in _together(places).items():
        say(f"in {where}: {', '.join(names)}")
    for card in places:
        for fault in card.faults:
            say(f"* {card.name}: {fault}")


@app.command(short_help="Facts, files, faults and splits of a dataset.")
def show(name: Name, root: Root = None, as_json: AsJson = False) -> None:
    """Show one dataset: its facts, its files, its known faults, and the sizes of its splits (split seed 0).

    Of a graph of your own, also the facts of its split: labels, classes and domains of its parts, edges between them.
    """
    dataset = find(name)
    card, where = dataset.card, dataset.where(root)
    with starting(f"splitting {card.name} to count its parts", quiet=as_json):
        splits = _split_sizes(card, root) if where not in ("absent", "at first use") else []
        own = _own_facts(dataset)
    if as_json:
        told = {"splits": splits} if own is None else {"splits": splits, "split": own[1].to_dict(), "note": own[0]}
        typer.echo(json.dumps(_facts(card, where) | told, indent=2))
        return
    files, size = _files_cells(card, where)
    say(f"{card.name}: {card.what}")
    many = f"{card.graphs:,} graphs, " if card.level == "graph" else ""
    typer.echo(f"{many}{card.nodes:,} nodes, {card.edges:,} edges, {card.features:,} features, {card.classes} classes")
    say(f"domains: {', '.join(card.domains)}; shifts: {', '.join(card.shifts)}; metric: {card.metric}")
    typer.echo(f"setting: {card.setting} by default")
    typer.echo(f"files: {files}" + (f" in {where} ({size})" if files in ("here", "made") else ""))
    say(f"source: {card.source}; license: {card.license}")
    for note in card.notes:
        say(f"note: {note}")
    for fault in card.faults:
        say(f"fault: {fault}")
    if where == "at first use":
        say(f"It takes {size} in {cache_folder() / 'graphs'}; `mario data fetch {name}` makes it now.")
        return
    if where == "absent":
        say(f"The files are absent, so the splits cannot be shown; `mario data fetch {name}` downloads them.")
        return
    cells = [["none" if v is None else f"{v:,}" if isinstance(v, int) else v for v in one.values()] for one in splits]
    print_listing(_columns("domain", "shift", *PARTS, "domains", "envs"), cells, spare=("envs", "domains"))
    if own is not None:
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=True)
        if own[0]:
            console.print(own[0])
        print_facts(own[1], console)


@app.command(short_help="Find a dataset's files, or download or make them.")
def fetch(name: Name, root: Root = None) -> None:
    """Find a dataset's files, or download them (or make generated ones) into the user's cache."""
    dataset = find(name)
    folder = dataset.fetch(root)
    if folder is None:
        typer.echo(f"{name} is generated and needs no files")
        return
    files = len(dataset.card.files)
    typer.echo(f"{name}: {f'{files} file' + 's' * (files > 1) if files else 'made'} in {folder}")
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
                say(f"note: {note}")
        _print_faults(dataset.card)
    if not sound:
        raise typer.Exit(1)


def _facts(card: DatasetCard, where: str) -> dict[str, Any]:
    keys = ("name", "what", "nodes", "edges", "features", "classes", "domains", "shifts", "setting", "metric")
    facts = {key: getattr(card, key) for key in (*keys, "level", "graphs", "source", "license", "faults", "notes")}
    return facts | {"files": len(card.files), "bytes": _bytes(card), "where": where}


def _bytes(card: DatasetCard) -> int | None:
    known = [file.size for file in card.files if file.size is not None]
    return card.cached or (sum(known) if len(known) == len(card.files) else None)


def _state(state: FileState) -> dict[str, Any]:
    where = None if state.where is None else str(state.where)
    return {"path": state.file.path, "where": where, "state": state.state, "sha256": state.file.sha256}


def _files_cells(card: DatasetCard, where: str) -> tuple[str, str]:
    if where == "generated":
        return "none needed", ""
    known = _bytes(card)
    size = "unknown" if known is None else f"{known / 1e6:.1f} MB"
    if not card.files:
        return "made at first use" if where == "at first use" else "made", size
    return "absent" if where == "absent" else "here", size


def _own_facts(dataset: Dataset) -> "tuple[str, SplitFacts] | None":
    """The facts of the split that a graph of one's own is loaded with, and what to say of it."""
    if not isinstance(dataset, FolderDataset):
        return None
    from mario.graphs.facts import split_facts

    data = load_dataset(dataset.folder)
    return str(data.get("split_note") or ""), split_facts(data)


def _split_sizes(card: DatasetCard, root: Path | None) -> list[dict[str, Any]]:
    rows = []
    for domain in card.domains:
        for shift in card.shifts if domain not in card.parts else ("covariate",):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the faults are printed above the table
                try:
                    data = load_dataset(card.identity, domain=domain, shift=shift, root=root, download=False)
                except MarioError:
                    if not card.folder or (domain, shift) == card.case()[:2]:
                        raise
                    continue  # a graph of one's own need not have every shift
            masks = {part: data.get(f"{part}_mask") for part in PARTS}
            sizes = {part: None if mask is None else int(mask.sum()) for part, mask in masks.items()}
            domains = int(data.domain_id.unique().numel()) if "domain_id" in data else None
            environments = int(data.env_id[data.train_mask].unique().numel()) if "env_id" in data else None
            rows.append({"domain": domain, "shift": shift} | sizes | {"domains": domains, "environments": environments})
    return rows


def _columns(*headings: str) -> "list[Column]":
    from rich.table import Column

    words = ("dataset", "files", "license", "domain", "shift")
    return [Column(name, justify="left" if name in words else "right", no_wrap=True) for name in headings]


def _together(places: dict[DatasetCard, str]) -> dict[str, list[str]]:
    """The datasets whose files are in each folder."""
    found: dict[str, list[str]] = {}
    for card, where in places.items():
        if where not in ("absent", "generated", "at first use"):
            found.setdefault(where, []).append(card.name)
    return found


def _print_faults(card: DatasetCard) -> None:
    for fault in card.faults:
        typer.echo(f"fault: {fault}", err=True)
