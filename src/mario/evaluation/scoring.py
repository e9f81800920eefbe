"""Scores of frozen embeddings under shift."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_seed
from mario.errors import MarioError
from mario.evaluation.calibration import calibration_error, fit_temperature
from mario.evaluation.metrics import is_defined, score
from mario.evaluation.probe import Chosen, LinearProbe, LogisticProbe, Probe
from mario.evaluation.selection import ALLOWED_FOR_CLAIMS, RULES, select_checkpoint
from mario.graphs import BlockMatrix, check_graph
from mario.graphs.labels import labeled_parts
from mario.graphs.paging import count_not_finite
from mario.graphs.rules import PARTS
from mario.methods import Method

SETS = PARTS

CHOSEN_ON = {name: "ood_val" if name.startswith("ood") else "id_val" for name in SETS}
"""The validation set on which the penalty of the probe is chosen that scores a set, if one is chosen."""


def evaluate(
    model: Method, data: Data, *, probe: Probe | None = None, seed: int = 0, controls: bool = False
) -> dict[str, Any]:
    """The score of ``model`` on every set that ``data`` has, by the metric of the dataset.

    The graph is embedded once, and a linear probe is trained on the training nodes. A supervised method is scored by
    its own head. Only labels of the training nodes, and of validation nodes for :class:`LogisticProbe`, are read before
    the predictions of all nodes are fixed.

    If ``data`` has test groups, each group's score has the group's name as its key (T1, ...) and ``ood_test`` is their
    mean, as in the papers. A group for which the metric is undefined has no score and no part in the mean: a group
    without test nodes, or of a single class if the metric is ROC-AUC. F1 of a group without the second class is 0.

    With :class:`LogisticProbe`, ``train``, ``id_val`` and ``id_test`` are scores of the C that is best on ``id_val``;
    ``ood_val``, ``ood_test`` and the groups of the C best on ``ood_val``; and ``ood_test_by_id_val`` is that of
    ``ood_test`` for the C best on ``id_val``. ``calibration_id_test`` and ``calibration_ood_test`` are expected
    calibration errors of the probabilities, calibrated on ``id_val`` and ``ood_val``.

    Nodes without a label (``y`` is -1) are in no score. A set without any label has no score.

    Args:
        model: A fitted method.
        data: A graph with ``y`` and ``train_mask``, and any of the other four masks.
        probe: :class:`LinearProbe` by default.
        seed: For the initial weights of the probe.
        controls: Also score raw features, hops and an untrained encoder, under the key ``controls``, and warn if one
            of them is better on validation while the domain can be read from the embeddings.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> sorted(mario.evaluate(mario.RandomInit(hidden_channels=16, epochs=1).fit(data), data))
        ['id_test', 'id_val', 'ood_test', 'ood_val', 'train']
    """
    judged, classes = _check(data)
    check_seed("seed", seed, below=2**63)
    if model is None:
        raise MarioError("model must be a fitted method of mario, got None")
    _check_parts(model, probe)
    if model.supervised:
        logits = model.predict(data)  # type: ignore[operator]
        found = _calibrated(logits, judged) if isinstance(probe, LogisticProbe) else {"": logits}
    else:
        _warn_if_domain_is_label(model, judged)
        z = model.blocks(data) if isinstance(probe, LogisticProbe) else model.transform(data)
        found = _predict(z, judged, probe, classes, seed)
    scores: dict[str, Any] = _scores(found, judged)
    if controls:
        from mario.evaluation.controls import score_controls, warn_if_beaten

        beside = score_controls(data, like=model, probe=probe, seed=seed)
        warn_if_beaten(model, data, scores, beside)
        scores["controls"] = beside
    return scores


def evaluate_many(
    embeddings: Sequence[Tensor | BlockMatrix], data: Data, *, probe: Probe | None = None, seeds: Sequence[int] = (0,)
) -> list[dict[str, float]]:
    """The scores of :func:`evaluate` for each seed, with the probes trained together.

    Args:
        embeddings: Results of ``transform(data)``: one per seed, such as the checkpoints of a run, or one for all
            seeds. For :class:`LogisticProbe` they may also be those of ``blocks(data)``.
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
    data, classes = _check(data)
    _check_parts(None, probe)
    if not isinstance(embeddings, list | tuple):
        raise MarioError(f"embeddings must be a list of matrices, got {type(embeddings).__name__}")
    for seed in seeds:
        check_seed("seed", seed, below=2**63)
    for z in embeddings:
        blocks = isinstance(z, BlockMatrix) and isinstance(probe, LogisticProbe)
        dense = isinstance(z, Tensor) and z.layout == torch.strided and z.is_floating_point() and z.dim() == 2
        if not blocks and (not dense or count_not_finite(z)):
            raise MarioError("an embedding must be a matrix of finite numbers; use transform(data)")
        if z.shape[0] != data.train_mask.numel():
            raise MarioError(
                f"an embedding has {z.shape[0]} rows for {data.train_mask.numel()} in data; use transform(data)"
            )
    if isinstance(probe, LogisticProbe):
        if len(embeddings) not in (1, len(seeds)) or not seeds:
            raise MarioError(
                f"probes need an embedding for each seed, or one for all: got {len(embeddings)}, for {len(seeds)} seeds"
            )
        if len(embeddings) == 1 and None not in _validations(data).values():  # nothing is drawn
            return [_scores(_predict(embeddings[0], data, probe, classes, seeds[0]), data)] * len(seeds)
        each = zip(embeddings if len(embeddings) > 1 else [embeddings[0]] * len(seeds), seeds, strict=True)
        return [_scores(_predict(z, data, probe, classes, seed), data) for z, seed in each]
    train = data.train_mask.cpu()
    plain = [z for z in embeddings if isinstance(z, Tensor)]
    rows, y = [z[train] for z in plain], data.y[data.train_mask].cpu()
    predictions = (probe or LinearProbe()).fit_predict_many(rows, y, plain, classes, seeds)
    return [_scores({"": logits}, data) for logits in predictions]


