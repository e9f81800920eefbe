"""Files that are not the published ones are refused, or used with a warning where others may be right."""

import json
import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mario.datasets import find, load_dataset
from mario.datasets.files import checksums, sha256
from mario.errors import MarioError, RunFailedError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MARIO_DATA", raising=False)
    monkeypatch.delenv("MARIO_UNVERIFIED", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def copied(tmp_path: Path, mario_data: Path, cache: Path) -> Callable[[str], Path]:
    """Copies the files of a dataset into a data folder of the test."""

    def copy(name: str) -> Path:
        for file in find(name).card.files:
            target = tmp_path / "data" / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(mario_data / file.path, target)
        return tmp_path / "data"

    return copy


@pytest.mark.parametrize(
    ("name", "file"),
    [("proteins-25", "TUDataset/PROTEINS/raw/PROTEINS_A.txt"), ("webkb", "WebKB-LINQS/texas.cites")],
)
def test_a_file_cut_at_a_line_is_refused(
    name: str, file: str, copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = copied(name)
    path = root / file
    whole = path.read_text().splitlines(keepends=True)
    due = sha256(path)
    load_dataset(name, root=root, download=False)
    path.write_text("".join(whole[: len(whole) // 2]))
    with pytest.raises(MarioError, match="is not the known file") as caught:
        load_dataset(name, root=root, download=False)
    for expected in (str(path), due, sha256(path), f"`mario data verify {name}`", f"`mario data fetch {name}`"):
        assert expected in str(caught.value)
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    load_dataset(name, root=root, download=False)


def rewrite(path: Path, **changes: np.ndarray) -> None:
    with np.load(path) as archive:
        np.savez(path, **{**{name: archive[name] for name in archive.files}, **changes})


def test_other_columns_of_twitch_are_used_with_a_warning_but_not_fewer_edges(copied: Callable[[str], Path]) -> None:
    root = copied("good-twitch")
    path = root / "Twitch/PT/raw/PT.npz"
    with np.load(path) as archive:
        features, edges = archive["features"], archive["edges"]
    rewrite(path, features=2 * features)
    with pytest.warns(UserWarning, match=r"PT\.npz is not the known file of good-twitch: its SHA-256 is"):
        assert load_dataset("good-twitch", root=root, download=False).num_nodes == 34118
    rewrite(path, edges=edges[:-5])
    with (
        pytest.warns(UserWarning, match="not the known file"),
        pytest.raises(MarioError, match="good-twitch has 892,339 edges instead of 892,344: a file is incomplete"),
    ):
        load_dataset("good-twitch", root=root, download=False)


def test_pygs_own_twitch_has_two_nodes_and_two_edges_more(copied: Callable[[str], Path]) -> None:
    root = copied("good-twitch")
    path = root / "Twitch/FR/raw/FR.npz"
    with np.load(path) as archive:
        parts = {name: archive[name] for name in ("features", "target", "edges")}
    grown = {name: np.concatenate([part, part[-2:]]) for name, part in parts.items()}
    rewrite(path, **grown)
    with pytest.warns(UserWarning, match="not the known file"):
        assert load_dataset("good-twitch", root=root, download=False).num_nodes == 34120


def test_files_without_a_known_checksum_have_to_have_the_counts_of_the_card(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elliptic_files import write_elliptic

    root = write_elliptic(tmp_path / "data", nodes=12)
    with pytest.raises(MarioError, match=r"elliptic has \d+ nodes instead of 203,769 and"):
        load_dataset("elliptic", root=root)
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    load_dataset("elliptic", root=root)


def test_checksums_are_computed_once_per_file(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    read: list[Path] = []
    monkeypatch.setattr("mario.datasets.files.sha256", lambda path: read.append(path) or sha256(path))
    monkeypatch.setattr("mario.datasets.files._SETTLED", -1)
    first = checksums([path])
    assert checksums([path]) == first == [sha256(path)]
    assert read == [path]
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(b"abd")
    os.utime(path, ns=times)  # same size, same time
    assert checksums([path]) == [sha256(path)] != first
    assert len(read) == 2
    for damage in ("", "[1]", json.dumps({str(path): [3]}), '{"a": ' * 100_000):
        (cache / "checksums.json").write_text(damage)
        assert checksums([path]) == [sha256(path)]


def test_a_file_that_was_just_written_is_not_remembered(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    checksums([tmp_path / "file"])
    assert not (cache / "checksums.json").exists()


def test_a_cache_that_cannot_be_written_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "file"))  # no folder
    monkeypatch.setattr("mario.datasets.files._SETTLED", -1)
    assert checksums([tmp_path / "file"]) == [sha256(tmp_path / "file")]


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_too_little_memory_is_not_called_a_damaged_file(
    error: Exception, copied: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object) -> None:
        raise error

    monkeypatch.setattr("mario.datasets.readers.tu.read_tu", read)
    with pytest.raises(RunFailedError, match="not enough memory to read proteins-25 from"):
        load_dataset("proteins-25", root=copied("proteins-25"), download=False)


def test_published_files_load_without_a_warning(copied: Callable[[str], Path]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_dataset("webkb", root=copied("webkb"), download=False)
