"""How firm the prediction of each node is, or its embedding."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.embedder import Fitted
from mario.embedder.compact import compact
from mario.embedder.facts import labeled_rows
from mario.evaluation.block_classifier import BlockClassifier
from mario.graphs import BlockMatrix
from mario.methods import WithSteady
from mario.methods.readability import binned

DROPPED, MOST, FEWEST = 0.2, 8, 4
"""Share of the edges that is dropped, and the most and the fewest models that vote."""
FIRM = 0.75
"""A node is firm if this share of the models agrees with the whole one."""
_ROWS = 5_000  # labeled nodes that a head is fitted to


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stability:
    """The stability of each node, from 0 to 1.

    Attributes:
        kind: ``votes``: the share of models that predict the class that the whole model predicts; each model learns
            without the labels of one domain (or of a fifth of the nodes) and sees the graph without a fifth of its
            edges. ``likeness``: the mean cosine of the embedding with that without a fifth of the edges, where there
            are no labels.
        models: How many there were.
        nodes: Of the graph.
        new: Of the new graph; empty without one.
        predicted: The class that the whole model predicts for each node of the new graph, or of the graph without one.
    """

    kind: str
    models: int
    nodes: tuple[float, ...]
    new: tuple[float, ...]
    predicted: tuple[int, ...]


def stability_of(
    fitted: Fitted,
    data: Data,
    new: Data | None = None,
    *,
    seed: int = 0,
    going: Callable[[], bool] = lambda: True,
) -> Stability:
    """The stability of the nodes of a graph, and of a new one.

    Args:
        fitted: A fit of ``data``.
        data: The graph.
        new: A new graph.
        seed: Of edges and nodes.
        going: Asked after each model beyond the fourth whether there is time for another.
    """
    model = fitted.model
    graphs = [data] if new is None else [data, new]
    whole = [fitted.blocks if one is data else blocks_of(model, one) for one in graphs]
    train = labeled_rows(data, ("train",))
    if train is None or len(data.y[train].unique()) < 2:
        return _likeness(model, graphs, whole, seed)
    rows = train.nonzero().view(-1).cpu()
    draws = torch.Generator().manual_seed(seed)
    if len(rows) > _ROWS:
        rows = rows[torch.randperm(len(rows), generator=draws)[:_ROWS]].sort().values
    y = data.y.cpu()[rows].numpy()
    head = BlockClassifier(metric="accuracy", seed=seed).fit(whole[0].rows(rows), y)
    predicted = [head.predict(z) for z in whole]
    agreed = [np.zeros(len(one)) for one in predicted]
    count = 0
    for kept in _parts(data, rows, draws):
        if count >= FEWEST and not going():
            break
        if len(np.unique(y[kept])) < 2:
            continue
        one = BlockClassifier(C=_penalty(head), seed=seed).fit(whole[0].rows(rows[torch.from_numpy(kept)]), y[kept])
        for place, graph in enumerate(graphs):
            z = blocks_of(model, dropped(graph, draws))
            agreed[place] += one.predict(z) == predicted[place]
        count += 1
    shares = [tuple((one / max(1, count)).tolist()) for one in agreed]
    return Stability(
        kind="votes",
        models=count,
        nodes=shares[0],
        new=shares[1] if len(shares) > 1 else (),
        predicted=tuple(int(one) for one in predicted[-1]),
    )


def blocks_of(model: WithSteady, data: Data) -> BlockMatrix:
    """The embeddings of any graph; nodes of unknown domain count as such."""
    import warnings

    data = copy.copy(data)
    rows = int(data.num_graphs) if "batch" in data else int(data.x.size(0))
    if data.get("domain_id") is None:
        data.domain_id = torch.full((rows,), -1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* of the graph will not be used", category=UserWarning)
        return model.blocks(data)


def dropped(data: Data, draws: torch.Generator) -> Data:
    """``data`` without a fifth of its edges; both directions of an edge go together."""
    source, target = data.edge_index
    low, high = torch.minimum(source, target), torch.maximum(source, target)
    _, place = (low * int(data.x.size(0)) + high).unique(return_inverse=True)
    keep = (torch.rand(int(place.max()) + 1 if len(place) else 0, generator=draws) >= DROPPED)[place]
    data = copy.copy(data)
    data.edge_index = data.edge_index[:, keep]
    for key in ("edge_weight", "edge_attr"):
        if data.get(key) is not None:
            data[key] = data[key][keep]
    return data


def _parts(data: Data, rows: Tensor, draws: torch.Generator) -> list[Any]:
    """The rows that each model learns from: all domains but one, or four fifths."""
    domain = data.get("domain_id")
    groups = torch.zeros(len(rows), dtype=torch.long)
    if domain is not None:
        known = domain.cpu()[rows]
        groups[known >= 0] = binned(known[known >= 0]) + 1 if bool((known >= 0).any()) else groups[known >= 0]
    if len(groups.unique()) < FEWEST:
        more = torch.randint(5, (len(rows),), generator=draws)
        return [(groups != one).numpy() for one in groups.unique() if len(groups.unique()) > 1] + [
            (more != one).numpy() for one in range(5)
        ]
    return [(groups != one).numpy() for one in groups.unique()[:MOST]]


def _penalty(head: BlockClassifier) -> float:
    found = head.C_
    assert isinstance(found, float | int)  # of one regression on all blocks
    return float(found)


def _likeness(model: WithSteady, graphs: list[Data], whole: list[BlockMatrix], seed: int) -> Stability:
    draws = torch.Generator().manual_seed(seed)
    found = []
    for graph, blocks in zip(graphs, whole, strict=True):
        z = compact(blocks).double()
        center = z.mean(0)
        total = torch.zeros(len(z), dtype=torch.float64)
        for _ in range(FEWEST):
            other = compact(blocks_of(model, dropped(graph, draws))).double()
            total += torch.cosine_similarity(z - center, other - center, dim=1)
        found.append(tuple((total / FEWEST).clamp(0, 1).tolist()))
    return Stability(
        kind="likeness", models=FEWEST, nodes=found[0], new=found[1] if len(found) > 1 else (), predicted=()
    )
