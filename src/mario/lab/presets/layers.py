"""Preset files and the order in which they apply; the module ``mario.lab.presets`` explains both."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mario.datasets import REGISTRY as DATASETS
from mario.errors import MarioError
from mario.lab.presets.settings import parse_given, settings_of
from mario.methods import REGISTRY, TwoView, find
from mario.methods.recipe import WithRecipe
from mario.methods.steady import WithSteady
from mario.untrusted import read_toml

RECIPE_SETTINGS = {field.name for field in WithRecipe.fields()} - {field.name for field in TwoView.fields()}
"""The settings that the recipe adds to its host."""

_OURS = Path(__file__).parent
_RESERVED = ("like", "source", "only", "methods")  # keys of a section that are not settings


@dataclasses.dataclass(frozen=True)
class _Section:
    """A dataset, or what it is like: its table in the datasets' file, and the domains and shifts known so far."""

    name: str
    table: Mapping[str, Any]
    listed: Mapping[str, Any]
    domain: str
    shift: str

    def values(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """The settings in ``table``, with those for this domain and shift on top.

        A domain or shift that is not listed takes the nearest: the first domain; covariate, or else the first shift.
        """
        listed = self.listed or _domains(table)
        domain = self.domain if self.domain in listed else next(iter(listed), "")
        shifts = listed.get(domain, {})
        near = next((shift for shift in (self.shift, "covariate", *shifts) if shift in shifts), "")
        return {**_plain(table), **table.get(domain, {}).get(near, {})}


def file_settings(method: str, dataset: str, domain: str, shift: str) -> dict[str, Any]:
    """What the preset files say about ``method`` on this dataset, domain and shift; empty for an unknown dataset.

    ``HOST+mario`` has its host's settings, the recipe's from ``methods/mario.toml``, and on top ``HOST+mario.toml``.
    ``METHOD+steady`` has those of the method, and on top ``METHOD+steady.toml``.

    Example:
        >>> file_settings("raw-features", "good-cbas", "color", "concept")
        {'epochs': 200, 'probe_epochs': 100, 'probe_lr': 0.01}
    """
    cls = find(method)
    place = (dataset, domain, shift)
    if issubclass(cls, WithSteady):
        return _overridden(file_settings(cls.name.removesuffix("+steady"), *place), cls.name, place)
    host = cls.name.removesuffix("+mario")
    if host == cls.name:
        return _resolve(cls.name, place)
    recipe = {key: value for key, value in _resolve("mario", place).items() if key in RECIPE_SETTINGS}
    return _overridden({**_resolve(host, place), **recipe}, cls.name, place)


def dataset_settings(dataset: str, domain: str, shift: str) -> dict[str, Any]:
    """What belongs to the dataset, for all methods: the preset of a method without a file.

    Example:
        >>> dataset_settings("elliptic", "time", "label")["encoder"]
        'sage'
    """
    chosen: dict[str, Any] = {}
    for section in _sections(dataset, domain, shift):
        chosen |= section.values(section.table)
    return chosen


def _resolve(method: str, place: tuple[str, str, str], seen: tuple[str, ...] = ()) -> dict[str, Any]:
    if method in seen:
        raise MarioError(f"presets go in a circle: {' like '.join((*seen, method))}")
    chosen = dataset_settings(*place)
    _, tables = _method_file(method)
    if "like" in tables:
        chosen |= _resolve(find(tables["like"]).name, place, (*seen, method))
    known = settings_of(method)
    return _overridden({key: value for key, value in chosen.items() if key in known}, method, place)


def _overridden(chosen: dict[str, Any], method: str, place: tuple[str, str, str]) -> dict[str, Any]:
    """``chosen`` with the sections of the method's file on top, and what the dataset says about this method."""
    path, tables = _method_file(method)
    known = settings_of(method)
    for section in _sections(*place):
        for table in (tables.get(section.name, {}), section.table.get("methods", {}).get(method, {})):
            chosen = {key: value for key, value in chosen.items() if key in table.get("only", chosen)}
            try:
                chosen |= parse_given(section.values(table), known, method)
            except MarioError as error:
                raise MarioError(f"{path}, section {section.name}: {error}") from None
    return chosen


def _sections(dataset: str, domain: str, shift: str) -> list[_Section]:
    """The dataset and what it is like, the most general first."""
    tables = _dataset_tables(dataset)
    lineage = [dataset]
    while like := tables.get(lineage[-1], {}).get("like"):
        if like in lineage:
            raise MarioError(f"presets go in a circle: {' like '.join((*lineage, like))}")
        if like not in tables:
            raise MarioError(f"the preset of {lineage[-1]} is like '{like}', which has no section")
        lineage.append(like)
    found: list[_Section] = []
    listed: dict[str, dict[str, Any]] = {}
    for name in reversed(lineage):
        table = tables.get(name, {})
        listed = {**listed, **{key: {**listed.get(key, {}), **cells} for key, cells in _domains(table).items()}}
        found.append(_Section(name, table, listed, domain, shift))
    return found


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if not isinstance(value, dict) and key not in _RESERVED}


