"""Roles and kinds of columns are found by name and by type."""

import pyarrow as pa
import pytest

from mario.errors import MarioError
from mario.graphs.tables.columns import Roles, infer_columns


def found(table: pa.Table, kind: str = "nodes", **given: object) -> dict[str, tuple[str, str]]:
    columns = infer_columns(table.schema, table, table=kind, given=Roles(**given))  # type: ignore[arg-type]
    assert all(column.reason for column in columns)
    return {column.name: (column.role, column.kind) for column in columns}


def test_names_of_nodes() -> None:
    table = pa.table(
        {
            "Node ID": ["a", "b", "c", "d"],
            "class": [0, 1, 0, 1],
            "University": ["x", "x", "y", "y"],
            "year": [2011, 2012, 2013, 2013],
            "pages": [1.5, 2.5, 3.5, 1.5],
            "split": ["train", "test", "train", "test"],
        }
    )
    assert found(table) == {
        "Node ID": ("id", "categorical"),
        "class": ("label", "categorical"),
        "University": ("domain", "categorical"),
        "year": ("time", "numeric"),
        "pages": ("feature", "numeric"),
        "split": ("drop", "none"),
    }


def test_names_of_edges() -> None:
    table = pa.table({"From": [1, 2], "to": [2, 1], "weight": [0.5, 1.0], "note": ["x", "y"]})
    assert found(table, "edges") == {
        "From": ("source", "categorical"),
        "to": ("target", "categorical"),
        "weight": ("weight", "numeric"),
        "note": ("drop", "none"),
    }
    assert [role for role, _ in found(pa.table({"x1": [1, 2], "x2": [2, 1]}), "edges").values()] == ["source", "target"]


def test_what_is_given_wins_and_a_second_label_is_no_feature() -> None:
    table = pa.table({"name": ["a", "b"], "label": [0, 1], "topic": ["u", "v"]})
    roles = found(table, id="name", label="topic")
    assert roles["topic"] == ("label", "categorical")
    assert roles["label"] == ("drop", "none")
    assert found(table, label="topic", feature=("label",))["label"] == ("feature", "numeric")


def test_a_wrong_name_is_told() -> None:
    with pytest.raises(MarioError, match="the nodes have no column 'lable'; did you mean 'label'"):
        found(pa.table({"label": [1]}), label="lable")
    with pytest.raises(MarioError, match="column 'label' is given as label and as drop"):
        found(pa.table({"label": [1]}), label="label", drop=("label",))


def reason(name: str, **columns: object) -> str:
    table = pa.table(columns)
    return next(column.reason for column in infer_columns(table.schema, table) if column.name == name)


def test_a_name_of_the_label_is_no_feature() -> None:
    names = ["cat", "dog", "emu"] * 10
    assert reason("what", id=range(30), label=[0, 1, 2] * 10, what=names) == "says the same as the label label"
    assert reason("what", id=range(30), label=[0, 1, 2] * 10, what=[*names[1:], "dog"]).startswith("categorical")


def test_kinds_of_texts() -> None:
    rows = 40
    columns = {
        "id": [f"n{i}" for i in range(rows)],
        "other": [f"m{i}" for i in range(rows)],
        "facebook_id": [10**12 + i * i for i in range(rows)],
        "price": [f"{i}.5" for i in range(rows - 3)] + ["n/a", "?", ""],
        "zip": [f"0{i % 7}123" for i in range(rows)],
        "born": [f"{i % 28 + 1}.03.1990" for i in range(rows)],
        "seen": ["03/04/2020", "05/06/2020"] * (rows // 2),
        "member": ["yes", "no"] * (rows // 2),
        "tags": ["a|b", "b|c", "c", "a"] * (rows // 4),
        "abstract": [f"a paper on the topic number {i}" for i in range(rows)],
        "field": ["ai", "db"] * (rows // 2),
        "nothing": [""] * rows,
        "same": ["x"] * rows,
        "blob": [b"x"] * rows,
    }
    assert found(pa.table(columns)) == {
        "id": ("id", "categorical"),
        "other": ("drop", "none"),
        "facebook_id": ("drop", "none"),
        "price": ("feature", "numeric"),
        "zip": ("feature", "categorical"),
        "born": ("feature", "date"),
        "seen": ("feature", "date"),
        "member": ("feature", "boolean"),
        "tags": ("feature", "list"),
        "abstract": ("feature", "text"),
        "field": ("feature", "categorical"),
        "nothing": ("drop", "none"),
        "same": ("drop", "none"),
        "blob": ("drop", "none"),
    }
    assert reason("other", **columns) == "another text in each row, as an id"
    assert reason("same", **columns) == "constant"
    assert reason("seen", **columns) == "date: texts that are dates, the month first, though nothing says so"
    assert reason("born", **columns) == "date: texts that are dates"


def test_kinds_of_types() -> None:
    table = pa.table(
        {
            "key": [1, 2],
            "at": pa.array([0, 1], pa.timestamp("ms")),
            "for": pa.array([0, 1], pa.duration("s")),
            "clock": pa.array([0, 1], pa.time32("s")),
            "vector": [[0.5], [1.5]],
            "flag": [True, False],
            "money": pa.array([1, 2]).cast(pa.decimal128(21, 2)),
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "record": [{"a": 1}, {"a": 2}],
        }
    )
    kinds = {name: kind for name, (_, kind) in found(table).items()}
    assert kinds == {
        "key": "categorical", "at": "date", "for": "numeric", "clock": "numeric", "vector": "list", "flag": "boolean",
        "money": "numeric", "word": "categorical", "record": "none",
    }  # fmt: skip


def test_a_kind_that_is_given_wins() -> None:
    table = pa.table({"id": [1, 2], "zip": [100, 200]})
    assert found(table, kinds={"zip": "categorical"})["zip"] == ("feature", "categorical")
    with pytest.raises(MarioError, match="unknown kind of zip 'number'"):
        found(table, kinds={"zip": "number"})


def test_a_measured_label_is_no_label() -> None:
    assert reason("target", id=[1, 2], target=[0.5, 1.25]) == "named as a label, but its values are no classes"
