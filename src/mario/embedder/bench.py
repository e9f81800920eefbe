"""What candidates are compared on: the nodes with labels that fitting may read. No test label is among them."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.embedder.facts import labeled_rows
from mario.errors import MarioError
from mario.evaluation.calibration import calibration_error, fit_temperature
from mario.evaluation.choosing import RULES, Outcome, alarms, select
from mario.evaluation.metrics import is_defined, score as metric_of
from mario.graphs import BlockMatrix
from mario.graphs.rules import choose
from mario.training.streams import SELECTION, stream

MOST = 20_000
"""Labeled nodes that take part, drawn from the seed; more would hardly change the choice."""
_NEEDED = {"ood_val": ("train", "ood_val"), "leave_domain_out": ("train", "id_val"), "id_val": ("train", "id_val")}
_LEAST_OF_DOMAIN = 5  # labeled nodes, for a domain that is left out


@dataclasses.dataclass(frozen=True)
class Row:
    """How a candidate did.

    Attributes:
        score, low, high: By the rule, with a 95 % interval; ``None`` without labels.
        rank: Effective rank of the embeddings, an alarm for collapse.
        readability: How well the domain can be read from them; ``None`` with one domain only.
        calibration: The expected calibration error of its probabilities where it was scored; ``None`` without labels.
        temperature: That calibrates them there.
        parts: The score of each domain, with ``leave_domain_out``.
    """

    score: float | None
    low: float | None
    high: float | None
    rank: float | None
    readability: float | None
    calibration: float | None = None
    temperature: float | None = None
    parts: tuple["DomainScore", ...] = ()


@dataclasses.dataclass(frozen=True)
class DomainScore:
    """The score on a domain, or a group of neighboring ones, whose labels were left out.

    Attributes:
        first, last: The lowest and the highest number of its domains.
        score: The score.
        nodes: Labeled nodes that it is of.
    """

    first: int
    last: int
    score: float
    nodes: int


class Bench:
    """The labeled nodes of a graph that fitting may read, and the rule that scores candidates on them.

    Args:
        data: A graph.
        rule: One of ``ood_val``, ``leave_domain_out``, ``id_val`` and ``gate``; ``None`` for the first that it has
            labels for.
        seed: Of the draw of nodes and of held-out rows.
    """

    def __init__(self, data: Data, *, rule: str | None = None, seed: int = 0) -> None:
        self.rule, self.why = _rule(data, rule)
        self.seed = seed
        domain = data.get("domain_id")
        self.domains = None if domain is None else domain.cpu()
        if self.rule == "gate":
            count = int(data.num_graphs) if "batch" in data else int(data.x.size(0))
            self.nodes = torch.randperm(count, generator=stream(seed, 3, 0, SELECTION))[:MOST].sort().values
            self._table = None
            return
        rows = labeled_rows(data, _NEEDED[self.rule])
        assert rows is not None
        nodes = rows.nonzero().view(-1).cpu()
        if len(nodes) > MOST:
            nodes = nodes[torch.randperm(len(nodes), generator=stream(seed, 3, 0, SELECTION))[:MOST]].sort().values
        self.nodes = nodes
        self._table = _table_of(data, nodes, _NEEDED[self.rule])

    def score(self, z: BlockMatrix) -> Row:
        """The row of a candidate whose embeddings of :attr:`nodes` are ``z``."""
        if self._table is None:
            return self._alarms_alone(z)
        found = select({"z": z}, self._table, rule=self.rule, seed=self.seed)
        row = found.table.iloc[0]
        temperature, error = calibration(found.outcomes)
        return Row(
            score=float(row["score"]),
            low=float(row["low"]),
            high=float(row["high"]),
            rank=_number(row["rank"]),
            readability=_number(row["readability"]),
            calibration=error,
            temperature=temperature,
            parts=tuple(
                DomainScore(one.domains[0], one.domains[-1], one.score(), len(one.y))
                for one in found.outcomes
                if one.domains
            ),
        )

    def _alarms_alone(self, z: BlockMatrix) -> Row:
        found = alarms(z, None if self.domains is None else self.domains[self.nodes], self.seed)
        return Row(None, None, None, rank=_number(found["rank"]), readability=_number(found["readability"]))

    def baseline(self) -> float | None:
        """The score of a constant prediction: the largest class, or 0.5 for ROC-AUC."""
        if self._table is None or self._table.metric == "roc_auc":
            return None if self._table is None else 0.5
        mask = self._table.ood_val_mask if self.rule == "ood_val" else self._table.train_mask
        y, train = self._table.y[mask], self._table.y[self._table.train_mask]
        logits = torch.zeros(len(y), int(self._table.num_classes))
        logits[:, int(train.bincount().argmax())] = 1
        return metric_of(logits, y, self._table.metric)


def calibration(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """The temperature fitted on all outcomes, and the calibration error of one fitted on the others of them.

    Of a single outcome, one half of its nodes is calibrated by the other.
    """
    whole = fit_temperature(torch.cat([one.logits for one in outcomes]), torch.cat([one.y for one in outcomes]))
    parts = [(one.logits, one.y) for one in outcomes]
    if len(parts) == 1:
        logits, y = parts[0]
        parts = [(logits[::2], y[::2]), (logits[1::2], y[1::2])]
        if len(y) < 2:
            return whole, calibration_error((logits.double() / whole).softmax(1), y)
    calibrated = []
    for held in range(len(parts)):
        others = [part for place, part in enumerate(parts) if place != held]
        own = fit_temperature(torch.cat([logits for logits, _ in others]), torch.cat([y for _, y in others]))
        calibrated.append((parts[held][0].double() / own).softmax(1))
    return whole, calibration_error(torch.cat(calibrated), torch.cat([y for _, y in parts]))


def _rule(data: Data, rule: str | None) -> tuple[str, str]:
    """The rule and why it was taken."""
    given = None if rule is None else choose("rule", rule, RULES)
    if given is not None and given != "gate":
        _check_rule(data, given)
    if given is not None:
        return given, "given"
    labeled = labeled_rows(data, ("train",))
    if labeled is None:
        return "gate", "no labels for training"
    if len(data.y[labeled].unique()) < 2:
        return "gate", "labels of one class only"
    if _usable(data, "ood_val"):
        return "ood_val", "the split has labels of other domains for validation"
    count = leavable_domains(data)
    if count > 1:
        return "leave_domain_out", f"labels of {count} domains"
    if _usable(data, "id_val"):
        return "id_val", "labels of one domain only: no promise about other domains can be made"
    return "gate", "labels for training, but none to validate on"


def _check_rule(data: Data, rule: str) -> None:
    labeled = labeled_rows(data, ("train",))
    if labeled is None or len(data.y[labeled].unique()) < 2:
        raise MarioError(f"rule={rule} needs labels of two classes for training: use rule=gate without them")
    if rule == "leave_domain_out" and leavable_domains(data) < 2:
        raise MarioError(
            f"rule=leave_domain_out needs {_LEAST_OF_DOMAIN} labels for training in each of two domains: name the "
            "domains with --domain, or use rule=id_val or gate"
        )
    if rule in ("ood_val", "id_val") and not _usable(data, rule):
        raise MarioError(f"rule={rule} needs labels in {rule}_mask, which the split lacks")


def _usable(data: Data, part: str) -> bool:
    return data.get(f"{part}_mask") is not None and labeled_rows(data, (part,)) is not None


def leavable_domains(data: Data) -> int:
    """Domains with enough labels for training to be left out."""
    domain, labeled = data.get("domain_id"), labeled_rows(data, ("train",))
    if domain is None or labeled is None:
        return 0
    rows = (labeled & (domain >= 0)).cpu()
    pairs, counts = torch.stack([domain.cpu()[rows], data.y.cpu()[rows]]).unique(dim=1, return_counts=True)
    metric, found = data.get("metric") or "accuracy", 0
    for one in pairs[0].unique():
        here = pairs[0] == one
        enough = int(counts[here].sum()) >= _LEAST_OF_DOMAIN
        found += enough and is_defined(pairs[1][here], metric) and len(pairs[1][~here].unique()) > 1
    return found


def _table_of(data: Data, nodes: Tensor, parts: tuple[str, ...]) -> Data:
    """A graph of these nodes without edges, for `select`, which reads labels, masks and domains."""
    found = Data(x=torch.ones(len(nodes), 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    found.y = data.y.cpu()[nodes]
    for part in parts:
        mask = data.get(f"{part}_mask")
        if mask is not None and bool(mask.cpu()[nodes].any()):
            found[f"{part}_mask"] = mask.cpu()[nodes]
    if data.get("domain_id") is not None:
        found.domain_id = data.domain_id.cpu()[nodes]
    found.metric = data.get("metric") or "accuracy"
    found.num_classes = int(data.get("num_classes") or data.y.max() + 1)
    return found


def _number(value: Any) -> float | None:
    return None if value is None or math.isnan(float(value)) else float(value)
