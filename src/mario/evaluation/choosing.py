"""Choosing among candidates without looking at a test label."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.evaluation.metrics import is_defined, score
from mario.evaluation.probe import LogisticProbe
from mario.graphs import Block, BlockMatrix, check_graph
from mario.graphs.labels import labeled_parts
from mario.graphs.rules import choose
from mario.methods import Method
from mario.methods.readability import binned, readability
from mario.methods.steady import WithSteady
from mario.training.streams import SELECTION, stream

if TYPE_CHECKING:
    from pandas import DataFrame

RULES = ("ood_val", "leave_domain_out", "id_val", "gate")
"""How a candidate is chosen, in the order in which :func:`select` prefers them."""

Candidate = Method | Tensor | BlockMatrix

_RESAMPLES, _ROWS = 1000, 5000
_COLLAPSED = 2.0  # effective rank below which an embedding has next to no information


@dataclass(frozen=True)
class Selection:
    """What was chosen, and what to expect of it.

    Attributes:
        name: The candidate that was chosen.
        candidate: The candidate itself.
        rule: The rule that chose it.
        score: Its expected score out of distribution by that rule, a fraction; ``None`` for ``gate``. It is the best of
            several, so a little too high.
        interval: A 95 % interval of it: over validation nodes, or over the domains that were left out.
        table: All candidates, best first: ``score``, ``low``, ``high``, ``rank`` (effective rank, an alarm for
            collapse, not used to choose), ``collapsed``, and ``readability`` of the domain.
        outcomes: What the score is of: logits and labels of the nodes that were held out, for ``leave_domain_out`` one
            entry per domain; empty for ``gate``.
    """

    name: str
    candidate: Candidate
    rule: str
    score: float | None
    interval: tuple[float, float] | None
    table: "DataFrame"
    outcomes: "tuple[Outcome, ...]" = ()


@dataclass(frozen=True)
class Outcome:
    """The logits and labels of the nodes that one part of a rule scores; of ``leave_domain_out`` also their domains."""

    logits: Tensor
    y: Tensor
    metric: str
    domains: tuple[int, ...] = ()

    def score(self) -> float:
        """Their score by the metric."""
        return score(self.logits, self.y, self.metric)


def select(
    candidates: Mapping[str, Candidate] | Sequence[Candidate],
    data: Data,
    *,
    rule: str | None = None,
    probe: LogisticProbe | None = None,
    seed: int = 0,
) -> Selection:
    """The candidate to use on data of other domains. No test label is read.

    - ``ood_val``: the best score on ``ood_val_mask``, which is of domains that are not trained on.
    - ``leave_domain_out``: the best mean score on a domain whose labels are left out, over all domains that have labels
      for training. More than ten domains are put into eight groups.
    - ``id_val``: the best score on ``id_val_mask``. It says little about other domains.
    - ``gate``: for no labels at all: the first steady candidate with ``center="auto"``, which decides by itself.

    Args:
        candidates: Fitted methods, or results of ``transform(data)`` or ``blocks(data)``; by name, or a list.
        data: A graph with ``y``, ``train_mask`` and for ``leave_domain_out`` ``domain_id``; for ``gate`` any graph.
        rule: One of :data:`RULES`; ``None`` is the first that ``data`` has labels for.
        probe: The head; by default :class:`LogisticProbe`.
        seed: Of all draws.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="covariate")
        >>> models = [m.fit(data) for m in (mario.RawFeatures(epochs=1), mario.Hops(epochs=1))]
        >>> found = mario.select(models, data, rule="leave_domain_out")
        >>> found.name, found.rule, list(found.table.index)
        ('hops', 'leave_domain_out', ['hops', 'raw-features'])
    """
    import pandas as pd

    check_graph(data)
    named = _named(candidates)
    rule = _rule_for(data) if rule is None else choose("rule", rule, RULES)
    if rule == "gate":
        return _by_gate(named, data, seed)
    seen = _without_test_labels(data, rule)
    rows, outcomes = {}, {}
    for name, candidate in named.items():
        z = _blocks(name, candidate, data)
        outcomes[name] = _outcomes(rule, z, seen, probe or LogisticProbe(), seed)
        rows[name] = {**_summary(outcomes[name], seed), **alarms(z, data.get("domain_id"), seed)}
    table = pd.DataFrame.from_dict(rows, orient="index").sort_values("score", ascending=False, kind="stable")
    best = str(table.index[0])
    low, high = float(table.loc[best, "low"]), float(table.loc[best, "high"])
    expected = float(table.loc[best, "score"])
    return Selection(best, named[best], rule, expected, (low, high), table, tuple(outcomes[best]))


def rank_me(z: Tensor) -> float:
    """The effective rank of an embedding, e^entropy of its singular values (RankMe, Garrido et al., ICML 2023).

    Example:
        >>> round(rank_me(torch.eye(4)), 3), round(rank_me(torch.ones(4, 4)), 3)
        (4.0, 1.0)
    """
    values = torch.linalg.svdvals(z.double())
    if not bool(values.sum() > 0):
        return 0.0
    shares = values[values > 0] / values.sum()
    return float((-(shares * shares.log()).sum()).exp())


def _named(candidates: Mapping[str, Candidate] | Sequence[Candidate]) -> dict[str, Candidate]:
    if isinstance(candidates, Mapping):
        named = dict(candidates)
    else:
        named = {}
        for place, candidate in enumerate(candidates):
            name = candidate.name if isinstance(candidate, Method) else f"candidate {place}"
            named[name if name not in named else f"{name} {place}"] = candidate
    if not named:
        raise MarioError("there is no candidate to select from")
    for name, candidate in named.items():
        if isinstance(candidate, Method) and candidate.supervised:
            raise MarioError(f"{name} learns from labels: select is for embeddings that do not")
        if not isinstance(candidate, Method | Tensor | BlockMatrix):
            raise MarioError(f"candidate {name} must be a fitted method or its embeddings, got {candidate!r}")
    return named


def _blocks(name: str, candidate: Candidate, data: Data) -> BlockMatrix:
    z = candidate.blocks(data) if isinstance(candidate, Method) else BlockMatrix.of(candidate)
    nodes = int(data.num_graphs) if "batch" in data else data.x.size(0)
    if z.shape[0] != nodes:
        raise MarioError(f"candidate {name} has {z.shape[0]} rows for {nodes} nodes of data")
    return z


def _rule_for(data: Data) -> str:
    data = labeled_parts(data)
    if data.get("y") is None or data.get("train_mask") is None:
        return "gate"
    if data.get("ood_val_mask") is not None:
        return "ood_val"
    return "leave_domain_out" if len(_labeled_domains(data)) > 1 else "id_val"


def _labeled_domains(data: Data) -> Tensor:
    domain = data.get("domain_id")
    return torch.empty(0) if domain is None else domain[data.train_mask & (domain >= 0)].unique()


def _without_test_labels(data: Data, rule: str) -> Data:
    """The labels and sets that a rule may use; all others are -1."""
    data = labeled_parts(data)
    if data.get("y") is None or data.get("train_mask") is None:
        raise MarioError(f"rule '{rule}' needs labels y of a train_mask: use rule='gate' without labels")
    sets = ("train", "id_val", *(("ood_val",) if rule == "ood_val" else ()))
    masks = {f"{name}_mask": data[f"{name}_mask"].cpu() for name in sets if data.get(f"{name}_mask") is not None}
    if rule != "leave_domain_out" and f"{rule}_mask" not in masks:
        raise MarioError(f"rule '{rule}' needs {rule}_mask; use another of {', '.join(RULES)}")
    known = torch.stack(list(masks.values())).any(0)
    seen = Data(y=data.y.cpu().masked_fill(~known, -1), **masks)
    seen.metric = data.get("metric") or "accuracy"
    seen.num_classes = int(data.get("num_classes") or seen.y.max() + 1)
    if data.get("domain_id") is not None:
        seen.domain_id = data.domain_id.cpu()
    return seen


def _outcomes(rule: str, z: BlockMatrix, seen: Data, probe: LogisticProbe, seed: int) -> list[Outcome]:
    if rule == "leave_domain_out":
        return _left_out(z, seen, probe, seed)
    held = seen[f"{rule}_mask"].nonzero().view(-1)
    train = seen.train_mask.nonzero().view(-1)
    (found,) = probe.fit_choose(
        z, (train, seen.y[train]), [(held, seen.y[held])], seen.num_classes, metric=seen.metric, seed=seed
    )
    return [Outcome(found.logits[held], seen.y[held], seen.metric)]


def _left_out(z: BlockMatrix, seen: Data, probe: LogisticProbe, seed: int) -> list[Outcome]:
    if len(_labeled_domains(seen)) < 2:
        raise MarioError(
            "leave_domain_out needs training labels of two domains in domain_id; with labels of one domain no promise "
            "about others can be made: use rule='id_val' or 'gate'"
        )
    labeled = seen.train_mask.clone()
    if "id_val_mask" in seen:
        labeled |= seen.id_val_mask
    nodes = (labeled & (seen.domain_id >= 0)).nonzero().view(-1)
    group = binned(seen.domain_id[nodes])
    found = []
    for one in group.unique():
        held, rest = nodes[group == one], nodes[group != one]
        train = rest[seen.train_mask[rest]]
        valid = rest[~seen.train_mask[rest]]
        if not is_defined(seen.y[held], seen.metric) or len(seen.y[train].unique()) < 2:
            continue
        validation = (valid, seen.y[valid]) if len(valid) and is_defined(seen.y[valid], seen.metric) else None
        (chosen,) = probe.fit_choose(
            z, (train, seen.y[train]), [validation], seen.num_classes, metric=seen.metric, seed=seed
        )
        domains = tuple(seen.domain_id[held].unique().tolist())
        found.append(Outcome(chosen.logits[held], seen.y[held], seen.metric, domains))
    if not found:
        raise MarioError(f"no domain can be left out: {seen.metric} needs labels of two classes in it and in the rest")
    return found


def _summary(outcomes: Sequence[Outcome], seed: int) -> dict[str, float]:
    """The mean score and its 95 % interval: over domains (Student's t), or for one set a bootstrap over its nodes."""
    from scipy import stats

    scores = [outcome.score() for outcome in outcomes]
    mean = sum(scores) / len(scores)
    if len(scores) > 1:
        spread = math.sqrt(sum((one - mean) ** 2 for one in scores) / (len(scores) - 1))
        # Of the next domain, not of the mean over all domains.
        half = float(stats.t.ppf(0.975, len(scores) - 1)) * spread * math.sqrt(1 + 1 / len(scores))
        return {"score": mean, "low": max(0.0, mean - half), "high": min(1.0, mean + half)}
    one, draws = outcomes[0], []
    generator = stream(seed, 0, 0, SELECTION)
    for _ in range(_RESAMPLES):
        drawn = torch.randint(len(one.y), (len(one.y),), generator=generator)
        if is_defined(one.y[drawn], one.metric):
            draws.append(score(one.logits[drawn], one.y[drawn], one.metric))
    ends = torch.tensor(draws or [mean], dtype=torch.float64).quantile(torch.tensor([0.025, 0.975]).double())
    return {"score": mean, "low": float(ends[0]), "high": float(ends[1])}


def alarms(z: BlockMatrix, domain: Tensor | None, seed: int) -> dict[str, Any]:
    """The effective rank of what is learned, whether it has collapsed, and how well the domain can be read from it."""
    drawn = torch.randperm(z.shape[0], generator=stream(seed, 1, 0, SELECTION))[:_ROWS]
    block = z["graph"] if "graph" in z else z[next(reversed(list(z)))]
    rows = block.rows(drawn).dense()
    rank = rank_me(rows - rows.mean(0)) if min(rows.shape) <= 2048 else math.nan
    found = None if domain is None else readability(Block(rows), domain.cpu()[drawn], seed=seed)
    return {"rank": rank, "collapsed": rank < _COLLAPSED, "readability": math.nan if found is None else found}


def _by_gate(named: dict[str, Candidate], data: Data, seed: int) -> Selection:
    import pandas as pd

    steady = [name for name, one in named.items() if isinstance(one, WithSteady) and one.center == "auto"]
    if not steady:
        raise MarioError(
            "without labels only the gate can choose: add a steady candidate with center='auto', such as "
            "mario.Steady(mario.GRACE())"
        )
    first = [steady[0], *(name for name in named if name != steady[0])]
    rows = {
        name: {"score": math.nan, **alarms(_blocks(name, named[name], data), data.get("domain_id"), seed)}
        for name in first
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    return Selection(steady[0], named[steady[0]], "gate", None, None, table)
