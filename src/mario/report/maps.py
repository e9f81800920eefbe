"""What the interactive map shows of a run: for every node a place, its class, domain, set and prediction."""

import hashlib
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mario.errors import MarioError, RunFailedError
from mario.evaluation import SETS
from mario.files import read_json, write_whole
from mario.lab.presets import split_settings
from mario.lab.runs.execute import Run, make_probe
from mario.lab.studies.plan import Collected, CollectedCase
from mario.methods import load
from mario.report.embedding_map import tsne

FILE = "map.npz"
MOST = 4
"""Rows of a case that are mapped where it is no figure of the paper."""

_FORM = 1  # of the file; a cache of another form is made anew


@dataclass(frozen=True, eq=False)
class MapData:
    """Some nodes of a graph, or graphs of a set, on a t-SNE map of one run's embeddings, an entry of each array a node.

    ``split`` is the node's place in :data:`mario.evaluation.SETS`. ``counts`` and ``correct`` are of all nodes, not
    only of those on the map: a row a set and a column a class, how many there are and how many of them the linear
    probe (a supervised method's own head) has right. Nodes that are in no set are in neither.
    """

    node: np.ndarray
    xy: np.ndarray
    y: np.ndarray
    domain: np.ndarray
    split: np.ndarray
    prediction: np.ndarray
    counts: np.ndarray
    correct: np.ndarray
    unit: str

    @property
    def total(self) -> int:
        """How many nodes the sets hold, on the map or not."""
        return int(self.counts.sum())


def map_of(folder: Path, root: Path | None = None, max_nodes: int = 2000) -> MapData:
    """The map of the run in ``folder``, by its ``model.safetensors``, which is the last checkpoint.

    Of more than ``max_nodes`` nodes so many are drawn, the same for every method on the same split. Coordinates are
    kept in ``folder/map.npz`` and made anew when the model is another one, so that the dataset is needed only once.

    Example:
        >>> import tempfile
        >>> from mario.lab.runs.execute import Run, finish
        >>> run = Run.plan("good-cbas", "random-init", given={"epochs": 1, "checkpoints": 1, "hidden_channels": 8})
        >>> folder = Path(tempfile.mkdtemp()) / run.digest()
        >>> result = finish(run, run.load(), folder)
        >>> found = map_of(folder, max_nodes=100)
        >>> found.xy.shape, found.total, found.unit
        ((100, 2), 700, 'node')
    """
    key = _key(folder / "model.safetensors", max_nodes)
    kept = _read(folder / FILE, key)
    if kept is not None:
        return kept
    found = _make(folder, root, max_nodes)
    with suppress(RunFailedError):  # runs on a medium that cannot be written to have their map all the same
        write_whole(folder / FILE, partial(_write, found, key))
    return found


def mapped_runs(study: Collected, case: CollectedCase) -> dict[str, dict[str, Any]]:
    """The runs of a case that are mapped: of each row that of the split and seed that most rows have, or its first.

    Where it is no figure of the paper, they are of a few rows only.

    Example:
        >>> from mario.lab.studies.plan import Collected, CollectedCase, Plan
        >>> runs = [{"label": row, "seed": seed, "folder": f"{row}{seed}"} for row in "ab" for seed in (1, 0)]
        >>> case = CollectedCase("good-cbas", "good-cbas", "color", "concept", "transductive", 2, None, runs)
        >>> [run["folder"] for run in mapped_runs(Collected(Plan(study="runs", title=""), [case]), case).values()]
        ['a0', 'b0']
    """
    runs = sorted((run for run in case.results if run.get("folder")), key=_draw)
    common = Counter(_draw(run) for run in runs).most_common(1)
    first: dict[str, dict[str, Any]] = {}
    for result in sorted(runs, key=lambda run: _draw(run) != common[0][0]):
        first.setdefault(result["label"], result)
    planned = next((planned.runs for planned in study.plan.cases if planned.name == case.name), ())
    labels = [label for label in dict.fromkeys([*(run.label for run in planned), *first]) if label in first]
    if not study.plan.paper:
        wanted = (study.plan.subject, study.plan.reference, "random-init")
        kept = sorted(labels, key=lambda label: wanted.index(label) if label in wanted else len(wanted))[:MOST]
        labels = [label for label in labels if label in kept]
    return {label: first[label] for label in labels}


def _draw(run: Mapping[str, Any]) -> tuple[int, int]:
    return run.get("split_seed", 0), run.get("seed", 0)


