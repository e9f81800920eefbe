"""One value per column, against loops written from the definitions."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from mario.errors import MarioError
from mario.lab.statistics.columns import OverColumns
from mario.lab.statistics.paired import Pairs, paired


def pairs(a: list[float], b: list[float]) -> Pairs:
    keys = tuple((i,) for i in range(len(a)))
    return Pairs(keys=keys, a=tuple(a), b=tuple(b), splits=keys)


def random_columns(columns: int, seed: int) -> dict[str, Pairs]:
    rng = np.random.default_rng(seed)
    return {
        f"column {place}": pairs(*rng.uniform(0.3, 0.9, (2, int(rng.integers(2, 8)))).tolist())
        for place in range(columns)
    }


def slow_wilcoxon(differences: list[float]) -> float:
    """Two-sided p: the share of all signs whose sum of positive ranks is as far from its mean as the one seen."""
    known = [d for d in differences if d]
    ranks = stats.rankdata(np.abs(known))
    seen = sum(rank for rank, d in zip(ranks, known, strict=True) if d > 0)
    middle = ranks.sum() / 2
    sums = [sum(r for r, up in zip(ranks, signs, strict=True) if up) for signs in product((0, 1), repeat=len(known))]
    return float(np.mean([abs(s - middle) >= abs(seen - middle) - 1e-9 for s in sums]))


@pytest.mark.parametrize("seed", range(3))
def test_a_column_is_one_observation(seed: int) -> None:
    found = random_columns(9, seed)
    means = [sum(x - y for x, y in zip(p.a, p.b, strict=True)) / len(p.a) for p in found.values()]
    compared = OverColumns(found)
    assert compared.over.n == 9
    assert compared.over.mean_difference == pytest.approx(sum(means) / 9)
    assert compared.over.p_wilcoxon == pytest.approx(slow_wilcoxon(means))
    assert list(compared.means.values()) == pytest.approx(means)
    assert [test.mean_difference for test in compared.columns.values()] == pytest.approx(means)
    both = paired(means, [0.0] * 9)
    assert (compared.over.ci_low, compared.over.ci_high) == pytest.approx((both.ci_low, both.ci_high))


def test_a_column_with_more_pairs_does_not_weigh_more() -> None:
    found = OverColumns({"many": pairs([0.5] * 10, [0.4] * 10), "few": pairs([0.5] * 2, [0.8] * 2)})
    assert found.over.mean_difference == pytest.approx((0.1 - 0.3) / 2)
    assert found.columns["many"].n == 10


def test_at_least_counts_the_boundary_though_floats_do_not() -> None:
    found = OverColumns({"at": pairs([0.58] * 2, [0.5] * 2), "under": pairs([0.5799] * 2, [0.5] * 2)})
    assert 0.58 - 0.5 < 0.08
    assert found.at_least(0.08) == ("at",)
    assert found.below(0.08) == ("under",)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(MarioError, match="at least one column"):
        OverColumns({})
