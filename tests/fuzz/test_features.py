"""Features of a table depend on the plan and on each row alone, whatever the values, the batches and the order."""

import datetime
import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from hypothesis import example, strategies as st

from fuzz.targets import attempt, fuzz
from mario.errors import MarioError
from mario.graphs.tables.columns import Column, infer_columns
from mario.graphs.tables.features import FeaturePlan, Report

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
WORD = st.one_of(
    TEXT, st.sampled_from(["yes", "no", "NA", "", " ", "a|b", "[1, 2]", "['", "2020-01-02", "3/4/2020", "1e5"])
)
NUMBER = st.one_of(st.floats(), st.sampled_from([0.0, 1.0, 1e308, -1e308, 5e-324, math.inf, math.nan]))
WHOLE = st.integers(-(2**63), 2**63 - 1)
DAY = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
VALUES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "numbers": (NUMBER, pa.float64()),
    "halves": (st.floats(width=32), pa.float32()),
    "wholes": (WHOLE, pa.int64()),
    "small": (st.integers(0, 3), pa.int8()),
    "words": (WORD, pa.string()),
    "digits": (st.one_of(NUMBER.map(repr), WORD), pa.large_string()),
    "phrases": (st.lists(WORD, max_size=8).map(" ".join), pa.string()),
    "flags": (st.booleans(), pa.bool_()),
    "days": (DAY, pa.timestamp("us")),
    "written": (DAY.map(str), pa.string()),
    "seconds": (WHOLE, pa.timestamp("s")),
    "items": (st.lists(WORD, max_size=4), pa.list_(pa.string())),
    "ids": (st.lists(st.integers(0, 9), max_size=4), pa.list_(pa.int64())),
    "vectors": (st.lists(st.one_of(st.none(), NUMBER), min_size=3, max_size=3), pa.list_(pa.float64())),
    "ragged": (st.lists(st.one_of(st.none(), NUMBER), max_size=3), pa.large_list(pa.float64())),
    "nothing": (st.none(), pa.null()),
    "bytes": (st.binary(max_size=3), pa.binary()),
}
KINDS = ("numeric", "categorical", "text", "date", "list", "boolean")


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """A table of any columns, with missing values everywhere."""
    rows = draw(st.integers(1, 24))
    columns = {}
    for kind in draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True)):
        values, type_ = VALUES[kind]
        cells = st.one_of(st.none(), values) if draw(st.booleans()) else values
        columns[kind] = pa.array(draw(st.lists(cells, min_size=rows, max_size=rows)), type_)
    return pa.table(columns)


def batched(table: pa.Table, sizes: list[int]) -> Callable[[], Iterator[pa.RecordBatch]]:
    def batches() -> Iterator[pa.RecordBatch]:
        start, turn = 0, 0
        while start < table.num_rows:
            size = sizes[turn % len(sizes)]
            yield from table.slice(start, size).combine_chunks().to_batches()
            start, turn = start + size, turn + 1

    return batches


def bits(z: Any) -> bytes:
    """The bits of features."""
    dense = z.toarray() if sp.issparse(z) else z
    assert dense.dtype == np.float32
    assert np.isfinite(dense).all()
    return dense.tobytes()


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=3)


