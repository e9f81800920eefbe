"""The engine of `DeclaredSplit`: a graph of one's own, with few labels or none, split as a person says.

Which nodes train and test follows from time, domains or a quantity, never from a label, except under concept shift.
What is drawn is a pure function of the graph, the declaration and ``split_seed``.
"""

import copy
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError, nearest
from mario.graphs.declared import QUANTITIES, REST, DeclaredSplit, later, parse_span, read_split
from mario.graphs.graph_sets import count_graphs
from mario.graphs.quantities import quantity
from mario.graphs.rules import EDGE_DATA, PARTS, SETTINGS, SplitRule, choose
from mario.graphs.splits import (
    ID_TEST,
    ID_VAL,
    OOD_TEST,
    OOD_VAL,
    TEST_PICK,
    TRAIN,
    TRAINING_PICKS,
    concept_picks,
    seeded,
)
from mario.graphs.subgraph import count_nodes
from mario.graphs.validation import check_graph, check_structure

NONE = -1
"""The part of a node that is in none."""
MISSING_TIME = int(np.iinfo(np.int64).min)
MOST_DOMAINS = 100
"""More distinct values of a number are grouped into domains."""
_MADE = ("domain_id", "env_id", "domain_names", *(f"{part}_mask" for part in PARTS))


@dataclass(frozen=True)
class Ordering:
    """What a graph is split by: one number for each node, or graph of a set.

    Attributes:
        values: the numbers. Those of named domains are the places of their names.
        known: which of them are not missing.
        names: the names of the domains; None where values are numbers or times.
        dates: whether the values are seconds since 1970; None if nobody said.
    """

    values: np.ndarray
    known: np.ndarray
    names: tuple[str, ...] | None = None
    dates: bool | None = None


def own_split(
    data: Data,
    split: DeclaredSplit | Mapping[str, Any],
    *,
    names: Mapping[str, Sequence[str]] | None = None,
    dates: bool | None = None,
    split_seed: int = 0,
    setting: str = "transductive",
) -> Data:
    """A copy of ``data`` with masks, domains and environments as declared; it works with few labels or none.

    The masks hold all nodes of a part, with and without a label: where ``y`` is -1 a node trains an embedding and is
    not scored. A part without nodes has no mask, but ``train`` and ``ood_test`` must have some. ``domain_id`` is -1
    where the value is missing; these nodes are in no part. ``domain_names`` has the name of each domain. More than 100
    distinct numbers or times are grouped, and no group reaches over the border of a part. ``env_id`` is the training
    environment: each domain that is named, or ``environments`` groups of about the same size where domains have an
    order. ``id_val`` and ``id_test`` are drawn by ``split_seed`` from labeled and from unlabeled nodes of training
    domains in the same share, at least one labeled node each where there are three.

    Args:
        data: A graph, or a set of graphs, with ``x`` and ``edge_index``; and ``time``, or the column that ``split.by``
            names: whole numbers, numbers or texts, one for each node, or graph of a set. Missing is -1 for a column
            without other negative numbers, the lowest int64 for a time, and NaN for a float.
        split: What the table ``[split]`` of a graph.toml says.
        names: The names of the codes of a column, in order; without them a domain is called by its number.
        dates: Whether ``time`` is in seconds since 1970, so that the split must use dates (or plain numbers, if
            False). None takes both.
        split_seed: Seed of what is drawn.
        setting: ``"transductive"`` or ``"inductive"``.

    Example:
        >>> ring = Data(x=torch.eye(10), edge_index=torch.arange(10).repeat(2, 1), time=torch.arange(2010, 2020))
        >>> data = own_split(ring, {"by": "time", "train_until": 2015, "gap": 1, "in_domain": 0})
        >>> data.train_mask.nonzero().view(-1).tolist(), data.ood_test_mask.nonzero().view(-1).tolist()
        ([0, 1, 2, 3, 4, 5], [7, 8, 9])
    """
    declared = declared_split(split)
    choose("setting", setting, SETTINGS)
    generator = seeded(split_seed)
    check_structure(data)
    check_graph(
        Data.from_dict({key: data[key] for key in ("x", "edge_index", *EDGE_DATA, "batch", "ptr") if key in data})
    )
    y = _labels(data)
    facts = {"domain": declared.by, "shift": declared.shift}
    if declared.by == "given":
        made, facts = _given(data), {key: data.get(key) or "given" for key in facts}
    else:
        made = _drawn(data, declared, y, names or {}, dates, generator)
    for key, value in {**facts, "setting": setting, "split_seed": split_seed}.items():
        made[key] = value
    for key, value in {"name": "graph", "metric": "accuracy", "faults": []}.items():
        if key not in data:
            made[key] = value
    if "num_classes" not in data and bool((y >= 0).any()):
        made.num_classes = int(y.max()) + 1
    return made


