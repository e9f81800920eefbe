"""``mario embed`` and ``mario predict`` as a person types them."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from embedder.graphs import folder_of, shifting, with_ids
from forked import mario
from mario.datasets import save_dataset
from mario.embedder import ModelFolder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the graph of its fit, next month's graph with ids, and one without its last column."""
    home = tmp_path_factory.mktemp("home")
    folder_of(shifting(), home / "model")
    save_dataset(shifting(), home / "mine")
    with_ids(save_dataset(shifting(seed=1, nodes=200), home / "next"), [f"n{i}" for i in range(200)])
    narrow = shifting()
    narrow.x = narrow.x[:, :3]
    save_dataset(narrow, home / "narrow")
    folder_of(shifting(labels=False), home / "unlabeled")
    return home


def test_embeds_next_month(home: Path, tmp_path: Path) -> None:
    done = mario("embed", "model", "./next", "-o", str(tmp_path / "z.parquet"), cwd=home)
    assert done.returncode == 0, done.stderr
    assert "next: 200 rows" in done.stdout
    assert "written to" in done.stdout
    table = pyarrow.parquet.read_table(tmp_path / "z.parquet")
    assert table.column("id").to_pylist() == [f"n{i}" for i in range(200)]
    assert table.schema.metadata[b"mario.model"].decode() == ModelFolder.read(home / "model").digest


def test_another_process_gives_the_same_bits(home: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        done = mario("embed", "model", "./next", "-o", str(tmp_path / f"{name}.npy"), "--json", cwd=home)
        assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["files"] == [str(tmp_path / "two.npy"), str(tmp_path / "two.ids.npy")]
    assert np.load(tmp_path / "one.npy").shape == (told["rows"], told["columns"])
    assert (tmp_path / "one.npy").read_bytes() == (tmp_path / "two.npy").read_bytes()


def test_predicts_with_probabilities_and_says_what_to_expect(home: Path, tmp_path: Path) -> None:
    done = mario("predict", "model", "./next", "-o", str(tmp_path / "p.csv"), "--at-least", "0.7", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "label is one of 0, 1" in done.stdout
    assert "rows without a label: no class has a probability of 0.7" in done.stdout
    assert "on another domain" in done.stdout
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[0] == "id,label,probability,p_0,p_1"
    assert len(lines) == 201
    done = mario("predict", "model", "./next", "-o", str(tmp_path / "p.parquet"), "--json", cwd=home)
    assert json.loads(done.stdout)["classes"] == ["0", "1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["embed", "nowhere", "./next", "-o", "z.npy"], "there is no folder nowhere"),
        (["embed", "next", "./next", "-o", "z.npy"], "has no model.json"),
        (["embed", "model", "./narrow", "-o", "z.npy"], "fitted on 4 features, narrow has 3"),
        (["embed", "model", "nobody", "-o", "z.npy"], "unknown dataset 'nobody'"),
        (["embed", "model", "./next", "-o", "z.txt"], "-o must end with"),
        (["embed", "model", "./next", "-o", "z.npy", "--memory", "lots"], "--memory takes a size such as 2g"),
        (["embed", "model", "./next", "-o", "z.npy", "--columns"], "columns is for .parquet"),
        (["predict", "unlabeled", "./next", "-o", "p.csv"], "has no classifier"),
        (["predict", "model", "./next", "-o", "p.npy"], "-o must end with"),
    ],
)
def test_wrong_input_is_one_clear_line(home: Path, words: list[str], said: str) -> None:
    before = sorted(home.rglob("*"))
    done = mario(*words, cwd=home)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(home.rglob("*")) == before


def test_a_model_that_was_changed_is_refused(home: Path, tmp_path: Path) -> None:
    for path in (home / "model").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name in ("model.safetensors", "head.safetensors"):
        whole = (home / "model" / name).read_bytes()
        (tmp_path / name).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        done = mario("predict", str(tmp_path), "./next", "-o", str(tmp_path / "p.csv"), cwd=home)
        assert done.returncode == 2
        assert name in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
        (tmp_path / name).write_bytes(whole)
