"""The whole audit of a graph: what shifts, and what to expect."""

import dataclasses
import platform
import time
from collections.abc import Callable
from typing import Any

import mario
from mario.audit.shifts import LEVEL, Comparison, against_new, between_domains
from mario.embedder.sources import Source
from mario.graphs.fingerprint import fingerprint

Say = Callable[[str], None]


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
        seed: Of all draws.
        seconds: Wall-clock seconds.
        versions: Of mario and Python.
    """

    graph: GraphAbout
    new: GraphAbout | None
    between: Comparison | None
    against: Comparison | None
    seed: int
    seconds: float
    versions: dict[str, str]

    def as_json(self) -> dict[str, Any]:
        """Everything, for ``--json``."""
        from mario.audit.verdict import verdict_of

        found = {"format": 1, "verdict": verdict_of(self), "level": LEVEL, **dataclasses.asdict(self)}
        for key in ("between", "against"):
            comparison: Comparison | None = getattr(self, key)
            if comparison is not None:
                found[key]["found"] = comparison.found
                found[key]["shifts"] = [one.column for one in comparison.shifts]
        return found


def audit_graph(
    source: Source,
    new: Source | None = None,
    *,
    seed: int = 0,
    say: Say | None = None,
) -> Audit:
    """Audit a graph, and a new one that it is to be used on.

    Args:
        source: The graph.
        new: A graph with the same columns.
        seed: Of all draws.
        say: Called with what is being done.

    Example:
        >>> from mario.embedder import read_source
        >>> found = audit_graph(read_source("good-cbas", shift="covariate"))
        >>> found.between.found
        True
    """
    say = say or (lambda doing: None)
    began = time.monotonic()
    say("comparing domains")
    between = between_domains(source, seed=seed)
    against = None
    if new is not None:
        say("comparing the new graph")
        against = against_new(source, new.data, name=new.name, seed=seed)
    return Audit(
        graph=GraphAbout.of(source),
        new=None if new is None else GraphAbout.of(new),
        between=between,
        against=against,
        seed=seed,
        seconds=time.monotonic() - began,
        versions={"mario": mario.__version__, "python": platform.python_version()},
    )
