"""Graphs to fit and to embed: a dataset's name, a folder, or a `Data`; with domains, labels and their names."""

import copy
import dataclasses
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.datasets import find, load_dataset
from mario.datasets.folder import FolderDataset
from mario.embedder.facts import labeled_rows
from mario.errors import MarioError
from mario.graphs import check_graph
from mario.graphs.rules import PARTS, SplitRule
from mario.training.streams import SELECTION, stream

_HELD = 0.2  # share of the labels that is held out where no split says which


@dataclasses.dataclass(frozen=True)
class Source:
    """A graph, and the names of what it numbers.

    Attributes:
        data: The graph, with ``train_mask`` where it has labels and ``domain_id`` where domains are known.
        name: What it is called.
        source: What was given: a dataset's name, a path, or ``"data"``.
        folder: The folder of a graph of one's own, else ``None``.
        domain: The attribute that says the domain, or ``""``.
        domains: The name of each domain, by its number.
        class_names: The name of each class, by its number; empty without labels.
        case: Domain, shift, setting and split seed that were given or are the dataset's.
    """

    data: Data
    name: str
    source: str
    folder: Path | None
    domain: str
    domains: tuple[str, ...]
    class_names: tuple[str, ...]
    case: dict[str, Any]


def read_source(
    given: str | os.PathLike[str] | Data,
    *,
    domain: str | None = None,
    shift: str | None = None,
    setting: str | None = None,
    split_seed: int = 0,
    root: Path | None = None,
    seed: int = 0,
) -> Source:
    """The graph that ``given`` means, split where labels allow it.

    Args:
        given: A dataset's name, the folder of a graph, or a graph itself.
        domain: The attribute that says a node's domain.
        shift: As in :func:`mario.load_dataset`, like the next three; not for a ``Data``.
        setting: ``transductive`` or ``inductive``.
        split_seed: Of the split.
        root: A folder of raw files.
        seed: Of the labels that are held out where no split says which.
    """
    if isinstance(given, Data):
        if shift or setting or split_seed or root:
            raise MarioError("shift, setting, split_seed and root are for datasets: a Data has its own masks")
        return _source(with_masks(_with_domain(given, domain), seed), "data", None, domain, {})
    dataset = find(given)
    folder = dataset.folder if isinstance(dataset, FolderDataset) else None
    case: dict[str, Any] = {"domain": domain, "shift": shift, "setting": setting, "split_seed": split_seed}
    if isinstance(dataset, FolderDataset) and isinstance(dataset.graph_card.split, SplitRule):
        bare = dataset.read()
        if bare.get("y") is None or not bool((bare.y >= 0).any()):  # no split without labels, and none is needed
            domain = domain or next((name for name in dataset.card.domains if name in bare), None)
            return _source(_with_domain(bare, domain), dataset.card.identity, folder, domain, case | {"domain": domain})
    data = load_dataset(given, domain=domain, shift=shift, setting=setting, split_seed=split_seed, root=root)
    case |= {key: data[key] for key in ("domain", "shift", "setting") if isinstance(data.get(key), str)}
    data = with_masks(data, seed)
    return _source(data, dataset.card.identity, folder, case["domain"], case)


def _source(data: Data, source: str, folder: Path | None, domain: str | None, case: dict[str, Any]) -> Source:
    check_graph(data)
    classes = 0 if labeled_rows(data, ("train",)) is None else int(data.get("num_classes") or data.y.max() + 1)
    names = tuple(str(name) for name in data.get("class_names") or range(classes)) if classes else ()
    if len(names) != classes:
        raise MarioError(f"class_names must have a name for each of {classes} classes, got {len(names)}")
    return Source(
        data=data,
        name=str(data.get("name") or "graph"),
        source=source,
        folder=folder,
        domain=domain or str(data.get("domain") or ""),
        domains=domain_names(data, source),
        class_names=names,
        case={key: value for key, value in case.items() if value is not None},
    )


def _with_domain(data: Data, domain: str | None) -> Data:
    """``data`` with the attribute ``domain`` as its ``domain_id``."""
    if domain is None:
        return data
    values = data.get(domain) if domain in data else None
    if not isinstance(values, Tensor) or values.dim() != 1:
        raise MarioError(f"data has no attribute {domain!r} with the domain of each node")
    data = copy.copy(data)
    if values.is_floating_point() or bool((values < -1).any()):
        values = values.unique(return_inverse=True)[1]
    data.domain_id = values.long()
    data.domain = domain
    return data


def domain_names(data: Data, source: str) -> tuple[str, ...]:
    """The name of each domain of a split graph, by its number; ``source`` is a dataset's name, a path or ``data``."""
    ids = data.get("domain_id")
    if ids is None or not len(ids):
        return ()
    count = int(ids.max()) + 1
    named = data.get("domain_names")
    if isinstance(named, list | tuple) and len(named) == count:
        return tuple(str(name) for name in named)
    if source != "data":
        parts = find(source).card.parts
        if len(parts) == count:
            return parts
    return tuple(str(i) for i in range(count)) if count <= 1000 else ()


def with_masks(data: Data, seed: int = 0) -> Data:
    """``data`` with ``train_mask`` and ``id_val_mask`` if it has labels and no masks: four of five labels train.

    What has no label stays without a mask, and what has one is of the same share in every class.
    """
    if data.get("y") is None or any(data.get(f"{part}_mask") is not None for part in PARTS):
        return data
    labeled = data.y >= 0
    if not bool(labeled.any()):
        return data
    data = copy.copy(data)
    held = torch.zeros_like(labeled)
    for label in data.y[labeled].unique():
        rows = (data.y == label).nonzero().view(-1)
        order = rows[torch.randperm(len(rows), generator=stream(seed, int(label), 1, SELECTION))]
        held[order[: round(_HELD * len(rows))]] = True
    data.train_mask = labeled & ~held
    if bool(held.any()):
        data.id_val_mask = held
    return data