def ordering(
    data: Data, by: str, names: Mapping[str, Sequence[str]] | None = None, dates: bool | None = None
) -> Ordering:
    """The numbers or domains that ``by`` means in ``data``; see `own_split`."""
    rows = count_rows(data)
    column = data.get(by)
    if column is None and by in QUANTITIES:
        return Ordering(quantity(data, by).numpy(), np.ones(rows, bool))
    if column is None:
        raise MarioError(_absent(data, by, rows))
    array = column.detach().cpu().numpy() if isinstance(column, Tensor) else np.asarray(column)
    if array.shape != (rows,) or array.dtype.kind not in "biufU":
        unit = "graphs" if "batch" in data else "nodes"
        raise MarioError(
            f"data.{by} must hold one number or name for each of {rows} {unit}, got {array.dtype} {array.shape}"
        )
    if array.dtype.kind == "U":
        found, codes = np.unique(array, return_inverse=True)
        return Ordering(codes.reshape(-1).astype(np.int64), np.ones(rows, bool), tuple(found.tolist()))
    if array.dtype.kind == "f":
        if np.isinf(array).any():
            raise MarioError(f"data.{by} holds infinite values; use a finite value or NaN for a missing one")
        return Ordering(array, ~np.isnan(array))
    array = array.astype(np.int64)
    if by == "time":
        return Ordering(array, array != MISSING_TIME, dates=dates)
    given = tuple((names or {}).get(by, ()))
    if given and rows and not -1 <= array.min() <= array.max() < len(given):
        wrong = int(array.min()) if array.min() < -1 else int(array.max())
        raise MarioError(
            f"data.{by} holds {wrong}, but {by} has {len(given)} names: its codes are -1..{len(given) - 1}"
        )
    if given:
        return Ordering(array, array >= 0, given)
    known = array != (-1 if rows and array.min() == -1 else MISSING_TIME)
    return Ordering(array, known)


def count_rows(data: Data) -> int:
    """The number of nodes, or of graphs of a set."""
    return count_graphs(data) if "batch" in data else count_nodes(data)


def declared_split(split: object) -> DeclaredSplit:
    """A declared split, or what a table says."""
    found = read_split(split) if isinstance(split, Mapping) else split
    if not isinstance(found, DeclaredSplit):
        raise MarioError(f"split must be a DeclaredSplit or a table with the key by, got {split!r}")
    return found


def _labels(data: Data) -> Tensor:
    """The class of each row, -1 where it has none."""
    rows, y = count_rows(data), data.get("y")
    if y is None:
        return torch.full((rows,), -1)
    if not isinstance(y, Tensor) or y.dtype != torch.int64 or y.shape != (rows,) or (rows and int(y.min()) < -1):
        raise MarioError(f"data.y must hold one int64 class for each of {rows} rows, -1 for no label; del data.y else")
    return y.cpu()


def _given(data: Data) -> Data:
    if "train_mask" not in data:
        raise MarioError('by = "given" takes the masks that the graph has, but it has no train_mask')
    return copy.copy(data)


def _drawn(
    data: Data,
    declared: DeclaredSplit,
    y: Tensor,
    names: Mapping[str, Sequence[str]],
    dates: bool | None,
    generator: torch.Generator,
) -> Data:
    draws = torch.rand(y.numel(), dtype=torch.float64, generator=generator).numpy()
    labeled = y.numpy() >= 0
    if declared.by == "random":
        part = _by_chance(draws, labeled, declared)
        domain, titles = _one_domain(len(part))
        env = np.where(part == TRAIN, np.arange(len(part)) % declared.environments, -1)
    else:
        order = ordering(data, declared.by, names, dates)
        if not order.known.any():
            raise MarioError(f"no node has a value of {declared.by}, so there is nothing to split by")
        if declared.shift == "concept":
            domain, titles = _domains(order, np.where(order.known, TRAIN, NONE), declared.environments)
            part, env = _by_concept(domain, titles, y, declared, generator)
        elif declared.names_domains:
            domain, titles = _distinct(order)
            part = _by_name(domain, titles, declared)
            env = np.where(part == TRAIN, domain, -1)
        else:
            part = _by_time(order, declared) if declared.train_until is not None else _by_rank(order, declared)
            domain, titles = _domains(order, part, declared.environments)
            env = _environments(order.values, part, declared.environments)
    _take_id_parts(part, labeled, draws, declared.in_domain)
    return _with_parts(data, declared, part, domain, titles, env)


