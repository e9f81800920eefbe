"""What a split is like, in numbers and in warnings, before anything is trained on it."""

import dataclasses
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.own_splits import MISSING_TIME, NONE, count_rows
from mario.graphs.quantities import edge_blocks
from mario.graphs.rules import PARTS
from mario.graphs.validation import check_graph

_LEAST = 20
"""Labels of a test, below which its score says little."""
_MUCH = 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class PartFacts:
    """A part of a split: its nodes (or graphs of a set), those with a label, the classes and the domains in it."""

    name: str
    nodes: int
    labeled: int
    classes: int
    domains: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitFacts:
    """A split in numbers.

    Attributes:
        unit: ``nodes``, or ``graphs`` of a set.
        by, shift, setting: How it is split.
        parts: The parts that it has, and ``none`` for what is in no part.
        only_in_test: Classes of ``ood_test`` that no training label has, by name.
        empty_domains: Domains without a node, by name.
        labeled_domains: Number of domains with training labels.
        edges: Edges of the graph.
        between: Share of the edges with one end in ``train`` and the other in ``ood_test``.
        reached: Share of the training nodes with such an edge.
        to_later: Share of the edges of training nodes that go to a node later than the last one of training; None
            unless the split is by time.
        warnings: What is wrong, or what to know before training, one sentence each.
    """

    unit: str
    by: str
    shift: str
    setting: str
    parts: tuple[PartFacts, ...]
    only_in_test: tuple[str, ...]
    empty_domains: tuple[str, ...]
    labeled_domains: int
    edges: int
    between: float
    reached: float
    to_later: float | None
    warnings: tuple[str, ...]

    def part(self, name: str) -> PartFacts | None:
        """A part by its name, None if the split does not have it."""
        return next((part for part in self.parts if part.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """The facts for JSON."""
        return dataclasses.asdict(self)


def split_facts(data: Data) -> SplitFacts:
    """Sizes, labels, classes and domains of the parts of a split graph, and edges between them.

    Example:
        >>> import mario
        >>> facts = split_facts(mario.load_dataset("good-cbas", shift="covariate"))
        >>> facts.part("train").nodes, facts.labeled_domains, facts.only_in_test
        (420, 5, ())
    """
    check_graph(data)
    if "train_mask" not in data:
        raise MarioError("data has no train_mask: split it with mario.graphs.own_split")
    rows = count_rows(data)
    part = np.full(rows, NONE)
    for code, name in enumerate(PARTS):
        if f"{name}_mask" in data:
            part[data[f"{name}_mask"].cpu().numpy()] = code
    y = data.y.cpu().numpy() if "y" in data else np.full(rows, -1)
    domain = data.domain_id.cpu().numpy() if "domain_id" in data else np.full(rows, -1)
    found = [_part(name, part == code, y, domain) for code, name in enumerate(PARTS) if (part == code).any()]
    if (part == NONE).any():
        found.append(_part("none", part == NONE, y, domain))
    train, test = (part == PARTS.index(name) for name in ("train", "ood_test"))
    absent = np.setdiff1d(y[test & (y >= 0)], y[train & (y >= 0)])
    titles = data.get("domain_names") or []
    empty = [title for code, title in enumerate(titles) if not (domain == code).any()]
    edges, between, reached, to_later = (
        _edges(data, train, test) if "batch" not in data else (int(data.edge_index.size(1)), 0.0, 0.0, None)
    )
    facts = SplitFacts(
        unit="graphs" if "batch" in data else "nodes",
        by=str(data.get("domain") or ""),
        shift=str(data.get("shift") or ""),
        setting=str(data.get("setting") or "transductive"),
        parts=tuple(found),
        only_in_test=tuple(_class_name(data, int(label)) for label in absent),
        empty_domains=tuple(empty),
        labeled_domains=len(np.unique(domain[train & (y >= 0) & (domain >= 0)])),
        edges=edges,
        between=between,
        reached=reached,
        to_later=to_later,
        warnings=(),
    )
    return dataclasses.replace(facts, warnings=tuple(_warnings(facts, int((y >= 0).sum()))))


def remarks(data: Data) -> list[str]:
    """What to say of a graph of one's own before it is trained on: what its default split is, and warnings."""
    if "split_note" not in data or "train_mask" not in data:
        return []
    return [*([data.split_note] if data.split_note else []), *(f"warning: {one}" for one in split_facts(data).warnings)]


def _part(name: str, here: np.ndarray, y: np.ndarray, domain: np.ndarray) -> PartFacts:
    labeled = here & (y >= 0)
    return PartFacts(
        name=name,
        nodes=int(here.sum()),
        labeled=int(labeled.sum()),
        classes=len(np.unique(y[labeled])),
        domains=len(np.unique(domain[here & (domain >= 0)])),
    )


def _edges(data: Data, train: np.ndarray, test: np.ndarray) -> tuple[int, float, float, float | None]:
    """The edges; the share between train and test; training nodes at these; the share of training edges to later."""
    edges = int(data.edge_index.size(1))
    of_train, of_test = torch.from_numpy(train), torch.from_numpy(test)
    later = _later(data, of_train)
    between, touching, onward = 0, 0, 0
    reached = torch.zeros(len(train), dtype=torch.bool)
    for source, target in edge_blocks(data.edge_index):
        forth, back = of_train[source] & of_test[target], of_test[source] & of_train[target]
        between += int(forth.sum() + back.sum())
        reached[source[forth]] = True
        reached[target[back]] = True
        if later is not None:
            ends = (of_train[source], of_train[target])
            touching += int((ends[0] | ends[1]).sum())
            onward += int((ends[0] & later[target] | ends[1] & later[source]).sum())
    return (
        edges,
        between / max(edges, 1),
        float(reached.sum()) / max(int(of_train.sum()), 1),
        None if later is None else onward / max(touching, 1),
    )


def _later(data: Data, train: Tensor) -> Tensor | None:
    """The nodes after the last one of training, if the split is by time."""
    time = data.get("time")
    if data.get("domain") != "time" or data.get("shift") != "covariate" or not isinstance(time, Tensor):
        return None
    time = time.cpu()
    known = time != MISSING_TIME
    inside = time[train & known]
    return known & (time > inside.max()) if inside.numel() else None


def _class_name(data: Data, label: int) -> str:
    named = data.get("class_names") or ()
    return str(named[label]) if label < len(named) else str(label)


def _warnings(facts: SplitFacts, labels: int) -> list[str]:
    """What a person should know before training."""
    parts = {part.name: part for part in facts.parts}
    train, test, unit = parts["train"], parts.get("ood_test"), facts.unit
    found = []
    if not labels:
        found.append("no labels: embeddings can be trained, but not scored")
    elif not train.labeled:
        found.append(f"none of the {labels:,} labels is in train: embeddings can be trained, but not scored")
    elif train.classes < 2:
        found.append("the labels in train are of one class: no classifier can be trained on them")
    if labels and train.labeled and facts.labeled_domains == 1 and facts.by not in ("random", "given", ""):
        found.append("the labels in train are of one domain only: no promise about other domains can be made")
    if test is None:
        found.append("there is no ood_test")
    elif labels and not test.labeled:
        found.append("ood_test has no labels, so there is no score out of distribution")
    elif labels and test.labeled < _LEAST:
        found.append(f"ood_test has {_count(test.labeled, 'label')}: its score is uncertain")
    if facts.only_in_test and train.labeled:
        many = len(facts.only_in_test) > 1
        named = ", ".join(facts.only_in_test[:5]) + (", ..." if len(facts.only_in_test) > 5 else "")
        found.append(f"{'classes' if many else 'class'} {named} {'are' if many else 'is'} in ood_test but not in train")
    if "ood_val" not in parts:
        found.append("there is no ood_val: checkpoints are chosen in distribution, or the last is taken")
    elif labels and not parts["ood_val"].labeled:
        found.append("ood_val has no labels, so nothing can be chosen on it")
    if facts.empty_domains:
        named = ", ".join(facts.empty_domains[:5]) + (", ..." if len(facts.empty_domains) > 5 else "")
        found.append(f"no {unit} in {named}")
    if facts.to_later is not None and facts.to_later > _MUCH and facts.setting == "transductive":
        found.append(
            f"{100 * facts.to_later:.0f} % of the edges of training nodes go to later ones, which training sees: "
            "--setting inductive hides them"
        )
    return found


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
