"""Declared splits, beside a slow version written from the definition."""

import datetime
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs import DeclaredSplit, check_graph, own_split
from mario.graphs.graph_sets import stack_graphs
from mario.graphs.own_splits import MISSING_TIME, nearest_cuts
from mario.graphs.rules import PARTS

TOWNS = ("Bern", "Oslo", "Rome")


def graph(nodes: int = 12, **columns: Any) -> Data:
    return Data(x=torch.eye(nodes), edge_index=torch.arange(nodes).repeat(2, 1), **columns)


def parts(data: Data) -> list[str]:
    """The part of each row."""
    rows = data.train_mask.numel()
    found = [[part for part in PARTS if f"{part}_mask" in data and data[f"{part}_mask"][row]] for row in range(rows)]
    assert all(len(names) <= 1 for names in found)
    return ["".join(names) for names in found]


def seconds(*date: int) -> int:
    return int(datetime.datetime(*date, tzinfo=datetime.UTC).timestamp())  # type: ignore[misc]


# The slow version: one row at a time, from the docstrings of DeclaredSplit and own_split.


def slow_by_time(time: int | None, train: int, gap: int, validation: int | None, test: int | None) -> str:
    if time is None:
        return ""
    if time <= train:
        return "train"
    if time <= train + gap:
        return ""
    if validation is not None and time <= validation:
        return "ood_val"
    return "ood_test" if test is None or time <= test else ""


def slow_by_rank(values: list[int], fractions: tuple[float, float], descending: bool) -> list[str]:
    """Train, then validation, then test, each border at the change of value that is nearest to its fraction."""
    ordered = sorted(values, reverse=descending)
    changes = [place for place in range(1, len(ordered)) if ordered[place] != ordered[place - 1]]
    wanted = [round(len(values) * fractions[0]), round(len(values) * sum(fractions))]
    if len(changes) == 1:
        wanted = wanted[:1]
    best = None
    for first in changes:
        for second in changes if len(wanted) == 2 else [len(ordered)]:
            if second <= first or (len(wanted) == 2 and first == changes[-1]):
                continue
            key = (abs(first - wanted[0]), first, abs(second - wanted[-1]), second)
            best = min(best, (key, first, second)) if best else (key, first, second)
    assert best
    _, first, second = best
    lowest_of = {
        "train": ordered[:first],
        "ood_val": ordered[first:second] if len(wanted) == 2 else [],
        "ood_test": ordered[second if len(wanted) == 2 else first :],
    }
    return [next(name for name, inside in lowest_of.items() if value in inside) for value in values]


def slow_environments(values: list[int], environments: int) -> list[int]:
    """Of each value: floor(environments * share of values below), numbered without gaps."""
    raw = [environments * sum(other < value for other in values) // len(values) for value in values]
    return [sorted(set(raw)).index(one) for one in raw]


rows = st.integers(4, 40)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_by_time_as_the_definition_says(draws: st.DataObject) -> None:
    times = draws.draw(st.lists(st.integers(-3, 12) | st.none(), min_size=4, max_size=40))
    train = draws.draw(st.integers(-3, 6))
    gap = draws.draw(st.integers(0, 3))
    validation = draws.draw(st.none() | st.integers(train + gap + 1, 11))
    test = draws.draw(st.none() | st.integers((train + gap if validation is None else validation) + 1, 14))
    data = graph(len(times), time=torch.tensor([MISSING_TIME if time is None else time for time in times]))
    declared = DeclaredSplit(
        by="time", train_until=train, gap=gap, validation_until=validation, test_until=test, in_domain=0
    )
    due = [slow_by_time(time, train, gap, validation, test) for time in times]
    if "train" not in due or "ood_test" not in due:
        with pytest.raises(MarioError, match=r"the split by time leaves|no node has a value of time"):
            own_split(data, declared)
        return
    made = own_split(data, declared)
    check_graph(made)
    assert parts(made) == due
    distinct = sorted({time for time in times if time is not None})
    assert made.domain_id.tolist() == [-1 if time is None else distinct.index(time) for time in times]
    inside = [time for time, part in zip(times, due, strict=True) if part == "train" and time is not None]
    assert made.env_id[made.train_mask].tolist() == slow_environments(inside, 10)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=4, max_size=40).filter(lambda values: len(set(values)) > 1),
    st.sampled_from([(0.6, 0.2), (0.3, 0.4), (0.8, 0.1)]),
    st.booleans(),
)
def test_by_a_number_as_the_definition_says(
    values: list[int], fractions: tuple[float, float], descending: bool
) -> None:
    declared = DeclaredSplit(
        by="age", train=fractions[0], validation=fractions[1], descending=descending, in_domain=0, environments=4
    )
    made = own_split(graph(len(values), age=torch.tensor(values)), declared)
    check_graph(made)
    assert parts(made) == slow_by_rank(values, fractions, descending)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1, 2), min_size=6, max_size=40), st.sampled_from(["named", "leave_out", "rest"]))
