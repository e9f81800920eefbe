"""Ids of rows: of any type, unchanged, and found by what is typed."""

from pathlib import Path

import pyarrow
import pytest

from mario.embedder import Ids
from mario.errors import MarioError


@pytest.mark.parametrize(
    "values",
    [["a", "b", "ü\n"], [3, 1, 2**62], [2**64 - 1, 0, 1], [1.5, 2.0, -1.0], [True, False, None], [b"x", b"y", b"z"]],
)
def test_values_come_back_unchanged(tmp_path: Path, values: list[object]) -> None:
    column = Ids.of(values).column
    with pyarrow.ipc.new_file(str(tmp_path / "ids.arrow"), pyarrow.schema([("id", column.type)])) as file:
        file.write_table(pyarrow.table({"id": column}))
    ids = Ids.read(tmp_path / "ids.arrow", 3)
    assert ids.values(0, 3) == values
    assert ids.arrow(0, 3).type == column.type
    assert ids.value(1) == values[1]
    assert ids.take([2, 0]).values(0, 2) == [values[2], values[0]]


def test_an_id_is_found_by_its_text() -> None:
    assert Ids.of([10, 20, -3]).find("-3") == 2
    assert Ids.of(["10", "20"]).find("20") == 1
    assert Ids.of([2**64 - 1, 0]).find(str(2**64 - 1)) == 0
    assert Ids.of([1.5, 2.5]).find("2.5") == 1
    assert Ids(5).find("4") == 4


@pytest.mark.parametrize(
    ("ids", "typed", "said"),
    [
        (Ids.of(["user-1007", "user-1008", "shop-3"]), "user-1070", "did you mean 'user-1008' or 'user-1007'"),
        (Ids.of(["Anna", "Ben"]), "anna", "did you mean 'Anna'"),
        (Ids.of([10, 20]), "ten", r"no id 'ten' among 2 ids such as 10$"),
        (Ids.of([10234, 20]), "1023", r"did you mean '10234'"),
        (Ids.of([10, 20]), "9" * 20, "there is no id"),
        (Ids.of([10, 20]), "9" * 1000, "there is no id"),
        (Ids(4), "4", "there is no id '4' among 4 ids such as 0"),
        (Ids(4), "-1", "there is no id"),
        (Ids.of(["a"]), "", "there is no id ''"),
    ],
)
def test_an_id_that_is_not_there_is_one_error_with_the_nearest(ids: Ids, typed: str, said: str) -> None:
    with pytest.raises(MarioError, match=said):
        ids.find(typed)


def test_files_that_are_none_are_one_error(tmp_path: Path) -> None:
    path = tmp_path / "ids.arrow"
    with pytest.raises(MarioError, match="there is no file"):
        Ids.read(path, 3)
    path.write_bytes(b"ARROW1 not really")
    with pytest.raises(MarioError, match="is no Arrow file with ids, or it is damaged"):
        Ids.read(path, 3)
    with pyarrow.ipc.new_file(str(path), pyarrow.schema([("name", pyarrow.int64())])) as file:
        file.write_table(pyarrow.table({"name": pyarrow.array([1, 2])}))
    with pytest.raises(MarioError, match="must have one column, id; it has name"):
        Ids.read(path, 2)
    with pyarrow.ipc.new_file(str(path), pyarrow.schema([("id", pyarrow.int64())])) as file:
        file.write_table(pyarrow.table({"id": pyarrow.array([1, 2])}))
    with pytest.raises(MarioError, match="has 2 ids for 3 rows"):
        Ids.read(path, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(MarioError, match="damaged"):
        Ids.read(path, 2)


def test_mixed_ids_are_refused() -> None:
    with pytest.raises(MarioError, match="ids must be texts or numbers of one type"):
        Ids.of(["a", 1])