def _with_parts(
    data: Data, declared: DeclaredSplit, part: np.ndarray, domain: np.ndarray, titles: Sequence[str], env: np.ndarray
) -> Data:
    unit = "graphs" if "batch" in data else "nodes"
    for code in (TRAIN, OOD_TEST):
        if not (part == code).any():
            raise MarioError(f"the split by {declared.by} leaves {PARTS[code]} without {unit}: {_shown(declared)}")
    device = data.edge_index.device
    made = copy.copy(data)
    for key in _MADE:
        if key in made:
            del made[key]
    for code, name in enumerate(PARTS):
        if (part == code).any():
            made[f"{name}_mask"] = torch.from_numpy(part == code).to(device)
    env = np.where(part == TRAIN, env, -1)
    _, numbered = np.unique(env[env >= 0], return_inverse=True)
    env[env >= 0] = numbered
    made.domain_id, made.env_id = torch.from_numpy(domain).to(device), torch.from_numpy(env.astype(np.int64)).to(device)
    if len(titles) <= 1000:
        made.domain_names = list(titles)
    return made


def _by_time(order: Ordering, declared: DeclaredSplit) -> np.ndarray:
    """Train up to a time, then nothing for a gap, then validation, then test."""
    if declared.in_dates and order.dates is False:
        raise MarioError(
            f'train_until = "{declared.train_until}" is a date, but times here are plain numbers; write a number'
        )
    if not declared.in_dates and order.dates:
        raise MarioError(
            f"train_until = {declared.train_until} is a plain number, but the times of this graph are dates; write "
            f'"{str(declared.train_until)[:4]}" in quotes, or a date such as "2017-06-30"'
        )
    train, gap, validation, test = declared.last_times
    time = order.values
    part = np.full(len(time), OOD_TEST)
    if test is not None:
        part[time > test] = NONE
    if validation is not None:
        part[time <= validation] = OOD_VAL
    part[time <= gap] = NONE
    part[time <= train] = TRAIN
    part[~order.known] = NONE
    return part


def _by_rank(order: Ordering, declared: DeclaredSplit) -> np.ndarray:
    """The smallest values train (the largest, if descending), and cuts are between two distinct values."""
    keys = -order.values if declared.descending else order.values
    ascending = np.sort(keys[order.known])
    train, validation, test = declared.fractions
    count, whole = len(ascending), min(train + validation + test, 1.0)
    wanted = [train, *([train + validation] if validation > 1e-9 else []), *([whole] if whole < 1 - 1e-6 else [])]
    changes = np.flatnonzero(ascending[1:] != ascending[:-1]) + 1
    if not len(changes):
        raise MarioError(f"all nodes have the same {declared.by}, so there is nothing to hold out; split by another")
    cuts = nearest_cuts(changes, [round(count * share) for share in wanted])
    borders = [ascending[cut] if cut < count else np.inf for cut in cuts]
    names = [OOD_VAL, OOD_TEST] if validation > 1e-9 and len(cuts) > 1 else [OOD_TEST]
    part = np.full(len(keys), TRAIN)
    for border, name in zip(borders, [*names, NONE], strict=False):
        part[keys >= border] = name
    part[~order.known] = NONE
    if declared.gap:
        last = order.values[part == TRAIN].max()
        part[(order.values > last) & (order.values <= _after(last, declared.gap, order.dates))] = NONE
    return part


