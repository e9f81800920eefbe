"""Studies as files.

``studies/NAME.toml`` lists datasets, shifts, settings, methods and variants, and what to show; ``schedules.toml`` says
how long each dataset is trained and with how many seeds. docs/experiments.md describes the format, which also holds for
your own studies.
"""

import contextlib
import functools
import itertools
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from mario.datasets import CATALOG, DatasetCard, find as find_dataset
from mario.errors import MarioError, nearest
from mario.graphs.card import CARD_FILE
from mario.graphs.rules import SETTINGS, choose
from mario.lab.case import Case
from mario.lab.studies.study import PAPER, Schedule, Study, StudyCase, StudyRow, row_spec
from mario.methods import REGISTRY, find
from mario.untrusted import TOML_BYTES, parse_toml, read_text, safe_name

MOST_POINTS = 10_000
"""Of a grid. Each is a row of a table."""

OTHERS = "*"
"""In a list of rows: every registered method that learns and that the list does not name."""

_STUDY_KEYS = ("title", "paper", "show", "reference", "subject", "note", "rows", "grid", "cases")
_CASE_KEYS = (
    *("dataset", "domain", "shift", "setting", "seeds", "first_seed", "one_split", "splits", "epochs", "checkpoints"),
    *("given", "rows", "matched", "quick"),
)
_SCHEDULE_KEYS = ("seeds", "one_split", "epochs", "checkpoints", "given", "quick")
_QUICK_KEYS = ("seeds", "splits", "epochs", "checkpoints", "given")
_ROW_KEYS = ("label", "method", "given", "paper")


def study_names() -> tuple[str, ...]:
    """The studies that are part of mario: those of the paper in its order, then the others."""
    there = (entry.name for entry in (files("mario.lab") / "studies").iterdir())
    return (*PAPER, *sorted({name.removesuffix(".toml") for name in there if name.endswith(".toml")} - {*PAPER}))


def find_study(name: str) -> Study:
    """The study called ``name``, or the one in the file ``name`` if that ends in ``.toml``.

    Example:
        >>> study = find_study("ablation")
        >>> study.paper, [row.label for row in study.rows]
        ('Table 4', ['mario', 'mario w/o ad', 'mario w/o cmi', 'mario w/o cmi, ad'])
    """
    if not isinstance(name, str):
        raise MarioError(f"a study is found by its name or its file, got {name!r}")
    if name.endswith(".toml"):
        path = Path(name)
        name = safe_name(path.stem, f"the name of the study in {path}")
        return read_study(name, read_text(path, TOML_BYTES), str(path), home=path.parent)
    if name not in study_names():
        meant = nearest(name, study_names())
        raise MarioError(
            f"there is no study '{name}'; {meant and f'{meant} '}choose {', '.join(study_names())}, all (the paper's), "
            "or your own file that ends in .toml"
        )
    text = (files("mario.lab") / "studies" / f"{name}.toml").read_text(encoding="utf-8")
    return read_study(name, text, f"{name}.toml")


def find_studies(names: Iterable[str]) -> list[Study]:
    """The studies with these names or files, each once; ``all`` is every study of the paper."""
    wanted = itertools.chain.from_iterable(PAPER if name == "all" else (name,) for name in names)
    found = [find_study(name) for name in dict.fromkeys(wanted)]
    for one, other in itertools.combinations(found, 2):
        if one.name == other.name:
            raise MarioError(f"two studies are called '{one.name}': rename one of the files")
    return found


