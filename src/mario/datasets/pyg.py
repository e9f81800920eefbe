"""Datasets that PyG has a class for: mario downloads and checks the files, PyG parses them."""

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
        files_url: where PyG downloads the files from. Its own downloads do not check the server's certificate.
        npz_members: the arrays that PyG reads from an ``.npz`` file. They are checked to be plain numbers.
    """

    pyg_class: ClassVar[str]
    pyg_names: ClassVar[tuple[str, ...]]
    files_url: ClassVar[str]
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
        from mario.datasets.files import fetch_url

        for file in self.card.files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(fetch_url(self.url_of(target)))

    def url_of(self, file: Path) -> str:
        """Where PyG downloads ``file`` from."""
        return f"{self.files_url}/{file.name}"
