import csv
from pathlib import Path

import pytest

from mario.errors import MarioError
from mario.graphs.tables.example import KINDS, NEW_REGION, write_example


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


class TestWriteExample:
    def test_next_month_has_the_old_shops_and_a_new_region(self, tmp_path: Path) -> None:
        write_example(tmp_path / "example", shops=100, new=30)
        now, later = read(tmp_path / "example" / "shops.csv"), read(tmp_path / "example" / "next" / "shops.csv")
        assert later[:100] == now
        assert len({row["shop"] for row in later}) == 130
        assert NEW_REGION not in {row["region"] for row in now}
        assert NEW_REGION in {row["region"] for row in later}

    def test_the_new_shops_have_no_label_but_an_answer(self, tmp_path: Path) -> None:
        write_example(tmp_path, shops=100, new=30)
        new = read(tmp_path / "next" / "shops.csv")[100:]
        answers = read(tmp_path / "next" / "answers.csv")
        assert {row["kind"] for row in new} == {""}
        assert [row["shop"] for row in answers] == [row["shop"] for row in new]
        assert {row["kind"] for row in answers} <= set(KINDS)

    def test_every_sale_is_between_two_shops_of_the_table(self, tmp_path: Path) -> None:
        write_example(tmp_path, shops=100, new=30)
        for month in (tmp_path, tmp_path / "next"):
            shops = {row["shop"] for row in read(month / "shops.csv")}
            sales = read(month / "sales.csv")
            assert all({row["buyer"], row["seller"]} <= shops and row["buyer"] != row["seller"] for row in sales)

    def test_the_same_seed_writes_the_same_bytes(self, tmp_path: Path) -> None:
        first, again = (write_example(tmp_path / name, shops=40, new=10) for name in ("a", "b"))
        other = write_example(tmp_path / "c", shops=40, new=10, seed=1)
        assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
        assert first[0].read_bytes() != other[0].read_bytes()

    def test_a_folder_with_files_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "mine.csv").write_text("a\n")
        with pytest.raises(MarioError, match="not empty: choose a new folder"):
            write_example(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["mine.csv"]