def read_study(name: str, text: str, where: str, home: Path | None = None) -> Study:
    """The study that ``text``, the content of a TOML file, describes; ``where`` names the file in errors.

    Relative paths of graphs are relative to ``home``, if there is a graph, else to the working directory.
    """
    table = parse_toml(text, where)
    shared_keys = tuple(key for key in _CASE_KEYS if key not in ("dataset", "rows"))
    _check_keys(table, (*_STUDY_KEYS, *shared_keys), where)
    shared = {key: table[key] for key in shared_keys if key in table}
    listed = _list(table, "cases", where)
    if not listed:
        raise MarioError(f"{where} needs cases: see docs/experiments.md")
    for case in listed:
        _check_keys(case, _CASE_KEYS, f"a case of {where}")
    listed = [_at_home(case, home) for case in listed]
    show = tuple(_list(table, "show", where)) if "show" in table else ("table",)
    levels = {_card(c, where).level for c in listed}
    named = _list(table, "rows", where)
    if not named and "table" in show:  # a study that shows no scores needs no rows
        raise MarioError(f"{where} needs rows: see docs/experiments.md")
    grid = table.get("grid", {})
    if not isinstance(grid, dict) or not all(isinstance(values, list) and values for values in grid.values()):
        raise MarioError(f"grid in {where} must be a table with a list of values for each setting, got {grid!r}")
    rows, others = _rows(named, grid, levels, where)
    for key in ("reference", "subject"):
        if not grid and table.get(key):
            choose(f"{key} in {where}, the name of a row,", str(table[key]), tuple(row.label for row in rows))
    cases = tuple(_case(shared, case, rows, others, where) for case in listed)
    _check_once((case.name for case in cases), f"case in {where}")
    for key in ("title", "paper", "note"):
        if not isinstance(table.get(key, ""), str):
            raise MarioError(f"{key} in {where} must be a text, got {table[key]!r}")
    study = Study(
        name=name,
        title=str(table.get("title") or name),
        paper=str(table.get("paper", "")),
        show=show,
        reference=table.get("reference", "grace") or None,
        subject=table.get("subject", "mario") or None,
        note=str(table.get("note", "")).strip(),
        rows=rows,
        cases=cases,
        open=OTHERS in named,
    )
    _check_settings(study, where)
    return study


def _case(
    shared: Mapping[str, Any], own: Mapping[str, Any], rows: Sequence[StudyRow], others: Sequence[str], where: str
) -> StudyCase:
    card = _card(own, where)
    shift = choose(f"shift of {card.name} in {where}", {**shared, **own}.get("shift", card.default_shift), card.shifts)
    read: dict[str, Any] = {"given": {}, "quick": {"given": {}}}
    for layer in (*_schedule_layers(card.identity, shift), shared, own):
        quick = layer.get("quick", {})
        _check_keys(quick, _QUICK_KEYS, f"quick in {where}")
        for part in (layer, quick):
            _check_given(part, where)
        read = {
            **read,
            **layer,
            "given": {**read["given"], **layer.get("given", {})},
            "quick": {**read["quick"], **quick, "given": {**read["quick"]["given"], **quick.get("given", {})}},
        }
    labels = [row.label for row in rows]
    named = [label for name in _list(read, "rows", where) for label in (others if name == OTHERS else [name])]
    for label in named:
        choose(f"row of a case in {where}", label, tuple(labels))
    for key in ("matched", "one_split"):
        if not isinstance(read.get(key, False), bool):
            raise MarioError(f"{key} in {where} must be true or false, got {read[key]!r}")
    if not isinstance(first := read.get("first_seed", 0), int) or isinstance(first, bool) or first < 0:
        raise MarioError(f"first_seed in {where} must be a whole number of at least 0, got {first!r}")
    if read.get("one_split") and "splits" in read:
        raise MarioError(f"{where} has one_split and splits for {card.name}: leave one of them out")
    for part in (read, read["quick"]):
        for key in ("seeds", "splits", "checkpoints", "epochs"):
            if key in part and (key, part[key]) != ("epochs", "own"):
                _check_count(key, part[key], where)
        if "epochs" in part["given"]:
            raise MarioError(f"given in {where} has epochs: all rows share one schedule, so give epochs of the case")
    return StudyCase(
        case=Case(
            dataset=card.identity,
            domain=choose(f"domain of {card.name} in {where}", read.get("domain", card.domains[0]), card.domains),
            shift=shift,
            setting=choose(f"setting in {where}", read.get("setting", card.setting), SETTINGS),
        ),
        schedule=_schedule(read),
        quick=_schedule({**read, **read["quick"], "given": {**read["given"], **read["quick"]["given"]}}),
        rows=tuple(label for label in labels if label in named),
        matched=read.get("matched", False),
    )


def _schedule(read: Mapping[str, Any]) -> Schedule:
    return Schedule(
        seeds=read["seeds"],
        first_seed=read.get("first_seed", 0),
        one_split=read.get("one_split", False),
        splits=read.get("splits"),
        epochs=None if read["epochs"] == "own" else read["epochs"],
        checkpoints=read["checkpoints"],
        given=read["given"],
    )


