"""``mario audit``: what shifts in a graph, what to use, and what to expect of it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.options import AsJson, Dataset, Device, Domain, Quiet, Root, Set, Setting, Shift, assignments
from mario.cli.progress import lasting
from mario.cli.starting import starting
from mario.percent import percent

if TYPE_CHECKING:
    from rich.console import Console

    from mario.audit import Audit, Comparison

_SHOWN = 8


def audit(
    graph: Dataset,
    new: Annotated[
        str | None, typer.Argument(metavar="[NEWGRAPH]", help="A graph with the same columns, to be used next.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The page.")] = Path("audit.html"),
    only_shifts: Annotated[bool, typer.Option("--only-shifts", help="Train nothing; say only what shifts.")] = False,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Wall-clock limit, such as 5m: fewer and shorter trainings.")
    ] = None,
    stability: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="TSV with the stability of each node, of the new graph if given."),
    ] = None,
    domain: Domain = None,
    shift: Shift = None,
    setting: Setting = None,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    settings: Set = None,
    device: Device = "auto",
    root: Root = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say what shifts between the domains of a graph or in a new graph, what to use, and what to expect of it.

    Every column, the edges and the labels are compared. If nothing shifts, the audit says so: there is a false alarm
    in two of a hundred graphs. Then candidates are scored on domains whose labels are left out: raw features, hops, an
    untrained encoder, GRACE, MARIO and steady forms. The page has all of it. No test label is read.
    """
    from rich.console import Console

    with starting(f"audit of {graph}: importing torch", quiet=quiet or as_json):
        from mario.audit import audit_graph, read_audited, read_coming
        from mario.cli.fit import watched
        from mario.embedder.clock import parse_budget
        from mario.report.audit_page import write_audit

    seconds = None if budget is None else parse_budget(budget)
    given = assignments(settings, example="hidden_channels=64")
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    _check_files(out, stability, training=not only_shifts)
    case: dict[str, Any] = {"domain": domain, "shift": shift, "setting": setting, "split_seed": split_seed}
    source = read_audited(graph, **case, root=root, seed=seed)
    coming = None if new is None else read_coming(new, source, root=root)
    with watched(console, console.quiet) as watch:
        found = audit_graph(
            source,
            coming,
            training=not only_shifts,
            given=given,
            budget=seconds,
            seed=seed,
            device=device,
            watch=watch,
        )
    write_audit(found, out)
    if stability is not None:
        _write_stability(found, stability, source if coming is None else coming)
    if as_json:
        typer.echo(json.dumps(found.as_json(), indent=2, ensure_ascii=False))
        return
    _conclude(console, found)
    console.print(f"written to {out} in {lasting(found.seconds)}")


def _check_files(out: Path, stability: Path | None, *, training: bool) -> None:
    from mario.errors import MarioError

    for path in (out, stability):
        if path is not None and path.is_dir():
            raise MarioError(f"{path} is a folder: name a file to write to")
    if stability is not None and not training:
        raise MarioError("there is no stability of nodes without a training: leave out --only-shifts or --stability")


def _write_stability(found: "Audit", path: Path, source: Any) -> None:
    from mario.embedder.reading import ids_of
    from mario.errors import RunFailedError
    from mario.files import write_text

    if found.stability is None:
        raise RunFailedError("the budget was over before the stability of nodes: give --budget more time")
    shares = found.stability.new or found.stability.nodes
    ids = range(len(shares)) if source.folder is None else ids_of(source.folder, len(shares)).values(0, len(shares))
    rows = (f"{_cell(one)}\t{share:.4f}" for one, share in zip(ids, shares, strict=True))
    write_text(path, "\n".join(("id\tstability", *rows)) + "\n")


def _cell(value: Any) -> str:
    return " ".join(str(value).split())


def _conclude(console: "Console", found: "Audit") -> None:
    from mario.audit import verdict_of

    if found.scores is not None and found.scores.candidate().score is not None:
        console.print(_scores(found))
    for comparison in (found.against, found.between):
        if comparison is not None and comparison.found:
            console.print(_shifts(comparison))
    for line in filter(None, (found.fresh_said, *found.unseen)):
        console.print(line)
    for line in verdict_of(found):
        console.print(line, style="bold")


def _scores(found: "Audit") -> Any:
    from rich import box
    from rich.table import Table

    scores = found.scores
    assert scores is not None
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("candidate", no_wrap=True)
    table.add_column(scores.metric.replace("_", " "), justify="right")
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("")
    shown = [one for place, one in enumerate(scores.candidates) if place < _SHOWN or one.kind == "control"]
    for one in shown:
        interval = "" if one.low is None or one.high is None else f"{100 * one.low:.0f} to {100 * one.high:.0f} %"
        mark = "chosen" if one.name == scores.chosen else "not trained" if one.kind == "control" else ""
        score = percent(one.score)
        table.add_row(one.name, score, interval, mark, style="bold" if one.name == scores.chosen else None)
    return table


def _shifts(found: "Comparison") -> Any:
    from rich import box
    from rich.table import Table

    from mario.audit.verdict import percent as whole

    rest = "before" if found.what == "new graph" else "elsewhere"
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("what shifts", "domain"):
        table.add_column(heading)
    for heading in ("there", rest, "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    for reading in found.readings:
        if reading.found:
            table.add_row(f"domain read from {reading.what}", "", f"{whole(reading.accuracy)} right", "", _p(reading.p))
    for one in found.shifts[:_SHOWN]:
        table.add_row(one.event, one.domain, whole(one.share), whole(one.rest), _p(one.p))
    if len(found.shifts) > _SHOWN:
        table.add_row(f"and {len(found.shifts) - _SHOWN} more columns", "", "", "", "")
    return table


def _p(value: float) -> str:
    return f"{value:.3f}"
