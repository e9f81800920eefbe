"""A dataset is one file: put into the package, or named by an entry point, it is in the catalog and the commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = '''
"""Two rings: a tiny graph in two files, to show all that a dataset needs."""

from mario.datasets import Dataset, DatasetCard, RawFile, register
from mario.graphs import SplitRule


@register
class TwoRings(Dataset):
    card = DatasetCard(
        name="two-rings",
        what="two rings of nodes; which ring is a node in?",
        nodes=80,
        edges=160,
        features=2,
        classes=2,
        domains=("angle",),
        files=(RawFile("rings/nodes.csv"), RawFile("rings/edges.csv")),
        source="made up",
        license="CC0",
        notes=("Angles are whole numbers.",),
    )
    rule = SplitRule(descending=False, environments=2)

    def read(self, files):
        import numpy as np
        import torch
        from torch_geometric.data import Data

        nodes, edges = (np.loadtxt(file, delimiter=",", dtype=np.int64) for file in files)
        return Data(
            x=torch.from_numpy(nodes[:, :2]).float(),
            edge_index=torch.from_numpy(edges.T.copy()),
            y=torch.from_numpy(nodes[:, 2]),
            angle=torch.from_numpy(nodes[:, 3]),
        )
'''


def write_files(root: Path) -> None:
    (root / "rings").mkdir(parents=True)
    nodes = [f"{i},{i % 7},{i // 40},{i % 40 // 4}" for i in range(80)]
    ends = [(i, i // 40 * 40 + (i + 1) % 40) for i in range(80)]
    (root / "rings/nodes.csv").write_text("\n".join(nodes))
    (root / "rings/edges.csv").write_text("\n".join(f"{a},{b}\n{b},{a}" for a, b in ends))


class Project:
    """A copy of the package, and commands that run in it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        shutil.copytree(ROOT / "src", home / "src", ignore=shutil.ignore_patterns("__pycache__"))
        write_files(home / "data")

    def call(self, *words: str, code: int = 0) -> str:
        return self.python("-m", "mario", *words, code=code).stdout

    def python(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        paths = os.pathsep.join([str(self.home / "src"), str(self.home / "site")])
        environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "MARIO_DATA": str(self.home / "data"),
            "MARIO_CACHE": str(self.home / "cache"),
            "OMP_NUM_THREADS": "1",
            "COLUMNS": "200",
        }
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=self.home, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def check_commands(project: Project) -> None:
    rows = {row["name"]: row for row in json.loads(project.call("data", "list", "--json"))}
    assert len(rows) == 17
    assert rows["two-rings"]["where"] == str(project.home / "data")
    assert "two-rings" in project.call("data", "list")
    facts = json.loads(project.call("data", "show", "two-rings", "--json"))
    assert [split["shift"] for split in facts["splits"]] == ["covariate", "concept", "no_shift"]
    assert facts["notes"] == ["Angles are whole numbers."]
    assert project.call("data", "verify", "two-rings", code=1).count("UNKNOWN") == 2
    quick = ("--set", "checkpoints=1", "--set", "probe_epochs=1", "--out", "run")
    project.call("run", "two-rings", "--shift", "covariate", "--method", "random-init", *quick)
    result = json.loads((project.home / "run" / "result.json").read_text())
    assert (result["dataset"], result["domain"], result["shift"]) == ("two-rings", "angle", "covariate")
    assert 0 <= result["scores"]["ood_test"] <= 1


def test_one_new_file_is_a_dataset(project: Project) -> None:
    (project.home / "src/mario/datasets/two_rings.py").write_text(EXAMPLE)
    check_commands(project)
    shutil.rmtree(project.home / "data/rings")
    said = project.python("-m", "mario", "data", "fetch", "two-rings", code=2).stderr
    assert "two-rings needs files" in said
    assert "mario cannot download this dataset" in said


def test_an_entry_point_is_a_dataset_and_a_broken_one_is_left_out(project: Project) -> None:
    site = project.home / "site"
    (site / "rings-1.0.dist-info").mkdir(parents=True)
    (site / "rings.py").write_text(EXAMPLE)
    (site / "broken.py").write_text("import not_there\n")
    (site / "taken.py").write_text(EXAMPLE.replace('"two-rings"', '"good-cbas"'))
    (site / "rings-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: rings\nVersion: 1.0\n")
    points = "[mario.datasets]\nbroken = broken\nrings = rings\ntaken = taken\n"
    (site / "rings-1.0.dist-info/entry_points.txt").write_text(points)
    check_commands(project)
    done = project.python("-c", "import mario.datasets as d; print(*d.CATALOG); print(d.CATALOG['good-cbas'].nodes)")
    assert done.stdout.split()[-2:] == ["two-rings", "700"]
    assert "datasets of broken are left out: No module named 'not_there'" in done.stderr
    assert "datasets of taken are left out: a dataset is already registered as 'good-cbas'" in done.stderr


def test_presets_come_with_a_dataset(project: Project) -> None:
    """The contract: ``presets_file`` is None, or the path of a TOML file next to the module."""
    with_presets = EXAMPLE.replace(
        "    rule =", '    presets_file = __import__("pathlib").Path(__file__).with_name("two_rings.toml")\n    rule ='
    )
    (project.home / "src/mario/datasets/two_rings.py").write_text(with_presets)
    code = "from mario.datasets import find; print(find('two-rings').presets_file.name, find('webkb').presets_file)"
    assert project.python("-c", code).stdout.split() == ["two_rings.toml", "None"]
