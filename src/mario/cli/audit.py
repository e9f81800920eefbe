"""``mario audit``: what shifts in a graph, and what to expect of it."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.options import AsJson, Dataset, Domain, Quiet, Root, Setting, Shift
from mario.cli.progress import lasting

if TYPE_CHECKING:
    from rich.console import Console

    from mario.audit import Audit, Comparison

_SHOWN = 10


def audit(
    graph: Dataset,
    new: Annotated[
        str | None, typer.Argument(metavar="[NEWGRAPH]", help="A graph with the same columns, to be used next.")
    ] = None,
    domain: Domain = None,
    shift: Shift = None,
    setting: Setting = None,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    root: Root = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say what shifts between the domains of a graph, or between a graph and a new one.

    Every column, the edges and the labels are compared. If nothing shifts, the audit says so: a false alarm comes in
    two of a hundred graphs. No label is read that training may not read.
    """
    from rich.console import Console

    from mario.audit import audit_graph
    from mario.embedder import read_source

    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    case: dict[str, Any] = {"domain": domain, "shift": shift, "setting": setting, "split_seed": split_seed}
    source = read_source(graph, **case, root=root, seed=seed)
    coming = None if new is None else read_source(new, root=root, seed=seed)
    if console.is_terminal and not console.quiet:
        with console.status("reading") as status:
            found = audit_graph(source, coming, seed=seed, say=lambda doing: status.update(doing))
    else:
        found = audit_graph(source, coming, seed=seed)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        return
    _conclude(console, found)


def _conclude(console: "Console", found: "Audit") -> None:
    from mario.audit import verdict_of

    for comparison in (found.against, found.between):
        if comparison is not None and comparison.found:
            console.print(_shifts(comparison))
    for line in verdict_of(found):
        console.print(line, style="bold")
    console.print(f"audited in {lasting(found.seconds)}")


def _shifts(found: "Comparison") -> Any:
    from rich import box
    from rich.table import Table

    from mario.audit.verdict import percent

    rest = "before" if found.what == "new graph" else "elsewhere"
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("what shifts", "domain"):
        table.add_column(heading)
    for heading in ("there", rest, "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    for reading in found.readings:
        if reading.found:
            accuracy = f"{percent(reading.accuracy)} right"
            table.add_row(f"domain read from {reading.what}", "", accuracy, "", _p(reading.p))
    for one in found.shifts[:_SHOWN]:
        table.add_row(one.event, one.domain, percent(one.share), percent(one.rest), _p(one.p))
    if len(found.shifts) > _SHOWN:
        table.add_row(f"and {len(found.shifts) - _SHOWN} more columns", "", "", "", "")
    return table


def _p(value: float) -> str:
    return f"{value:.3f}"
