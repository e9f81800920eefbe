"""Ranks of made-up studies, by hand."""

import pandas as pd
import pytest

from made_up import collected
from mario.errors import MarioError
from mario.report import ranking_of

STUDY = {
    "good-cbas-concept": {"erm": [0.7, 0.7], "grace": [0.8, 0.9], "mario": [0.9, 0.7], "mvgrl": [None, None]},
    "good-webkb-concept": {"erm": [0.2, 0.2], "grace": [0.3, 0.3], "mario": [0.4, 0.4], "mvgrl": [None, None]},
    "good-twitch-concept": {"grace": [0.5], "mario": [0.6]},
}


def test_ranks_are_of_the_means_of_cases_that_have_all() -> None:
    ranking = ranking_of(collected(STUDY).frame)
    # grace 0.85 above mario 0.8 on the one, mario above grace on the other.
    assert dict(zip(ranking.methods, ranking.average, strict=True)) == {"grace": 1.5, "mario": 1.5, "erm": 3.0}
    assert ranking.blocks == ("good-cbas-concept", "good-webkb-concept")
    assert ranking.left_out == {"good-twitch-concept": ("erm",)}


def test_means_are_of_the_pairs_that_all_have() -> None:
    study = collected({"good-cbas-concept": {"grace": [0.5, 0.9, 0.9], "mario": [0.6, None, None]}})
    assert ranking_of(study.frame).methods == ("mario", "grace"), "by the one pair that both have"


def test_pairs_as_blocks_and_chosen_methods() -> None:
    ranking = ranking_of(collected(STUDY).frame, by="pair", methods=("grace", "mario"))
    assert len(ranking.blocks) == 5
    assert dict(zip(ranking.methods, ranking.average, strict=True)) == {
        "mario": pytest.approx(6 / 5),
        "grace": pytest.approx(9 / 5),
    }


def test_a_case_that_two_studies_share_counts_once() -> None:
    again = collected({"good-cbas-concept": {"erm": [0.9], "grace": [0.1], "mario": [0.1]}}, study="again")
    assert ranking_of(pd.concat([collected(STUDY).frame, again.frame])) == ranking_of(collected(STUDY).frame)


def test_nothing_to_rank() -> None:
    with pytest.raises(MarioError, match="at least two"):
        ranking_of(collected({"good-cbas-concept": {"mario": [None]}}).frame)
