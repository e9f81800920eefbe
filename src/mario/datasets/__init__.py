"""Datasets: one registered file each, with its card, how it is read and how it is split.

Every module of this package that registers a dataset is found here. Datasets of other packages are found too, if they
name the module that registers them as an entry point of the group ``mario.datasets``. A folder with a ``graph.toml`` is
a dataset as well: `load_dataset` and all commands take its path. Importing this package does not import torch.
"""

from mario.datasets.card import DatasetCard, RawFile, raw_files
from mario.datasets.dataset import Dataset
from mario.datasets.folder import save_dataset
from mario.datasets.loading import load_dataset
from mario.datasets.registry import CATALOG, REGISTRY, find, find_case, register
from mario.plugins import discover

discover(__name__, __path__, __name__)  # readers and generators are subpackages: they import torch

__all__ = [
    "CATALOG",
    "REGISTRY",
    "Dataset",
    "DatasetCard",
    "RawFile",
    "find",
    "find_case",
    "load_dataset",
    "raw_files",
    "register",
    "save_dataset",
]
