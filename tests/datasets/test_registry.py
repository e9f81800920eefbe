import re
import subprocess
import sys

import pytest

from mario.datasets import CATALOG, REGISTRY, Dataset, DatasetCard, find, register
from mario.errors import MarioError
from mario.graphs.rules import SHIFTS, SplitRule


def test_cards_are_complete() -> None:
    words = ["good-cora", "coauthor-cs", "coauthor-physics", "citation-dblp"]
    split_by_good = ["good-cbas", "good-webkb", "good-twitch", "webkb", *words]
    separate = ["amazon-photo", "elliptic", "proteins-25", "dd-200", "dd-300"]
    generated = ["shifting-10k", "shifting-100k", "shifting-1m"]
    assert set(CATALOG) == {*split_by_good, *separate, *generated}
    assert list(CATALOG) == list(REGISTRY)
    for name, card in CATALOG.items():
        assert card.name == name
        assert (card.shifts == SHIFTS) == (name in split_by_good)
        assert card.setting == ("inductive" if name in separate else "transductive")
        assert card.default_shift == {"elliptic": "label"}.get(name, "concept" if name[0] not in "pd" else "covariate")
        assert card.license
        assert card.source
        assert card.metric in ("accuracy", "roc_auc", "f1")
        assert list(card.parts) == sorted(card.parts)
        assert (name == "good-cbas" or name in generated) == (not card.files)
        assert bool(card.cached) == (name in generated)
        for file in card.files:
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)


def test_cornells_and_texass_features_are_the_same_file() -> None:
    """The fault that the card tells of, as the published checksums show it."""
    sums = {file.path: file.sha256 for file in CATALOG["good-webkb"].files}
    cornell, texas, wisconsin = (
        sums[f"WebKB/{university}/raw/out1_node_feature_label.txt"] for university in CATALOG["good-webkb"].parts
    )
    assert cornell == texas != wisconsin
    assert "byte-identical" in CATALOG["good-webkb"].faults[0]


def test_a_name_that_there_is_none_of() -> None:
    said = "unknown dataset 'good-cbs'; use one of amazon-photo, citation-dblp, .*did you mean 'good-cbas'"
    with pytest.raises(MarioError, match=said):
        find("good-cbs")


def test_the_catalog_is_read_without_torch() -> None:
    code = "import sys, mario.graphs, mario.datasets; print(len(mario.datasets.CATALOG), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(CATALOG)), "False"]


def test_public_names_are_there() -> None:
    import mario.datasets
    import mario.graphs

    for room in (mario.datasets, mario.graphs):
        for name in room.__all__:
            assert getattr(room, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'utils'"):
        _ = mario.graphs.utils


def test_good_datasets_have_the_numbers_of_good() -> None:
    names = ("good-cora", "coauthor-cs", "coauthor-physics", "citation-dblp", "good-twitch", "good-webkb", "webkb")
    rules = {name: REGISTRY[name].rule for name in names}
    webkb = {"descending": False, "held_out": "wisconsin", "bias": (0.85, 0.75, 0.85, 0.8, 0.5)}
    assert rules == {
        "good-cora": SplitRule(),
        "coauthor-cs": SplitRule(),
        "coauthor-physics": SplitRule(),
        "citation-dblp": SplitRule(cuts=(0.55, 0.7)),  # GOOD's cuts leave no ood_test by degree
        "good-twitch": SplitRule(descending=False, bias=(0.8, 0.7, 0.8, 0.7, 0.5), control=(0.4, 0.3, 0.3)),
        "good-webkb": SplitRule(environments=2, **webkb),  # type: ignore[arg-type]
        "webkb": SplitRule(environments=3, **webkb),  # type: ignore[arg-type]
    }


def test_register_needs_a_card_and_a_free_name() -> None:
    with pytest.raises(MarioError, match=r"Cardless needs a card, card = DatasetCard\(name=\.\.\.\), got None"):

        @register
        class Cardless(Dataset):
            pass

    class Other(Dataset):
        card: DatasetCard = CATALOG["good-cbas"]

    with pytest.raises(MarioError, match="already registered as 'good-cbas': GOODCBAS"):
        register(Other)
    assert type(REGISTRY["good-cbas"]).__name__ == "GOODCBAS"
