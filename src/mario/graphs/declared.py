"""A split as a person declares it, in the table ``[split]`` of a ``graph.toml``. No torch here; `own_splits.py` is the
engine."""

import dataclasses
import datetime
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mario.arguments import MOST, check_count
from mario.errors import MarioError, nearest
from mario.graphs.rules import SplitRule, choose

QUANTITIES = ("degree", "word", "size", "pagerank", "locality", "clustering")
"""What a split can go by besides time and the columns of a graph: see `mario.graphs.quantities`."""
REST = "rest"
"""All domains that no other part names."""
OWN_SHIFTS = ("covariate", "concept")

_PARTS = ("train", "validation", "test")
_TIMES = ("train_until", "validation_until", "test_until")
_UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[T ](\d{1,2}):(\d{2})(?::(\d{2}))?)?)?)?(?:Z|\+00:00)?")
_SPAN = re.compile(r"(\d+) *([a-z]+?)s?")
_SHOWN = 120

Domains = tuple[str, ...] | str  # names of domains, or REST


@dataclass(frozen=True, kw_only=True)
class DeclaredSplit:
    """Which nodes train, validate and test, by what a person knows of the graph.

    Attributes:
        by: ``time``, ``random``, ``given`` (the masks that are saved with the graph), one of `QUANTITIES`, or the name
            of a column of the graph: a domain, or a number for each node.
        shift: ``covariate`` (whole domains are held out) or ``concept`` (labels go with domains in training, and
            against them in the test).
        train_until: by time, the last time of training: a whole number, or a date such as ``"2017"`` or
            ``"2017-06-30"``.
        validation_until: the last time of validation. Without it there is no validation by time.
        test_until: the last time of the test; later nodes are in no part.
        gap: how long after ``train_until`` nodes are in no part: a number in the units of the time, or a text such as
            ``"30 days"`` where times are dates.
        train, validation, test: names of domains, or ``"rest"`` for one of the three, which is what ``train`` or
            ``test`` is if it is not given; or, where domains have an order, fractions of the nodes.
        leave_out: the domain that is the test; all others train.
        descending: train on the largest values rather than the smallest, where domains have an order.
        in_domain: size of ``id_val`` and of ``id_test``, each as a fraction of the nodes of training domains.
        environments: the number of training environments where domains have an order.
    """

    by: str
    shift: str = "covariate"
    train_until: int | str | None = None
    validation_until: int | str | None = None
    test_until: int | str | None = None
    gap: int | str = 0
    train: Domains | float | None = None
    validation: Domains | float | None = None
    test: Domains | float | None = None
    leave_out: str | None = None
    descending: bool = False
    in_domain: float = 0.1
    environments: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.by, str) or not self.by:
            raise KeyedError("by", f'must name what the graph is split by, such as "time", got {_shown(self.by)}')
        _one_of("shift", self.shift, OWN_SHIFTS)
        _check_times(self)
        _check_gap(self)
        _check_parts(self)
        if not isinstance(self.descending, bool):
            raise KeyedError("descending", f"must be true or false, got {_shown(self.descending)}")
        if not _is_number(self.in_domain) or not 0 <= self.in_domain < 0.5:
            raise KeyedError("in_domain", f"must be a fraction from 0 to below 0.5, got {_shown(self.in_domain)}")
        try:
            check_count("environments", self.environments, high=100_000)
        except MarioError as error:
            raise KeyedError("environments", str(error).removeprefix("environments ")) from None
        _check_together(self)

    @property
    def names_domains(self) -> bool:
        """Whether the parts are domains by name, rather than fractions or times."""
        return self.leave_out is not None or any(isinstance(getattr(self, part), tuple) for part in _PARTS)

    @property
    def domains(self) -> tuple[Domains, Domains, Domains]:
        """Domains of train, validation and test by name. The rest is that of a part which is not given."""
        train, validation = self.train, self.validation or ()
        test = self.test if self.leave_out is None else (self.leave_out,)
        assert not any(_is_number(part) for part in (train, validation, test))
        return train or REST, validation, test or REST  # type: ignore[return-value]

    @property
    def fractions(self) -> tuple[float, float, float]:
        """Fractions of train, validation and test; what is not said follows from the others, else 0.6 / 0.2 / 0.2."""
        train, validation, test = (_number(part) for part in (self.train, self.validation, self.test))
        if train is None and validation is None and test is None:
            return 0.6, 0.2, 0.2
        if train is None:
            train = 1 - (validation or 0.0) - (0.2 if test is None else test)
        if validation is None:
            validation = 0.0 if test is None else max(1 - train - test, 0.0)
        return train, validation, 1 - train - validation if test is None else test

    @property
    def in_dates(self) -> bool:
        """Whether ``train_until`` is a date, so that times are seconds since 1970."""
        return isinstance(self.train_until, str)

    @property
    def last_times(self) -> tuple[int, int, int | None, int | None]:
        """The last time of training, of the gap, of validation and of the test, in the numbers of the graph.

        Example:
            >>> DeclaredSplit(by="time", train_until="1970-01-01", gap="1 day").last_times
            (86399, 172799, None, None)
        """
        if self.train_until is None:
            raise MarioError("the split has no train_until")
        train, validation, test = (None if (until := getattr(self, key)) is None else _last(until) for key in _TIMES)
        assert train is not None
        if not isinstance(self.gap, str):
            return train, train + self.gap, validation, test
        return train, _last_of_gap(str(self.train_until), self.gap), validation, test

    def as_table(self) -> dict[str, Any]:
        """What differs from the default, as a TOML table."""
        default = {field.name: field.default for field in dataclasses.fields(self)}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in vars(self).items()
            if value is not None and (key == "by" or value != default[key])
        }


