"""Coauthor-Physics: physicists who wrote papers together (Shchur et al. 2018), split like GOOD-Cora."""

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.pyg import SPARSE_MATRICES, PyGDataset
from mario.datasets.registry import register


@register
class CoauthorPhysics(PyGDataset):
    card = DatasetCard(
        name="coauthor-physics",
        what="physicists who wrote papers together; an author's field from the papers' keywords",
        nodes=34493,
        edges=495924,
        features=8415,
        classes=5,
        domains=("word", "degree"),
        files=raw_files("Coauthor/Physics/"),
        source="https://github.com/shchur/gnn-benchmark (PyG Coauthor; Shchur et al. 2018)",
        license="not stated",
        notes=(
            "A graph of the kind of coauthor-cs and twice its size, split by GOOD-Cora's numbers.",
            "The known file was saved again without pickles; PyG downloads the original, whose checksum is not known.",
        ),
    )
    pyg_class = "Coauthor"
    pyg_names = ("Physics",)
    files_url = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
    npz_members = SPARSE_MATRICES
