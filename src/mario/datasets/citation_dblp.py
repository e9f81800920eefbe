"""Citation-DBLP: papers of DBLP that cite each other (Bojchevski & Günnemann 2018), split like GOOD-Cora."""

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.pyg import SPARSE_MATRICES, PyGDataset
from mario.datasets.registry import register
from mario.graphs.rules import SplitRule


@register
class CitationDBLP(PyGDataset):
    card = DatasetCard(
        name="citation-dblp",
        what="papers of DBLP that cite each other; a paper's field from the words of its title",
        nodes=17716,
        edges=105734,
        features=1639,
        classes=4,
        domains=("word", "degree"),
        files=raw_files("CitationFull/dblp/"),
        source="https://github.com/abojchevski/graph2gauss (PyG CitationFull; Bojchevski & Günnemann 2018)",
        license="not stated",
        notes=(
            "A citation network of GOOD-Cora's size, split by GOOD-Cora's numbers except the cuts of covariate shift.",
            "28 % of the papers have one link, so cuts at 60 % and 80 % would leave no ood_test by degree. They are at "
            "55 % and 70 %: three links or more train, two validate, one tests. By word, both give the same split.",
            "The known file was saved again without pickles; PyG downloads the original, whose checksum is not known.",
        ),
    )
    rule = SplitRule(cuts=(0.55, 0.7))
    pyg_class = "CitationFull"
    pyg_names = ("DBLP",)
    files_url = "https://github.com/abojchevski/graph2gauss/raw/master/data"
    npz_members = SPARSE_MATRICES
