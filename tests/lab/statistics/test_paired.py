"""Statistics against scipy and against examples worked by hand."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from lab import results
from lab.results import CBAS
from mario.errors import MarioError
from mario.lab.frame import frame
from mario.lab.result import RunResult, Scores
from mario.lab.statistics.paired import holm, in_sds, least_p, over_splits, pair, paired, summarize


def run(seed: int, score: float | None, split_seed: int = 0, shift: str = "concept", encoder: str = "gcn") -> RunResult:
    spec = replace(results.spec(seed, split_seed=split_seed, encoder=encoder), case=replace(CBAS, shift=shift))
    return results.result(spec, scores=Scores(ood_test=score))


def test_the_side_is_that_of_the_ranks_and_not_of_the_mean() -> None:
    test = paired([0.01] * 18 + [-0.2] * 2, [0.0] * 20)
    assert test.p_wilcoxon is not None
    assert test.p_wilcoxon < 0.01
    assert (test.side, test.mean_difference < 0) == (1, True)
    assert paired([0.1, 0.2], [0.2, 0.1]).side == 0
    assert paired([0.0, 0.1, 0.1], [0.0, 0.3, 0.2]).side == -1
    assert paired([0.1, 0.2, 0.0, 0.5, 0.5], [0.0, 0.0, 0.4, 0.5, 0.5]).side == 0, "tied pairs have no rank"
    assert test.shown(0.01, 0.05) == 0, "ranks and mean disagree"
    above = paired([0.2, 0.4], [0.1, 0.1])
    assert [above.shown(p, 0.05) for p in (0.01, 0.05, None)] == [1, 0, 0]


def test_summarize_divides_by_n_minus_one() -> None:
    summary = summarize([2.0, 4.0, 4.0, 6.0])
    assert (summary.mean, summary.n) == (4.0, 4)
    assert summary.sd == pytest.approx(math.sqrt(8 / 3))


def test_summarize_of_one_value_has_no_spread() -> None:
    assert summarize([0.9]).sd is None


@pytest.mark.parametrize("values", [[], [0.9, math.nan], [math.inf]])
def test_summarize_rejects_what_has_no_mean(values: list[float]) -> None:
    with pytest.raises(MarioError, match="values"):
        summarize(values)


def test_spread_over_splits_is_of_their_means_by_hand() -> None:
    # 0.9 and 0.7 on one split, 0.6 on the other: means 0.8 and 0.6, whose sd is 0.2 / √2.
    found = over_splits([0.9, 0.6, 0.7], splits=["s", "t", "s"])
    assert (found.n_splits, found.mean, found.sd) == (2, pytest.approx(0.7), pytest.approx(0.2 / math.sqrt(2)))
    assert over_splits([0.9, 0.7], splits=[0, 0]).sd is None
    each = over_splits([0.9, 0.6, 0.7], splits=[0, 1, 2])
    assert (each.mean, each.sd) == (summarize([0.9, 0.6, 0.7]).mean, summarize([0.9, 0.6, 0.7]).sd)
    with pytest.raises(MarioError, match="each of the 2 values, got 1"):
        over_splits([0.9, 0.7], splits=[0])


def test_units_of_a_spread_and_none_without_one() -> None:
    assert in_sds(89.08, 91.28, 1.10) == pytest.approx(-2.0)
    assert in_sds(89.08, 91.28, 0.0) is None
    assert in_sds(89.08, 91.28, None) is None


def test_least_p_is_reached_and_never_passed() -> None:
    for n in range(2, 9):
        assert paired([0.1 * (i + 1) for i in range(n)], [0.0] * n).p_wilcoxon == pytest.approx(least_p(n))


def test_paired_counts_and_means_by_hand() -> None:
    result = paired([0.9, 0.8, 0.7, 0.6], [0.8, 0.8, 0.8, 0.3], splits=["s", "s", "t", "t"])
    assert (result.n, result.wins, result.ties, result.losses) == (4, 2, 1, 1)
    assert result.mean_difference == pytest.approx(0.075)
    # per split: (0.1 + 0) / 2 = 0.05 and (−0.1 + 0.3) / 2 = 0.1
    assert result.by_split is not None
    assert (result.by_split.n_splits, result.by_split.mean) == (2, pytest.approx(0.075))
    assert result.by_split.sd == pytest.approx(0.05 / math.sqrt(2))


def test_wilcoxon_by_hand_and_by_scipy() -> None:
    a, b = [0.51, 0.62, 0.73, 0.84, 0.95], [0.5, 0.6, 0.7, 0.8, 0.9]
    # All five differences have one sign: p = 2 / 2⁵.
    assert paired(a, b).p_wilcoxon == pytest.approx(2 / 32)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=12), rng.normal(size=12)
    assert paired(list(x), list(y)).p_wilcoxon == pytest.approx(stats.wilcoxon(x, y).pvalue)


def test_wilcoxon_with_ties_and_zeros_by_every_flip_of_signs() -> None:
    rng = np.random.default_rng(4)
    for n in (2, 3, 6, 9):
        for _ in range(5):
            difference = rng.integers(-3, 4, size=n) / 100
            known = difference[difference != 0]
            ranks = stats.rankdata(np.abs(known))
            middle = ranks.sum() / 2
            off = abs(ranks[known > 0].sum() - middle)
            flips = [
                abs(ranks[np.array(signs, dtype=bool)].sum() - middle) for signs in product((0, 1), repeat=len(known))
            ]
            slow = np.mean([flip >= off - 1e-9 for flip in flips])
            assert paired(list(difference), [0.0] * n).p_wilcoxon == pytest.approx(slow)


def test_wilcoxon_of_many_pairs_is_near_the_normal_one() -> None:
    difference = np.random.default_rng(5).normal(0.1, 1, size=200)
    expected = stats.wilcoxon(difference, method="asymptotic").pvalue
    assert paired(list(difference), [0.0] * 200).p_wilcoxon == pytest.approx(expected, abs=2e-3)


def test_equal_differences_are_tied_ranks_whatever_their_last_bit() -> None:
    # 0.9 − 0.8 and 0.3 − 0.4 cancel in rank: the smallest possible evidence.
    assert 0.9 - 0.8 != -(0.3 - 0.4)
    assert paired([0.9, 0.3], [0.8, 0.4]).p_wilcoxon == pytest.approx(1.0)


def test_all_ties() -> None:
    result = paired([0.5, 0.6, 0.7], [0.5, 0.6, 0.7], splits=[0, 1, 2])
    assert (result.mean_difference, result.p_wilcoxon) == (0.0, 1.0)
    assert (result.wins, result.ties, result.losses) == (0, 3, 0)


def test_one_pair_has_no_test() -> None:
    result = paired([0.75], [0.5], splits=[0])
    assert (result.n, result.p_wilcoxon, result.ci_low, result.ci_high) == (1, None, None, None)
    assert result.by_split is not None
    assert result.by_split.sd is None


def test_bootstrap_agrees_with_scipy_and_is_seeded() -> None:
    rng = np.random.default_rng(0)
    a, b = list(rng.normal(0.9, 0.05, 30)), list(rng.normal(0.85, 0.05, 30))
    ours = paired(a, b, seed=1)
    expanded = 1 - 2 * stats.norm.cdf(stats.t.ppf(0.025, 29) * np.sqrt(30 / 29))
    theirs = stats.bootstrap(
        (np.subtract(a, b),),
        np.mean,
        method="percentile",
        confidence_level=expanded,
        n_resamples=10_000,
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert ours.ci_low == pytest.approx(theirs.low, abs=1.5e-3)
    assert ours.ci_high == pytest.approx(theirs.high, abs=1.5e-3)
    assert paired(a, b, seed=1) == ours
    assert paired(a, b, seed=2) != ours
    wider = paired(a, b, seed=1, confidence=0.99)
    assert wider.ci_low < ours.ci_low < ours.ci_high < wider.ci_high


def test_the_interval_of_few_pairs_covers_what_it_says() -> None:
    rng = np.random.default_rng(0)
    drawn = [paired(list(rng.normal(size=5)), [0.0] * 5, resamples=2000) for _ in range(400)]
    covered = np.mean([one.ci_low <= 0 <= one.ci_high for one in drawn])
    assert covered > 0.9, "the plain percentile interval covers 0.82 to 0.86"
    five = [0.1, 0.2, 0.3, 0.4, 0.5]
    assert paired(five, [0.0] * 5).ci_low is not None
    assert paired(five, [0.0] * 5, confidence=0.99).ci_low is None
    assert paired(five[:4], [0.0] * 4).ci_low is None


def test_swapping_the_methods_turns_the_sign() -> None:
    a, b = [0.9, 0.8, 0.95], [0.7, 0.85, 0.9]
    forth, back = paired(a, b), paired(b, a)
    assert forth.mean_difference == pytest.approx(-back.mean_difference)
    assert (forth.wins, forth.losses, forth.p_wilcoxon) == (back.losses, back.wins, back.p_wilcoxon)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"a": [1.0], "b": [1.0, 2.0]}, "a and b"),
        ({"a": [1.0], "b": [1.0], "splits": [0, 1]}, "splits"),
        ({"a": [1.0], "b": [1.0], "confidence": 95}, "confidence"),
        ({"a": [1.0], "b": [1.0], "resamples": 0}, "resamples"),
        ({"a": [], "b": []}, "at least one"),
    ],
)
def test_paired_names_the_wrong_argument(arguments: dict[str, object], named: str) -> None:
    with pytest.raises(MarioError, match=named):
        paired(**arguments)  # type: ignore[arg-type]


def test_pair_matches_split_and_seed_and_drops_the_rest() -> None:
    a = [run(0, 0.1), run(1, 0.2), run(0, 0.3, split_seed=1), run(5, 0.9)]
    b = [run(0, 0.6, split_seed=1), run(1, 0.5), run(0, 0.4), run(6, 0.9)]
    pairs = pair(frame(a), frame(b), "ood_test")
    assert pairs.a == (0.1, 0.2, 0.3)
    assert pairs.b == (0.4, 0.5, 0.6)
    assert len(set(pairs.splits)) == 2
    assert pairs.splits[0] == pairs.splits[1]


def test_pair_of_nothing_in_common() -> None:
    with pytest.raises(MarioError, match="have no run in common"):
        pair(frame([run(0, 0.1)]), frame([run(1, 0.1)]), "ood_test")
    with pytest.raises(MarioError, match="have no run in common"):
        pair(frame([run(0, 0.1)]), frame([run(0, 0.1, shift="covariate")]), "ood_test")
    with pytest.raises(MarioError, match="have no run in common"):
        pair(frame([run(0, None)]), frame([run(0, 0.1)]), "ood_test")


def test_pair_refuses_two_runs_for_one_place() -> None:
    with pytest.raises(MarioError, match="b has two runs"):
        pair(frame([run(0, 0.1)]), frame([run(0, 0.1, encoder="gcn"), run(0, 0.2, encoder="sage")]), "ood_test")


def test_holm_by_hand() -> None:
    # Sorted 0.01, 0.02, 0.03, 0.2 → ×4, ×3, ×2, ×1 = 0.04, 0.06, 0.06, 0.2.
    assert holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])
    # The second may not fall below the first: 2 × 0.03, then 1 × 0.04.
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([None, 0.5]) == [None, 0.5]
    assert holm([]) == []
    with pytest.raises(MarioError, match="pvalues"):
        holm([1.5])
