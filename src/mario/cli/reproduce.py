"""``mario reproduce``: the runs of one or more studies, and their results."""

import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mario.cli.forecast import forecast
from mario.cli.options import (
    MOST_SEEDS,
    Anonymous,
    Documents,
    Root,
    Workers,
    assignments,
    complete_dataset,
    complete_method,
    listed,
)
from mario.cli.progress import follow
from mario.cli.starting import starting
from mario.errors import MarioError, RunFailedError
from mario.lab.launch import launch, launchers, make_launcher
from mario.lab.runs.lock import alone_in
from mario.lab.runs.records import read_records, take_records, write_records

if TYPE_CHECKING:
    from mario.lab.launch import LaunchProgress
    from mario.lab.studies.plan import Plan
    from mario.lab.studies.study import Study

FULL, QUICK = Path("runs/paper"), Path("runs/quick")
EVERY = 300.0  # seconds between two updates of the records


def _complete_study(incomplete: str) -> list[str]:
    names = (entry.name for entry in (files("mario.lab") / "studies").iterdir())
    known = sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))
    return [name for name in ("all", *known) if name.startswith(incomplete)]


def _complete_launcher(incomplete: str) -> list[str]:
    return [name for name in sorted(launchers()) if name.startswith(incomplete)]


def reproduce(
    studies: Annotated[
        list[str],
        typer.Argument(
            help="Studies such as table-concept, `all` of the paper's, or your own .toml file.",
            autocompletion=_complete_study,
        ),
    ],
    seeds: Annotated[
        int | None, typer.Option(min=1, max=MOST_SEEDS, help="Runs per row, instead of the study's number.")
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(help="Only these datasets, separated by commas; repeatable.", autocompletion=complete_dataset),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(help="Only these rows, separated by commas; repeatable.", autocompletion=complete_method),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Every row with one seed and few steps: minutes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would run and how long it takes.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the runs; finished runs are not repeated. Default: runs/paper or runs/quick."),
    ] = None,
    workers: Workers = 2,
    launcher: Annotated[
        str,
        typer.Option(
            help=f"How runs are started: {', '.join(sorted(launchers()))}.", autocompletion=_complete_launcher
        ),
    ] = "local",
    launcher_option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of the launcher; for slurm, of sbatch; repeatable."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed runs again.")] = False,
    report: Annotated[Path | None, typer.Option(help="The page; default OUT/report.html.")] = None,
    document: Documents = None,
    records: Annotated[
        Path | None,
        typer.Option(help="File of results, one line per run: recorded runs count as done, new ones are added."),
    ] = None,
    root: Root = None,
    anonymous: Anonymous = False,
) -> None:
    """Run tables and figures of the paper, and compare the paper's numbers with ours.

    Repeat the same command to continue. A run that fails does not stop the others.
    """
    from rich.console import Console

    with starting("reading the studies"):
        from mario.cli.document import check_markers
        from mario.cli.report import show_left_out, show_tables, write_pages, write_tables
        from mario.lab.anonymous import ask, without_paths
        from mario.lab.runs import other_data
        from mario.lab.studies.collect import collect_all
        from mario.lab.studies.plan import with_earlier
        from mario.lab.studies.plan_files import read_plans, write_plan
        from mario.report.pictures import check_shown

    console = Console()
    out = out or (QUICK if quick else FULL)
    starter = make_launcher(launcher, assignments(launcher_option, "--launcher-option", "partition=cpu"))
    if document and quick:
        raise MarioError("a document shows full runs: leave out --quick or --document")
    chosen = _choose(studies, datasets or (), methods or (), seeds=seeds, quick=quick, root=root)
    if anonymous:
        ask(case.case for _, plan in chosen for case in plan.cases)
        chosen = [(study, replace(plan, command=without_paths(plan.command))) for study, plan in chosen]
    for study, _ in chosen:
        check_shown(study.show)
    for path in document or ():
        check_markers(path, [study.name for study, _ in chosen])
    jobs = [job for _, plan in chosen for job in plan.jobs()]
    say = partial(console.print, highlight=False, markup=False, soft_wrap=True)
    if dry_run:
        for line in forecast(
            [plan for _, plan in chosen],
            [out, QUICK],
            workers=workers,
            retry_failed=retry_failed,
            recorded=read_records(records) if records else {},
            changed=other_data.changed(jobs, out, root),
        ):
            say(line)
        return
    if records and (taken := take_records(records, out)):
        say(f"{taken} runs are done in {records}")
    with alone_in(out / "plans", patience=60):  # another launch writes its plans in a moment
        earlier = {plan.study: plan for plan in read_plans(out, say)}
        whole = [with_earlier(plan, study, earlier.get(study.name), root) for study, plan in chosen]
        for plan in whole:
            write_plan(plan, out)
    for missing in dict.fromkeys(case.missing for plan in whole for case in plan.cases if case.missing):
        say(f"left out: {missing}")
    failure = None
    changed = other_data.changed(jobs, out, root)
    if changed and retry_failed:
        say(f"{len(changed)} runs were done on other data than there is now; they are kept as *.broken-* and run again")
        other_data.set_aside([out / digest for digest in changed])
        changed = {}
    try:
        left = [job for job in jobs if job.spec.digest not in changed]
        launched = launch(left, out, workers=workers, launcher=starter, root=root, retry_failed=retry_failed)
        follow(console, recording(launched, records, out) if records else launched)
    except RunFailedError as error:
        failure = error
    finally:  # also after Ctrl-C
        if records:
            write_records(records, out)
    everything = collect_all(read_plans(out, lambda _: None), out, changed)
    chosen_now = {study.name for study, _ in chosen}
    collected = [study for study in everything if study.plan.study in chosen_now]
    show_left_out(console, everything)
    show_tables(console, collected)
    if changed:
        failure = _with_changed(failure, len(changed))
    try:
        for path in document or ():
            write_tables(console, path, collected, everything)
        write_pages(console, everything, report or out / "report.html", root=root, anonymous=anonymous)
    except MarioError as error:
        if failure is None:
            raise
        say(str(error))  # raise the failure of the runs
    if failure:
        raise failure


