"""``mario reproduce``: the runs of one or more studies, and what they come to."""

import shlex
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from mario.cli.document import check_markers
from mario.cli.progress import follow, lasting
from mario.cli.report import show_tables, write_pages, write_tables
from mario.errors import MarioError, RunFailedError
from mario.lab.launch import check_launcher, launch
from mario.lab.launch.standing import Pace, Standing, Task, tasks_of
from mario.lab.runs import store
from mario.lab.runs.records import read_records, take_records, write_records
from mario.lab.studies.plan import Plan, PlannedCase, collect, make_plan, read_plans, with_earlier
from mario.lab.studies.read import find_studies
from mario.lab.studies.study import Study
from mario.methods import REGISTRY
from mario.methods.base import hosts

FULL, QUICK = Path("runs/paper"), Path("runs/quick")
EVERY = 300.0  # seconds between two writings of the records


def reproduce(
    names: Sequence[str],
    *,
    out: Path | None = None,
    seeds: int | None = None,
    datasets: Sequence[str] = (),
    methods: Sequence[str] = (),
    quick: bool = False,
    dry_run: bool = False,
    workers: int = 2,
    launcher: str = "local",
    slurm: Mapping[str, str] | None = None,
    retry_failed: bool = False,
    report: Path | None = None,
    documents: Sequence[Path] = (),
    records: Path | None = None,
    root: Path | None = None,
) -> None:
    console = Console()
    out = out or (QUICK if quick else FULL)
    studies = find_studies(names)
    datasets = _named(datasets, _datasets(studies), "dataset or case", studies)
    methods = _named(methods, _methods(studies), "row", studies)
    command = shlex.join(["mario", *sys.argv[1:]])
    chosen = [
        (
            study,
            make_plan(study, seeds=seeds, datasets=datasets, methods=methods, quick=quick, root=root, command=command),
        )
        for study in studies
    ]
    chosen = [(study, plan) for study, plan in chosen if plan.cases]
    if not chosen:
        raise MarioError(f"{_listed(studies)}: no case has both a dataset of --datasets and a row of --methods")
    if documents and quick:
        raise MarioError("a document has what was run in full: leave --quick or --document out")
    for document in documents:
        check_markers(document, [study.name for study, _ in chosen])
    check_launcher(launcher, slurm or {})
    if dry_run:
        recorded = read_records(records) if records else {}
        _foretell(console, [plan for _, plan in chosen], out, workers, retry_failed, recorded)
        return
    if records and (taken := take_records(records, out)):
        console.print(f"{taken} runs are done by {records}", highlight=False, markup=False, soft_wrap=True)
    with store.alone_in(out / "plans", patience=60):  # another launch writes its plans in a moment
        earlier = {plan.study: plan for plan in read_plans(out)}
        whole = [with_earlier(plan, study, earlier.get(study.name), root) for study, plan in chosen]
        for plan in whole:
            plan.write(out)
    for case in dict.fromkeys((case.dataset, case.missing) for plan in whole for case in plan.cases if case.missing):
        console.print(f"left out: {case[1]}", highlight=False, markup=False, soft_wrap=True)
    failure = None
    try:
        jobs = [job for _, plan in chosen for job in plan.jobs()]
        standings = launch(
            jobs, out, workers=workers, launcher=launcher, root=root, retry_failed=retry_failed, slurm=slurm
        )
        follow(console, recording(standings, records, out) if records else standings)
    except RunFailedError as error:
        failure = error
    finally:  # Ctrl-C too
        if records:
            write_records(records, out)
    everything = [collect(plan, out) for plan in read_plans(out)]
    chosen_now = {study.name for study, _ in chosen}
    collected = [study for study in everything if study.plan.study in chosen_now]
    show_tables(console, collected)
    try:
        for document in documents:
            write_tables(console, document, collected, everything)
        write_pages(console, everything, report or out / "report.html", root=root)
    except MarioError as error:
        if failure is None:
            raise
        console.print(str(error), highlight=False, markup=False, soft_wrap=True)  # what ended the runs is the news
    if failure:
        raise failure


def recording(standings: Iterable[Standing], records: Path, out: Path) -> Iterator[Standing]:
    """``standings``, with what is done written into ``records`` every few minutes: a machine may go with its disk."""
    last = time.monotonic()
    for now in standings:
        yield now
        if time.monotonic() - last >= EVERY:
            write_records(records, out)
            last = time.monotonic()