class KeyedError(MarioError):
    """A wrong value of a key in a table: the message begins with the key."""

    def __init__(self, key: str, what: str) -> None:
        super().__init__(f"{key} {what}")
        self.key = key


def read_split(table: Mapping[str, Any]) -> DeclaredSplit | SplitRule:
    """What a table ``[split]`` says: a `DeclaredSplit` if it has ``by``, otherwise the numbers of a `SplitRule`.

    Example:
        >>> read_split({"by": "time", "train_until": 2017, "gap": 1}).train_until
        2017
        >>> read_split({"by": "time", "train_until": "yesterday"})
        Traceback (most recent call last):
            ...
        mario.graphs.declared.KeyedError: train_until = "yesterday" is no date; write ...
    """
    if "by" not in table:
        return _rule(table)
    _check_keys(table, [field.name for field in dataclasses.fields(DeclaredSplit)])
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else _text_of_date(value) for key, value in table.items()
    }
    return DeclaredSplit(**values)


def parse_date(text: str) -> tuple[datetime.datetime, datetime.datetime]:
    """The first moment of what a date names, and the first one after it: ``"2017"`` is a whole year.

    Example:
        >>> [str(moment) for moment in parse_date("2017-12")]
        ['2017-12-01 00:00:00+00:00', '2018-01-01 00:00:00+00:00']
    """
    match = _DATE.fullmatch(text.strip())
    try:
        if match is None:
            raise ValueError("not of the form")
        parts = [int(part) for part in match.groups() if part is not None]
        unit = ("year", "month", "day", "minute", "minute", "second")[len(parts) - 1]
        whole = [*parts, *(1, 1, 1)[len(parts) :]] if len(parts) < 3 else parts
        start = datetime.datetime(*whole).replace(tzinfo=datetime.UTC)  # type: ignore[arg-type]
        return start, later(start, 1, unit)
    except (ValueError, OverflowError):
        raise MarioError(
            f'{_shown(text)} is no date; write "2017", "2017-06", "2017-06-30" or "2017-06-30 12:00"'
        ) from None


def parse_span(text: str) -> tuple[int, str]:
    """The number and the unit of a span of time.

    Example:
        >>> parse_span("30 days")
        (30, 'day')
    """
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS or len(match[1]) > 9:
        raise MarioError(f'{_shown(text)} is no span of time; write "30 days", "2 weeks", "6 months" or "1 year"')
    return int(match[1]), match[2]


def later(moment: datetime.datetime, count: int, unit: str) -> datetime.datetime:
    """The moment ``count`` units after another. Months and years are those of the calendar."""
    if unit not in ("month", "year"):
        return moment + count * datetime.timedelta(**{f"{unit}s": 1})
    months = moment.year * 12 + moment.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    if not datetime.MINYEAR <= year <= datetime.MAXYEAR:
        raise OverflowError(f"the year {year}")
    following = datetime.date(year + month // 11, (month + 1) % 12 + 1, 1) if year < datetime.MAXYEAR else None
    days = 31 if following is None else (following - datetime.timedelta(days=1)).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, days))


