"""Datasets by name, or by the path of a folder."""

import os
from pathlib import Path
from typing import TypeVar

from mario.datasets.card import DatasetCard
from mario.datasets.dataset import Dataset
from mario.datasets.folder import FolderDataset
from mario.errors import MarioError
from mario.graphs.card import CARD_FILE
from mario.graphs.rules import choose
from mario.plugins import same_source

REGISTRY: dict[str, Dataset] = {}
CATALOG: dict[str, DatasetCard] = {}
"""The card of each registered dataset, by name."""

D = TypeVar("D", bound=type[Dataset])


def register(cls: D) -> D:
    """Add a dataset to the catalog, under its card's name: a decorator for subclasses of `Dataset`."""
    card = getattr(cls, "card", None)
    if not isinstance(card, DatasetCard):
        raise MarioError(f"{cls.__name__} needs a card, card = DatasetCard(name=...), got {card!r}")
    known = REGISTRY.get(card.name)
    if known is not None and not same_source(type(known), cls):
        raise MarioError(f"a dataset is already registered as '{card.name}': {type(known).__name__}")
    REGISTRY[card.name], CATALOG[card.name] = cls(), card
    return cls


def find(name: str | os.PathLike[str]) -> Dataset:
    """The dataset with this name, or the one in the folder at this path.

    Example:
        >>> find("good-cbas").card.nodes
        700
    """
    if isinstance(name, str) and name in REGISTRY:
        return REGISTRY[name]
    if isinstance(name, os.PathLike) or (isinstance(name, str) and _is_path(name)):
        return FolderDataset(Path(name))
    return REGISTRY[choose("dataset", name, tuple(REGISTRY))]


def find_case(
    name: str | os.PathLike[str], domain: str | None = None, shift: str | None = None, setting: str | None = None
) -> tuple[DatasetCard, str, str, str]:
    """The card, domain, shift and setting, with the dataset's defaults filled in.

    Example:
        >>> find_case("good-cbas")[1:]
        ('color', 'concept', 'transductive')
    """
    card = find(name).card
    return card, *card.case(domain, shift, setting)


def _is_path(name: str) -> bool:
    return "/" in name or os.sep in name or name.startswith((".", "~")) or (Path(name) / CARD_FILE).is_file()
