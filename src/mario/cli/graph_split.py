"""``mario graph split``: how a graph of your own is split, shown before anything is trained."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.options import AsJson, listed
from mario.datasets.folder import FolderDataset
from mario.errors import MarioError
from mario.graphs.card import CARD_FILE, GraphCard, replace_split
from mario.graphs.declared import REST, DeclaredSplit

if TYPE_CHECKING:
    from rich.console import Console

    from mario.graphs.facts import SplitFacts

Names = list[str] | None
_DOMAINS = "names of domains, separated by commas or repeated; or rest; or a fraction of the nodes"


def split(
    graph: Annotated[Path, typer.Argument(help="Folder of the graph, with a graph.toml.")],
    by: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="time, a column of the graph, degree, word, size, pagerank, locality, clustering, random, or given "
            "(the masks of the graph). Other options may imply it.",
        ),
    ] = None,
    shift: Annotated[str | None, typer.Option(help="covariate (the default) or concept.")] = None,
    train_until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Last time of training: 2017, 2017-06, 2017-06-30 or a number.")
    ] = None,
    validation_until: Annotated[str | None, typer.Option(metavar="TIME", help="Last time of validation.")] = None,
    test_until: Annotated[str | None, typer.Option(metavar="TIME", help="Last time of the test.")] = None,
    gap: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Leave out what follows training: '30 days', or a number.")
    ] = None,
    train: Annotated[Names, typer.Option(metavar="NAMES", help=f"What trains: {_DOMAINS}.")] = None,
    validation: Annotated[Names, typer.Option(metavar="NAMES", help="What validates, like --train.")] = None,
    test: Annotated[Names, typer.Option(metavar="NAMES", help="What tests, like --train.")] = None,
    leave_out: Annotated[str | None, typer.Option(metavar="NAME", help="The domain that tests; others train.")] = None,
    descending: Annotated[
        bool | None, typer.Option("--descending/--ascending", help="Train on the largest values.")
    ] = None,
    in_domain: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Share of training domains in id_val and in id_test, each.")
    ] = None,
    environments: Annotated[int | None, typer.Option(min=1, help="Training environments of an order.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help=f"Remove the split from {CARD_FILE}.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the split and write nothing.")] = False,
    split_seed: Annotated[int, typer.Option(help="Seed of what is drawn, for the facts that are shown.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Declare how a graph is split, in its graph.toml, and show the facts; without options only show them.

    Nothing is written if the split cannot be made, or if it has no training or no test nodes.
    """
    from mario.graphs.facts import split_facts

    dataset = FolderDataset(graph)
    given = {
        "by": by,
        "shift": shift,
        "train_until": train_until,
        "validation_until": validation_until,
        "test_until": test_until,
        "gap": gap,
        "train": train,
        "validation": validation,
        "test": test,
        "leave_out": leave_out,
        "descending": descending,
        "in_domain": in_domain,
        "environments": environments,
    }
    table = {key: value for key, value in given.items() if value is not None}
    if remove and table:
        raise MarioError("--remove takes no other option of the split")
    declared = declare(dataset.graph_card, table) if table else None
    if remove and not dry_run:
        replace_split(dataset.folder, None)
        dataset = FolderDataset(graph)
    data = dataset.read()
    card = dataset.card
    domain, asked, setting = card.case()
    if declared is None:
        data = dataset.split(data, domain=domain, shift=asked, split_seed=split_seed)
    else:
        if "train_mask" in data and declared.by != "given":
            raise MarioError(
                f'{graph} has masks of its own, which a split would replace; the only split is by = "given"'
            )
        data = dataset.own_split(data, declared, domain=declared.by, shift=declared.shift, split_seed=split_seed)
    data.setting, data.domain = setting, data.get("domain") or domain
    facts = split_facts(data)
    written = declared is not None and not dry_run
    if written and declared is not None:
        replace_split(dataset.folder, declared.as_table())
    now = declared or dataset.graph_card.split
    shown = now.as_table() if isinstance(now, DeclaredSplit) else None
    if as_json:
        typer.echo(json.dumps({"split": shown, "written": written, **facts.to_dict()}, indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, soft_wrap=True)
    if note := data.get("split_note"):
        console.print(note)
    print_facts(facts, console)
    if written:
        console.print(f"written to {dataset.folder / CARD_FILE}")


def declare(card: GraphCard, table: dict[str, Any]) -> DeclaredSplit:
    """The split that options mean on a graph.

    ``by`` may follow from the others: times mean ``time``, and names the domain that has them.
    """
    parts = {key: listed(table[key]) for key in ("train", "validation", "test") if key in table}
    columns = card.domain_columns()
    if "by" not in table:
        named = {name for names in parts.values() for name in names if name != REST and _fraction(name) is None}
        named |= {table["leave_out"]} if "leave_out" in table else set()
        table = {"by": _implied(table, named, columns), **table}
    time = card.column("time")
    if time is not None and table["by"] == time.name:
        table["by"] = "time"
    known = columns.get(table["by"], ())
    for key, names in parts.items():
        share = _fraction(names[0]) if len(names) == 1 and names[0] not in known else None
        table[key] = share if share is not None else REST if names == [REST] else tuple(names)
    dates = time is not None and time.kind == "date"
    for when in ("train_until", "validation_until", "test_until", "gap"):
        if when in table:
            table[when] = _number(table[when], dates and when != "gap")
    return DeclaredSplit(**table)


def print_facts(facts: "SplitFacts", console: "Console") -> None:
    """The facts as a table and lines, with warnings last."""
    from rich import box
    from rich.table import Table

    console.print(f"split by {facts.by}, {facts.shift}, {facts.setting}")
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("part", facts.unit, "labeled", "classes", "domains"):
        table.add_column(heading, justify="left" if heading == "part" else "right", no_wrap=True)
    for part in facts.parts:
        counts = (part.nodes, part.labeled, part.classes, part.domains)
        table.add_row("in no part" if part.name == "none" else part.name, *(f"{count:,}" for count in counts))
    console.print(table)
    if facts.unit == "nodes":
        console.print(
            f"edges: {100 * facts.between:.1f} % of {facts.edges:,} are between train and ood_test, at "
            f"{100 * facts.reached:.1f} % of the training nodes"
        )
    if facts.to_later is not None:
        console.print(f"edges of training nodes that go to a later node: {100 * facts.to_later:.1f} %")
    for warning in facts.warnings:
        console.print(f"warning: {warning}", style="yellow")


def _implied(table: dict[str, Any], named: set[str], columns: dict[str, tuple[str, ...]]) -> str:
    if any(f"{key}_until" in table for key in ("train", "validation", "test")) or "gap" in table:
        return "time"
    if named:
        found = [column for column, values in columns.items() if named <= set(values)]
        if len(found) == 1:
            return found[0]
        several = f"{' and '.join(found)} have" if found else "no domain of the graph has"
        raise MarioError(f"{several} {', '.join(sorted(named))}; say which column is meant with --by COLUMN")
    raise MarioError("say what the graph is split by: --by time, --by COLUMN, --by degree or --by random")


def _number(text: str, dates: bool) -> int | str:
    """A whole number, or a text. Where times are dates, four digits are a year."""
    return int(text) if text.strip().removeprefix("-").isdecimal() and not dates else text


def _fraction(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    return share if 0 <= share <= 1 else None