def _write(found: MapData, key: str, name: str) -> None:
    arrays: dict[str, Any] = {"key": np.array(key), **asdict(found)}
    with open(name, "wb") as file:
        np.savez_compressed(file, **arrays)


def _read(path: Path, key: str) -> MapData | None:
    try:
        with np.load(path, allow_pickle=False) as kept:
            if str(kept["key"]) != key:
                return None
            arrays = {name: kept[name] for name in kept.files if name not in ("key", "unit")}
            return MapData(unit=str(kept["unit"]), **arrays)
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None  # absent, half there, or not ours: it is made anew


def _key(model: Path, max_nodes: int) -> str:
    # The error of a missing file is that of _make(), which names what would do.
    digest = hashlib.sha256(model.read_bytes() if model.is_file() else b"").hexdigest()
    return f"{_FORM} {max_nodes} {digest}"


def _make(folder: Path, root: Path | None, max_nodes: int) -> MapData:
    run, steps = _read_run(folder)
    if not (folder / "model.safetensors").is_file():
        raise MarioError(
            f"{folder} has no model.safetensors, as a run has none that was taken from a file of records; `mario "
            "reproduce` without --records runs it once that folder is removed"
        )
    model = load(folder / "model.safetensors")
    data = run.load_alone(root, download=False)
    z = model.transform(data)
    y = data.y.view(-1).long()
    classes = int(data.num_classes)
    if model.supervised:
        logits = model.predict(data)  # type: ignore[operator]
    else:
        _, judged = split_settings(run.method, run.settings)
        train = data.train_mask
        # The probe of the last checkpoint, with the weights it began with there.
        logits = make_probe(judged).fit_predict(z[train], y[train], z, classes, run.probe_seed(steps))
    prediction = logits.argmax(1)

    split = torch.full_like(y, -1)
    for place, name in enumerate(SETS):
        mask = data.get(f"{name}_mask")
        if mask is not None:
            split[mask] = place
    known = (split >= 0) & (y >= 0)
    right = known & (prediction == y)
    shape = (len(SETS), classes)

    def count(which: torch.Tensor) -> np.ndarray:
        cell = (split[which] * classes + y[which]).numpy()
        return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)

    rows = np.flatnonzero(known.numpy())
    if len(rows) > max_nodes:
        rows = np.sort(np.random.default_rng(0).choice(rows, max_nodes, replace=False))
    domain = data.get("domain_id")
    return MapData(
        node=rows,
        xy=tsne(z[rows].numpy()),
        y=y.numpy()[rows],
        domain=np.zeros(len(rows), dtype=np.int64) if domain is None else _whole(domain.numpy()[rows]),
        split=split.numpy()[rows],
        prediction=prediction.numpy()[rows],
        counts=count(known),
        correct=count(right),
        unit="graph" if "batch" in data else "node",
    )


def _read_run(folder: Path) -> tuple[Run, int]:
    settings, result = read_json(folder / "settings.json"), read_json(folder / "result.json")
    try:
        return Run(**settings), int(result["steps"])
    except (TypeError, KeyError, ValueError) as error:
        raise MarioError(f"{folder} holds no run, or one of another version of mario ({error})") from None


def _whole(values: np.ndarray) -> np.ndarray:
    """Domains as they are where they are whole numbers, else their ranks."""
    if np.issubdtype(values.dtype, np.integer):
        return values.astype(np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def points(found: MapData) -> dict[str, Any]:
    """The map as plain lists for JSON, the longer side of the plane from 0 to 1 in steps of 1/10,000.

    Example:
        >>> from mario.report.maps import MapData, points
        >>> one = np.zeros(2, dtype=int)
        >>> xy = np.array([[-30.0, 0.0], [10.0, 4.0]])
        >>> some = MapData(one, xy, one, one, one, one, np.array([[2]]), np.array([[1]]), "node")
        >>> points(some)["x"], points(some)["y"]
        ([0, 10000], [4500, 5500])
    """
    low, high = found.xy.min(axis=0), found.xy.max(axis=0)
    side = float(max((high - low).max(), 1e-9))
    place = np.rint(10_000 * ((found.xy - (low + high) / 2) / side + 0.5)).astype(int)
    return {
        "x": place[:, 0].tolist(),
        "y": place[:, 1].tolist(),
        "prediction": found.prediction.tolist(),
    }