def _check_keys(table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            meant = nearest(key, known)
            meant = f"; {meant} It" if meant else "; it"
            raise KeyedError(key, f"is no key of [split]{meant} takes {', '.join(known)}")


def _rule(table: Mapping[str, Any]) -> SplitRule:
    default = SplitRule()
    chosen: dict[str, Any] = {}
    for key, value in table.items():
        choose("key of [split]", key, ("by", *(field.name for field in dataclasses.fields(SplitRule))))
        kind, due = _kind(value), _kind(getattr(default, key))
        if kind != due and (kind, due) != ("a whole number", "a number"):
            raise MarioError(f"{key} of [split] must be {due}, got {value!r}")
        chosen[key] = tuple(value) if isinstance(value, list) else value
    return SplitRule(**chosen)


def _kind(value: object) -> str:
    if isinstance(value, list | tuple):
        numbers = all(_kind(part) in ("a whole number", "a number") for part in value)
        return "a list of numbers" if numbers else "a list"
    kinds = {bool: "true or false", int: "a whole number", float: "a number", type(None): "a name", str: "a name"}
    return kinds.get(type(value), "another type")


def _check_times(split: DeclaredSplit) -> None:
    given = {key: getattr(split, key) for key in _TIMES if getattr(split, key) is not None}
    for key, value in given.items():
        if isinstance(value, str):
            try:
                parse_date(value)
            except MarioError as error:
                raise KeyedError(key, f"= {error}") from None
        elif isinstance(value, bool) or not isinstance(value, int) or not -MOST <= value <= MOST:
            raise KeyedError(key, f'must be a whole number, or a date such as "2017-06-30", got {_shown(value)}')
    if len({isinstance(value, str) for value in given.values()}) > 1:
        key = list(given)[-1]
        raise KeyedError(
            key, f"= {_shown(given[key])} is of another kind than {next(iter(given))}; write both as dates"
        )
    ends = [(key, _last(value)) for key, value in given.items()]
    for (before, first), (key, second) in itertools.pairwise(ends):
        if second <= first:
            raise KeyedError(key, f"must be later than {before}, got {_shown(given[key])} and {_shown(given[before])}")


def _last(until: int | str) -> int:
    """The last time that a number or a date names."""
    return int(parse_date(until)[1].timestamp()) - 1 if isinstance(until, str) else until


def _last_of_gap(until: str, gap: str) -> int:
    return int(later(parse_date(until)[1], *parse_span(gap)).timestamp()) - 1


def _check_gap(split: DeclaredSplit) -> None:
    if isinstance(split.gap, str):
        try:
            parse_span(split.gap)
        except MarioError as error:
            raise KeyedError("gap", f"= {error}") from None
    elif isinstance(split.gap, bool) or not isinstance(split.gap, int) or not 0 <= split.gap <= MOST:
        raise KeyedError(
            "gap", f'must be a whole number of at least 0, or a text such as "30 days", got {_shown(split.gap)}'
        )
    if split.gap == 0 or split.train_until is None:
        return
    if split.in_dates != isinstance(split.gap, str):
        fit = 'no span between dates; write "30 days" or "1 year"' if split.in_dates else "for dates; write a number"
        raise KeyedError("gap", f"= {_shown(split.gap)} is {fit}")
    try:
        _, over, validation, test = split.last_times
    except (ValueError, OverflowError):
        raise KeyedError("gap", f"= {_shown(split.gap)} goes beyond the year 9999; choose a shorter one") from None
    for key, until in (("validation", validation), ("test", test)):
        if until is not None and until <= over:
            raise KeyedError(
                "gap",
                f"= {_shown(split.gap)} leaves no time for {key} between train_until = {_shown(split.train_until)} "
                f"and {key}_until = {_shown(getattr(split, f'{key}_until'))}; choose a shorter gap or a later one",
            )


def _check_parts(split: DeclaredSplit) -> None:
    kinds = set()
    for key in _PARTS:
        value = getattr(split, key)
        if value is None:
            continue
        if isinstance(value, tuple):
            _check_names(key, value)
            kinds.add("names")
        elif isinstance(value, str):
            if value != REST:
                raise KeyedError(key, f'must be a list of domains such as ["{value}"], or "rest", got {_shown(value)}')
            kinds.add("names")
        elif _is_number(value) and 0 <= value <= 1:
            kinds.add("fractions")
        else:
            raise KeyedError(key, f'must be a list of domains, "rest", or a fraction from 0 to 1, got {_shown(value)}')
    if len(kinds) > 1:
        raise KeyedError("train", "and validation and test must all be lists of domains, or all be fractions")
    if split.leave_out is not None and (not isinstance(split.leave_out, str) or not split.leave_out):
        raise KeyedError("leave_out", f"must be the name of a domain, got {_shown(split.leave_out)}")
    if "names" in kinds:
        _check_rest(split)
    elif kinds and (total := sum(split.fractions)) > 1 + 1e-6:
        raise KeyedError("train", f"and validation and test sum to {total:g}; fractions must sum to at most 1")
    elif kinds and (split.fractions[0] <= 0 or split.fractions[2] <= 0):
        raise KeyedError("train", f"and test must both have nodes, got the fractions {split.fractions}")


def _check_names(key: str, names: tuple[Any, ...]) -> None:
    if not names:
        raise KeyedError(key, "is an empty list; name at least one domain, or remove the line")
    for name in names:
        if not isinstance(name, str) or not name:
            raise KeyedError(key, f"must be a list of names of domains, got {_shown(name)} in it; write it in quotes")
    if twice := [name for name in names if names.count(name) > 1]:
        raise KeyedError(key, f"names {_shown(twice[0])} twice")


def _check_rest(split: DeclaredSplit) -> None:
    given = {key: getattr(split, key) for key in _PARTS if getattr(split, key) is not None}
    rest = [key for key, value in given.items() if value == REST]
    if len(rest) > 1:
        raise KeyedError(rest[1], 'is "rest" like another part; one part can be "rest"')
    seen: dict[str, str] = {}
    for key, value in given.items():
        for name in value if isinstance(value, tuple) else ():
            if name in seen:
                raise KeyedError(key, f"names {_shown(name)}, which {seen[name]} names too; a domain is in one part")
            seen[name] = key
    if split.leave_out is not None and "test" in given:
        raise KeyedError("test", "cannot be given with leave_out, which is the test; remove one of them")
    if split.leave_out in seen:
        raise KeyedError("leave_out", f"= {_shown(split.leave_out)} is named by {seen[str(split.leave_out)]} too")
    missing = [key for key in ("train", "test") if key not in given and not (key == "test" and split.leave_out)]
    if len(missing) > 1 or (missing and rest):
        raise KeyedError(missing[0], 'is missing; write a list of domains, or "rest" in one of train and test')


def _check_together(split: DeclaredSplit) -> None:
    """Keys that have no effect beside others are mistakes."""
    times = [key for key in _TIMES if getattr(split, key) is not None]
    named = [key for key in (*_PARTS, "leave_out") if getattr(split, key) is not None]
    if times and split.by != "time":
        raise KeyedError(times[0], f'is for by = "time", but by = {_shown(split.by)}')
    if split.gap != 0 and split.by != "time":
        raise KeyedError("gap", f'is for by = "time", but by = {_shown(split.by)}')
    if split.descending and (times or split.gap != 0):
        raise KeyedError(
            "descending", f"cannot be given with {times[0] if times else 'gap'}: the test is what is later"
        )
    if times and split.train_until is None:
        raise KeyedError(times[0], "needs train_until, the last time of training")
    if times and named:
        raise KeyedError(named[0], f"cannot be given with {times[0]}; remove one of them")
    if split.by == "time" and split.names_domains:
        raise KeyedError(named[0], 'must be a fraction where by = "time"; or write train_until and validation_until')
    if split.by in (*QUANTITIES, "random") and split.names_domains:
        raise KeyedError(named[0], f"must be a fraction where by = {_shown(split.by)}, which has no named domains")
    if split.by == "given" and (extra := [key for key in split.as_table() if key != "by"]):
        raise KeyedError(extra[0], 'has no effect where by = "given", which takes the masks of the graph; remove it')
    if split.shift == "concept" and (extra := [*times, *named, *(["gap"] if split.gap != 0 else [])]):
        raise KeyedError(extra[0], 'is for shift = "covariate"; a concept shift puts nodes of each domain in each part')
    if split.shift == "concept" and split.by == "random":
        raise KeyedError("shift", '= "concept" needs a domain, but by = "random"')


def _one_of(key: str, given: object, known: Sequence[str]) -> None:
    try:
        choose(key, given, known)
    except MarioError as error:
        raise KeyedError(key, str(error).removeprefix(f"unknown {key} ").join(("= ", ""))) from None


def _text_of_date(value: Any) -> Any:
    """TOML has dates of its own, which people write without quotes."""
    return str(value) if isinstance(value, datetime.date) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _shown(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
