"""``mario fit``: from a graph to a model folder."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mario.cli.options import AsJson, Dataset, Device, Domain, Root, Set, Setting, Shift, assignments
from mario.cli.progress import lasting, progress_bar
from mario.cli.starting import starting
from mario.errors import MarioError
from mario.percent import percent

if TYPE_CHECKING:
    from rich.console import Console

    from mario.embedder import ModelFolder, Progress
    from mario.embedder.fitting import Watch
    from mario.embedder.folder import About, PickAbout
    from mario.embedder.picking import Pick, Plan
    from mario.embedder.sources import Source

Model = Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder of the model.")]


def fit(
    graph: Dataset,
    out: Model = Path("model"),
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Wall-clock limit of the command, such as 5m or 1h30m.")
    ] = None,
    domain: Domain = None,
    shift: Shift = None,
    setting: Setting = None,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of weights, batches and draws.")] = 0,
    settings: Set = None,
    device: Device = "auto",
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; model.json has everything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Train what suits a graph, choose among several forms of it, and write a model.

    Everything is picked from the graph, with the reason. No label is needed, and no test label is read. Raw features,
    hops and an untrained encoder are scored beside what is trained; if one of them is best, it is the model. Repeat the
    same command to continue a fit that was stopped.
    """
    with starting(f"fit of {graph}: importing torch", quiet=quiet or as_json):
        from mario.embedder.clock import Clock, parse_budget

    seconds = None if budget is None else parse_budget(budget)
    clock = Clock(seconds, spent=0.5)  # to start Python
    from rich.console import Console

    given = assignments(settings, example="hidden_channels=64")
    console = Console(quiet=quiet or as_json, highlight=False, markup=False, soft_wrap=True)
    folder = _fit(
        console,
        graph,
        out,
        given,
        clock,
        quiet=quiet or as_json,
        case={"domain": domain, "shift": shift, "setting": setting, "split_seed": split_seed, "root": root},
        seed=seed,
        device=device,
    )
    if as_json:
        typer.echo(json.dumps({"model": str(folder.path), "digest": folder.digest, **folder.about.as_json()}, indent=2))


def _fit(
    console: "Console",
    graph: str,
    out: Path,
    given: dict[str, str],
    clock: Any,
    *,
    quiet: bool,
    case: dict[str, Any],
    seed: int,
    device: str,
) -> "ModelFolder":
    from mario.embedder import ModelFolder, conclude, fit_graph, plan_of, read_source, write_model
    from mario.embedder.folder import ABOUT, CHECKPOINT
    from mario.graphs.facts import remarks
    from mario.graphs.fingerprint import fingerprint

    if out.is_file() or (
        out.is_dir() and any(out.iterdir()) and not {ABOUT, CHECKPOINT} & {p.name for p in out.iterdir()}
    ):
        raise MarioError(f"{out} is there and is no model: choose another folder for -o")
    source = read_source(graph, **case, seed=seed)
    asked = {"given": given, "seed": seed, "data": fingerprint(source.data), "budget": clock.budget or 0}
    if (out / ABOUT).exists():
        known = ModelFolder.read(out)
        if known.about.asked != asked:
            raise MarioError(f"{out} holds the model of another fit: choose another folder for -o, or remove it")
        _conclude(console, known, again=True)
        return known
    _announce(console, source, plan_of(source.data, given, seed=seed))
    for remark in remarks(source.data):
        console.print(remark, style="yellow")
    with watched(console, quiet) as watch:
        fitted = fit_graph(
            source.data,
            folder=out / CHECKPOINT,
            given=given,
            budget=clock.budget,
            seed=seed,
            device=device,
            watch=watch,
            clock=clock,
        )
        result = conclude(fitted, source, seed=seed, asked=asked)
        folder = write_model(result, out)
    _conclude(console, folder)
    return folder


def _announce(console: "Console", source: "Source", plan: "Plan") -> None:
    facts = plan.facts
    domains = f"{facts.domains} domains by {source.domain or 'domain_id'}" if facts.domains else "no domains"
    labels = f"{facts.labeled:,} labels of {facts.classes} classes" if facts.labeled else "no labels"
    like = "" if facts.homophily is None else f", homophily {facts.homophily:.2f}"
    console.print(
        f"{source.name}: {facts.nodes:,} nodes, {facts.edges:,} edges, {facts.features:,} features "
        f"({facts.feature_kind}, {facts.density:.1%} not zero), {domains}, {labels}{like}"
    )
    console.print(_picks(plan.picks))


@contextmanager
def watched(console: "Console", quiet: bool) -> "Iterator[Watch]":
    """A bar in a terminal, one line per stage elsewhere."""
    if quiet:
        yield lambda progress: None
    elif console.is_terminal:
        with progress_bar(console) as bar:
            task = bar.add_task("begins", total=None, note="")
            yield lambda p: bar.update(
                task, description=f"{p.stage} {p.name}", completed=p.done, total=p.total, note=_note(p)
            )
    else:
        said: set[tuple[str, str]] = set()

        def line(p: "Progress") -> None:
            key = p.stage, p.name
            if key not in said or (p.stage == "training" and p.done == p.total):
                said.add(key)
                console.print(f"{p.stage} {p.name}{f' {p.done}/{p.total}' if p.stage == 'training' else ''}{_note(p)}")

        yield line


def _note(p: "Progress") -> str:
    parts = [] if p.loss is None else [f"loss {p.loss:.3f}"]
    parts += [] if p.left is None else [f"fit done in about {lasting(p.left)}"]
    parts.append(f"memory {memory():.1f} GB")
    return "  " + ", ".join(parts)


def memory() -> float:
    """The most memory that this process has had, in GB; 0 where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    import sys

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def _conclude(console: "Console", folder: "ModelFolder", *, again: bool = False) -> None:
    from mario.embedder.card import verdict

    about = folder.about
    if again:
        console.print("was done already")
        console.print(_picks(about.picks))
    console.print(_scores(about))
    for line in about.decisions:
        console.print(f"  {line}")
    late = [name for name, why in about.left_out.items() if "budget" in why]
    if late:
        console.print(f"not scored, as the budget was used up: {', '.join(late)}", style="yellow")
    for line in about.warnings:
        console.print(line, style="yellow")
    console.print(verdict(about), style="bold")
    console.print(f"written to {folder.path} in {lasting(about.seconds)}, memory {memory():.1f} GB")


def _picks(picks: "Sequence[Pick | PickAbout]") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in ("setting", "value", "reason"):
        table.add_column(heading, no_wrap=heading != "reason")
    for pick in picks:
        table.add_row(pick.setting, str(pick.value), pick.reason)
    return table


def _scores(about: "About") -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("candidate", no_wrap=True)
    labeled = about.score is not None
    if labeled:
        table.add_column(about.metric.replace("_", " "), justify="right", no_wrap=True, min_width=8)
        table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("domain readable", justify="right", min_width=8)
    table.add_column("rank", justify="right")
    table.add_column("")
    for one in about.candidates:
        cells = [one.name]
        if labeled:
            cells += [percent(one.score), f"{percent(one.low)} to {percent(one.high)}"]
        cells += [
            "" if one.readability is None else f"{one.readability:.2f}",
            "" if one.rank is None else f"{one.rank:.0f}",
        ]
        mark = "chosen" if one.name == about.chosen else ("control" if one.control else "")
        table.add_row(*cells, mark, style="bold" if one.name == about.chosen else None)
    return table