def nearest_cuts(changes: Sequence[int] | np.ndarray, wanted: Sequence[int]) -> list[int]:
    """For each place the nearest change, the lower of two, each change once and a change left for each later place.

    If there are fewer changes than places, the last of the places that do not fit are left out.

    Example:
        >>> nearest_cuts([10, 50, 90], [60, 80])
        [50, 90]
        >>> nearest_cuts([50], [60, 80])
        [50]
    """
    wanted = wanted[: len(changes)]
    found: list[int] = []
    first = 0
    for place, target in enumerate(wanted):
        free = np.asarray(changes[first : len(changes) - (len(wanted) - place) + 1])
        at = int(np.abs(free - target).argmin())
        found.append(int(free[at]))
        first += at + 1
    return found


def _after(last: Any, gap: int | str, dates: bool | None) -> float:
    if not isinstance(gap, str):
        return float(last + gap)
    if dates is False:
        raise MarioError(f'gap = "{gap}" is for dates, but the times of this graph are plain numbers; write a number')
    try:
        start = datetime.datetime.fromtimestamp(int(last), datetime.UTC)
        return later(start, *parse_span(gap)).timestamp()
    except (OverflowError, ValueError, OSError):
        raise MarioError(f'gap = "{gap}" goes beyond the year 9999; choose a shorter one') from None


def _by_name(domain: np.ndarray, titles: Sequence[str], declared: DeclaredSplit) -> np.ndarray:
    parts = dict(zip((TRAIN, OOD_VAL, OOD_TEST), declared.domains, strict=True))
    named = [name for names in parts.values() if not isinstance(names, str) for name in names]
    for name in named:
        if name not in titles:
            listed = ", ".join(titles[:20]) + (", ..." if len(titles) > 20 else "")
            meant = nearest(name, titles)
            raise MarioError(f"{declared.by} has no domain {name!r}; it has {listed}{meant and f'; {meant}'}")
    of_domain = np.full(len(titles) + 1, NONE)  # the last is that of a missing value
    for code, names in parts.items():
        chosen = [title not in named for title in titles] if names == REST else [title in names for title in titles]
        of_domain[:-1][chosen] = code
    part: np.ndarray = of_domain[domain]
    return part


def _by_chance(draws: np.ndarray, labeled: np.ndarray, declared: DeclaredSplit) -> np.ndarray:
    part = np.full(len(draws), NONE)
    train, validation, test = declared.fractions
    ends = np.array([train, train + validation, min(train + validation + test, 1.0)])
    for rows in (labeled.nonzero()[0], (~labeled).nonzero()[0]):
        ordered = rows[np.argsort(draws[rows], kind="stable")]
        start = 0
        for code, end in zip((TRAIN, OOD_VAL, OOD_TEST), np.rint(len(rows) * ends).astype(int), strict=True):
            part[ordered[start:end]] = code
            start = end
    return part