def predict(z: Tensor | BlockMatrix, data: Data, *, probe: Probe | None = None, seed: int = 0) -> Tensor:
    """The logits of all nodes that :func:`evaluate` scores: of a node in an OOD set by the C best on ``ood_val``.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> predict(data.x, data).shape
        torch.Size([700, 4])
    """
    judged, classes = _check(data)
    found = _predict(z, judged, probe, classes, seed)
    logits = _of(found, "id_val")[0].clone()
    for name in SETS:
        mask = data.get(f"{name}_mask")
        if mask is not None:
            logits[mask.cpu()] = _of(found, CHOSEN_ON[name])[0][mask.cpu()]
    return logits


Predictions = Mapping[str, Tensor | Chosen]
"""The logits of all nodes, under "" or under the validation set that the penalty was chosen on."""


def _predict(z: Tensor | BlockMatrix, data: Data, probe: Probe | None, classes: int, seed: int) -> Predictions:
    train, y = data.train_mask.cpu(), data.y[data.train_mask].cpu()
    if isinstance(probe, LogisticProbe):
        validations, metric = _validations(data), data.get("metric") or "accuracy"
        chosen = probe.fit_choose(
            BlockMatrix.of(z), (train, y), list(validations.values()), classes, metric=metric, seed=seed
        )
        return dict(zip(validations, chosen, strict=True))
    if isinstance(z, BlockMatrix):
        z = z.dense()
    return {"": (probe or LinearProbe()).fit_predict(z[train], y, z, classes, seed)}


def _validations(data: Data) -> dict[str, tuple[Tensor, Tensor] | None]:
    return {name: _labeled(data, name) for name in ("id_val", "ood_val")}


def _labeled(data: Data, name: str) -> tuple[Tensor, Tensor] | None:
    mask = data.get(f"{name}_mask")
    return None if mask is None or not mask.any() else (mask.cpu().nonzero().view(-1), data.y[mask].cpu())


def _calibrated(logits: Tensor, data: Data) -> Predictions:
    """The logits of a supervised method with the temperature of each validation set."""
    return {
        name: Chosen(logits, 1.0 if rows is None else fit_temperature(logits[rows[0]], rows[1]))
        for name, rows in _validations(data).items()
    }


def _of(found: Predictions, rule: str) -> tuple[Tensor, float | None]:
    """The logits and, if they are calibrated, the temperature of what ``rule`` chose."""
    one = found[rule if rule in found else ""]
    return (one.logits, one.temperature) if isinstance(one, Chosen) else (one, None)


def _warn_if_domain_is_label(model: Method, data: Data) -> None:
    """Warn if embeddings are centered by domains that have training nodes of one class each."""
    if "domain_id" not in data or not any(decision.centered for decision in getattr(model, "decisions_", ())):
        return
    pairs = torch.stack([data.domain_id, data.y])[:, data.train_mask].unique(dim=1)
    if 1 < len(pairs[0].unique()) == pairs.size(1):
        warnings.warn(
            "all training nodes of a domain are of one class: centering by domain removes what tells the classes "
            "apart; use center='never'",
            UserWarning,
            stacklevel=3,
        )