def _with_changed(failure: RunFailedError | None, count: int) -> RunFailedError:
    """The error that ends a launch with finished runs on other data, and with ``failure`` if runs failed too."""
    said = f"{count} finished runs are of other data than there is now; use --retry-failed to run them again"
    return RunFailedError(f"{failure}; {said}" if failure else said)


def _choose(
    names: Sequence[str],
    datasets: Sequence[str],
    methods: Sequence[str],
    *,
    seeds: int | None,
    quick: bool,
    root: Path | None,
) -> "list[tuple[Study, Plan]]":
    """The studies and their plans, without those that have none of the chosen datasets and rows."""
    from mario.lab.studies.plan import make_plan
    from mario.lab.studies.read import find_studies

    studies = find_studies(names)
    datasets = _named(datasets, _known_datasets(studies), "dataset or case", studies)
    methods = _named(methods, _known_rows(studies), "row", studies)
    command = shlex.join(["mario", *sys.argv[1:]])
    found = []
    for study in studies:
        plan = make_plan(
            study, seeds=seeds, datasets=datasets, methods=methods, quick=quick, root=root, command=command
        )
        if plan.cases:
            found.append((study, plan))
    if not found:
        raise MarioError(f"{_joined(studies)}: no case has both a dataset of --datasets and a row of --methods")
    return found


def recording(launched: Iterable["LaunchProgress"], records: Path, out: Path) -> Iterator["LaunchProgress"]:
    """Pass ``launched`` on and update ``records`` every few minutes, in case the machine is lost."""
    last = time.monotonic()
    for now in launched:
        yield now
        if time.monotonic() - last >= EVERY:
            write_records(records, out)
            last = time.monotonic()


def _known_datasets(studies: Sequence["Study"]) -> list[str]:
    cases = [case for study in studies for case in study.cases]
    return list(dict.fromkeys(name for case in cases for name in (case.case.dataset, case.name)))


def _known_rows(studies: Sequence["Study"]) -> list[str]:
    from mario.methods import REGISTRY
    from mario.methods.registry import hosts

    rows = [name for study in studies for row in study.rows for name in (row.label, row.method)]
    if any(study.open for study in studies):
        rows += [*REGISTRY, *(f"{name}+mario" for name in hosts())]
    return list(dict.fromkeys(rows))


def _named(given: Sequence[str], known: Sequence[str], what: str, studies: Sequence["Study"]) -> list[str]:
    """The names in ``given``, which are separated by commas; a label may contain a comma itself."""
    names: list[str] = []
    for text in given:
        names += [text] if text in known else listed([text])
    for name in names:
        if name not in known:
            choices = ", ".join(known) or "none"
            raise MarioError(f"no {what} of {_joined(studies)} is called '{name}'; choose from {choices}")
    return names


def _joined(studies: Sequence["Study"]) -> str:
    return ", ".join(study.name for study in studies)
