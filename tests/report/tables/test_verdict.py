"""The verdict on one row, whichever way it falls."""

import pytest

from made_up import collected
from mario.lab.studies.collect import Collected
from mario.report import entries, study_table, to_markdown, verdict
from mario.report.numbers import points


def said(study: Collected) -> str:
    found = {entry.label: entry for entry in entries(study)}
    return verdict(found["mario"], found["grace"])


def paired(differences: list[float], *, split_seed: int | None = None) -> Collected:
    scores = {"grace": [0.8] * len(differences), "mario": [0.8 + d for d in differences]}
    return collected({"good-cbas-concept": scores}, split_seed=split_seed)


@pytest.mark.parametrize(
    ("differences", "words"),
    [
        ([0.01, 0.02, 0.03, 0.04, 0.05, 0.06], "mario is above grace at the 5 % level"),
        ([-0.01, -0.02, -0.03, -0.04, -0.05, -0.06], "mario is below grace at the 5 % level"),
        ([0.01, -0.02, 0.03, -0.04, 0.05, -0.06], "no evidence of a difference"),
        ([0.0, 0.0], "no evidence of a difference"),
        ([0.01] * 11 + [-0.5], "no evidence of a difference"),  # ranks and mean point to different sides
        ([0.05], "single pair, from which nothing follows"),
    ],
)
def test_verdict_whichever_way_it_falls(differences: list[float], words: str) -> None:
    assert words in said(paired(differences))


def test_seeds_on_one_split_are_not_independent() -> None:
    six = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    assert "counting every pair as independent" in said(paired(six, split_seed=0))
    assert "independent" not in said(paired(six))
    assert "not independent" not in to_markdown(study_table(paired(six)))


def test_verdict_names_counts_splits_and_the_paper() -> None:
    study = collected({"good-cbas-concept": {"grace": [0.88, 0.92], "mario": [0.92, 0.94]}})
    assert said(study) == (
        "OOD accuracy of mario minus that of grace, same split and same seed: +3.00 points (n = 2 pairs; Wilcoxon "
        "signed-rank p = 0.500; 2 won, 0 tied, 0 lost). On these runs there is no evidence of a difference at the 5 % "
        "level. Averaged within each split first: +3.00 ± 1.41 over 2 splits. The paper has +2.64 (91.28 and 88.64, "
        "Table 2), without a test."
    )


def test_without_a_pair_there_is_no_test() -> None:
    study = collected({"good-cbas-concept": {"grace": [0.8, None], "mario": [None, 0.9]}})
    assert said(study) == "No paired test: mario and grace have no runs on the same split and seed."


def test_neither_oracle_nor_last_is_ever_said() -> None:
    words = said(paired([0.01, 0.02]))
    assert not any(forbidden in words for forbidden in ("oracle", "99.99", "33.33", "22.22", "11.11"))


def test_points_have_a_real_minus_and_no_signed_zero() -> None:
    assert [points(v) for v in (0.0264, -0.01, 0.0, -0.00001)] == ["+2.64", "−1.00", "0.00", "0.00"]
