import re
import subprocess
import sys

import pytest

from mario.errors import MarioError
from mario.graphs.catalog import CATALOG, find_card
from mario.graphs.rules import RULES, SHIFTS


def test_cards_are_complete() -> None:
    split_by_good = ["good-cbas", "good-webkb", "good-twitch", "good-cora", "webkb", "coauthor-cs"]
    separate = ["amazon-photo", "elliptic", "proteins-25", "dd-200", "dd-300"]
    generated = ["shifting-10k", "shifting-100k", "shifting-1m"]
    assert list(CATALOG) == split_by_good + separate + generated
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
    assert set(RULES) == set(split_by_good) - {"good-cbas"}


def test_cornells_and_texass_features_are_the_same_file() -> None:
    """The fault that the card tells of, as the published checksums show it."""
    sums = {file.path: file.sha256 for file in CATALOG["good-webkb"].files}
    cornell, texas, wisconsin = (
        sums[f"WebKB/{university}/raw/out1_node_feature_label.txt"] for university in CATALOG["good-webkb"].parts
    )
    assert cornell == texas != wisconsin
    assert "byte-identical" in CATALOG["good-webkb"].faults[0]


def test_a_name_that_there_is_none_of() -> None:
    with pytest.raises(MarioError, match=r"unknown dataset 'good-cbs'; one of good-cbas, .*did you mean 'good-cbas'"):
        find_card("good-cbs")
    for own in ("mine.safetensors", "folder/mine"):
        with pytest.raises(MarioError, match=f"unknown dataset '{own}': a file of your own is read by .*load_graph"):
            find_card(own)


def test_the_catalog_is_read_without_torch() -> None:
    code = "import sys, mario.graphs, mario.graphs.catalog, mario.graphs.files; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_public_names_are_there() -> None:
    import mario.graphs

    for name in mario.graphs.__all__:
        assert getattr(mario.graphs, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'utils'"):
        _ = mario.graphs.utils
