"""The cuts of DBLP's covariate shift, which are not GOOD-Cora's."""

import dataclasses
from pathlib import Path

import pytest
import torch

from mario.datasets import REGISTRY, load_dataset
from mario.errors import MarioError
from mario.graphs import SplitRule, split_graph
from mario.graphs.rules import PARTS


def test_by_degree_one_link_tests_two_validate_and_more_train(mario_data: Path) -> None:
    data = load_dataset("citation-dblp", root=mario_data, download=False, domain="degree", shift="covariate")
    links = torch.bincount(data.edge_index[0], minlength=data.num_nodes)
    assert torch.equal(data.ood_test_mask, links == 1)
    assert torch.equal(data.ood_val_mask, links == 2)
    with pytest.raises(MarioError, match="the covariate split by 'degree' leaves ood_test empty"):
        split_graph(data, domain="degree", shift="covariate")  # by GOOD-Cora's cuts


def test_by_word_the_split_is_that_of_good_coras_cuts(mario_data: Path) -> None:
    data = load_dataset("citation-dblp", root=mario_data, download=False, domain="word", shift="covariate")
    usual = split_graph(data, domain="word", shift="covariate")
    for part in PARTS:
        assert torch.equal(data[f"{part}_mask"], usual[f"{part}_mask"])


def test_only_the_cuts_differ_from_good_cora() -> None:
    assert dataclasses.replace(REGISTRY["citation-dblp"].rule, cuts=SplitRule().cuts) == REGISTRY["good-cora"].rule
