"""Average ranks against the worked example of Demšar (2006), scipy, and slow versions."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mario.errors import MarioError
from mario.lab.statistics.ranking import average_ranks, critical_difference, friedman

# Table 6 of Demšar: AUC of four variants of C4.5 on 14 datasets; voting's second 0.975 is the lower before rounding.
NAMES = ("c4.5", "c4.5+m", "c4.5+cf", "c4.5+m+cf")
AUC = [
    [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.975, 0.9749], [0.957, 0.978, 0.946, 0.970],
]  # fmt: skip
DEMSAR = {f"dataset {i}": dict(zip(NAMES, row, strict=True)) for i, row in enumerate(AUC)}


def test_demsars_example() -> None:
    ranking = average_ranks(DEMSAR)
    assert ranking.methods == ("c4.5+m+cf", "c4.5+m", "c4.5+cf", "c4.5")
    assert ranking.average == pytest.approx((1.964, 2.000, 2.893, 3.143), abs=5e-4)
    assert ranking.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert ranking.groups == (ranking.methods,)  # 3.143 − 1.964 < 1.25
    # At 0.10 it is 1.12: c4.5 differs from both with m, and not from c4.5+cf.
    assert average_ranks(DEMSAR, alpha=0.10).groups == (ranking.methods[:3], ranking.methods[2:])


def test_critical_values_are_those_of_demsars_table_5() -> None:
    printed = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
    for k, q in printed.items():
        assert critical_difference(k, 1) / math.sqrt(k * (k + 1) / 6) == pytest.approx(q, abs=1e-3)
    assert critical_difference(4, 1, alpha=0.10) / math.sqrt(20 / 6) == pytest.approx(2.291, abs=1e-3)
    assert critical_difference(5, 8) == pytest.approx(critical_difference(5, 2) / 2)


def test_friedman_is_scipys_with_and_without_ties() -> None:
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=(7, 5)), rng.integers(0, 3, size=(9, 4)).astype(float), np.array(AUC)):
        expected = stats.friedmanchisquare(*scores.T)
        chi2, p = friedman(stats.rankdata(-scores, axis=1))
        assert (chi2, p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))


def test_friedman_by_hand_for_two_methods() -> None:
    # Five of five blocks: χ² = 12·5/(2·3) (1² + 2² − 2·9/4) = 5.
    assert friedman([[1, 2]] * 5)[0] == pytest.approx(5.0)
    assert friedman([[1.5, 1.5]] * 5) == (0.0, 1.0)


def test_average_ranks_by_counting() -> None:
    rng = np.random.default_rng(1)
    names = [f"m{i}" for i in range(6)]
    scores = {f"b{i}": dict(zip(names, rng.integers(0, 5, 6) / 10, strict=True)) for i in range(8)}
    ranking = average_ranks(scores)
    for method, rank in zip(ranking.methods, ranking.average, strict=True):
        # A rank is one, plus one for each that is above, plus half for each other that is equal.
        slow = [
            1
            + sum(v > block[method] for v in block.values())
            + (sum(v == block[method] for v in block.values()) - 1) / 2
            for block in scores.values()
        ]
        assert rank == pytest.approx(sum(slow) / len(slow))
    assert sum(ranking.average) == pytest.approx(6 * 7 / 2)


def test_groups_are_the_maximal_sets_within_the_difference() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        names = [f"m{i}" for i in range(6)]
        base = rng.normal(size=6) * 2
        scores = {f"b{i}": dict(zip(names, base + rng.normal(size=6), strict=True)) for i in range(12)}
        ranking = average_ranks(scores)
        rank = dict(zip(ranking.methods, ranking.average, strict=True))
        alike = [
            set(chosen)
            for size in range(2, 7)
            for chosen in itertools.combinations(names, size)
            if max(rank[m] for m in chosen) - min(rank[m] for m in chosen) <= ranking.critical_difference
        ]
        slow = [group for group in alike if not any(group < other for other in alike)]
        assert sorted(map(sorted, ranking.groups)) == sorted(map(sorted, slow))


def test_only_blocks_with_all_compared_methods_count() -> None:
    scores = {
        "cbas": {"mario": 0.9, "grace": 0.8, "eerm": 0.7},
        "webkb": {"mario": 0.3, "grace": 0.4, "eerm": 0.2},
        "twitch": {"mario": 0.6, "grace": 0.5},
    }
    ranking = average_ranks(scores)
    assert (ranking.blocks, ranking.left_out) == (("cbas", "webkb"), {"twitch": ("eerm",)})
    assert dict(zip(ranking.methods, ranking.average, strict=True)) == {"mario": 1.5, "grace": 1.5, "eerm": 3.0}
    two = average_ranks(scores, methods=("grace", "mario"))
    assert (two.blocks, two.left_out) == (("cbas", "webkb", "twitch"), {})
    assert dict(zip(two.methods, two.average, strict=True)) == {
        "mario": pytest.approx(4 / 3),
        "grace": pytest.approx(5 / 3),
    }


def test_equal_scores_share_a_rank_whatever_their_last_bit() -> None:
    assert 0.1 + 0.7 != 0.8
    assert average_ranks({"b": {"a": 0.1 + 0.7, "b": 0.8}}).average == (1.5, 1.5)


@pytest.mark.parametrize(
    ("scores", "methods", "named"),
    [
        ({}, (), "at least two to be ranked, got none"),
        ({"b": {"mario": 0.9}}, (), "at least two to be ranked, got mario"),
        ({"b": {"mario": 0.9}}, ("mario", "grace"), "b has no grace"),
        ({"b": {"mario": 0.9, "grace": math.nan}}, (), "finite"),
    ],
)
def test_what_cannot_be_ranked_is_said(
    scores: dict[str, dict[str, float]], methods: tuple[str, ...], named: str
) -> None:
    with pytest.raises(MarioError, match=named):
        average_ranks(scores, methods=methods)
    with pytest.raises(MarioError, match="alpha"):
        critical_difference(3, 3, alpha=5)
