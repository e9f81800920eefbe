"""Whatever the bytes of a file are, reading it gives a value or one MarioError, and nothing is written elsewhere."""

import functools
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from hypothesis import example, strategies as st
from torch_geometric.data import Data

import mario
from datasets.readers.test_pyg import cora_arrays, write_cora, write_linqs, write_twitch
from datasets.readers.test_tu import write as write_tu
from datasets.test_elliptic import SOUND, write as write_payments
from fuzz.damage import Changes, changes, damaged
from fuzz.slow import sound
from fuzz.targets import attempt, fuzz, inside
from lab import results
from mario.datasets import REGISTRY as DATASETS, find, load_dataset, save_dataset
from mario.datasets.readers.elliptic import read_elliptic
from mario.errors import MarioError
from mario.graphs import check_graph, load_graph, load_mapped, save_graph, save_mapped
from mario.graphs.samplers import FullGraph
from mario.lab import load_runs
from mario.lab.presets.file import read_preset, write_preset
from mario.lab.runs.records import read_records, take_records
from mario.lab.runs.store import look
from mario.lab.spec import RunSpec
from mario.lab.studies.collect import collect
from mario.lab.studies.loose import plan_of_runs
from mario.lab.studies.plan import make_plan
from mario.lab.studies.plan_files import read_plans, write_plan
from mario.lab.studies.read import find_study
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import best_trial, counted, open_study
from methods.tiny import tiny_graph

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of edge data, and known faults of datasets

STUDY = """
title = "A study"
show = ["table", "curves"]
reference = "grace"
subject = "mario"
note = "nothing"
rows = ["grace", "mario", { label = "wide", method = "grace", given = { hidden_channels = 8, lr = 0.1 } }]
seeds = 2
epochs = 3
checkpoints = 1
given = { roots = 100 }
cases = [{ dataset = "good-cbas", shift = "concept" }, { dataset = "good-cbas", shift = "covariate", splits = 2 }]
[quick]
epochs = 1
"""

PRESETS = """
source = "nowhere"
[good-cbas]
lr = 0.1
only = ["lr", "epochs"]
[good-cbas.color.concept]
epochs = 5
milestones = [1, 2]
"""


@functools.cache
def trained() -> mario.GRACE:
    return mario.GRACE(hidden_channels=4, num_layers=2, epochs=1, steps_per_epoch=1, roots=10).fit(tiny_graph(nodes=20))


def write_run(home: Path) -> None:
    results.write(home, *(results.result(results.spec(seed), 0.5) for seed in (0, 1)))
    run = home / results.spec(0).digest
    (run / "log.jsonl").write_text('{"step": 1, "loss": 0.5}\n{"step": 2, "loss": 0.25}\n')


def write_records(home: Path) -> None:
    lines = (json.dumps(results.result(results.spec(seed), 0.5).to_dict()) for seed in (0, 1))
    (home / "records.jsonl").write_text("".join(f"{line}\n" for line in lines))


def write_training(home: Path) -> None:
    resume(home, stop=1)


def resume(home: Path, stop: int = 3) -> None:
    method = mario.GRACE(hidden_channels=4, num_layers=1, epochs=2, steps_per_epoch=1, roots=10)
    z = method.fit(tiny_graph(nodes=20), folder=home, callback=lambda epoch: epoch.number >= stop)
    assert bool(torch.isfinite(z.transform(tiny_graph(nodes=20))).all())


def read_model(home: Path) -> None:
    model = mario.load(home / "model.safetensors")
    z = attempt(lambda: model.transform(tiny_graph(nodes=20)))
    assert isinstance(z, MarioError) or bool(torch.isfinite(z).all())


def read_graph(data: Data) -> None:
    if attempt(lambda: check_graph(data)) is None:
        assert sound(data)
        FullGraph(data).sample()
        data.x.to_dense().sum()


def read_dataset(home: Path) -> None:
    folder = home / "mine"
    dataset = find(str(folder))
    assert dataset.graph_card.path.is_relative_to(folder.resolve())  # type: ignore[attr-defined]
    data = load_dataset(folder)
    check_graph(data)


def read_run(home: Path) -> None:
    frame = load_runs(home)
    assert 1 <= len(frame) <= 2  # the other one is sound
    assert look(home / results.spec(0).digest).state in ("done", "broken", "failed", "waiting")
    shown = collect(plan_of_runs(home), home)
    assert results.spec(1) in [run.job.spec for case in shown.cases for run in case.runs]


def read_study(home: Path) -> None:
    plan = make_plan(find_study(str(home / "study.toml")))
    assert all(len(job.spec.digest) == 16 for job in plan.jobs()[:50])


def read_plan(home: Path) -> None:
    for plan in read_plans(home):
        collect(plan, home)


def read_method_presets(home: Path) -> None:
    with mock.patch.object(mario.GRACE, "presets_file", home / "a.toml"):
        RunSpec.plan(results.CBAS, "grace")


def read_dataset_presets(home: Path) -> None:
    with mock.patch.object(DATASETS["good-cbas"], "presets_file", home / "a.toml"):
        RunSpec.plan(results.CBAS, "grace")


def tuning(home: Path) -> Tuning:
    return Tuning.plan(results.CBAS, "grace", only=["lr"], folder=home)


