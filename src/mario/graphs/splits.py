"""GOOD's split procedure for node-level graphs (Gui et al., NeurIPS 2022) as one engine for any graph and any domain.

GOOD did not seed its random numbers, so a split equals the published one in distribution, not node for node. Ours is a
pure function of the domain, the labels, the rule and ``split_seed``.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.arguments import check_seed
from mario.errors import MarioError
from mario.graphs.quantities import word_counts
from mario.graphs.rules import EDGE_DATA, PARTS, SETTINGS, SHIFTS, SplitRule, choose
from mario.graphs.validation import check_graph, check_structure

TRAIN, ID_VAL, ID_TEST, OOD_VAL, OOD_TEST = range(5)
TRAINING_PICKS, TEST_PICK = (0, 2, 3), 1  # GOOD's picks 1, 3, 4 train and pick 2 tests; pick 5 validates


@dataclass(frozen=True)
class Split:
    """The part of each node, one of five, and its training environment (-1 outside of ``train``)."""

    part: Tensor
    env_id: Tensor


def split_graph(
    data: Data,
    *,
    domain: str | Sequence[str] | Sequence[float] | np.ndarray | Tensor,
    shift: str = "concept",
    split_seed: int = 0,
    setting: str = "transductive",
    rule: SplitRule | None = None,
) -> Data:
    """A copy of ``data`` with a distribution shift: five masks, ``domain_id`` and ``env_id``, by GOOD's procedure.

    All other attributes are kept, such as ``edge_weight`` and ``edge_attr``.

    Args:
        data: Any node-level graph with ``x``, ``edge_index`` and integer ``y``.
        domain: ``"word"`` (row sum of ``x``), ``"degree"`` (out-degree), the name of a node attribute of ``data``, or
            one value per node. Distinct values are distinct domains, numbered in sorted order.
        shift: ``"covariate"``, ``"concept"`` or ``"no_shift"``.
        split_seed: Seed of the split.
        setting: ``"transductive"`` or ``"inductive"``; decides what `training_graph` returns.
        rule: The numbers of the procedure; ``None`` uses those of GOOD-Cora. With these, a covariate shift trains on
            the largest values and tests on the smallest. To train on early years and test on late ones, use
            ``SplitRule(descending=False)``.

    Example:
        >>> ring = Data(x=torch.eye(100), edge_index=torch.arange(100).repeat(2, 1), y=torch.arange(100) % 2)
        >>> data = split_graph(ring, domain=torch.arange(100) // 10, shift="covariate")
        >>> [int(data[f"{part}_mask"].sum()) for part in PARTS]
        [40, 10, 10, 20, 20]
    """
    choose("shift", shift, SHIFTS)
    choose("setting", setting, SETTINGS)
    rule = SplitRule() if rule is None else rule
    if not isinstance(rule, SplitRule):
        raise MarioError(f"rule must be a SplitRule or None, got {rule!r}")
    checked = ("x", "edge_index", *EDGE_DATA, "y")
    check_structure(data)
    check_graph(Data.from_dict({key: data[key] for key in checked if key in data}))
    if "y" not in data or int(data.y.min()) < 0:
        raise MarioError(
            "data.y must give every node a class of 0 or more, as the split needs it; "
            "mario.graphs.own_split splits a graph with few labels"
        )
    y = data.y.cpu()
    values, domain_id = np.unique(_domain_values(data, domain, y.numel()), return_inverse=True)
    ids = torch.from_numpy(domain_id.reshape(-1).astype(np.int64))
    generator = seeded(split_seed)
    if shift == "covariate":
        held_out = None if rule.held_out is None else _index_of(rule.held_out, values)
        split = covariate_split(ids, rule, generator, held_out=held_out)
    elif shift == "concept":
        split = concept_split(ids, y, rule, generator)
    else:
        split = no_shift_split(y.numel(), rule, generator)
    named = domain if isinstance(domain, str) else "given"
    shifted = with_split(data, split, ids, domain=named, shift=shift, setting=setting, split_seed=split_seed)
    for key, value in {"name": "graph", "metric": "accuracy", "num_classes": int(y.max()) + 1, "faults": []}.items():
        if key not in data:
            shifted[key] = value
    return shifted


def covariate_split(
    domain_id: Tensor, rule: SplitRule, generator: torch.Generator | None = None, *, held_out: int | None = None
) -> Split:
    """P(X) differs: whole domains are held out from training."""
    num_nodes = domain_id.numel()
    part = torch.full((num_nodes,), TRAIN)
    env_id = torch.full((num_nodes,), -1)
    order = torch.argsort(domain_id, stable=True, descending=rule.descending)
    if held_out is None:
        train_end, val_end = cut_at_changes(domain_id[order], [floor(num_nodes * cut) for cut in rule.cuts])
        part[order[train_end:val_end]] = OOD_VAL
        part[order[val_end:]] = OOD_TEST
    else:
        out = (domain_id == held_out).nonzero().view(-1)
        out = out[torch.randperm(out.numel(), generator=generator)]
        part[out[: out.numel() // 2]] = OOD_VAL
        part[out[out.numel() // 2 :]] = OOD_TEST
    train = order[part[order] == TRAIN]

    if held_out is None:
        starts = [k * (train.numel() // rule.environments) for k in range(1, rule.environments)]
        ends = torch.tensor(cut_at_changes(domain_id[train], starts), dtype=torch.int64)
        env_id[train] = torch.searchsorted(ends, torch.arange(train.numel()), right=True)
    else:
        env_id[train] = domain_id[train].unique(return_inverse=True)[1]
    return _with_id_parts(part, env_id, train, floor(num_nodes * rule.covariate_id), generator)


def concept_split(domain_id: Tensor, y: Tensor, rule: SplitRule, generator: torch.Generator | None = None) -> Split:
    """P(Y|X) differs: labels correlate with domains in training, and with opposite sign in ood_test."""
    draws = torch.rand(len(rule.pick) - 1, y.numel(), dtype=torch.float64, generator=generator)
    pick = concept_picks(domain_id, y, rule, draws)
    part = torch.full((y.numel(),), OOD_VAL)
    env_id = torch.full((y.numel(),), -1)
    part[pick == TEST_PICK] = OOD_TEST
    for env, k in enumerate(TRAINING_PICKS):
        part[pick == k] = TRAIN
        env_id[pick == k] = env
    train = (part == TRAIN).nonzero().view(-1)
    return _with_id_parts(part, env_id, train, floor(train.numel() * rule.concept_id), generator)


def concept_picks(domain_id: Tensor, y: Tensor, rule: SplitRule, draws: Tensor) -> Tensor:
    """The pick of each node, one of five, from uniform ``draws`` with one row per pick except the last."""
    sizes = torch.bincount(domain_id)
    sign = torch.where(sizes.cumsum(0) - sizes < y.numel() / 2, 1.0, -1.0)[domain_id]
    lean = sign * (y.double() - y.double().mean())
    last = len(rule.pick) - 1
    pick = torch.full((y.numel(),), last)
    for k in range(last):
        agrees = (lean if k in TRAINING_PICKS else -lean) > 0
        left = pick == last
        chance = rule.pick[k] * torch.where(agrees, rule.bias[k], 1 - rule.bias[k])
        taken = left & (draws[k] < chance)
        pick[taken | _missing_kind(domain_id, agrees, left, taken, draws[k])] = k
    return pick


def no_shift_split(num_nodes: int, rule: SplitRule, generator: torch.Generator | None = None) -> Split:
    """The control: a random split. Validation and test are halved, so that ID and OOD differ in name only."""
    train, val, _ = rule.control
    train_end, val_end = floor(num_nodes * train), floor(num_nodes * (train + val))
    ends = [train_end, (train_end + val_end) // 2, val_end, (val_end + num_nodes) // 2, num_nodes]
    shuffled = torch.randperm(num_nodes, generator=generator)
    part = torch.empty(num_nodes, dtype=torch.int64)
    for name, start, end in zip((TRAIN, ID_VAL, OOD_VAL, ID_TEST, OOD_TEST), [0, *ends], ends, strict=False):
        part[shuffled[start:end]] = name
    env_id = torch.full((num_nodes,), -1)
    env_id[shuffled[:train_end]] = torch.arange(train_end) % rule.environments
    return Split(part, env_id)


def with_split(data: Data, split: Split, domain_id: Tensor, **facts: str | int) -> Data:
    """A copy of ``data`` with the split's masks, ids and facts; `MarioError` if a part is empty."""
    shifted = copy.copy(data)
    for code, name in enumerate(PARTS):
        mask = (split.part == code).to(data.y.device)
        if not bool(mask.any()):
            raise MarioError(
                f"the {facts['shift']} split by {facts['domain']!r} leaves {name} empty: {split.part.numel()} nodes in "
                f"{int(domain_id.unique().numel())} domains are too few; use a domain with more distinct values"
            )
        shifted[f"{name}_mask"] = mask
    shifted.domain_id, shifted.env_id = domain_id.to(data.y.device), split.env_id.to(data.y.device)
    for key, value in facts.items():
        shifted[key] = value
    return shifted


def cut_at_changes(sorted_ids: Tensor, cuts: Sequence[int]) -> list[int]:
    """Each cut moved to the next change of domain, using each change once; past the end if none is left."""
    changes = (sorted_ids[1:] != sorted_ids[:-1]).nonzero().view(-1).numpy() + 1
    moved: list[int] = []
    for cut in cuts:
        after = max(cut, moved[-1] + 1 if moved else 0)
        at = int(np.searchsorted(changes, after))
        moved.append(int(changes[at]) if at < len(changes) else sorted_ids.numel())
    return moved


def seeded(split_seed: int) -> torch.Generator:
    """The generator that one split draws from."""
    return torch.Generator().manual_seed(check_seed("split_seed", split_seed))


def floor(count: float) -> int:
    """Round down, tolerating floating-point error: 0.1 + 0.2 counts as 0.3."""
    return math.floor(count + 1e-6)


def take_id_parts(part: Tensor, train: Tensor, size: int, generator: torch.Generator | None) -> None:
    """Shuffle the training part; its last ``size`` nodes become id_test and those before them id_val."""
    shuffled = train[torch.randperm(train.numel(), generator=generator)]
    start = max(train.numel() - 2 * size, 0)
    part[shuffled[start : start + size]] = ID_VAL
    part[shuffled[start + size :]] = ID_TEST


def _with_id_parts(part: Tensor, env_id: Tensor, train: Tensor, size: int, generator: torch.Generator | None) -> Split:
    take_id_parts(part, train, size, generator)
    return Split(part, env_id.masked_fill(part != TRAIN, -1))


def _missing_kind(domain_id: Tensor, agrees: Tensor, left: Tensor, taken: Tensor, draw: Tensor) -> Tensor:
    """In each domain where a pick took nodes of one kind only, one node of the other: the one with the lowest draw."""
    groups = 2 * (int(domain_id.max()) + 1)
    kind = 2 * domain_id + agrees
    count = torch.bincount(kind[taken], minlength=groups).view(-1, 2)
    lacking = ((count == 0) & (count.sum(dim=1, keepdim=True) > 0)).view(-1)
    wanted = (left & lacking[kind]).nonzero().view(-1)
    wanted = wanted[torch.argsort(draw[wanted], stable=True)]
    wanted = wanted[torch.argsort(kind[wanted], stable=True)]
    first = torch.ones(wanted.numel(), dtype=torch.bool)
    first[1:] = kind[wanted][1:] != kind[wanted][:-1]
    extra = torch.zeros_like(taken)
    extra[wanted[first]] = True
    return extra


def _domain_values(data: Data, domain: object, num_nodes: int) -> np.ndarray:
    if isinstance(domain, str):
        if domain in data:
            values: object = data[domain]
        elif domain == "word":
            values = word_counts(data.x)
        elif domain == "degree":
            values = torch.bincount(data.edge_index[0], minlength=num_nodes)
        else:
            raise MarioError(
                f"unknown domain {domain!r}; use word, degree, a node attribute of data or one value per node"
            )
    else:
        values = domain
    try:
        array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.shape != (num_nodes,) or array.dtype.kind not in "biufU":
        raise MarioError(
            f"domain must hold one number or name for each of {num_nodes} nodes, got {array.dtype} {array.shape}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise MarioError("domain holds NaN or infinite values; use a finite value for every node")
    return array


def _index_of(held_out: str, values: np.ndarray) -> int:
    names = [str(value) for value in values]
    return names.index(choose("held_out domain", held_out, names))
