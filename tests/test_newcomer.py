"""Additions as a newcomer makes them: to a copy of the sources, each touching only the files it names.

A method, a dataset and an estimator have tests of their own with more in them: ``test_new_method.py``,
``test_new_dataset.py``, ``test_new_estimator.py``.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
SETTINGS = ("epochs=1", "steps_per_epoch=1", "checkpoints=1", "hidden_channels=8", "probe_epochs=1")
QUICK = [word for setting in SETTINGS for word in ("--set", setting)]


class Project:
    """A copy of the sources that differs in the files that were written to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(SOURCES, folder / "src", ignore=shutil.ignore_patterns("__pycache__"))

    def write(self, name: str, text: str) -> None:
        (self.folder / "src" / "mario" / name).write_text(text, encoding="utf-8")

    def insert(self, name: str, after: str, text: str) -> None:
        """Add lines behind the only line of a file that is ``after``."""
        there = (self.folder / "src" / "mario" / name).read_text(encoding="utf-8")
        assert there.count(f"{after}\n") == 1
        self.write(name, there.replace(f"{after}\n", f"{after}\n{text}\n"))

    def touched(self) -> list[str]:
        files = (path.relative_to(self.folder / "src") for path in (self.folder / "src").rglob("*") if path.is_file())
        named = [file for file in files if "__pycache__" not in file.parts]
        _, differ, new = filecmp.cmpfiles(SOURCES, self.folder / "src", map(str, named), shallow=False)
        return [file.removeprefix("mario/") for file in (*differ, *new)]

    def run(self, *command: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        done = subprocess.run(
            [sys.executable, *command], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        """The output of ``code``, in which ``data`` is a small graph."""
        graph = "import mario, torch\ndata = mario.load_dataset('good-cbas', shift='concept')\n"
        small = "SMALL = dict(hidden_channels=8, num_layers=2, epochs=1, steps_per_epoch=2)\n"
        return self.run("-c", graph + small + code)

    def mario(self, *words: str) -> str:
        return self.run("-m", "mario", *words)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_loss_is_one_file(project: Project) -> None:
    project.write(
        "contrast/invariance.py",
        '"""Invariance."""\n\nfrom torch import Tensor\n\n\ndef squared_distance(u: Tensor, v: Tensor) -> Tensor:\n'
        '    """Mean squared distance between two views."""\n    return (u - v).square().sum(1).mean()\n',
    )
    said = project.python(
        "from mario.contrast.invariance import squared_distance\n"
        "from torch_geometric.nn import GCN\n"
        "net = GCN(4, 8, 2)\n"
        "view = mario.views.DropEdges(0.3)\n"
        "u, v = (net(g.x, g.edge_index) for g in (view(data), view(data)))\n"
        "squared_distance(u, v).backward()\n"
        "print(all(p.grad.isfinite().all() for p in net.parameters()))\n"
    )
    assert (said, project.touched()) == ("True\n", ["contrast/invariance.py"])


def test_an_estimator_of_mutual_information_is_one_file(project: Project) -> None:
    project.write(
        "contrast/nwj.py",
        '"""NWJ."""\n\nfrom torch import Tensor\n\nfrom mario.contrast.blocks import Pairs\n'
        "from mario.contrast.estimators import register_estimator\n\n\n"
        '@register_estimator("nwj", term=lambda s: (s - 1).exp())\ndef nwj(pairs: Pairs) -> Tensor:\n'
        "    return pairs.sums / pairs.negatives - pairs.own\n",
    )
    project.mario("run", "good-cbas", "--set", "estimator=nwj", "--set", "cmi_estimator=nwj", *QUICK, "--out", "run")
    settings = json.loads((project.folder / "run" / "result.json").read_text(encoding="utf-8"))["settings"]
    assert (settings["estimator"], settings["cmi_estimator"]) == ("nwj", "nwj")
    assert "nwj" in project.mario("methods", "grace")
    assert project.touched() == ["contrast/nwj.py"]


def test_a_view_is_one_file(project: Project) -> None:
    project.write(
        "views/reverse_edges.py",
        '"""Reversed edges."""\n\nfrom torch_geometric.data import Data\n'
        "from torch_geometric.transforms import BaseTransform\n\n\n"
        'class ReverseEdges(BaseTransform):\n    """Turn every edge around."""\n\n'
        "    def forward(self, data: Data) -> Data:\n        data.edge_index = data.edge_index.flip(0)\n"
        "        return data\n",
    )
    said = project.python(
        "from mario.views.reverse_edges import ReverseEdges\n"
        "pair = (ReverseEdges(), mario.views.DropEdges(0.3))\n"
        "model = mario.MARIO(views=pair, **SMALL).fit(data)\n"
        "model.save('model.safetensors')\n"
        "again = mario.load('model.safetensors', views=pair)\n"
        "print(torch.equal(again.transform(data), model.transform(data)))\n"
    )
    assert (said, project.touched()) == ("True\n", ["views/reverse_edges.py"])


def test_a_metric_is_one_line(project: Project) -> None:
    project.insert(
        "evaluation/metrics.py",
        '    "f1": Metric("F1", f1),',
        '    "balanced": Metric("balanced accuracy", lambda logits, y: float(\n'
        "        sum((logits.argmax(1)[y == c] == c).double().mean() for c in y.unique()) / len(y.unique()))),",
    )
    project.python("data.metric = 'balanced'\nmario.datasets.save_dataset(data, 'mine')\n")
    assert "balanced" in project.mario("data", "show", "./mine")
    project.mario("run", "./mine", "--method", "random-init", *QUICK, "--out", "runs/one")
    project.mario("report", "runs", "-o", "page.html")
    assert json.loads((project.folder / "runs/one/result.json").read_text(encoding="utf-8"))["metric"] == "balanced"
    assert "balanced accuracy" in (project.folder / "page.html").read_text(encoding="utf-8")
    assert project.touched() == ["evaluation/metrics.py"]


def test_a_column_is_one_line(project: Project) -> None:
    project.insert(
        "lab/frame.py",
        '    Column("ranks", lambda r: r.ranks, "processes that trained together"),',
        '    Column("lr", lambda r: r.spec.settings["lr"], "learning rate"),',
    )
    project.mario("run", "good-cbas", "--method", "random-init", *QUICK, "--set", "lr=0.5", "--out", "runs/one")
    assert project.python("print(mario.lab.load_runs('runs')['lr'].tolist())\n") == "[0.5]\n"
    project.mario("report", "runs", "-o", "page.html")
    assert '"lr"' in (project.folder / "page.html").read_text(encoding="utf-8"), "the page has the columns of the frame"
    assert project.touched() == ["lab/frame.py"]


def test_a_picture_is_one_file(project: Project) -> None:
    project.write(
        "report/pictures/seconds.py",
        '"""Seconds per run."""\n\nfrom mario.report.pictures.picture import COLUMN, Drawing, sheet\n'
        "from mario.report.pictures.registry import Sketch, register_picture\n\n\n"
        '@register_picture("seconds")\ndef sketches(study, root):\n    for case in study.cases:\n'
        "        yield Sketch(lambda case=case: seconds(case.frame), case.name)\n\n\n"
        'def seconds(runs):\n    with sheet(COLUMN, 2.0) as figure:\n        figure.subplots().hist(runs["seconds"])\n'
        '    return Drawing(figure, "Seconds per run", f"Seconds of {len(runs)} runs in bars.")\n',
    )
    study = 'rows = ["random-init"]\nreference = ""\nsubject = ""\nshow = ["table", "seconds"]\n'
    case = "epochs = 1\nseeds = 2\ncheckpoints = 1\n[[cases]]\ndataset = 'good-cbas'\nshift = 'concept'\n"
    (project.folder / "mine.toml").write_text(study + case, encoding="utf-8")
    project.mario("reproduce", "mine.toml", "--out", "runs")
    page = (project.folder / "runs" / "report.html").read_text(encoding="utf-8")
    assert "Seconds of 2 runs in bars." in page
    assert project.touched() == ["report/pictures/seconds.py"]


def test_a_launcher_is_one_file(project: Project) -> None:
    project.write(
        "lab/launch/inline.py",
        '"""In this process."""\n\nfrom mario.lab.launch.launcher import Launcher, register_launcher\n'
        "from mario.lab.launch.progress import Pace, progress_of, raise_failures, tasks_of\n"
        "from mario.lab.runs.worker import carry_out\n\n\n"
        '@register_launcher("inline")\nclass Inline(Launcher):\n'
        "    def launch(self, jobs, folder, *, workers, root, retry_failed):\n"
        "        tasks = tasks_of(jobs, folder, retry_failed=retry_failed)\n        for task in tasks:\n"
        "            carry_out(task.job, task.folder, root)\n            task.look()\n"
        "            yield progress_of(tasks, Pace(), workers)\n        raise_failures(tasks)\n",
    )
    study = 'rows = ["random-init"]\nreference = ""\nsubject = ""\nepochs = 1\nseeds = 1\ncheckpoints = 1\n'
    (project.folder / "mine.toml").write_text(study + "[[cases]]\ndataset = 'good-cbas'\n", encoding="utf-8")
    project.mario("reproduce", "mine.toml", "--out", "runs", "--launcher", "inline")
    assert project.python("print(len(mario.lab.load_runs('runs')))\n") == "1\n"
    assert project.touched() == ["lab/launch/inline.py"]


def test_an_encoder_of_pyg_and_edge_weights_need_no_file(project: Project) -> None:
    said = project.python(
        "from torch_geometric.nn import GCN, PNA, GraphSAGE\n"
        "degrees = torch.bincount(torch.bincount(data.edge_index[1], minlength=700))\n"
        "scalers = dict(aggregators=['mean', 'max'], scalers=['identity'], deg=degrees)\n"
        "encoders = {'MARIO': GCN(4, 8, 2), 'BGRL': GraphSAGE(4, 8, 2), 'COSTA': PNA(4, 8, 2, **scalers)}\n"
        "for name, encoder in encoders.items():\n"
        "    model = getattr(mario, name)(encoder=encoder, **SMALL).fit(data)\n"
        "    model.save('model.safetensors')\n"
        "    again = mario.load('model.safetensors', encoder=encoder)\n"
        "    print(torch.equal(again.transform(data), model.transform(data)))\n"
        "data.edge_weight = torch.rand(data.edge_index.size(1), generator=torch.Generator().manual_seed(0))\n"
        "mario.graphs.save_mapped(data, 'mapped')\n"
        "back = mario.graphs.load_mapped('mapped')\n"
        "weighted = mario.MARIO(**SMALL).fit(back).transform(back)\n"
        "print(torch.equal(weighted, mario.MARIO(**SMALL).fit(data).transform(data)))\n"
        "del data.edge_weight\n"
        "print(torch.equal(weighted, mario.MARIO(**SMALL).fit(data).transform(data)))\n"
    )
    assert said == "True\nTrue\nTrue\nTrue\nFalse\n"
    assert project.touched() == []