def _check_parts(model: object, probe: object) -> None:
    if model is not None and not isinstance(model, Method):
        raise MarioError(f"model must be a fitted method of mario, got {type(model).__name__}")
    if probe is not None and (isinstance(probe, type) or not hasattr(probe, "fit_predict")):
        raise MarioError(f"probe must be a LinearProbe, a LogisticProbe or None, got {probe!r}")


def _check(data: Data) -> tuple[Data, int]:
    """``data`` with the labeled nodes of its parts, and the number of classes, from what an evaluation may know."""
    if isinstance(data, Data) and (data.get("y") is None or data.get("train_mask") is None):
        raise MarioError("an evaluation needs labels y and a train_mask: use transform(data) for embeddings alone")
    check_graph(data)
    if data.get("test_mask") is not None and data.get("id_test_mask") is None and data.get("ood_test_mask") is None:
        warnings.warn("test_mask is not read: name it id_test_mask or ood_test_mask for a test score", stacklevel=3)
    judged = labeled_parts(data)
    if "train_mask" not in judged:
        raise MarioError("no node of train_mask has a label: use transform(data) for embeddings alone")
    return judged, int(data.get("num_classes") or data.y[judged.train_mask].max() + 1)


def _scores(found: Predictions, data: Data) -> dict[str, float]:
    metric = data.get("metric") or "accuracy"
    scores: dict[str, float] = {}
    for name in SETS:
        if (rows := _labeled(data, name)) is None:
            continue
        logits, temperature = _of(found, CHOSEN_ON[name])
        if name == "ood_test":
            scores |= _ood_scores(logits, data, rows, metric)
            if temperature is not None:
                scores["ood_test_by_id_val"] = _ood_scores(_of(found, "id_val")[0], data, rows, metric)[name]
        else:
            scores[name] = score(logits[rows[0]], rows[1], metric)
        if name in ("id_test", "ood_test") and temperature is not None:
            calibrated = (logits[rows[0]].double() / temperature).softmax(1)
            scores[f"calibration_{name}"] = calibration_error(calibrated, rows[1])
    return scores


def _ood_scores(logits: Tensor, data: Data, rows: tuple[Tensor, Tensor], metric: str) -> dict[str, float]:
    if data.get("group_id") is None:
        return {"ood_test": score(logits[rows[0]], rows[1], metric)}
    groups = _group_scores(logits, data, metric)
    return {"ood_test": sum(groups.values()) / len(groups), **groups}


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
    and ``ood_test_by_id_val`` at the one with the best ``id_val``, for users without an OOD validation set; where
    points have ``ood_test_by_id_val``, of a probe whose penalty ``id_val`` chose, that score is taken. If the set to
    choose on is missing, the last checkpoint is used, and ``chosen_on`` says so. The test groups in ``groups`` are
    reported at the checkpoint of ``ood_test``, and ``calibration`` has the calibration error of ``id_test`` and
    ``ood_test`` at theirs.

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
            chosen[rule] = curve[select_checkpoint(rule, [{k: v for k, v in s.items() if k in shown} for s in curve])]
    found: dict[str, Any] = {}
    rules = {}
    for name, rule, column in (
        ("id_test", "id_val", "id_test"),
        ("ood_test", "ood_val", "ood_test"),
        ("ood_test_by_id_val", "id_val", "ood_test_by_id_val"),
        ("id_val", "id_val", "id_val"),
        ("ood_val", "ood_val", "ood_val"),
    ):
        if rule not in chosen and name in ("id_test", "ood_test"):
            rule = "last"
        if column == "ood_test_by_id_val" and column not in chosen.get(rule, ()):  # no penalty was chosen on id_val
            column = "ood_test"
        if rule in chosen and column in chosen[rule]:
            found[name] = chosen[rule][column]
            rules[name] = rule
    if "ood_test" in rules and groups:
        found["groups"] = {
            name: chosen[rules["ood_test"]][name] for name in groups if name in chosen[rules["ood_test"]]
        }
    calibration = {name: chosen[rule].get(f"calibration_{name}") for name, rule in rules.items()}
    if any(error is not None for error in calibration.values()):
        found["calibration"] = {name: error for name, error in calibration.items() if error is not None}
    found["chosen_on"] = {name: rule for name, rule in rules.items() if name not in ("id_val", "ood_val")}
    for rule in ("last", "oracle"):
        if rule in chosen:
            found[rule] = {k: chosen[rule][k] for k in ("id_test", "ood_test") if k in chosen[rule]}
            found[rule]["allowed_for_claims"] = rule in ALLOWED_FOR_CLAIMS
    return found
