"""GOOD-Cora: the full Cora citation network (Bojchevski & Günnemann 2018; Gui et al., NeurIPS 2022)."""

from mario.datasets.card import DatasetCard, RawFile
from mario.datasets.pyg import SPARSE_MATRICES, PyGDataset
from mario.datasets.registry import register


@register
class GOODCora(PyGDataset):
    card = DatasetCard(
        name="good-cora",
        what="the full Cora citation network; a paper's topic from its words",
        nodes=19793,
        edges=126842,
        features=8710,
        classes=70,
        domains=("word", "degree"),
        files=(RawFile("CitationFull/cora/raw/cora.npz"),),
        source="https://github.com/abojchevski/graph2gauss (PyG CitationFull; Bojchevski & Günnemann 2018)",
        license="not stated",
        notes=("The checksum of the file is not known: the file was not available to us.",),
    )
    pyg_class = "CitationFull"
    pyg_names = ("Cora",)
    files_url = "https://github.com/abojchevski/graph2gauss/raw/master/data"
    npz_members = SPARSE_MATRICES
