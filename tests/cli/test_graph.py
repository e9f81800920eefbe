"""``mario graph build`` as a person types it."""

import json
from pathlib import Path

import pytest

from forked import mario
from mario.graphs.tables.frames import read_graph


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "n.csv").write_text("id,size,kind,town\na,1,x,Rome\nb,2,y,Oslo\nc,,x,Rome\n")
    (tmp_path / "e.csv").write_text("source,target,n\na,b,1\nb,c,2\n")
    return tmp_path


def test_builds_and_says_what_was_found(home: Path) -> None:
    done = mario(
        "graph",
        "build",
        "--nodes",
        "n.csv",
        "--edges",
        "e.csv",
        "--label",
        "kind",
        "--domain",
        "town",
        "-o",
        "g",
        cwd=home,
    )
    assert done.returncode == 0, done.stderr
    for said in (
        "named id",
        "given",
        "3 nodes, 4 edges",
        "3 labels of 2 classes",
        "domains: town (2)",
        "written to g",
        "fit",
    ):
        assert said in done.stdout, said
    shown = mario("data", "show", "./g", cwd=home)
    assert "3 nodes, 4 edges" in shown.stdout
    again = mario("graph", "build", "--edges", "e.csv", "-o", "g", cwd=home)
    assert again.returncode == 2
    assert "g holds a graph: choose another folder for -o, or remove it" in again.stderr


def test_json_quiet_and_options(home: Path) -> None:
    words = (
        "--nodes",
        "n.csv",
        "--edges",
        "e.csv",
        "--weight",
        "n",
        "--kind",
        "size=categorical",
        "--drop",
        "kind",
        "--directed",
    )
    done = mario("graph", "build", *words, "--name", "mine", "--json", "-o", "g", cwd=home)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["name"], told["nodes"], told["edges"], told["features"]) == ("mine", 3, 2, 5)
    assert read_graph(home / "g").edge_weight.tolist() == [1, 2]
    quiet = mario("graph", "build", "--graph", "e.gml", "-q", "-o", "h", cwd=home)
    assert (quiet.returncode, quiet.stdout) == (2, "")
    assert "--graph: there is no file e.gml" in quiet.stderr
    like = mario("graph", "build", *words[:4], "--like", "g", "-q", "-o", "h", cwd=home)
    assert (like.returncode, like.stdout) == (0, ""), like.stderr
    assert read_graph(home / "h").x.tolist() == read_graph(home / "g").x.tolist()


def test_real_tables(home: Path, mario_data: Path) -> None:
    folder = mario_data / "tables" / "twitch"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    words = ["--by-file", "language", "--label", "mature", "--id", "new_id", "--drop", "id", "-o", "twitch"]
    for lang in ("PTBR", "RU"):
        place = folder / lang / f"musae_{lang}_"
        words += ["--nodes", f"{lang}={place}target.csv", "--nodes", f"{lang}={place}features.json"]
        words += ["--edges", f"{lang}={place}edges.csv"]
    done = mario("graph", "build", *words, cwd=home)
    assert done.returncode == 0, done.stderr
    data = read_graph(home / "twitch")
    assert data.num_nodes == 1912 + 4385
    assert data.num_edges == 2 * (31299 + 37304)
    assert sorted(data.language.unique().tolist()) == [0, 1]
    assert data.ids[0].startswith("PTBR/")