def test_by_domain_as_the_definition_says(codes: list[int], form: str) -> None:
    data = graph(len(codes), town=torch.tensor(codes))
    part_of = {"Bern": "train", "Oslo": "ood_val", "Rome": "ood_test"}
    table: dict[str, Any] = {"train": ["Bern"], "validation": ["Oslo"], "test": ["Rome"]}
    if form == "leave_out":
        table, part_of = {"leave_out": "Oslo"}, {"Bern": "train", "Oslo": "ood_test", "Rome": "train"}
    if form == "rest":
        table, part_of = {"train": "rest", "test": ["Bern"]}, {"Bern": "ood_test", "Oslo": "train", "Rome": "train"}
    due = [part_of[TOWNS[code]] if code >= 0 else "" for code in codes]
    if "train" not in due or "ood_test" not in due:
        with pytest.raises(MarioError, match="the split by town leaves"):
            own_split(data, {"by": "town", "in_domain": 0, **table}, names={"town": TOWNS})
        return
    made = own_split(data, {"by": "town", "in_domain": 0, **table}, names={"town": TOWNS})
    check_graph(made)
    assert parts(made) == due
    assert (made.domain_id.tolist(), made.domain_names) == (codes, list(TOWNS))
    trained = sorted({code for code, part in zip(codes, due, strict=True) if part == "train"})
    assert made.env_id.tolist() == [
        trained.index(code) if part == "train" else -1 for code, part in zip(codes, due, strict=True)
    ]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-1, 2), min_size=10, max_size=60), st.floats(0, 0.4), st.integers(0, 5))
def test_parts_of_training_domains_are_drawn_in_proportion(y: list[int], share: float, seed: int) -> None:
    data = graph(len(y), y=torch.tensor(y), age=torch.arange(len(y)))
    made = own_split(data, {"by": "age", "train": 0.7, "validation": 0.1, "in_domain": share}, split_seed=seed)
    again = own_split(data, {"by": "age", "train": 0.7, "validation": 0.1, "in_domain": share}, split_seed=seed)
    found = parts(made)
    assert found == parts(again)
    before = parts(own_split(data, {"by": "age", "train": 0.7, "validation": 0.1, "in_domain": 0}))
    for labeled in (True, False):
        mine = [
            part
            for part, old, label in zip(found, before, y, strict=True)
            if old == "train" and (label >= 0) == labeled
        ]
        size = math.floor(share * len(mine) + 1e-6)
        if labeled and share and not size and len(mine) > 2:
            size = 1
        assert (mine.count("id_val"), mine.count("id_test")) == (size, min(size, len(mine) - size))
    assert [part for part, old in zip(found, before, strict=True) if old != "train"] == [
        old for old in before if old != "train"
    ]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-1, 3), min_size=20, max_size=80), st.integers(0, 3))
def test_random_parts_have_their_fractions(y: list[int], seed: int) -> None:
    data = graph(len(y), y=torch.tensor(y))
    made = own_split(data, {"by": "random", "train": 0.5, "validation": 0.2, "in_domain": 0}, split_seed=seed)
    for labeled in (True, False):
        of = [part for part, label in zip(parts(made), y, strict=True) if (label >= 0) == labeled]
        ends = [round(len(of) * share) for share in (0.5, 0.7)]
        assert [of.count(part) for part in ("train", "ood_val", "ood_test")] == [
            ends[0], ends[1] - ends[0], len(of) - ends[1],
        ]  # fmt: skip


