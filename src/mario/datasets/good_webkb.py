"""GOOD-WebKB: web pages of three universities, with the faults of the published files (Gui et al., NeurIPS 2022)."""

from pathlib import Path

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.pyg import PyGDataset
from mario.datasets.registry import register
from mario.graphs.rules import SplitRule

# `load_dataset` warns with the first sentence. Recorded runs hold this text: keep it as it is.
_FAULT = (
    "GOOD-WebKB is faulty at its source: its Cornell pages are Texas pages, and Wisconsin numbers classes otherwise. "
    "Cornell's and Texas's feature files are byte-identical (183 pages, words and labels, on Cornell's links), and "
    "class ids are numbered per university. Covariate shift therefore trains on two copies of Texas, leaks twins into "
    "id_test and tests on permuted labels. It is kept as published for the paper's tables; `webkb` is the sound data."
)


@register
class GOODWebKB(PyGDataset):
    card = DatasetCard(
        name="good-webkb",
        what="web pages of three universities and their links, as in GOOD and the paper",
        nodes=617,
        edges=1138,
        features=1703,
        classes=5,
        domains=("university",),
        parts=("cornell", "texas", "wisconsin"),
        files=raw_files("WebKB/"),
        source="https://github.com/graphdml-uiuc-jlu/geom-gcn (PyG WebKB)",
        license="not stated",
        faults=(_FAULT,),
        notes=("Covariate shift holds out wisconsin.",),
    )
    rule = SplitRule(descending=False, held_out="wisconsin", environments=2, bias=(0.85, 0.75, 0.85, 0.8, 0.5))
    pyg_class = "WebKB"
    pyg_names = card.parts
    files_url = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master"
    verify_download = True

    def url_of(self, file: Path) -> str:
        university = file.parents[1].name
        return f"{self.files_url}/{'splits' if '_split_' in file.name else f'new_data/{university}'}/{file.name}"
