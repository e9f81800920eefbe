"""What shifts between the domains of a graph, or between a graph and a new one, before anything is trained."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from mario.audit.distance import share_beyond
from mario.audit.measures import Builder, Feature, Measures
from mario.audit.names import features_of
from mario.audit.permuting import DRAWS, Tested, run_tests
from mario.audit.reading import Reader
from mario.audit.sample import EDGES, Sample, sample
from mario.audit.units import unit_size
from mario.embedder.compact import compact
from mario.embedder.sources import Source
from mario.errors import MarioError
from mario.graphs import BlockMatrix
from mario.methods.readability import binned

Array = np.ndarray[Any, Any]

LEVEL = 0.02
"""The chance that anything at all is called a shift where nothing shifts."""
_SMALLEST = 10  # nodes of a domain that is compared
_WIDE = 256  # columns of the features that a classifier sees; of more, as many random sums
READERS = ("features", "structure", "neighbors")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shift:
    """A column, and the domain that differs most from the others in it.

    Attributes:
        column: Its name.
        kind: ``feature``, ``structure``, ``label`` or ``missing``.
        domain: The domain.
        event: What happens to more or fewer of its nodes.
        share, rest: The shares of its nodes and of the others'.
        mean, rest_mean: The means, where the column has numbers.
        deviations: The difference of the means in standard deviations of the column.
        z: By how many standard deviations of chance it stands out.
        p: How often chance alone makes any column stand out as much.
    """

    column: str
    kind: str
    domain: str
    event: str
    share: float
    rest: float
    mean: float | None
    rest_mean: float | None
    deviations: float | None
    z: float
    p: float

    @property
    def found(self) -> bool:
        """Whether it is called a shift."""
        return self.p <= LEVEL

    @property
    def size(self) -> float:
        """The difference of the shares, from 0 to 1."""
        return abs(self.share - self.rest)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """How well the domain of a node is read by a classifier.

    Attributes:
        what: What it reads: see :data:`READERS`, or the name of embeddings.
        accuracy: The mean over domains of the share of nodes that are read right.
        readable: (accuracy - chance) / (1 - chance), at least 0.
        p: How often chance alone does as well; corrected like that of a column.
    """

    what: str
    accuracy: float
    readable: float
    p: float

    @property
    def found(self) -> bool:
        """Whether it is called a shift."""
        return self.p <= LEVEL


@dataclasses.dataclass(frozen=True, kw_only=True)
class DomainFacts:
    """A domain in numbers.

    Attributes:
        name: Of the domain.
        nodes, labeled: Counts.
        degree: Neighbors per node.
        isolated: Share of nodes without neighbors.
        components: Connected components that have nodes of the domain.
        small: Share of the nodes in components of fewer than ten.
        homophily: Share of labeled neighbors of the same class; ``None`` without labels.
        labels: Share of each class among the labels.
        beyond: Share of the nodes that are farther from the other domains than 95 % of their nodes from each other.
        farther: The median distance, as a multiple of theirs.
    """

    name: str
    nodes: int
    labeled: int
    degree: float
    isolated: float
    components: int
    small: float
    homophily: float | None
    labels: tuple[float, ...]
    beyond: float | None
    farther: float | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """Domains beside each other.

    Attributes:
        what: ``domains`` or ``new graph``.
        domains: Facts of each; of ``new graph`` the training graph and the new one.
        columns: The largest difference of each column, those that are shifts first, by size.
        readings: Classifiers of the domain.
        scheme: What was exchanged between domains: ``nodes``, ``blocks`` or ``graphs``.
        units: How many of these there were.
        draws: How often domains were dealt to them.
        left_out: Domains with too few nodes to be compared.
        skipped: Columns that are the same everywhere.
        unseen: Of a new graph, features that no training node has, and the share of new nodes that have them.
        class_names: Of ``labels``.
    """

    what: str
    domains: tuple[DomainFacts, ...]
    columns: tuple[Shift, ...]
    readings: tuple[Reading, ...]
    scheme: str
    units: int
    draws: int
    left_out: tuple[str, ...]
    skipped: int
    unseen: tuple[tuple[str, float], ...] = ()
    class_names: tuple[str, ...] = ()

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """The columns that shift, by size."""
        return tuple(one for one in self.columns if one.found)

    @property
    def found(self) -> bool:
        """Whether anything shifts."""
        return bool(self.shifts) or any(one.found for one in self.readings)


def between_domains(source: Source, *, draws: int = DRAWS, seed: int = 0) -> Comparison | None:
    """Compare the domains of a graph; ``None`` if it has no two domains.

    Labels are those that training may read.

    Example:
        >>> import mario
        >>> from mario.embedder import read_source
        >>> found = between_domains(read_source("good-cbas", shift="covariate"), draws=199)
        >>> found.shifts[0].kind
        'feature'
    """
    data = source.data
    codes, names, left_out = domains_of(source)
    if len(names) < 2:
        return None
    counts = np.bincount(codes[codes >= 0])
    keep = min(1.0, EDGES / max(1, int(data.edge_index.size(1))))
    drawn = sample(data, codes, unit_size(counts), keep=keep, seed=seed)
    return _compare("domains", [drawn], drawn.domain, names, source, left_out, draws, seed)


def against_new(
    source: Source,
    new: Data,
    *,
    name: str = "new graph",
    fresh: Array | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Comparison:
    """Compare a graph with a new one, which has the same columns; of the new one, all nodes or those in ``fresh``.

    Example:
        >>> import mario
        >>> from mario.embedder import read_source
        >>> same = read_source("good-cbas", shift="covariate")
        >>> against_new(same, same.data, draws=199).found
        False
    """
    data = source.data
    if data.x.size(1) != new.x.size(1):
        raise MarioError(
            f"the new graph has {new.x.size(1)} features, and {source.name} has {data.x.size(1)}: build it with "
            f"`mario graph build ... --like {source.source}`"
        )
    codes = None if fresh is None else np.where(fresh, 0, -1)
    counts = np.array([data.x.size(0), new.x.size(0) if fresh is None else fresh.sum()])
    keep = min(1.0, EDGES / max(1, int(data.edge_index.size(1)), int(new.edge_index.size(1))))
    size = unit_size(counts)
    parts = [sample(one, of, size, keep=keep, seed=seed) for one, of in ((data, None), (new, codes))]
    # Labels of the new graph, if there are any, are those that a promise is about.
    parts[1] = dataclasses.replace(
        parts[1],
        label=np.full(len(parts[1]), -1),
        homophily=np.full(len(parts[1]), np.nan),
        unit=parts[1].unit + parts[0].unit.max() + 1,
    )
    side = np.repeat([0, 1], [len(part) for part in parts])
    return _compare("new graph", parts, side, (source.name, name), source, (), draws, seed)


def read_embeddings(source: Source, z: BlockMatrix, name: str, *, draws: int = DRAWS, seed: int = 0) -> Reading | None:
    """How well the domain is read from embeddings, by the test of :func:`between_domains`; ``None`` without domains.

    It is a test of its own: p is not corrected for the columns.
    """
    data = source.data
    codes, names, _ = domains_of(source)
    if len(names) < 2 or "batch" in data:
        return None
    keep = min(1.0, EDGES / max(1, int(data.edge_index.size(1))))
    drawn = sample(data, codes, unit_size(np.bincount(codes[codes >= 0])), keep=keep, seed=seed)
    unit = np.unique(drawn.unit, return_inverse=True)[1]
    rows = _narrow(compact(z.rows(torch.from_numpy(drawn.nodes))).numpy())
    reader = Reader(name, rows, unit, seed=seed)
    empty = Builder(len(drawn)).build()
    return _reading(reader, run_tests(empty, [reader], unit, drawn.domain, draws=draws, seed=seed), 0, len(names))


def domains_of(source: Source) -> tuple[Array, tuple[str, ...], tuple[str, ...]]:
    """The domain of each node, the names of those that are compared, and those of domains that are too small.

    More than ten domains are put into eight groups of neighboring ones.
    """
    data = source.data
    ids = data.get("domain_id")
    if ids is None:
        return np.full(int(data.x.size(0)), -1), (), ()
    ids = ids.cpu()[data.batch.cpu()] if "batch" in data else ids.cpu()
    known = ids >= 0
    codes = np.full(len(ids), -1)
    if not bool(known.any()):
        return codes, (), ()
    grouped = binned(ids[known])
    pairs = torch.stack([grouped, ids[known]]).unique(dim=1)
    names, left_out, place = [], [], 0
    inside = grouped.numpy()
    mapped = np.full(len(inside), -1)
    for group in range(int(grouped.max()) + 1):
        members = [int(one) for one in pairs[1][pairs[0] == group]]
        first, last = (_name(source, one) for one in (members[0], members[-1]))
        name = first if len(members) == 1 else f"{first} to {last}"
        if (inside == group).sum() < _SMALLEST:
            left_out.append(name)
            continue
        mapped[inside == group] = place
        names.append(name)
        place += 1
    codes[known.numpy()] = mapped
    return codes, tuple(names), tuple(left_out)


def _name(source: Source, domain: int) -> str:
    return source.domains[domain] if domain < len(source.domains) else str(domain)


def _compare(
    what: str,
    parts: Sequence[Sample],
    side: Array,
    names: Sequence[str],
    source: Source,
    left_out: Sequence[str],
    draws: int,
    seed: int,
) -> Comparison:
    unit = np.unique(np.concatenate([part.unit for part in parts]), return_inverse=True)[1]
    features = features_of(source.data, source)
    x = parts[0].x if len(parts) == 1 else _stacked([part.x for part in parts])
    hops = np.vstack([part.hops for part in parts])
    structure = {key: np.concatenate([part.structure[key] for part in parts]) for key in _shared(parts)}
    measures = _measures(parts, x, features, structure, source.class_names)
    readers = [
        Reader("features", _narrow(x), unit, seed=seed),
        Reader("structure", np.stack(list(structure.values()), 1), unit, seed=seed),
        Reader("neighbors", hops, unit, seed=seed),
    ]
    tested = run_tests(measures, readers, unit, side, draws=draws, seed=seed)
    distances = _distances(side, unit, hops, what, seed)
    return Comparison(
        what=what,
        domains=tuple(_facts(name, place, parts, side, distances.get(place)) for place, name in enumerate(names)),
        columns=_rows(measures, tested, names, side),
        readings=tuple(_reading(reader, tested, place, len(names)) for place, reader in enumerate(readers)),
        scheme=parts[-1].scheme,
        units=int(unit.max()) + 1,
        draws=draws,
        left_out=tuple(left_out),
        skipped=len(features) - sum(kind in ("feature", "missing") for kind in measures.kinds),
        unseen=_unseen(x, side, features) if what == "new graph" else (),
        class_names=source.class_names,
    )


def _reading(reader: Reader, tested: Tested, place: int, domains: int) -> Reading:
    accuracy = float(tested.accuracy[place])
    return Reading(
        what=reader.name,
        accuracy=accuracy,
        readable=max(0.0, (accuracy - 1 / domains) / (1 - 1 / domains)),
        p=float(tested.readers_p[place]),
    )


def _shared(parts: Sequence[Sample]) -> list[str]:
    return [key for key in parts[0].structure if all(key in part.structure for part in parts)]


def _stacked(parts: Sequence[Any]) -> Any:
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_matrix(part) for part in parts], "csr")
    return np.vstack(parts)


def _narrow(x: Any) -> Array:
    """The features, or random sums of them if they are many."""
    if x.shape[1] <= _WIDE:
        return np.asarray(x.todense() if sparse.issparse(x) else x)
    signs = np.random.default_rng(x.shape[1]).choice(np.array([-1, 1], np.float32), (x.shape[1], _WIDE))
    return np.asarray(x @ signs)


def _measures(
    parts: Sequence[Sample],
    x: Any,
    features: Sequence[Feature],
    structure: dict[str, Array],
    class_names: Sequence[str],
) -> Measures:
    builder = Builder(x.shape[0])
    builder.features(x, features)
    builder.numbers("degree", "structure", np.concatenate([part.degree for part in parts]))
    if "clustering" in structure:
        builder.numbers("clustering", "structure", structure["clustering"])
    builder.yes("in a component of fewer than 10 nodes", "structure", np.concatenate([part.small for part in parts]))
    builder.numbers("homophily", "structure", np.concatenate([part.homophily for part in parts]))
    label = np.concatenate([part.label for part in parts])
    if len(parts) == 1:
        builder.categories("label", "label", label, class_names or [str(one) for one in range(label.max() + 1)])
        builder.yes("has a label", "label", parts[0].labeled)
    return builder.build()


def _rows(measures: Measures, tested: Tested, names: Sequence[str], side: Array) -> tuple[Shift, ...]:
    """Of each column the domain that stands out most; of two domains the second."""
    found = []
    compared = [1] if len(names) == 2 else list(range(len(names)))
    starts = np.searchsorted(measures.owner, np.arange(len(measures.names) + 1))
    for column, name in enumerate(measures.names):
        row = int(tested.z[:, column].argmax())
        domain = compared[row]
        events = slice(starts[column], starts[column + 1])
        event = starts[column] + int(np.abs(tested.difference[row, events]).argmax())
        share, difference = float(tested.share[row, event]), float(tested.difference[row, event])
        mean = rest = deviations = None
        values = measures.values[column]
        if values is not None:
            inside, others = values[(side == domain) & ~np.isnan(values)], values[(side != domain) & ~np.isnan(values)]
            spread = float(np.nanstd(values))
            if len(inside) and len(others) and spread > 0:
                mean, rest = float(inside.mean()), float(others.mean())
                deviations = (mean - rest) / spread
        found.append(
            Shift(
                column=name,
                kind=measures.kinds[column],
                domain=names[domain],
                event=measures.events[event],
                share=share,
                rest=share - difference,
                mean=mean,
                rest_mean=rest,
                deviations=deviations,
                z=float(tested.z[row, column]),
                p=float(tested.p[row, column]),
            )
        )
    return tuple(sorted(found, key=lambda one: (not one.found, -one.size if one.found else -one.z, one.column)))


def _facts(
    name: str, place: int, parts: Sequence[Sample], side: Array, distance: tuple[float, float] | None
) -> DomainFacts:
    """A domain of one graph, or one of two graphs."""
    part, code = (parts[0], place) if len(parts) == 1 else (parts[place], 0)
    here = part.domain == code
    label, homophily = part.label[here], part.homophily[here]
    known = label[label >= 0]
    classes = max(int(one.label.max()) for one in parts) + 1
    return DomainFacts(
        name=name,
        nodes=int(part.totals[code]),
        labeled=round(len(known) / max(1, here.sum()) * int(part.totals[code])),
        degree=float(part.degree[here].mean()),
        isolated=float((part.degree[here] == 0).mean()),
        components=int(part.components[code]),
        small=float(part.small[here].mean()),
        homophily=float(np.nanmean(homophily)) if (~np.isnan(homophily)).any() else None,
        labels=tuple((np.bincount(known, minlength=classes) / len(known)).tolist()) if len(known) else (),
        beyond=None if distance is None else distance[0],
        farther=None if distance is None else distance[1],
    )


def _distances(side: Array, unit: Array, hops: Array, what: str, seed: int) -> dict[int, tuple[float, float]]:
    """How far each domain is from the others; of a new graph, how far that is from the training graph."""
    places = [1] if what == "new graph" else range(int(side.max()) + 1)
    return {
        place: share_beyond(hops[side != place], unit[side != place], hops[side == place], seed=seed)
        for place in places
    }


def _unseen(x: Any, side: Array, features: Sequence[Feature]) -> tuple[tuple[str, float], ...]:
    """Features that are 0 for all training nodes and not for all new ones."""
    there = [np.asarray((part != 0).mean(0)).ravel() for part in (x[side == 0], x[side == 1])]
    new = ((there[0] == 0) & (there[1] > 0)).nonzero()[0]
    names = {
        column: feature.labels[place] if place < len(feature.labels) else feature.name
        for feature in features
        for place, column in enumerate(feature.columns)
    }
    found = [(names[int(column)], float(there[1][column])) for column in new]
    return tuple(sorted(found, key=lambda one: -one[1]))
