"""The graphs of an audit. A new one, and one of one's own that declares no split, are read as they are."""

import copy
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.datasets import find
from mario.datasets.folder import FolderDataset
from mario.embedder.reading import plan_digest
from mario.embedder.sources import Source, domain_names, read_source, with_masks
from mario.errors import MarioError
from mario.graphs import check_graph
from mario.graphs.card import GraphCard, read_card


def read_audited(given: str | os.PathLike[str], *, domain: str | None = None, seed: int = 0, **case: Any) -> Source:
    """The graph to audit. A folder that declares no split, by a column of domains: all of its labels are read.

    Args:
        given: A dataset's name, or the folder of a graph.
        domain: The attribute that says a node's domain.
        seed: Of the labels that are held out within domains.
        case: Shift, setting, split_seed and root, as in :func:`mario.embedder.read_source`.
    """
    dataset = find(given)
    if isinstance(dataset, FolderDataset) and not any(case.get(key) for key in ("shift", "setting", "split_seed")):
        columns = dataset.graph_card.domain_columns()
        name = domain or next(iter(columns), None)
        if dataset.graph_card.split is None and name in columns and "train_mask" not in dataset.read():
            found = _as_it_is(dataset, name)
            return replace(found, data=with_masks(found.data, seed))
    return read_source(given, domain=domain, seed=seed, **case)


def read_coming(given: str | os.PathLike[str] | Data, source: Source, *, root: Path | None = None) -> Source:
    """The new graph that ``given`` means, with its domains by the column that ``source`` has them by.

    Args:
        given: A dataset's name, the folder of a graph, or a graph itself.
        source: The graph that is audited; the features of a folder must have been made like its own.
        root: As in :func:`mario.load_dataset`.
    """
    if isinstance(given, Data):
        return read_source(given)
    dataset = find(given)
    if not isinstance(dataset, FolderDataset):
        return read_source(given, root=root)
    card = dataset.graph_card
    _check_features(card, source, str(given))
    return _as_it_is(dataset, source.domain)


def _as_it_is(dataset: FolderDataset, domain: str) -> Source:
    card = dataset.graph_card
    data = copy.copy(dataset.read())
    check_graph(data)
    values = data.get(domain) if domain else None
    if isinstance(values, Tensor) and values.dim() == 1 and not values.is_floating_point():
        data.domain_id = torch.where(values < 0, -1, values.long())
        data.domain = domain
        if named := card.domain_columns().get(domain):
            data.domain_names = list(named)
    data.name, data.metric = card.name, card.metric
    if card.classes:
        data.num_classes = card.classes
    return Source(
        data=data,
        name=card.name,
        source=card.folder.as_posix(),
        folder=card.folder,
        domain=domain,
        domains=domain_names(data, "data"),
        class_names=tuple(card.class_names or map(str, range(card.classes))),
        case={"domain": domain} if domain else {},
    )


def unseen_values(source: Source) -> tuple[str, ...]:
    """What the card of a new graph says of values that the training rows did not have."""
    if source.folder is None:
        return ()
    return tuple(note for note in read_card(source.folder).notes if "training rows do not have" in note)


def _check_features(card: GraphCard, source: Source, given: str) -> None:
    """The features of both must come from one plan: otherwise equal columns would mean different things."""
    if source.folder is None:
        return
    due = read_card(source.folder)
    if due.plan is None or card.plan is None:
        return
    if plan_digest(due.folder / due.plan) != plan_digest(card.folder / card.plan):
        raise MarioError(
            f"the features of {given} were fitted to its own data, not to that of {source.source}: build it with "
            f"`mario graph build ... --like {source.source}`"
        )
