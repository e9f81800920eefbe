"""``mario embed`` and ``mario predict`` as a person types them."""

import csv
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


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of two months, graphs of them, and a model of the first."""
    home = tmp_path_factory.mktemp("shop")
    for month, seed, columns in (("jan", 1, ""), ("feb", 2, "reversed"), ("mar", 3, "no age"), ("apr", 4, "color")):
        _write_tables(home, month, seed, columns)
    roles = ["--id", "user", "--label", "churned", "--domain", "region"]
    for out, month, more in (
        ("jan", "jan", roles),
        ("feb", "feb", ["--like", "jan"]),
        ("mar", "mar", roles),
        ("apr", "apr", roles),
    ):
        files = ["--nodes", f"{month}.csv", "--edges", f"{month}_edges.csv"]
        done = mario("graph", "build", *files, *more, "-o", out, "-q", cwd=home)
        assert done.returncode == 0, done.stderr
    done = mario("fit", "./jan", "-o", "model", "-q", "--set", "rule=gate", "--set", "steps=2", cwd=home)
    assert done.returncode == 0, done.stderr
    return home


def _write_tables(home: Path, month: str, seed: int, columns: str) -> None:
    draws = np.random.default_rng(seed)
    regions = ["north", "south", "east", *(["west"] if seed > 1 else [])]
    rows = []
    for i in range(120):
        churned = int(draws.integers(2))
        row = {
            "user": f"{month}-{i}",
            "region": regions[i % len(regions)],
            "age": round(float(draws.normal(30 + 10 * churned, 5)), 1),
            "plan": "abc"[draws.integers(2) + churned],
            "churned": ["no", "yes"][churned],
        }
        rows.append({**row, "color": ["red", "blue"][i % 2]} if columns == "color" else row)
    names = [name for name in rows[0] if not (columns == "no age" and name == "age")]
    names = names[::-1] if columns == "reversed" else names
    with open(home / f"{month}.csv", "w", newline="") as file:
        out = csv.DictWriter(file, names, extrasaction="ignore")
        out.writeheader()
        out.writerows(rows)
    ends = draws.integers(120, size=(300, 2))
    lines = "".join(f"{month}-{a},{month}-{b}\n" for a, b in ends)
    (home / f"{month}_edges.csv").write_text("source,target\n" + lines)


def test_the_model_of_tables_keeps_their_transforms_and_ids(shop: Path) -> None:
    folder = ModelFolder.read(shop / "model")
    assert folder.has_plan
    assert folder.ids().values(0, 2) == ["jan-0", "jan-1"]
    assert folder.about.graph.label == "churned"
    assert folder.about.graph.domains == ("east", "north", "south")
    assert folder.about.class_names == ("no", "yes")


def test_next_month_with_columns_in_another_order_and_a_new_region(shop: Path, tmp_path: Path) -> None:
    done = mario("predict", "model", "./feb", "-o", str(tmp_path / "p.csv"), cwd=shop)
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "p.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["id", "churned", "probability", "p_no", "p_yes"]
    assert [row["id"] for row in rows] == [f"feb-{i}" for i in range(120)]
    assert {row["churned"] for row in rows} == {"no", "yes"}


def test_a_graph_with_transforms_of_its_own(shop: Path, tmp_path: Path) -> None:
    done = mario("embed", "model", "./apr", "-o", str(tmp_path / "z.npy"), cwd=shop)
    assert done.returncode == 0, done.stderr
    assert "the features of apr were fitted to its own data" in done.stdout
    assert "the column 'color' of apr is not used" in done.stdout
    done = mario("embed", "model", "./mar", "-o", str(tmp_path / "gone.npy"), cwd=shop)
    assert done.returncode == 2
    assert "lacks the column 'age', which the model was fitted on" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "gone.npy").exists()
