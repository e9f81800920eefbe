"""The ranges of a tuning: those declared with each setting, the paper's grid, and those of the user."""

import dataclasses
import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from mario.errors import MarioError
from mario.lab.presets import parse_given, settings_of
from mario.methods import find, parse_setting
from mario.methods.recipe import WithRecipe
from mario.methods.settings import check_value

LARGEST_GRID = 100_000


@dataclasses.dataclass(frozen=True)
class Choice:
    """One of these values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.values))


@dataclasses.dataclass(frozen=True)
class Between:
    """Any number from ``low`` to ``high``, uniform or log-uniform; whole numbers for a whole setting."""

    low: float
    high: float
    log: bool = False

    def __str__(self) -> str:
        return f"{self.low} to {self.high}{' on a log scale' if self.log else ''}"


Range = Choice | Between
Space = dict[str, Range]
"""Ranges by setting. Settings joined by ``+`` share one value."""


def search_space(
    method: str,
    *,
    level: str = "node",
    grid: bool = False,
    only: Sequence[str] = (),
    search: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Space:
    """The ranges of ``method`` to search.

    Args:
        method: its name on the command line.
        level: of the dataset, node or graph; the paper's grid depends on it.
        grid: start from the paper's grid instead of the ranges declared with the settings.
        only: search only these settings and those in ``search``.
        search: other ranges, as on the command line: ``0.1,0.5``, ``0.001:0.1`` or ``0.001:0.1:log``.
        given: fixed settings, which are not searched.

    Example:
        >>> print(search_space("mario", only=["gamma"])["gamma"])
        0.001, 0.01, 0.1, 0.5, 1.0
        >>> print(search_space("mario", only=["lr"], search={"lr": "1e-4:1e-1:log"})["lr"])
        0.0001 to 0.1 on a log scale
        >>> sorted(search_space("mario", grid=True))
        ['clusters', 'gamma']
    """
    search, given = search or {}, given or {}
    known = settings_of(method)
    for key in (*only, *search):
        parse_given(dict.fromkeys(key.split("+")), known, method)  # raises for unknown names
        fixed = [name for name in key.split("+") if name in given]
        if "checkpoints" in key.split("+"):
            raise MarioError("checkpoints cannot be searched: the best of more checkpoints is always higher")
        if fixed:
            raise MarioError(f"{fixed[0]} is fixed by --set and cannot be searched too: leave one of the two out")
    declared = declared_ranges(method)
    space = paper_grid(method, level) if grid else declared
    own = {key: _parse_range(key, text, known) for key, text in search.items()}
    if only:
        chosen = {key: space.get(key) or declared.get(key) for key in only}
        missing = [key for key, found in chosen.items() if found is None and key not in own]
        if missing:
            raise MarioError(f"{missing[0]} has no search range: give one, such as --search {missing[0]}=...")
        space = {key: found for key, found in chosen.items() if found is not None}
    # A range of the user replaces every other that shares a setting with it.
    taken = {name for key in own for name in key.split("+")} | set(given)
    space = {key: found for key, found in space.items() if not taken & set(key.split("+"))} | own
    if not space:
        if grid and not given:
            raise MarioError(f"the paper states no grid for {method}: give one, such as --search lr=1e-2,1e-3")
        raise MarioError(f"no setting of {method} is left to search: fix fewer with --set, or name one with --search")
    _refuse_shared(space)
    return space


def declared_ranges(method: str) -> Space:
    """Every setting of ``method`` with a search range, and those of the probe if the method needs one."""
    fields = find(method).fields() if find(method).supervised else settings_of(method).values()
    found = {field.name: field.metadata.get("search") for field in fields}
    return {name: Choice(tuple(values)) for name, values in found.items() if values}


def paper_grid(method: str, level: str = "node") -> Space:
    """The ranges that the paper reports for ``method``; empty if it reports none."""
    cls = find(method)
    tables = _paper_tables()
    if issubclass(cls, WithRecipe):
        table = tables["recipe"]
    elif cls.supervised:
        table = tables.get(f"{cls.name}-on-{level}s", {})
    elif not cls.trains:
        table = {}
    else:
        table = tables.get(cls.name, tables["unsupervised"])
    own = settings_of(method).keys()
    return {key: Choice(tuple(values)) for key, values in table.items() if own >= set(key.split("+"))}


@functools.cache
def _paper_tables() -> dict[str, dict[str, list[Any]]]:
    return tomllib.loads((files("mario.lab.tune") / "paper_grid.toml").read_text(encoding="utf-8"))


def grid_of(space: Space) -> dict[str, list[Any]]:
    """The values of every range; raises if one is not a list, or if the grid is too large."""
    for key, found in space.items():
        if isinstance(found, Between):
            raise MarioError(f"a grid needs values: --search {key}=a,b,c and not a range from {found}")
    lists = {key: list(found.values) for key, found in space.items() if isinstance(found, Choice)}
    size = math.prod(map(len, lists.values()))
    if size > LARGEST_GRID:
        raise MarioError(
            f"a grid over {', '.join(lists)} has {size:,} points: name fewer settings with --only, or use --sampler tpe"
        )
    return lists


def spread(params: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from the values of a trial, with joined names separated.

    Example:
        >>> spread({"drop_edges_1+drop_edges_2": 0.2, "lr": 0.1})
        {'drop_edges_1': 0.2, 'drop_edges_2': 0.2, 'lr': 0.1}
    """
    return {name: value for key, value in params.items() for name in key.split("+")}


def _parse_range(key: str, text: str, known: Mapping[str, "dataclasses.Field[Any]"]) -> Range:
    fields = [known[name] for name in key.split("+")]
    if any(isinstance(field.default, tuple) for field in fields):
        raise MarioError(f"{key} is a list, which cannot be searched: fix it with --set")
    if ":" in text:
        return _parse_between(key, text, fields)
    try:
        values = tuple(parse_setting(fields[0], part.strip()) for part in text.split(",") if part.strip())
        for value in values:
            for field in fields:
                check_value(field, value)
    except MarioError as error:
        raise MarioError(f"--search {key}={text}: {error}") from None
    if not values:
        raise MarioError(f"--search {key} needs values such as {key}=a,b,c or a range such as {key}=0.1:0.9")
    return Choice(tuple(dict.fromkeys(values)))


def _parse_between(key: str, text: str, fields: Sequence["dataclasses.Field[Any]"]) -> Between:
    parts = text.split(":")
    if fields[0].type not in (int, float):
        raise MarioError(f"{key} is not a number and has no range: use --search {key}=a,b,c")
    if len(parts) > 3 or (len(parts) == 3 and parts[2] != "log"):
        raise MarioError(f"--search {key}={text}: a range is LOW:HIGH or LOW:HIGH:log")
    try:
        low, high = (parse_setting(fields[0], part) for part in parts[:2])
        for value in (low, high):
            for field in fields:
                check_value(field, value)
    except MarioError as error:
        raise MarioError(f"--search {key}={text}: {error}") from None
    log = len(parts) == 3
    if not low < high:
        raise MarioError(f"--search {key}={text}: {low} is not below {high}")
    if log and low <= 0:
        raise MarioError(f"--search {key}={text}: a range on a log scale must start above 0")
    return Between(low, high, log)


def _refuse_shared(space: Space) -> None:
    seen: dict[str, str] = {}
    for key in space:
        for name in key.split("+"):
            if name in seen:
                raise MarioError(f"{name} is searched twice, in {seen[name]} and in {key}: leave one of the two out")
            seen[name] = key
