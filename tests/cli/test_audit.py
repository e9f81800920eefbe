"""``mario audit`` as a person types it."""

import json
from pathlib import Path

import pytest

from audit.worlds import world
from forked import mario
from mario.datasets import save_dataset

QUICK = ["--set", "steps=2", "--set", "hidden_channels=8", "--set", "method=grace"]


def saved(folder: Path, seed: int, nodes: int = 300, income: float = 0.0) -> Path:
    data = world(seed, nodes)
    data.x[:, 1] += income
    data.region = data.domain_id
    del data.domain_id
    return save_dataset(data, folder, domains="region")


def test_says_what_shifts_between_domains(tmp_path: Path) -> None:
    done = mario("audit", "good-cbas", "--shift", "covariate", "--only-shifts", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "columns shift between" in done.stdout
    assert "domain read from features" in done.stdout


def test_says_that_nothing_shifts(tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old", 3), saved(tmp_path / "new", 4)
    done = mario("audit", str(old), str(new), "--only-shifts", "-o", "new.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No shift found between the graph and the new one" in done.stdout
    assert "No shift found" in (tmp_path / "new.html").read_text(encoding="utf-8")
    assert not (tmp_path / "audit.html").exists()


def test_json_has_everything(tmp_path: Path) -> None:
    old, new = saved(tmp_path / "old", 3), saved(tmp_path / "new", 4, income=-2)
    done = mario("audit", str(old), str(new), "--json", "--stability", "nodes.tsv", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["against"]["shifts"] == ["income"]
    assert told["graph"]["nodes"] == told["new"]["nodes"] == 300
    assert told["verdict"]
    assert told["scores"]["chosen"] in [one["name"] for one in told["scores"]["candidates"]]
    lines = (tmp_path / "nodes.tsv").read_text(encoding="utf-8").splitlines()
    assert (lines[0], len(lines)) == ("id\tstability", 301)
    assert all(0 <= float(line.split("\t")[1]) <= 1 for line in lines[1:])
    assert (tmp_path / "audit.html").exists()


def tables(folder: Path, name: str, seed: int, regions: list[str], age: float = 0.0) -> None:
    data = world(seed, 300)
    rows = [
        f"{name}{node},{regions[node // 20 % len(regions)]},{x[0] + age:.3f},{'' if node % 20 == 3 else f'{x[1]:.3f}'},"
        f"{('red', 'blue', 'green')[int(x[3:].argmax())]},{'yes' if y else 'no'}"
        for node, (x, y) in enumerate(zip(data.x, data.y.tolist(), strict=True))
    ]
    (folder / f"{name}.csv").write_text("\n".join(("id,region,age,income,color,churned", *rows)))
    edges = [f"{name}{source},{name}{target}" for source, target in data.edge_index.T.tolist()]
    (folder / f"{name}_edges.csv").write_text("\n".join(("source,target", *edges)))


def test_own_tables_are_audited_by_their_columns_and_ids(tmp_path: Path) -> None:
    tables(tmp_path, "old", 3, ["north", "south", "west"])
    tables(tmp_path, "new", 4, ["center"], age=3)
    roles = ["--label", "churned", "--domain", "region", "-o", "shop"]
    for words in (
        ["old.csv", "--edges", "old_edges.csv", *roles],
        ["new.csv", "--edges", "new_edges.csv", "--like", "shop", "-o", "next"],
    ):
        done = mario("graph", "build", "--nodes", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    done = mario("audit", "shop", "next", "--json", "--stability", "nodes.tsv", *QUICK, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["against"]["shifts"] == ["age"]
    assert {one["column"] for one in told["between"]["columns"]} >= {"age", "income", "color", "income is missing"}
    assert sorted(part["domain"] for part in told["scores"]["candidates"][0]["parts"]) == ["north", "south", "west"]
    assert "region" in told["verdict"][0]
    assert (tmp_path / "nodes.tsv").read_text(encoding="utf-8").splitlines()[1].startswith("new0\t")
    done = mario("graph", "build", "--nodes", "new.csv", "--edges", "new_edges.csv", *roles[:-1], "own", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = mario("audit", "shop", "own", "--only-shifts", cwd=tmp_path)
    assert done.returncode == 2
    assert "the features of own were fitted to its own data" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing-like-it"], "unknown dataset 'nothing-like-it'"),
        (["good-cbas", "nowhere"], "unknown dataset 'nowhere'"),
        (["good-cbas", "-o", "folder"], "folder is a folder: name a file to write to"),
        (["good-cbas", "--set", "wings=2"], "there is no setting 'wings'"),
        (["good-cbas", "--budget", "soon"], "a budget is a time such as"),
        (["good-cbas", "--only-shifts", "--stability", "s.tsv"], "leave out --only-shifts or --stability"),
        (["good-cbas", "wide"], "the new graph has 6 features, and good-cbas has 4"),
    ],
)
def test_wrong_input_is_one_clear_line(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "folder").mkdir()
    words = [str(saved(tmp_path / "wide", 1)) if word == "wide" else word for word in words]
    done = mario("audit", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "audit.html").exists()
