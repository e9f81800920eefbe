"""``mario neighbors`` as a person types it."""

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from embedder.graphs import folder_of, shifting, with_ids
from forked import mario
from mario.datasets import save_dataset


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with_ids(save_dataset(shifting(), home / "mine"), [f"user-{i}" for i in range(300)])
    with_ids(save_dataset(shifting(seed=1, nodes=100), home / "next"), [f"next-{i}" for i in range(100)])
    folder_of(home / "mine", home / "model")
    return home


def test_shows_ids_and_cosines(home: Path) -> None:
    done = mario("neighbors", "model", "user-3", "user-7", "-k", "2", cwd=home)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if "user-" in line]
    assert [len(line) for line in lines] == [3, 2, 3, 2]
    assert lines[0][0] == "user-3"
    assert lines[2][0] == "user-7"
    done = mario("neighbors", "model", "user-3", "-k", "2", "--json", cwd=home)
    told = json.loads(done.stdout)
    assert told[0]["id"] == "user-3"
    assert [one["id"] for one in told[0]["neighbors"]] == [lines[0][1], lines[1][0]]
    assert told[0]["neighbors"][0]["cosine"] >= told[0]["neighbors"][1]["cosine"]


def test_searches_another_graph_and_writes_all(home: Path, tmp_path: Path) -> None:
    done = mario("neighbors", "model", "next-5", "--graph", "./next", "-k", "1", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "next-" in done.stdout
    files = {}
    for name in ("exact", "approximate"):
        files[name] = tmp_path / f"{name}.parquet"
        words = ["--all", "-k", "3", f"--{name}", "-o", str(files[name])]
        done = mario("neighbors", "model", *words, cwd=home)
        assert done.returncode == 0, done.stderr
    first, second = (pyarrow.parquet.read_table(path).to_pandas() for path in files.values())
    assert list(first.columns) == ["id", "neighbor", "cosine"]
    assert len(first) == 900
    pairs = set(zip(first["id"], first["neighbor"], strict=True))
    assert len(pairs & set(zip(second["id"], second["neighbor"], strict=True))) > 850


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["user-301"], "there is no id 'user-301' among 300 ids such as 'user-0'; did you mean 'user-31' or"),
        ([], "name the ID of a node"),
        (["user-1", "--all", "-o", "x.csv"], "name no ID beside it"),
        (["--all"], "--all needs -o FILE"),
        (["user-1", "-o", "x.npy"], "-o must end with .csv, .tsv or .parquet"),
    ],
)
def test_wrong_input_is_one_clear_line(home: Path, words: list[str], said: str) -> None:
    done = mario("neighbors", "model", *words, cwd=home)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
