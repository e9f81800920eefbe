"""What a graph is like, in the numbers that settings are picked from. No test label is read."""

import dataclasses

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.graphs.features import is_wide
from mario.graphs.graph_sets import count_graphs
from mario.graphs.paging import gather, mapping_of, release
from mario.training.streams import SELECTION, stream

_EDGES, _ROWS = 200_000, 5_000
_LEAST = 30  # edges between labeled nodes, for homophily
LABELED = ("train", "id_val")
"""The parts whose labels describe the graph."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphFacts:
    """A graph in numbers.

    Attributes:
        level: ``node``, or ``graph`` for a set of graphs: then labels and domains are of graphs.
        nodes, edges, features: Counts; an undirected edge counts twice.
        graphs: The number of graphs of a set, else 1.
        feature_kind: ``binary``, ``counts`` or ``numbers``.
        wide: Whether the features are sparse or as wide as those.
        density: Share of the entries of the features that are not zero.
        mean_degree: Edges per node.
        isolated: Share of the nodes without an edge.
        homophily: Of edges between labeled nodes: (share of the same class - chance) / (1 - chance); ``None`` without
            enough of them. 1 is only within classes, 0 as often as by chance.
        classes: Number of classes, 0 without labels.
        labeled: Labeled nodes that may be trained on.
        domains: Number of domains of all nodes, 0 without ``domain_id``.
        labeled_domains: Number of those that have labels for training.
        smallest_domain: Nodes of the smallest domain.
        in_memory: Whether features and edges are in memory rather than mapped from disk.
    """

    level: str
    nodes: int
    edges: int
    features: int
    graphs: int
    feature_kind: str
    wide: bool
    density: float
    mean_degree: float
    isolated: float
    homophily: float | None
    classes: int
    labeled: int
    domains: int
    labeled_domains: int
    smallest_domain: int
    in_memory: bool

    @classmethod
    def of(cls, data: Data) -> "GraphFacts":
        """The facts of ``data``, which `check_graph` has passed.

        Example:
            >>> import mario
            >>> facts = GraphFacts.of(mario.load_dataset("good-cbas", shift="covariate"))
            >>> facts.nodes, facts.domains, facts.feature_kind, round(facts.homophily, 1)
            (700, 7, 'numbers', 0.5)
        """
        x = data.x
        rows = _some(x.size(0), _ROWS)
        kind, density = _features(x, rows)
        nodes, edges = int(x.size(0)), int(data.edge_index.size(1))
        domain = data.get("domain_id")
        known = None if domain is None else domain[domain >= 0].unique(return_counts=True)
        labeled = labeled_rows(data)
        return cls(
            level="graph" if "batch" in data else "node",
            nodes=nodes,
            edges=edges,
            features=int(x.size(1)),
            graphs=count_graphs(data),
            feature_kind=kind,
            wide=is_wide(x),
            density=density,
            mean_degree=edges / max(1, nodes),
            isolated=_isolated(data),
            homophily=_homophily(data, labeled) if "batch" not in data else None,
            classes=0 if data.get("y") is None else int(data.get("num_classes") or data.y.max() + 1),
            labeled=0 if labeled is None else int(labeled.sum()),
            domains=0 if known is None else len(known[0]),
            labeled_domains=0 if known is None or labeled is None else len(domain[labeled & (domain >= 0)].unique()),
            smallest_domain=0 if known is None or not len(known[0]) else int(known[1].min()),
            in_memory=mapping_of(x) is None,
        )


def labeled_rows(data: Data, parts: tuple[str, ...] = LABELED) -> Tensor | None:
    """Which nodes, or graphs of a set, have a label that fitting may read; ``None`` if it has no labels at all."""
    masks = [data[f"{part}_mask"] for part in parts if data.get(f"{part}_mask") is not None]
    if data.get("y") is None or data.get("train_mask") is None:
        return None
    found: Tensor = torch.stack(masks).any(0) & (data.y >= 0)
    return found if found.any().item() else None


def _some(count: int, most: int) -> Tensor:
    """Up to ``most`` ids, ascending, the same each time."""
    if count <= most:
        return torch.arange(count)
    found: Tensor = torch.randint(count, (most,), generator=stream(0, 2, 0, SELECTION)).unique()
    return found


def _features(x: Tensor, rows: Tensor) -> tuple[str, float]:
    if x.layout == torch.sparse_csr:
        values, density = x.values(), x.values().numel() / max(1, x.size(0) * x.size(1))
    else:
        values = gather(x, rows) if mapping_of(x) is not None else x[rows]
        density = float((values != 0).float().mean())
    sample = values.reshape(-1)[:: max(1, values.numel() // 1_000_000)]
    if bool(((sample == 0) | (sample == 1)).all()):
        return "binary", density
    whole = bool((sample >= 0).all()) and bool((sample == sample.round()).all())
    return ("counts" if whole else "numbers"), density


def _isolated(data: Data) -> float:
    nodes = int(data.x.size(0))
    mapping = mapping_of(data.edge_index)
    if mapping is not None and mapping.starts is not None:
        starts = mapping.starts
        some = _some(nodes, _EDGES)
        return float((starts[some + 1] == starts[some]).float().mean())
    touched = torch.zeros(nodes, dtype=torch.bool)
    touched[data.edge_index.reshape(-1).cpu()] = True
    return 1.0 - float(touched.float().mean())


def _homophily(data: Data, labeled: Tensor | None) -> float | None:
    if labeled is None:
        return None
    some = _some(data.edge_index.size(1), _EDGES)
    source, target = data.edge_index[0][some], data.edge_index[1][some]
    release(data.edge_index)
    kept = labeled[source] & labeled[target] & (source != target)
    if int(kept.sum()) < _LEAST:
        return None
    first, second = data.y[source[kept]], data.y[target[kept]]
    counts = torch.cat([first, second]).bincount().double()
    chance = float((counts / counts.sum()).square().sum())
    same = float((first == second).double().mean())
    return None if chance == 1 else (same - chance) / (1 - chance)
