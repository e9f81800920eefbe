from pathlib import Path

import pytest

from mario.datasets import CATALOG, DatasetCard, RawFile, raw_files
from mario.datasets.files import (
    absent_message,
    cache_folder,
    downloads_folder,
    file_states,
    locate,
    search_folders,
    sha256,
)
from mario.errors import MarioError

# The SHA-256 of "abc" is the standard's own example (FIPS 180-2, B.1).
ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
CARD = DatasetCard(
    name="toy",
    what="",
    nodes=1,
    edges=1,
    features=1,
    classes=1,
    domains=("d",),
    source="somewhere",
    license="",
    files=(RawFile("a/one.txt", 3, ABC), RawFile("two.txt")),
)


@pytest.fixture(autouse=True)
def _no_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MARIO_DATA", raising=False)


def put(folder: Path, one: str | None = "abc", two: str | None = "?") -> Path:
    for path, content in (("a/one.txt", one), ("two.txt", two)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            (folder / path).write_text(content)
    return folder


def test_checksum_of_the_standards_example(tmp_path: Path) -> None:
    assert sha256(put(tmp_path) / "a/one.txt") == ABC
    with pytest.raises(MarioError, match="cannot read"):
        sha256(tmp_path / "absent")


def test_the_cache_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("MARIO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "mario"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / ".cache" / "mario"
    monkeypatch.setattr("sys.platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "mario"


def test_the_first_folder_with_every_file_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate(CARD) is None
    put(downloads_folder())
    assert locate(CARD) == downloads_folder()
    monkeypatch.setenv("MARIO_DATA", str(put(tmp_path / "data", two=None)))
    assert locate(CARD) == downloads_folder()
    put(tmp_path / "data")
    assert locate(CARD) == tmp_path / "data"
    assert locate(CARD, put(tmp_path / "root")) == tmp_path / "root"
    assert search_folders(tmp_path / "root") == [tmp_path / "root", tmp_path / "data", downloads_folder()]


def test_states_of_files(tmp_path: Path) -> None:
    assert [state.state for state in file_states(CARD)] == ["absent", "absent"]
    root = put(tmp_path / "root")
    assert [state.state for state in file_states(CARD, root)] == ["OK", "UNKNOWN"]
    put(root, one="abd")
    assert [state.state for state in file_states(CARD, root)] == ["MISMATCH", "UNKNOWN"]
    (root / "two.txt").unlink()
    states = file_states(CARD, root)
    assert [state.state for state in states] == ["MISMATCH", "absent"]
    assert [state.where for state in states] == [root / "a/one.txt", None]


def test_the_message_lists_only_what_is_missing(tmp_path: Path) -> None:
    message = absent_message(CARD, put(tmp_path / "root", two=None), "there is no network")
    assert str(tmp_path / "root/two.txt") in message
    assert "one.txt" not in message
    assert "there is no network" in message
    assert "good-cbas needs no files" in message


def test_checksums_are_a_table_with_one_line_per_file(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text(f"path,size,sha256\na/one.txt,3,{ABC}\nb/two.txt,4,{ABC[::-1]}\n")
    assert raw_files("a/", table) == (RawFile("a/one.txt", 3, ABC),)
    assert [file.path for file in raw_files("", table)] == ["a/one.txt", "b/two.txt"]
    ours = raw_files("")
    assert len({file.path for file in ours}) == len(ours) == 62
    used = {file for card in CATALOG.values() for file in card.files}
    assert set(ours) == {file for file in used if file.sha256}


def test_real_files_are_the_published_ones(mario_data: Path) -> None:
    for card in CATALOG.values():
        if card.name not in ("good-cora", "elliptic"):
            assert {state.state for state in file_states(card, mario_data)} <= {"OK"}
            assert all((mario_data / file.path).stat().st_size == file.size for file in card.files)