def _domains(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: inner for key, inner in table.items() if isinstance(inner, dict) and key not in _RESERVED}


def _dataset_tables(dataset: str) -> dict[str, Any]:
    """Our sections, and those of the plug-in that brings the dataset."""
    ours = _tables(_OURS / "datasets.toml")
    path = DATASETS[dataset].presets_file if dataset in DATASETS else None
    if path is None:
        return ours
    theirs = _tables(Path(path))
    known = {name for method in REGISTRY for name in settings_of(method)}
    for name, table in theirs.items():
        cells = [cell for shifts in _domains(table).values() for cell in shifts.values()]
        unknown = sorted({*_plain(table), *(key for cell in cells for key in cell)} - known)
        if unknown:
            raise MarioError(f"{path}, section {name}: no method has a setting '{unknown[0]}'")
    return {**ours, **theirs}


def _tables(path: Path) -> dict[str, Any]:
    return {name: table for name, table in _read(path).items() if isinstance(table, dict)}


def _method_file(method: str) -> tuple[Path, dict[str, Any]]:
    """The preset file of the method, its own or ours, and what is in it; empty if there is none."""
    own = vars(find(method)).get("presets_file")  # not inherited: a subclass is another method
    path = Path(own) if own else _OURS / "methods" / f"{method}.toml"
    return path, _read(path) if own or path.is_file() else {}


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    tables = read_toml(path)
    wrong = [key for key, value in tables.items() if not isinstance(value, dict) and key not in ("like", "source")]
    if wrong:
        raise MarioError(f"{path} has '{wrong[0]}' outside a section; put it under the name of a dataset: [NAME]")
    _check_texts(tables, str(path))
    for name, table in tables.items():
        if isinstance(table, dict):
            _check_section(table, f"{path}, section {name}")
    return tables


def _check_section(table: Mapping[str, Any], where: str) -> None:
    """Raise `MarioError` unless the keys that are not settings have the form that ``mario.lab.presets`` describes."""
    _check_texts(table, where)
    only, methods = table.get("only", []), table.get("methods", {})
    if not isinstance(only, list) or not all(isinstance(name, str) for name in only):
        raise MarioError(f"{where}: only must be a list of names of settings, got {only!r}")
    if not isinstance(methods, dict) or not all(isinstance(inner, dict) for inner in methods.values()):
        raise MarioError(f"{where}: methods must hold a table for each method, got {methods!r}")
    for name, inner in methods.items():
        _check_section(inner, f"{where}, methods.{name}")
    for domain, shifts in _domains(table).items():
        for shift, cell in shifts.items():
            if not isinstance(cell, dict):
                raise MarioError(f"{where}: {domain}.{shift} must be a table of settings, got {cell!r}")


def _check_texts(table: Mapping[str, Any], where: str) -> None:
    for key in ("like", "source"):
        if not isinstance(table.get(key, ""), str):
            raise MarioError(f"{where}: {key} must be a text, got {table[key]!r}")