def _rows(
    listed: Sequence[Any], grid: Mapping[str, Sequence[Any]], levels: Iterable[str], where: str
) -> tuple[tuple[StudyRow, ...], list[str]]:
    """The rows of a study, and the labels of those that it does not name."""
    entries: list[Any] = [
        {"label": entry, "method": entry, "paper": entry} if isinstance(entry, str) else entry for entry in listed
    ]
    for entry in entries:
        if not isinstance(entry, dict):
            raise MarioError(f"a row in {where} is the name of a method or a table with {', '.join(_ROW_KEYS)}")
        _check_keys(entry, _ROW_KEYS, f"a row of {where}")
        _check_given(entry, where)
        for key in ("label", "method", "paper"):
            if not isinstance(entry.get(key, ""), str):
                raise MarioError(f"{key} of a row in {where} must be a string, got {entry[key]!r}")
    named = {entry.get("method", entry.get("label")) for entry in entries}
    rows: list[StudyRow] = []
    others: list[str] = []
    for entry in entries:
        if entry.get("label") == OTHERS:
            able = [m for m, cls in REGISTRY.items() if cls.trains and set(levels) <= set(cls.levels)]
            others = [m for m in able if m not in named]
            rows += [StudyRow(label=method, method=method) for method in others]
            continue
        label = str(entry.get("label") or entry.get("method"))
        method = str(entry.get("method") or label)
        find(method)
        row = StudyRow(label=label, method=method, given=entry.get("given", {}), paper=entry.get("paper", label))
        rows += _grid_rows(row, grid) if grid else [row]
    _check_once((row.label for row in rows), f"row in {where}")
    return tuple(rows), others


def _grid_rows(row: StudyRow, grid: Mapping[str, Sequence[Any]]) -> list[StudyRow]:
    """The row at every point of the grid."""
    points = math.prod(len(values) for values in grid.values())
    if points > MOST_POINTS:
        raise MarioError(f"the grid has {points:,} points; a study takes at most {MOST_POINTS:,}")
    rows = []
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values, strict=True))
        label = ", ".join([row.label, *(f"{k}={v}" for k, v in point.items())])
        rows.append(StudyRow(label=label, method=row.method, given={**row.given, **point}))
    return rows


def _check_settings(study: Study, where: str) -> None:
    """Raise early what a run would raise: a method that cannot embed the data, or a setting that a method lacks."""
    for case in study.cases:
        for schedule in (case.schedule, case.quick):
            for row in study.rows_of(case):
                try:
                    row_spec(case, schedule, row)
                except MarioError as error:
                    raise MarioError(f"{where}, {case.name}, {row.label}: {error}") from None


def _schedule_layers(dataset: str, shift: str) -> tuple[dict[str, Any], ...]:
    """The entries of schedules.toml for all datasets, for this one, and for this one under this shift."""
    schedules = _schedules()
    own = schedules.get(dataset, {})
    return schedules["default"], {key: own[key] for key in own if key in _SCHEDULE_KEYS}, own.get(shift, {})


@functools.cache
def _schedules() -> dict[str, Any]:
    schedules = tomllib.loads((files("mario.lab") / "schedules.toml").read_text(encoding="utf-8"))
    for name, layer in schedules.items():
        choose("dataset in schedules.toml", name, ("default", *CATALOG))
        shifts = CATALOG[name].shifts if name in CATALOG else ()
        _check_keys(layer, (*_SCHEDULE_KEYS, *shifts), "schedules.toml")
        for shift in shifts:
            _check_keys(layer.get(shift, {}), _SCHEDULE_KEYS, f"{shift} in schedules.toml")
    return schedules


def _at_home(case: Mapping[str, Any], home: Path | None) -> Mapping[str, Any]:
    """A case with the path of its graph from the folder of the study, if there is a graph."""
    name = case.get("dataset")
    if home is None or not isinstance(name, str) or name in CATALOG:
        return case
    with contextlib.suppress(OSError):  # of a path too long
        if (home / name / CARD_FILE).is_file():
            return {**case, "dataset": (home / name).resolve().as_posix()}
    return case


def _card(case: Mapping[str, Any], where: str) -> DatasetCard:
    try:
        return find_dataset(str(case.get("dataset"))).card
    except MarioError as error:
        raise MarioError(f"dataset in {where}: {error}") from None


def _list(table: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise MarioError(f"{key} in {where} must be a list, got {value!r}")
    return value


def _check_keys(table: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(table, dict):
        raise MarioError(f"{where} must be a table of {', '.join(known)}, got {table!r}")
    for key in table:
        if key not in known:
            hint = nearest(key, known, f"use {', '.join(known)}")
            raise MarioError(f"{where} has an unknown key '{key}'; {hint}")


def _check_given(table: Mapping[str, Any], where: str) -> None:
    if not isinstance(table.get("given", {}), dict):
        raise MarioError(f"given in {where} must be a table of settings, got {table['given']!r}")


def _check_count(key: str, value: Any, where: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise MarioError(f"{key} in {where} must be a whole number of at least 1, got {value!r}")


def _check_once(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise MarioError(f"the {what} '{name}' appears twice: each needs its own name")
        seen.add(name)
