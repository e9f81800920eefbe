"""Scores of frozen embeddings under shift."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_seed
from mario.errors import MarioError
from mario.evaluation.metrics import is_defined, score
from mario.evaluation.probe import LinearProbe, Probe
from mario.evaluation.selection import ALLOWED_FOR_CLAIMS, RULES, select
from mario.graphs import check_graph
from mario.graphs.paging import count_not_finite
from mario.graphs.rules import PARTS
from mario.methods import Method

SETS = PARTS


def evaluate(model: Method, data: Data, *, probe: Probe | None = None, seed: int = 0) -> dict[str, float]:
    """The score of ``model`` on every set that ``data`` has, by the metric of the dataset.

    The graph is embedded once, and a linear probe is trained on the training nodes. A supervised method is scored by
    its own head. Only labels of the training nodes are read before the predictions of all nodes are fixed.

    If ``data`` has test groups, each group's score has the group's name as its key (T1, ...) and ``ood_test`` is their
    mean, as in the papers. A group for which the metric is undefined has no score and no part in the mean: a group
    without test nodes, or of a single class if the metric is ROC-AUC. F1 of a group without the second class is 0.

    Args:
        model: A fitted method.
        data: A graph with ``y`` and ``train_mask``, and any of the other four masks.
        probe: :class:`LinearProbe` by default.
        seed: For the initial weights of the probe.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> sorted(mario.evaluate(mario.RandomInit(hidden_channels=16, epochs=1).fit(data), data))
        ['id_test', 'id_val', 'ood_test', 'ood_val', 'train']
    """
    classes = _check(data)
    check_seed("seed", seed, below=2**63)
    if model is None:
        raise MarioError("model must be a fitted method of mario, got None")
    _check_parts(model, probe)
    if model.supervised:
        logits = model.predict(data)  # type: ignore[operator]
    else:
        z = model.transform(data)
        train = data.train_mask
        logits = (probe or LinearProbe()).fit_predict(z[train.cpu()], data.y[train].cpu(), z, classes, seed)
    return _scores(logits, data)


def evaluate_many(
    embeddings: Sequence[Tensor], data: Data, *, probe: Probe | None = None, seeds: Sequence[int] = (0,)
) -> list[dict[str, float]]:
    """The scores of :func:`evaluate` for each seed, with the probes trained together.

    Args:
        embeddings: Results of ``transform(data)``: one per seed, such as the checkpoints of a run, or one for all
            seeds.
        data: A graph as for :func:`evaluate`.
        probe: :class:`LinearProbe` by default.
        seeds: For the initial weights of the probes.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> z = mario.RandomInit(hidden_channels=16, epochs=1).fit(data).transform(data)
        >>> len(evaluate_many([z], data, seeds=range(10)))
        10
    """
    classes = _check(data)
    _check_parts(None, probe)
    if not isinstance(embeddings, list | tuple):
        raise MarioError(f"embeddings must be a list of matrices, got {type(embeddings).__name__}")
    for seed in seeds:
        check_seed("seed", seed, below=2**63)
    train = data.train_mask.cpu()
    for z in embeddings:
        dense = isinstance(z, Tensor) and z.layout == torch.strided and z.is_floating_point()
        if not dense or z.dim() != 2 or count_not_finite(z):
            raise MarioError("an embedding must be a matrix of finite numbers; use transform(data)")
        if z.size(0) != train.numel():
            raise MarioError(f"an embedding has {z.size(0)} rows for {train.numel()} in data; use transform(data)")
    rows = [z[train] for z in embeddings]
    y = data.y[data.train_mask].cpu()
    predictions = (probe or LinearProbe()).fit_predict_many(rows, y, embeddings, classes, seeds)
    return [_scores(logits, data) for logits in predictions]


def _check_parts(model: object, probe: object) -> None:
    if model is not None and not isinstance(model, Method):
        raise MarioError(f"model must be a fitted method of mario, got {type(model).__name__}")
    if probe is not None and (isinstance(probe, type) or not hasattr(probe, "fit_predict")):
        raise MarioError(f"probe must be a LinearProbe, a LogisticProbe or None, got {probe!r}")


def _check(data: Data) -> int:
    """The number of classes in ``data``, from what an evaluation may know."""
    if isinstance(data, Data) and (data.get("y") is None or data.get("train_mask") is None):
        raise MarioError("an evaluation needs labels y and a train_mask: use transform(data) for embeddings alone")
    check_graph(data)
    if data.get("test_mask") is not None and data.get("id_test_mask") is None and data.get("ood_test_mask") is None:
        warnings.warn("test_mask is not read: name it id_test_mask or ood_test_mask for a test score", stacklevel=3)
    return int(data.get("num_classes") or data.y[data.train_mask].max() + 1)


def _scores(logits: Tensor, data: Data) -> dict[str, float]:
    metric = data.get("metric") or "accuracy"
    scores = {}
    for name in SETS:
        mask = data.get(f"{name}_mask")
        if mask is None or not mask.any():
            continue
        if name == "ood_test" and data.get("group_id") is not None:
            groups = _group_scores(logits, data, metric)
            scores[name] = sum(groups.values()) / len(groups)
            scores |= groups
        else:
            scores[name] = score(logits[mask.cpu()], data.y[mask].cpu(), metric)
    return scores


def _group_scores(logits: Tensor, data: Data, metric: str) -> dict[str, float]:
    scores = {}
    for group, name in enumerate(data.groups):
        mask = (data.ood_test_mask & (data.group_id == group)).cpu()
        y = data.y.cpu()[mask]
        if is_defined(y, metric):
            scores[name] = score(logits[mask], y, metric)
    if not scores:
        raise MarioError(f"the {metric} is undefined for every test group; group_id must cover ood_test_mask")
    return scores


def report(curve: Sequence[Mapping[str, Any]], groups: Sequence[str] = ()) -> dict[str, Any]:
    """The scores of a run from those of its checkpoints, each with the rule that chose its checkpoint.

    ``id_test`` is taken at the checkpoint with the best ``id_val``, ``ood_test`` at the one with the best ``ood_val``,
    and ``ood_test_by_id_val`` at the one with the best ``id_val``, for users without an OOD validation set. If the set
    to choose on is missing, the last checkpoint is used, and ``chosen_on`` says so. The test groups in ``groups`` are
    reported at the checkpoint of ``ood_test``.

    Example:
        >>> report([{"ood_val": 0.5, "ood_test": 0.3, "T1": 0.3}], groups=["T1"])["groups"]
        {'T1': 0.3}
    """
    if not all(isinstance(scores, Mapping) for scores in curve):
        raise MarioError("a curve must hold the scores of each checkpoint by name")
    chosen = {}
    for rule, key in RULES.items():
        shown = {"id_val", "ood_val"} if rule in ALLOWED_FOR_CLAIMS else {key}
        if key is None or all(key in scores for scores in curve):
            chosen[rule] = curve[select(rule, [{k: v for k, v in s.items() if k in shown} for s in curve])]
    found: dict[str, Any] = {}
    rules = {}
    for name, rule, column in (
        ("id_test", "id_val", "id_test"),
        ("ood_test", "ood_val", "ood_test"),
        ("ood_test_by_id_val", "id_val", "ood_test"),
        ("id_val", "id_val", "id_val"),
        ("ood_val", "ood_val", "ood_val"),
    ):
        if rule not in chosen and name in ("id_test", "ood_test"):
            rule = "last"
        if rule in chosen and column in chosen[rule]:
            found[name] = chosen[rule][column]
            rules[name] = rule
    if "ood_test" in rules and groups:
        found["groups"] = {
            name: chosen[rules["ood_test"]][name] for name in groups if name in chosen[rules["ood_test"]]
        }
    found["chosen_on"] = {name: rule for name, rule in rules.items() if name not in ("id_val", "ood_val")}
    for rule in ("last", "oracle"):
        if rule in chosen:
            found[rule] = {k: chosen[rule][k] for k in ("id_test", "ood_test") if k in chosen[rule]}
            found[rule]["allowed_for_claims"] = rule in ALLOWED_FOR_CLAIMS
    return found
