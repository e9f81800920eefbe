"""Datasets that PyG has a class for: PyG downloads and parses the files, mario checks them first."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from mario.datasets.dataset import Dataset

if TYPE_CHECKING:
    from torch_geometric.data import Data

SPARSE_MATRICES = (
    *(f"{matrix}_{part}" for matrix in ("attr", "adj") for part in ("data", "indices", "indptr", "shape")),
    "labels",
)
"""The arrays of an ``.npz`` file with sparse features and a sparse adjacency matrix (Shchur et al. 2018)."""


class PyGDataset(Dataset):
    """A dataset read by a class of `torch_geometric.datasets`.

    Attributes:
        pyg_class: the name of the class, which is also the folder of its files.
        pyg_names: the names that the class is called with; one graph each.
        npz_members: the arrays that PyG reads from an ``.npz`` file. They are checked to be plain numbers.
    """

    pyg_class: ClassVar[str]
    pyg_names: ClassVar[tuple[str, ...]]
    npz_members: ClassVar[tuple[str, ...]] = ()

    def read(self, files: Sequence[Path]) -> "Data":
        from mario.datasets.readers.pyg import combine, read_pyg

        staged = [file.path for file in self.card.files]
        graphs = read_pyg(self.pyg_class, self.pyg_names, dict(zip(staged, files, strict=True)), self.npz_members)
        data = combine(graphs)
        if not self.card.parts:
            del data.part_id
        return data

    def download(self, folder: Path) -> None:
        from mario.datasets.readers.pyg import download_pyg

        download_pyg(self.pyg_class, self.pyg_names, folder)