def write_database(home: Path) -> None:
    (home / "tune").mkdir()
    open_study(tuning(home)).enqueue_trial({"lr": 0.1})


def read_database(home: Path) -> None:
    best_trial(counted(open_study(tuning(home)).get_trials()))


def read_payments(home: Path) -> None:
    read_graph(read_elliptic(*(home / f"elliptic_txs_{name}.csv" for name in ("features", "edgelist", "classes"))))


def read_raw(name: str, home: Path) -> None:
    facts = {"MARIO_UNVERIFIED": "1", "MARIO_CACHE": str(home / "cache"), "MARIO_DATA": ""}
    with mock.patch.dict(os.environ, facts):
        data = load_dataset(name, root=home / "data", download=False)
    assert sound(data)


@dataclass(frozen=True)
class Kind:
    """Files that are read together."""

    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    files: str = "**/*"
    """Those that are damaged."""


def save_mine(home: Path, mapped: bool = False) -> None:
    save_dataset(tiny_graph(nodes=20), home / "mine", mapped=mapped)


KINDS: dict[str, Kind] = {
    "model": Kind(lambda home: trained().save(home / "model.safetensors"), read_model),
    "graph": Kind(
        lambda home: save_graph(tiny_graph(nodes=20), home / "graph.safetensors"),
        lambda home: read_graph(load_graph(home / "graph.safetensors")),
    ),
    "sparse graph": Kind(
        lambda home: save_graph(
            Data(x=torch.eye(3).to_sparse_csr(), edge_index=torch.tensor([[0], [1]])), home / "graph"
        ),
        lambda home: read_graph(load_graph(home / "graph")),
    ),
    "mapped": Kind(
        lambda home: save_mapped(tiny_graph(nodes=20), home / "graph"),
        lambda home: read_graph(load_mapped(home / "graph")),
    ),
    "card": Kind(save_mine, read_dataset, "mine/graph.toml"),
    "dataset": Kind(functools.partial(save_mine, mapped=True), read_dataset),
    "run": Kind(write_run, read_run, f"{results.spec(0).digest}/*"),
    "records": Kind(write_records, lambda home: take_records(home / "records.jsonl", home / "runs")),
    "records alone": Kind(write_records, lambda home: read_records(home / "records.jsonl")),
    "study": Kind(lambda home: (home / "study.toml").write_text(STUDY), read_study),
    "plan": Kind(lambda home: write_plan(make_plan(find_study("demo"), seeds=1), home), read_plan, "plans/*.json"),
    "preset": Kind(
        lambda home: write_preset(home / "a.toml", results.spec(0).to_dict()),
        lambda home: read_preset(home / "a.toml").of("grace"),
    ),
    "json preset": Kind(
        lambda home: write_preset(home / "a.json", results.spec(0).to_dict()),
        lambda home: read_preset(home / "a.json").of("grace"),
    ),
    "presets of a method": Kind(lambda home: (home / "a.toml").write_text(PRESETS), read_method_presets),
    "presets of a dataset": Kind(lambda home: (home / "a.toml").write_text(PRESETS), read_dataset_presets),
    "database": Kind(write_database, read_database),
    "elliptic": Kind(lambda home: write_payments(home, **SOUND), read_payments),
    "training": Kind(write_training, resume),
    "good-cora": Kind(
        lambda home: write_cora(home / "data", cora_arrays(40, 2100)), functools.partial(read_raw, "good-cora")
    ),
    "good-twitch": Kind(lambda home: write_twitch(home / "data"), functools.partial(read_raw, "good-twitch")),
    "webkb": Kind(lambda home: write_linqs(home / "data"), functools.partial(read_raw, "webkb")),
    "proteins-25": Kind(lambda home: write_tu(home / "data"), functools.partial(read_raw, "proteins-25")),
}


@functools.cache
def written(kind: str) -> dict[str, bytes]:
    """The sound files."""
    with tempfile.TemporaryDirectory() as folder:
        KINDS[kind].write(Path(folder))
        return {name: content for name, content in inside(Path(folder)).items() if not name.endswith(("/", ".lock"))}


def put(kind: str, home: Path) -> None:
    for name, content in written(kind).items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"proteins-25"}))  # it has too few graphs for a split
def test_sound_files_are_read(kind: str, tmp_path: Path) -> None:
    put(kind, tmp_path)
    KINDS[kind].read(tmp_path)


@fuzz(
    examples=80,
    seconds=30,
    kind=st.sampled_from(sorted(KINDS)),
    which=st.floats(0, 1, exclude_max=True),
    done=changes,
)
@example(kind="presets of a dataset", which=0.0, done=[("set", 0.65625, b"-1")])
def test_damaged_files(kind: str, which: float, done: Changes) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        home, outside = Path(folder, "home"), Path(folder, "outside")
        put(kind, home)
        save_graph(tiny_graph(nodes=20), outside / "x")
        before = inside(outside)
        names = sorted(path for path in home.glob(KINDS[kind].files) if path.is_file())
        path = names[int(which * len(names))]
        path.write_bytes(damaged(path.read_bytes(), done))
        attempt(lambda: KINDS[kind].read(home))
        assert inside(outside) == before
        assert {entry.name for entry in Path(folder).iterdir()} == {"home", "outside"}
        shutil.rmtree(home)