def test_seeds_draw_other_parts() -> None:
    data = graph(60)
    first, second = (own_split(data, {"by": "random"}, split_seed=seed) for seed in (0, 1))
    assert parts(first) != parts(second)
    assert "y" not in first
    assert "num_classes" not in first


def test_dates_name_whole_years_months_and_days() -> None:
    moments = [
        (2016, 1, 1),
        (2017, 12, 31, 23, 59, 59),
        (2018, 1, 1),
        (2018, 1, 31),
        (2018, 2, 1),
        (2019, 6, 30),
        (2019, 7, 1),
    ]
    data = graph(7, time=torch.tensor([seconds(*moment) for moment in moments]))
    table = {"by": "time", "train_until": "2017", "gap": "1 month", "validation_until": "2019-06", "in_domain": 0}
    assert parts(own_split(data, table, dates=True)) == ["train", "train", "", "", "ood_val", "ood_val", "ood_test"]
    table = {"by": "time", "train_until": "2018-01-31", "test_until": "2019-06-30", "in_domain": 0}
    assert parts(own_split(data, table)) == ["train"] * 4 + ["ood_test"] * 2 + [""]
    named = own_split(data, table, dates=True).domain_names
    assert named[:3] == ["2016-01-01", "2017-12-31 23:59:59", "2018-01-01"]


def test_a_gap_between_fractions_of_time() -> None:
    data = graph(10, time=torch.arange(10))
    table = {"by": "time", "train": 0.5, "validation": 0.2, "gap": 1, "in_domain": 0}
    assert parts(own_split(data, table)) == ["train"] * 5 + [""] + ["ood_val"] + ["ood_test"] * 3
    days = graph(10, time=torch.arange(10) * 86_400)
    table["gap"] = "36 hours"
    assert parts(own_split(days, table)) == ["train"] * 5 + [""] + ["ood_val"] + ["ood_test"] * 3


def test_what_is_left_of_the_fractions_is_in_no_part() -> None:
    table = {"by": "age", "train": 0.4, "validation": 0.2, "test": 0.2, "in_domain": 0}
    made = own_split(graph(10, age=torch.arange(10.0)), table)
    assert parts(made) == ["train"] * 4 + ["ood_val"] * 2 + ["ood_test"] * 2 + [""] * 2


def test_missing_numbers_are_in_no_part() -> None:
    made = own_split(graph(5, age=torch.tensor([1.0, math.nan, 2, 3, 4])), {"by": "age", "in_domain": 0})
    assert parts(made)[1] == ""
    assert made.domain_id.tolist()[1] == -1


def test_many_values_are_grouped_within_parts() -> None:
    made = own_split(graph(1000, score=torch.rand(1000, generator=torch.Generator().manual_seed(0))), {"by": "score"})
    assert len(made.domain_names) == 30
    whole = made.train_mask | made.id_val_mask | made.id_test_mask
    sets = [set(made.domain_id[mask].tolist()) for mask in (whole, made.ood_val_mask, made.ood_test_mask)]
    assert [sorted(ids) for ids in sets] == [list(range(10)), list(range(10, 20)), list(range(20, 30))]
    assert set(made.env_id[made.train_mask].tolist()) == set(range(10))


def test_concept_reverses_the_lean_of_labels_and_takes_nodes_without() -> None:
    generator = torch.Generator().manual_seed(0)
    town, y = torch.randint(3, (3000,), generator=generator), torch.randint(2, (3000,), generator=generator)
    y[::3] = -1
    made = own_split(graph(3000, town=town, y=y), {"by": "town", "shift": "concept"}, names={"town": TOWNS})
    check_graph(made)
    known = y >= 0

    def lean(mask: torch.Tensor) -> float:
        both = torch.stack([(town[mask & known] > 0).double(), y[mask & known].double()])
        return float(torch.corrcoef(both)[0, 1])

    assert lean(made.train_mask) < -0.2 < 0.2 < lean(made.ood_test_mask)
    for part in PARTS:
        share = float((y[made[f"{part}_mask"]] < 0).double().mean())
        assert 0.25 < share < 0.42, part
    assert sorted(made.env_id[made.train_mask].unique().tolist()) == [0, 1, 2]
    with pytest.raises(MarioError, match="needs labels of two classes and two domains of town"):
        own_split(graph(town=torch.arange(12) % 3), {"by": "town", "shift": "concept"})


