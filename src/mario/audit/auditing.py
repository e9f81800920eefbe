"""The whole audit of a graph: what shifts, and what to expect."""

import copy
import dataclasses
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

import mario
from mario.audit.coming import unseen_values
from mario.audit.scores import Scores, scores_of, settings_of
from mario.audit.shifts import LEVEL, Comparison, Reading, against_new, between_domains, read_embeddings
from mario.audit.stability import FIRM, Stability, stability_of
from mario.embedder import Progress, fit_graph, plan_of
from mario.embedder.bench import Bench, leavable_domains
from mario.embedder.clock import Clock
from mario.embedder.fitting import Watch
from mario.embedder.sources import Source
from mario.graphs.fingerprint import fingerprint
from mario.training.streams import SELECTION, stream

_HELD = 0.2  # share of the labels of a validation domain


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphAbout:
    """A graph that was audited, in numbers."""

    name: str
    source: str
    nodes: int
    edges: int
    features: int
    classes: int
    labeled: int
    domain: str
    domains: int
    fingerprint: str

    @classmethod
    def of(cls, source: Source) -> "GraphAbout":
        """The numbers of a source."""
        data = source.data
        y, ids = data.get("y"), data.get("domain_id")
        return cls(
            name=source.name,
            source=source.source,
            nodes=int(data.x.size(0)),
            edges=int(data.edge_index.size(1)),
            features=int(data.x.size(1)),
            classes=len(source.class_names),
            labeled=0 if y is None else int((y >= 0).sum()),
            domain=source.domain,
            domains=0 if ids is None else len(ids[ids >= 0].unique()),
            fingerprint=fingerprint(data),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit found.

    Attributes:
        graph: The graph.
        new: The new graph, or ``None``.
        between: What shifts between domains; ``None`` without two domains.
        against: What shifts between the graph and the new one; ``None`` without a new one.
        scores: How candidates do, and what to expect; ``None`` if nothing was trained.
        reading: How well the domain is read from the chosen embeddings; ``None`` without two domains.
        unseen: What the new graph has that the table of the graph had not, from its card.
        stability: How firm each node is; ``None`` if nothing was trained or the time was over.
        seed: Of all draws.
        seconds: Wall-clock seconds.
        versions: Of mario and Python.
    """

    graph: GraphAbout
    new: GraphAbout | None
    between: Comparison | None
    against: Comparison | None
    scores: Scores | None = None
    reading: Reading | None = None
    stability: Stability | None = None
    unseen: tuple[str, ...] = ()
    seed: int
    seconds: float
    versions: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """Everything but the stability of single nodes, for ``--json``."""
        from mario.audit.verdict import verdict_of

        found = {"format": 1, "verdict": verdict_of(self), "level": LEVEL, **dataclasses.asdict(self)}
        for key in ("between", "against"):
            comparison: Comparison | None = getattr(self, key)
            if comparison is not None:
                found[key]["found"] = comparison.found
                found[key]["shifts"] = [one.column for one in comparison.shifts]
        if self.stability is not None:
            sides = {"nodes": self.stability.nodes, "new": self.stability.new}
            found["stability"] = {"kind": self.stability.kind, "models": self.stability.models}
            found["stability"] |= {key: about_firmness(one) for key, one in sides.items() if one}
        return found


def about_firmness(shares: tuple[float, ...]) -> dict[str, float]:
    """The mean stability of nodes, and the share of those that are firm."""
    return {"mean": sum(shares) / len(shares), "firm": sum(one >= FIRM for one in shares) / len(shares)}


def audit_graph(
    source: Source,
    new: Source | None = None,
    *,
    training: bool = True,
    given: Mapping[str, Any] | None = None,
    folder: Path | None = None,
    budget: float | None = None,
    seed: int = 0,
    device: str = "auto",
    watch: Watch | None = None,
) -> Audit:
    """Audit a graph, and a new one that it is to be used on.

    Args:
        source: The graph.
        new: A graph with the same columns.
        training: Whether to train and score candidates; without it only shifts are looked for.
        given: Settings of the fit that are not to be picked: see :func:`mario.embedder.picking.make_plan`.
        folder: Where to keep what is needed to go on after a stop; ``None`` for nowhere.
        budget: Seconds for everything, about.
        seed: Of all draws.
        device: ``auto``, ``cpu`` or ``cuda``.
        watch: Called with the :class:`mario.embedder.Progress`.

    Example:
        >>> from mario.embedder import read_source
        >>> found = audit_graph(read_source("good-cbas", shift="covariate"), training=False)
        >>> found.between.found
        True
    """
    watch = watch or (lambda progress: None)
    clock = Clock(budget)
    source = dataclasses.replace(source, data=with_validation(source.data, seed))
    count = leavable_domains(source.data)
    asked = settings_of(source, given, count > 1)
    if training:
        plan_of(source.data, asked, seed=seed)  # settings that are wrong are refused before anything takes time
    watch(Progress("comparing", "domains", 0, 1))
    between = between_domains(source, seed=seed)
    against = None
    if new is not None:
        watch(Progress("comparing", "the new graph", 0, 1))
        against = against_new(source, new.data, name=new.name, seed=seed)
    scores = reading = stability = None
    if training:
        # A third of the budget is kept for what comes after the fit.
        left = None if budget is None else max(1.0, clock.left() * 2 / 3)
        fitted = fit_graph(source.data, folder=folder, given=asked, budget=left, seed=seed, device=device, watch=watch)
        why = (
            f"labels of {count} domains"
            if fitted.plan.rule == "leave_domain_out"
            else Bench(source.data, seed=seed).why
        )
        scores = scores_of(fitted, source, why)
        watch(Progress("reading", fitted.chosen, 0, 1))
        reading = read_embeddings(source, fitted.blocks, fitted.chosen, seed=seed)
        watch(Progress("voting", fitted.chosen, 0, 1))
        if clock.left() > 0.1 * (budget or 0.0):
            pair = None if new is None else _aligned(source, new)
            stability = stability_of(fitted, source.data, pair, seed=seed, going=lambda: clock.left() > 0)
    return Audit(
        graph=GraphAbout.of(source),
        new=None if new is None else GraphAbout.of(new),
        between=between,
        against=against,
        scores=scores,
        reading=reading,
        stability=stability,
        unseen=() if new is None else unseen_values(new),
        seed=seed,
        seconds=clock.spent(),
        versions={"mario": mario.__version__, "python": platform.python_version()},
    )


def with_validation(data: Data, seed: int = 0) -> Data:
    """A graph whose validation domains train as well, as each domain is left out once anyway; the test stays apart.

    One in five of their labeled nodes is for validation within domains.
    """
    part = data.get("ood_val_mask")
    if part is None or data.get("train_mask") is None or data.get("domain_id") is None or "visible_mask" in data:
        return data
    data = copy.copy(data)
    draws = stream(seed, 5, 0, SELECTION)
    held = part & (torch.rand(len(part), generator=draws) < _HELD).to(part.device)
    inside = data.get("id_val_mask")
    data.id_val_mask = held if inside is None else inside | held
    data.train_mask = data.train_mask | (part & ~held)
    del data.ood_val_mask
    return data


def _aligned(source: Source, new: Source) -> Data:
    """The new graph with the numbers that its domains have in the graph; others follow behind."""
    data = copy.copy(new.data)
    if data.get("domain_id") is None or not new.domains:
        return data
    known = {name: place for place, name in enumerate(source.domains)}
    places = [known.get(name, len(known) + place) for place, name in enumerate(new.domains)]
    data.domain_id = torch.where(data.domain_id < 0, -1, torch.tensor(places)[data.domain_id.clamp(min=0)])
    return data