@example(table=pa.table({"words": ["a"] * 30 + ["b"]}), kinds=["categorical"], sizes=[7], seed=0, limit=5)
@example(table=pa.table({"wholes": [2**62, -(2**62), 0, None]}), kinds=["numeric"], sizes=[1], seed=0, limit=2)
@example(
    table=pa.table({"seconds": pa.array([-(2**62), 0], pa.timestamp("s"))}), kinds=[""], sizes=[1], seed=0, limit=1
)
@example(table=pa.table({"a": [[None, None], []]}), kinds=["list"], sizes=[1], seed=0, limit=2)
@fuzz(
    examples=60,
    table=tables(),
    kinds=st.lists(st.sampled_from(("", *KINDS)), min_size=4, max_size=4),
    sizes=SIZES,
    seed=st.integers(0, 3),
    limit=st.integers(1, 30),
)
def test_a_plan_is_repeated_bit_for_bit(
    table: pa.Table, kinds: list[str], sizes: list[int], seed: int, limit: int
) -> None:
    found = attempt(lambda: infer_columns(table.schema, table))
    if isinstance(found, MarioError):
        return
    columns = [
        Column(column.name, "feature", kind or (column.kind if column.kind != "none" else "categorical"))
        for column, kind in zip(found, kinds, strict=False)
    ]
    plan = attempt(lambda: FeaturePlan.fit(batched(table, [1000]), columns, seed=seed, limit=limit))
    again = attempt(lambda: FeaturePlan.fit(batched(table, sizes), columns, seed=seed, limit=limit))
    if isinstance(plan, MarioError) or isinstance(again, MarioError):
        assert str(plan) == str(again)
        return
    assert plan.digest == again.digest
    whole = plan.transform(table)
    assert whole.shape == (table.num_rows, plan.width)
    assert len(set(plan.names)) == plan.width
    expected, counted = bits(whole), plan.report.as_json()
    assert sum(plan.widths.values()) == plan.width

    plan.report = Report()
    pieces = [plan.transform(batch) for batch in batched(table, sizes)()]
    assert bits(sp.vstack(pieces) if plan.sparse else np.concatenate(pieces)) == expected
    for name, counts in plan.report.as_json().items():
        assert counts | {"examples": None} == counted[name] | {"examples": None}
    turned = table.select(table.column_names[::-1])
    assert bits(plan.transform(turned)) == expected
    order = np.random.default_rng(seed).permutation(table.num_rows)
    moved = plan.transform(table.take(order))
    assert bits(moved) == bits(whole[order])
    with tempfile.TemporaryDirectory() as home:
        plan.save(Path(home) / "features.json")
        read = FeaturePlan.load(Path(home) / "features.json")
    assert read == plan
    assert read.names == plan.names
    assert bits(read.transform(table)) == expected


@fuzz(examples=40, old=tables(), new=tables(), sizes=SIZES)
def test_new_rows_never_change_a_plan(old: pa.Table, new: pa.Table, sizes: list[int]) -> None:
    found = attempt(lambda: infer_columns(old.schema, old))
    if isinstance(found, MarioError):
        return
    plan = attempt(lambda: FeaturePlan.fit(batched(old, sizes), found))
    if isinstance(plan, MarioError):
        return
    before, expected = plan.digest, bits(plan.transform(old))
    names = new.column_names
    renamed = {name: new.column(names[place % len(names)]) for place, name in enumerate(old.column_names)}
    made = attempt(lambda: plan.transform(pa.table(renamed)))
    if not isinstance(made, MarioError):
        bits(made)
        assert made.shape == (new.num_rows, plan.width)
    assert plan.digest == before
    assert bits(plan.transform(old)) == expected


def _saved() -> str:
    rows = {
        "a": [1.5, None, 3.0],
        "b": ["x", "y", "x"],
        "c": ["one two three", "two three", "six"],
        "d": [[1], [2], []],
    }
    table = pa.table(rows)
    columns = [
        Column(name, "feature", kind) for name, kind in zip("abcd", ("numeric", *KINDS[1:3], "list"), strict=True)
    ]
    with tempfile.TemporaryDirectory() as home:
        FeaturePlan.fit(batched(table, [2]), columns).save(Path(home) / "p.json")
        return (Path(home) / "p.json").read_text()


SAVED = _saved()


@fuzz(
    examples=60,
    place=st.integers(0, len(SAVED) - 1),
    cut=st.integers(0, 8),
    put=st.text(st.characters(max_codepoint=127), max_size=4),
)
def test_a_damaged_plan_is_one_error(place: int, cut: int, put: str) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "features.json"
        path.write_text(SAVED[:place] + put + SAVED[place + cut :])
        read = attempt(lambda: FeaturePlan.load(path))
        if isinstance(read, MarioError):
            assert str(path) in str(read)
