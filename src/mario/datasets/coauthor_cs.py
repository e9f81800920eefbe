"""Coauthor-CS: computer scientists who wrote papers together (Shchur et al. 2018), split like GOOD-Cora."""

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.pyg import SPARSE_MATRICES, PyGDataset
from mario.datasets.registry import register


@register
class CoauthorCS(PyGDataset):
    card = DatasetCard(
        name="coauthor-cs",
        what="computer scientists who wrote papers together; an author's field from the papers' keywords",
        nodes=18333,
        edges=163788,
        features=6805,
        classes=15,
        domains=("word", "degree"),
        files=raw_files("Coauthor/CS/"),
        source="https://github.com/shchur/gnn-benchmark (PyG Coauthor; Shchur et al. 2018)",
        license="not stated",
        notes=(
            "A real graph of GOOD-Cora's size and kind, split by GOOD-Cora's numbers.",
            "The known file was saved again without pickles; PyG downloads the original, whose checksum is not known.",
        ),
    )
    pyg_class = "Coauthor"
    pyg_names = ("CS",)
    files_url = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
    npz_members = SPARSE_MATRICES