def _foretell(
    console: Console, plans: Sequence[Plan], out: Path, workers: int, retry_failed: bool, recorded: Collection[str]
) -> None:
    """What would run: by study and case, what is done, what several studies share, and how long it will take."""
    tasks = {task.folder.name: task for task in tasks_of((job for plan in plans for job in plan.jobs()), out)}
    for digest, task in tasks.items():
        task.state = store.DONE if digest in recorded else task.state
    seen: dict[str, str] = {}  # which study asks first for a run
    for plan in plans:
        console.print(
            f"{plan.study}: {plan.title}{f' ({plan.paper})' if plan.paper else ''}", highlight=False, markup=False
        )
        for case in plan.cases:
            labels = "; ".join(dict.fromkeys(run.label for run in case.runs))
            line = f"  {case.name}: {len(case.runs)} runs{f' of {labels}' if labels else ''}"
            remarks = [f"left out, {case.missing}"] if case.missing else _remarks(case, tasks, seen)
            seen |= {run.digest: seen.get(run.digest, plan.study) for run in case.runs}
            console.print("; ".join([line, *remarks]), highlight=False, markup=False, soft_wrap=True)
    if retry_failed:
        for task in tasks.values():
            task.state = store.WAITING if task.state in (store.FAILED, store.BROKEN) else task.state
    if not tasks and any(case.missing for plan in plans for case in plan.cases):
        raise MarioError("nothing can run, for want of files: `mario data fetch NAME`, MARIO_DATA or --root would do")
    left = [task for task in tasks.values() if task.undone]
    total = f"in all {len(tasks)} runs, {len(left)} to do, {_duration(left, out, workers)}"
    console.print(total, highlight=False, markup=False, soft_wrap=True)


def _remarks(case: PlannedCase, tasks: Mapping[str, Task], seen: Mapping[str, str]) -> list[str]:
    states = [tasks[digest].state for digest in {run.digest for run in case.runs}]
    done = states.count(store.DONE)
    failed = states.count(store.FAILED) + states.count(store.BROKEN)
    others = [seen[run.digest] for run in case.runs if run.digest in seen]
    return [
        *([f"{done} done"] if done else []),
        *([f"{failed} failed before"] if failed else []),
        *([f"{len(others)} shared with {', '.join(dict.fromkeys(others))}"] if others else []),
    ]


def _duration(left: Sequence[Task], out: Path, workers: int) -> str:
    if not left:
        return "nothing left"
    # Quick runs tell something of the others, though less than runs of the same size do.
    known = next((folder for folder in (out, QUICK) if any(folder.glob("*/result.json"))), None)
    if known is None:
        return f"and no run in {out} yet to tell how long they take"
    pace = Pace.of_folder(known)
    seconds = pace.seconds(left, workers) or 0.0
    guessed = sum(task.kind not in pace.measured for task in left)
    said = f"about {lasting(seconds)} with {workers} workers, by the runs that are done in {known}"
    return said + (f"; {guessed} have no run of their method and dataset there and are guessed" if guessed else "")


def _datasets(studies: Sequence[Study]) -> list[str]:
    return list(dict.fromkeys(name for study in studies for case in study.cases for name in (case.dataset, case.name)))


def _methods(studies: Sequence[Study]) -> list[str]:
    rows = [name for study in studies for row in study.rows for name in (row.label, row.method)]
    if any(study.open for study in studies):
        rows += [*REGISTRY, *(f"{name}+mario" for name in hosts())]
    return list(dict.fromkeys(rows))


def _named(given: Sequence[str], known: Sequence[str], what: str, studies: Sequence[Study]) -> list[str]:
    """The names in ``given``, which may hold several with commas between them; a label may have a comma itself."""
    names: list[str] = []
    for text in given:
        names += [text] if text in known else [part.strip() for part in text.split(",") if part.strip()]
    for name in names:
        if name not in known:
            raise MarioError(
                f"no {what} of {_listed(studies)} is called '{name}'; there are {', '.join(known) or 'none'}"
            )
    return names


def _listed(studies: Sequence[Study]) -> str:
    return ", ".join(study.name for study in studies)
