"""GOOD-Twitch: streamers of six languages (Rozemberczki et al. 2021; Gui et al., NeurIPS 2022)."""

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.pyg import PyGDataset
from mario.datasets.registry import register
from mario.graphs.rules import SplitRule


@register
class GOODTwitch(PyGDataset):
    card = DatasetCard(
        name="good-twitch",
        what="Twitch streamers of six languages and their friendships; does a user stream mature content?",
        nodes=34118,
        edges=892344,
        features=128,
        classes=2,
        domains=("language",),
        metric="roc_auc",
        parts=("DE", "EN", "ES", "FR", "PT", "RU"),
        files=raw_files("Twitch/"),
        source="https://graphmining.ai/datasets/ptg/twitch (PyG Twitch; Rozemberczki et al. 2021)",
        license="not stated",
        notes=(
            "The known files are MUSAE's raw graphs with 128 truncated-SVD components of their 3,170 binary features. "
            "Two duplicate rows of FR are removed, so there are 34,118 nodes and 892,344 edges where the paper has "
            "34,120 and 892,346. PyG downloads 128 different columns, whose checksums we do not know: they load with a "
            "warning.",
        ),
    )
    rule = SplitRule(descending=False, bias=(0.8, 0.7, 0.8, 0.7, 0.5), control=(0.4, 0.3, 0.3))
    pyg_class = "Twitch"
    pyg_names = card.parts
    files_url = "https://graphmining.ai/datasets/ptg/twitch"
    npz_members = ("features", "target", "edges")
    other_counts = ((34120, 892346),)
