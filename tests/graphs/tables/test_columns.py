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