def test_sets_of_graphs_are_split_by_size() -> None:
    few = [Data(x=torch.ones(n, 1), edge_index=torch.empty(2, 0).long()) for n in range(1, 11)]
    made = own_split(stack_graphs(few), {"by": "size", "in_domain": 0}, setting="inductive")
    assert parts(made) == ["train"] * 6 + ["ood_val"] * 2 + ["ood_test"] * 2
    assert made.domain_names == [str(n) for n in range(1, 11)]


def test_given_masks_stay() -> None:
    masked = graph(train_mask=torch.arange(12) < 6, ood_test_mask=torch.arange(12) > 8)
    made = own_split(masked, {"by": "given"})
    assert torch.equal(made.train_mask, masked.train_mask)
    assert (made.domain, made.shift) == ("given", "given")
    with pytest.raises(MarioError, match="it has no train_mask"):
        own_split(graph(), {"by": "given"})


def test_other_masks_are_replaced_and_the_graph_stays() -> None:
    data = graph(age=torch.arange(12), id_test_mask=torch.ones(12, dtype=torch.bool))
    made = own_split(data, {"by": "age", "in_domain": 0})
    assert "id_test_mask" not in made
    assert "train_mask" not in data


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"by": "tim"}, "'tim' is neither a column of the graph, which has time, town.*did you mean 'time'"),
        ({"by": "town", "leave_out": "Romee"}, "town has no domain 'Romee'; it has Bern, Oslo, Rome; did you mean"),
        ({"by": "time", "train_until": 99}, "leaves ood_test without nodes: choose other values than train_until = 99"),
        ({"by": "time", "train_until": "2017"}, "is a date, but times here are plain numbers"),
        ({"by": "time", "train": 0.5, "gap": "1 day"}, "is for dates, but the times of this graph are plain numbers"),
        ({"by": "same"}, "all nodes have the same same, so there is nothing to hold out"),
        ({"by": "wide"}, r"data\.wide must hold one number or name for each of 12 nodes, got int64 \(12, 2\)"),
        ({"by": "endless"}, "data.endless holds infinite values"),
        ({"environments": 3}, "split must be a DeclaredSplit or a table"),
    ],
)
def test_what_cannot_be_split_is_explained(table: dict[str, Any], message: str) -> None:
    data = graph(
        time=torch.arange(12),
        town=torch.arange(12) % 3,
        same=torch.ones(12),
        wide=torch.ones(12, 2).long(),
        endless=torch.full((12,), math.inf),
    )
    with pytest.raises(MarioError, match=message):
        own_split(data, table, names={"town": TOWNS}, dates=False)


def test_numbers_where_the_graph_has_dates_are_refused() -> None:
    with pytest.raises(MarioError, match='the times of this graph are dates; write "2017" in quotes'):
        own_split(graph(time=torch.arange(12)), {"by": "time", "train_until": 2017}, dates=True)


def test_no_time_says_how_to_get_one() -> None:
    with pytest.raises(MarioError, match=r"the graph has no time, .* --time COLUMN"):
        own_split(graph(), {"by": "time"})


def test_codes_beyond_the_names_are_refused() -> None:
    with pytest.raises(MarioError, match=r"data.town holds 2, but town has 2 names: its codes are -1\.\.1"):
        own_split(graph(town=torch.arange(12) % 3), {"by": "town"}, names={"town": ("Bern", "Oslo")})


def test_each_place_keeps_a_change_for_those_that_follow() -> None:
    assert nearest_cuts([10, 20, 90], [95, 96]) == [20, 90]
    assert nearest_cuts([10, 20], [1, 1, 1]) == [10, 20]