def _by_concept(
    domain: np.ndarray, titles: Sequence[str], y: Tensor, declared: DeclaredSplit, generator: torch.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """GOOD's picks for nodes with a label. Others are picked at the same rates, by chance alone."""
    rule = SplitRule()
    known = domain >= 0
    labeled = known & (y.numpy() >= 0)
    if len(titles) < 2 or len(y[torch.from_numpy(labeled)].unique()) < 2:
        raise MarioError(
            f'shift = "concept" needs labels of two classes and two domains of {declared.by}; use "covariate"'
        )
    draws = torch.rand(len(rule.pick) - 1, len(domain), dtype=torch.float64, generator=generator)
    where = torch.from_numpy(labeled)
    ids = torch.from_numpy(np.unique(domain[labeled], return_inverse=True)[1].reshape(-1))
    pick = np.full(len(domain), len(rule.pick) - 1)
    pick[labeled] = concept_picks(ids, y[where], rule, draws[:, where]).numpy()
    left = known & ~labeled
    for k in range(len(rule.pick) - 1):
        taken = left & (draws[k].numpy() < rule.pick[k] / 2)
        pick[taken] = k
        left &= ~taken
    part, env = np.full(len(domain), OOD_VAL), np.full(len(domain), -1)
    part[pick == TEST_PICK] = OOD_TEST
    for number, k in enumerate(TRAINING_PICKS):
        part[pick == k], env[pick == k] = TRAIN, number
    part[~known] = NONE
    return part, env


def _one_domain(rows: int) -> tuple[np.ndarray, tuple[str, ...]]:
    return np.zeros(rows, np.int64), ("all",)


def _environments(values: np.ndarray, part: np.ndarray, environments: int) -> np.ndarray:
    """Groups of training nodes of about the same size; nodes of the same value are in the same one."""
    env = np.full(len(values), -1)
    env[part == TRAIN] = _groups(values[part == TRAIN], environments)
    return env


def _groups(values: np.ndarray, groups: int) -> np.ndarray:
    """Group g has the values below which are at least the share g / groups of all."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    before = counts.cumsum() - counts
    chosen = before * groups // max(len(values), 1)
    group: np.ndarray = np.unique(chosen, return_inverse=True)[1].reshape(-1)[place.reshape(-1)]
    return group


def _distinct(order: Ordering) -> tuple[np.ndarray, tuple[str, ...]]:
    """Each distinct value as a domain, with its name; -1 where it is missing."""
    if order.names is not None:
        return np.where(order.known, order.values, -1).astype(np.int64), order.names
    found, place = np.unique(order.values[order.known], return_inverse=True)
    domain = np.full(len(order.values), -1)
    domain[order.known] = place.reshape(-1)
    return domain, tuple(_title(value, order.dates) for value in found)


def _domains(order: Ordering, part: np.ndarray, groups: int) -> tuple[np.ndarray, tuple[str, ...]]:
    """Domains in order: names, or distinct numbers, or groups of each part where there are more than a hundred."""
    if order.names is not None or len(np.unique(order.values[order.known])) <= MOST_DOMAINS:
        return _distinct(order)
    rows = order.known.nonzero()[0]
    lowest, highest, group, count = [], [], np.full(len(part), -1), 0
    for code in np.unique(part[rows]):
        here = rows[part[rows] == code]
        found = _groups(order.values[here], groups)
        group[here] = found + count
        for one in range(int(found.max()) + 1):
            inside = order.values[here[found == one]]
            lowest.append(inside.min())
            highest.append(inside.max())
        count = len(lowest)
    ascending = np.argsort(np.array(lowest), kind="stable")
    renumbered = np.full(count + 1, -1)  # the last is that of a missing value
    renumbered[ascending] = np.arange(count)
    titles = [f"{_title(lowest[one], order.dates)} to {_title(highest[one], order.dates)}" for one in ascending]
    return renumbered[group], tuple(titles)


def _title(value: Any, dates: bool | None) -> str:
    if dates:
        try:
            moment = datetime.datetime.fromtimestamp(int(value), datetime.UTC)
        except (OverflowError, ValueError, OSError):
            return str(value)
        return moment.strftime("%Y-%m-%d" if int(value) % 86_400 == 0 else "%Y-%m-%d %H:%M:%S")
    return str(value) if not isinstance(value, float) else f"{value:.4g}"


def _take_id_parts(part: np.ndarray, labeled: np.ndarray, draws: np.ndarray, share: float) -> None:
    """Move nodes of the training part to id_val and id_test: the share of those with a label, and of those without."""
    train = part == TRAIN
    for rows, has_labels in (((train & labeled).nonzero()[0], True), ((train & ~labeled).nonzero()[0], False)):
        size = int(len(rows) * share + 1e-6)
        if has_labels and share and not size and len(rows) > 2:
            size = 1
        ordered = rows[np.argsort(draws[rows], kind="stable")]
        part[ordered[:size]] = ID_VAL
        part[ordered[size : 2 * size]] = ID_TEST


def _absent(data: Data, by: str, rows: int) -> str:
    there = [
        key
        for key, value in data
        if isinstance(value, Tensor) and value.dim() == 1 and value.numel() == rows and key not in ("y", "batch")
    ]
    if by == "time":
        return "the graph has no time, which a split by time needs; build it with --time COLUMN, or split by another"
    columns = f"has {', '.join(there)}" if there else "has none"
    meant = nearest(by, [*there, *QUANTITIES])
    return (
        f"{by!r} is neither a column of the graph, which {columns}, nor random, given or one of "
        f"{', '.join(QUANTITIES)}{meant and f'; {meant}'}"
    )


def _shown(declared: DeclaredSplit) -> str:
    table = {key: value for key, value in declared.as_table().items() if key != "by"}
    said = ", ".join(f"{key} = {value!r}" for key, value in table.items())
    return f"choose other values than {said}" if said else "name the parts with train, validation and test"
