"""One study of the page: what was run, its tables, pictures and maps, and its downloads."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.evaluation import SETS
from mario.lab.studies.collect import Collected, CollectedCase
from mario.lab.studies.plan import Plan
from mario.methods import Method
from mario.report import maps as run_maps
from mario.report.maps import MapData
from mario.report.numbers import counted
from mario.report.outcome import outcome
from mario.report.page.data import map_group
from mario.report.pictures.curves import SERIES
from mario.report.pictures.draw import draw
from mario.report.pictures.picture import Picture
from mario.report.registered import registered
from mario.report.tables.columns import long_table, to_csv
from mario.report.tables.entries import CONTROLS, entries
from mario.report.tables.latex import to_latex
from mario.report.tables.markdown import to_markdown
from mario.report.tables.notes import faults_of
from mario.report.tables.registered import registered_tables
from mario.report.tables.study import study_table, validation_table
from mario.report.tables.table import Cell, Line, Table, TableColumn
from mario.untrusted import file_name

MAPS = ("map", "map-id-ood")


@dataclass(frozen=True)
class ShownMap:
    """An embedding map: its ``place`` among the maps of the page, and the same in words, numbers and pictures."""

    place: int
    case: str
    words: str
    accuracy: Table
    sizes: Table
    pictures: list[Picture]


@dataclass(kw_only=True)
class StudyPart:
    """What the template ``study.html.j2`` shows of one study."""

    plan: Plan
    facts: dict[str, str]
    missing: dict[str, str]
    faults: dict[str, list[str]]
    failed: list[str]
    outcome: list[str] = field(default_factory=list)
    registered: list[Table] = field(default_factory=list)
    wide: Table | None = None
    long: Table | None = None
    validation: dict[str, Table] = field(default_factory=dict)
    pictures: list[Picture] = field(default_factory=list)
    maps: list[ShownMap] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    downloads: list[tuple[str, str, str]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def tables_first(self) -> bool:
        """A figure of the paper begins with its pictures."""
        return bool({"table", "validation"} & set(self.plan.show))


def study_part(
    study: Collected,
    folder: Path,
    root: Path | None,
    groups: list[dict[str, Any]],
    *,
    maps: bool = True,
    page: Sequence[Collected] = (),
) -> StudyPart:
    """Collect what the page shows of ``study``; pictures go to ``folder``, and the data of its maps to ``groups``.

    ``page`` has all studies of the page, which a registered analysis may need.
    """
    plan = study.plan
    part = StudyPart(
        plan=plan,
        facts=facts_of(study),
        missing={case.name: case.missing for case in study.cases if case.missing},
        faults=faults_of(study),
        failed=[
            f"{run.job.label} on {case.name}, split {run.job.spec.split_seed}, seed {run.job.spec.seed}: {run.reason}"
            for case in study.cases
            for run in case.failed
        ],
    )
    complaints: list[str] = []
    mapped = maps and bool(set(MAPS) & set(plan.show))
    found = {case.name: _maps(plan, case, root, complaints.append) for case in study.cases} if mapped else {}
    drawn = draw(study, folder, root=root, complain=complaints.append, leave_out=() if maps else MAPS)
    beside = [picture for picture in drawn if picture.kind in MAPS and found.get(picture.case)]
    part.pictures = [picture for picture in drawn if picture not in beside]
    for case in study.cases:
        if of_case := found.get(case.name):
            pictures = [picture for picture in beside if picture.case == case.name]
            part.maps.append(_shown_map(len(groups), case.name, of_case, pictures))
            groups.append(map_group(case.name, case.case.domain, of_case, (plan.reference, plan.subject)))
    # The error for a missing dataset has many lines, with the path of each file.
    part.complaints = list(dict.fromkeys(said.splitlines()[0] for said in complaints))
    if analysis := registered(study, page):
        part.outcome, part.registered = outcome(analysis), registered_tables(analysis)
    if any(case.jobs for case in plan.cases):
        _add_tables(part, study)
    return part


def state_of(study: Collected) -> str:
    """How many runs of a study are done, failed and not done, and which cases have no data."""
    there = [case for case in study.cases if not case.missing]
    done, failed = sum(len(case.runs) for case in study.cases), sum(len(case.failed) for case in there)
    unfinished = sum(case.unfinished for case in there)
    missing = [case.name for case in study.cases if case.missing]
    parts = [f"{counted(done, 'run')} done"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{unfinished} not done"] if unfinished else []
    parts += [f"no data for {', '.join(missing)}"] if missing else []
    return ", ".join(parts)


def facts_of(study: Collected) -> dict[str, str]:
    """What was run: datasets, schedule, seeds, and how many runs."""
    seconds = study.frame["seconds"].sum()
    shown = f"{seconds / 60:.1f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
    took = f"; {shown} of training and evaluation in all" if seconds else ""
    return {
        "Datasets": ", ".join(case.name for case in study.cases),
        "Schedule": _alike(study.cases, _schedule),
        "Settings that differ between rows": _alike(study.cases, _unequal),
        "Split seeds and seeds": _alike(study.cases, _seeds),
        "Runs": state_of(study) + took,
    }


def values(found: Iterable[Any]) -> str:
    """Each value once: numbers in order, and consecutive integers as their first and last.

    Example:
        >>> values([2, 0, 1, 1]), values(["b", None, "a"])
        ('0 to 2', 'b, a')
    """
    known = list(dict.fromkeys(str(value) for value in found if value is not None))
    if known and all(re.fullmatch(r"\d+", value) for value in known):
        numbers = sorted(map(int, known))
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]} to {numbers[-1]}"
        return ", ".join(map(str, numbers))
    return ", ".join(known)


def _schedule(case: CollectedCase) -> str:
    trained = case.frame[~case.frame["method"].isin(CONTROLS) & (case.frame["steps"] > 0)]
    if trained.empty:
        return ""
    return f"{values(trained['steps'])} optimizer steps, evaluated at {values(trained['checkpoints'])} checkpoints"


def _unequal(case: CollectedCase) -> str:
    """The settings of every method, such as the learning rate, in which trained rows differ: what is not the method."""
    first: dict[str, Mapping[str, Any]] = {}
    for label, method, settings in zip(*(case.frame[name] for name in ("label", "method", "settings")), strict=True):
        if method not in CONTROLS:
            first.setdefault(label, settings)
    parts = []
    for name in (one.name for one in fields(Method)):
        values_of: dict[str, list[str]] = {}
        for label, settings in first.items():
            if name in settings:
                values_of.setdefault(_setting(settings[name]), []).append(label)
        if len(values_of) > 1:
            each = sorted(values_of.items(), key=lambda item: -len(item[1]))
            rest = "; ".join(f"{value} for {', '.join(labels)}" for value, labels in each[1:])
            parts.append(f"{name} {each[0][0]}, but {rest}")
    return ". ".join(parts)


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _seeds(case: CollectedCase) -> str:
    if case.frame.empty:
        return ""
    splits, seeds = values(case.frame["split_seed"]), values(case.frame["seed"])
    return f"splits {splits}; seeds {seeds}; {counted(case.asked, 'run')} per row planned"


def _alike(cases: Sequence[CollectedCase], say: Callable[[CollectedCase], str]) -> str:
    """What is said of each case, once for the cases of which the same is said."""
    names: dict[str, list[str]] = {}
    for case in cases:
        if said := say(case):
            names.setdefault(said, []).append(case.name)
    if len(names) < 2:
        return "".join(names)
    return ". ".join(f"{', '.join(of)}: {said}" for said, of in names.items())


def _add_tables(part: StudyPart, study: Collected) -> None:
    plan, found = study.plan, entries(study)
    part.wide = study_table(study)
    part.long = long_table(found, title=f"{plan.paper or plan.title}: every case and row, with its test")
    if "validation" in plan.show:
        part.validation = {case.name: validation_table(case) for case in study.cases if len(case.frame)}
    part.files = {
        f"{file_name(plan.study)}.tex": to_latex(part.wide),
        f"{file_name(plan.study)}.md": to_markdown(part.wide),
        f"{file_name(plan.study)}.csv": to_csv(found),
    }
    if len(study.frame):
        kinds = ("table, LaTeX", "table, Markdown", "table, CSV")
        part.downloads = [("file", name, words) for name, words in zip(part.files, kinds, strict=True)]
        part.downloads.append(("runs", f"{file_name(plan.study)}-runs.csv", "runs, CSV"))


def _maps(plan: Plan, case: CollectedCase, root: Path | None, complain: Callable[[str], None]) -> dict[str, MapData]:
    """A map for each row; those that cannot be made, or are on another split, are reported to ``complain``."""
    found: dict[str, MapData] = {}
    for label, folder in run_maps.mapped_runs(plan, case).items():
        try:
            found[label] = run_maps.map_of(folder, root)
        except MarioError as error:
            complain(f"no map of {label} on {case.name}: {error}")
    if more := run_maps.not_mapped(plan, case):
        complain(f"no map of {', '.join(more)} on {case.name}: at most {run_maps.MOST} rows of a case are mapped")
    if not found:
        return {}
    # Side by side they share nodes, classes, domains and sets: those of the split that most rows have.
    shared = Counter(map(_nodes, found.values())).most_common(1)[0][0]
    for label in [label for label, one in found.items() if _nodes(one) != shared]:
        del found[label]
        complain(f"no map of {label} on {case.name}: its run is on another split than the others")
    return found


def _nodes(found: MapData) -> bytes:
    return b"".join(part.tobytes() for part in (found.node, found.y, found.domain, found.split))


def _shown_map(place: int, case: str, maps: Mapping[str, MapData], pictures: list[Picture]) -> ShownMap:
    first = next(iter(maps.values()))
    part = f"{len(first.node):,} of " if first.total > len(first.node) else ""
    words = (
        f"{part}{first.total:,} {first.unit}s, one run of each row at its last checkpoint. The table has means over "
        "runs at the checkpoints that validation chose, so its scores differ from those of this map. t-SNE keeps near "
        "neighbors near; the sizes of clusters and the distances between them mean nothing."
    )
    names = {series.key: series.label for series in SERIES}
    sets = [(i, names[key], int(first.counts[i].sum())) for i, key in enumerate(SETS) if first.counts[i].sum()]
    accuracy = Table(
        name="accuracy",
        title=f"{case}: {first.unit}s whose class is predicted correctly by one run at its last checkpoint, "
        "percent of all in the set",
        columns=(
            TableColumn(head="method", names=True),
            *(TableColumn(head=name, unit=f"{n:,} {first.unit}s") for _, name, n in sets),
        ),
        lines=tuple(
            Line(cells=(Cell(text=label), *(_percent(one, i) for i, _, _ in sets)), label=label)
            for label, one in maps.items()
        ),
    )
    sizes = Table(
        name="sizes",
        title=f"{case}: {first.unit}s of each class in each set",
        columns=(TableColumn(head="class", names=True), *(TableColumn(head=name) for _, name, _ in sets)),
        lines=tuple(
            Line(
                cells=(
                    Cell(text=_class_name(first, k)),
                    *(Cell(text=f"{int(first.counts[i, k]):,}") for i, _, _ in sets),
                )
            )
            for k in range(first.counts.shape[1])
        ),
        style="",
    )
    return ShownMap(place, case, words, accuracy, sizes, pictures)


def _class_name(found: MapData, k: int) -> str:
    return found.class_names[k] if found.class_names else f"class {k}"


def _percent(found: MapData, i: int) -> Cell:
    text = f"{100 * found.correct[i].sum() / max(1, found.counts[i].sum()):.2f}"
    return Cell(text=text, sort=text)
