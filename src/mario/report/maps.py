"""What the interactive map shows of a run: for every node its position, class, domain, set and prediction."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mario.errors import MarioError, RunFailedError
from mario.evaluation import SETS, LogisticProbe, predict
from mario.files import write_whole
from mario.graphs.labels import labeled_parts
from mario.lab.presets import split_settings
from mario.lab.result import RunResult
from mario.lab.runs.execute import load_data, make_probe, probe_seed
from mario.lab.studies.collect import CollectedCase
from mario.lab.studies.plan import Plan
from mario.methods import load
from mario.report.embedding_map import tsne
from mario.untrusted import open_file

FILE = "map.npz"
MOST = 4
"""Rows of a case that are mapped in a study that is not a figure of the paper."""

_FORM = 2  # of the file; a cache of another form is replaced


@dataclass(frozen=True, eq=False)
class MapData:
    """Some nodes of a graph, or graphs of a set, on a t-SNE map of one run's embeddings; arrays have an item per node.

    ``split`` is the index of the node's set in :data:`mario.evaluation.SETS`. ``counts`` and ``correct`` have a row per
    set and a column per class, for all nodes and not only those on the map: how many there are, and how many of them
    the linear probe (or a supervised method's own head) predicts correctly. Nodes that are in no set do not count.
    Names of classes and domains, by their numbers, are those of the graph or the dataset; empty if they have none.
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
    class_names: tuple[str, ...] = ()
    domain_names: tuple[str, ...] = ()

    @property
    def ood(self) -> np.ndarray:
        """Whether each node is out of distribution."""
        return np.isin(self.split, [place for place, name in enumerate(SETS) if name.startswith("ood")])

    @property
    def total(self) -> int:
        """How many nodes the sets hold, on the map or not."""
        return int(self.counts.sum())


def map_of(folder: Path, root: Path | None = None, max_nodes: int = 2000) -> MapData:
    """The map of the run in ``folder``, by its ``model.safetensors``, which is the last checkpoint.

    ``max_nodes`` nodes are drawn if there are more, the same for every method on the same split. Coordinates are kept
    in ``folder/map.npz`` and replaced when the model changes, so that the dataset is needed only once.

    Example:
        >>> import tempfile
        >>> from mario.lab import Case, RunSpec
        >>> from mario.lab.runs.execute import finish
        >>> given = {"epochs": 1, "checkpoints": 1, "hidden_channels": 8}
        >>> spec = RunSpec.plan(Case.find("good-cbas"), "random-init", given=given)
        >>> folder = Path(tempfile.mkdtemp()) / spec.digest
        >>> result = finish(spec, load_data(spec), folder)
        >>> found = map_of(folder, max_nodes=100)
        >>> found.xy.shape, found.total, found.unit
        ((100, 2), 700, 'node')
    """
    key = _key(folder / "model.safetensors", max_nodes)
    kept = _read(folder / FILE, key)
    if kept is not None:
        return kept
    found = _make(folder, root, max_nodes)
    with suppress(RunFailedError):  # a read-only folder still has its map
        write_whole(folder / FILE, partial(_write, found, key))
    return found


def mapped_runs(plan: Plan, case: CollectedCase) -> dict[str, Path]:
    """The folders of the runs of a case that are mapped, by row.

    Each row has the run of the split and seed that most rows have, or its first. Only a few rows are mapped if the
    study is not a figure of the paper.
    """
    runs = case.frame.dropna(subset=["folder"]).sort_values(["split_seed", "seed"], kind="stable")
    draws = list(zip(runs["split_seed"], runs["seed"], strict=True))
    common = Counter(draws).most_common(1)
    first: dict[str, Path] = {}
    for of_common in (True, False):
        for draw, label, folder in zip(draws, runs["label"], runs["folder"], strict=True):
            if (draw == common[0][0]) == of_common:
                first.setdefault(label, Path(folder))
    labels = [label for label in dict.fromkeys([*(job.label for job in case.planned.jobs), *first]) if label in first]
    kept = _kept(plan, labels)
    return {label: first[label] for label in labels if label in kept}


def not_mapped(plan: Plan, case: CollectedCase) -> list[str]:
    """The rows of a case that have a run but no map, as the study is not a figure of the paper and has many rows."""
    labels = list(dict.fromkeys(case.frame.dropna(subset=["folder"])["label"]))
    planned = [job.label for job in case.planned.jobs]
    labels = [label for label in dict.fromkeys([*planned, *labels]) if label in labels]
    return [label for label in labels if label not in _kept(plan, labels)]


def _kept(plan: Plan, labels: Sequence[str]) -> Sequence[str]:
    if plan.paper:
        return labels
    wanted = (plan.subject, plan.reference, "random-init")
    return sorted(labels, key=lambda label: wanted.index(label) if label in wanted else len(wanted))[:MOST]


def _write(found: MapData, key: str, name: str) -> None:
    arrays: dict[str, Any] = {"key": np.array(key), **asdict(found)}
    with open(name, "wb") as file:
        np.savez_compressed(file, **arrays)


def _read(path: Path, key: str) -> MapData | None:
    try:
        with open_file(path) as file, np.load(file, allow_pickle=False) as kept:
            if str(kept["key"]) != key:
                return None
            names: dict[str, Any] = {name: tuple(map(str, kept[name])) for name in ("class_names", "domain_names")}
            arrays = {name: kept[name] for name in kept.files if name not in ("key", "unit", *names)}
            return MapData(unit=str(kept["unit"]), **names, **arrays)
    except Exception:  # numpy, zipfile and zlib each have their own errors
        return None  # absent, incomplete, or not ours: it is replaced


def _key(model: Path, max_nodes: int) -> str:
    # _make() raises the error for a missing file.
    digest = hashlib.sha256(model.read_bytes() if model.is_file() else b"").hexdigest()
    return f"{_FORM} {max_nodes} {digest}"


def _make(folder: Path, root: Path | None, max_nodes: int) -> MapData:
    result = RunResult.read(folder)
    spec = result.spec
    if not (folder / "model.safetensors").is_file():
        raise MarioError(
            f"{folder} has no model.safetensors: runs from a file of records have none. To run it again, remove that "
            "folder and use `mario reproduce` without --records"
        )
    model = load(folder / "model.safetensors")
    data = load_data(spec, root, download=False)
    if "train_mask" not in labeled_parts(data):
        raise MarioError(f"no training node of {spec.case.dataset} has a label, so there are no predictions to map")
    z = model.transform(data)
    y = data.y.view(-1).long()
    classes = int(data.num_classes)
    if model.supervised:
        logits = model.predict(data)  # type: ignore[operator]
    else:
        _, evaluation = split_settings(spec.method, spec.settings)
        probe = make_probe(evaluation)
        judged = model.blocks(data) if isinstance(probe, LogisticProbe) else z
        # The probe of the last checkpoint, from the same initial weights.
        logits = predict(judged, data, probe=probe, seed=probe_seed(spec, result.steps))
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
        class_names=_names(data.get("class_names") or spec.case.card.class_names, classes),
        domain_names=_names(data.get("domain_names") or spec.case.card.parts, None if domain is None else domain),
    )


def _names(known: Sequence[Any], of: "int | torch.Tensor | None") -> tuple[str, ...]:
    """Names of classes or domains, if there is one for each number."""
    if of is None:
        return ()
    count = of if isinstance(of, int) else int(of.max()) + 1
    return tuple(map(str, known)) if len(known) == count else ()


def _whole(values: np.ndarray) -> np.ndarray:
    """Domains as they are if they are integers, otherwise their ranks."""
    if np.issubdtype(values.dtype, np.integer):
        return values.astype(np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def points(found: MapData) -> dict[str, Any]:
    """The map as plain lists for JSON; the longer side of the plane goes from 0 to 10,000.

    Example:
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
