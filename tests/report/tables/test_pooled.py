"""One row against another over all cases, by hand."""

import pandas as pd
import pytest

from made_up import collected
from mario.lab.statistics.paired import paired
from mario.report.tables.pooled import pool, reachable

STUDY = {
    "good-cbas-concept": {"grace": [0.8, 0.8, None], "mario": [0.81, 0.82, 0.9]},
    "good-webkb-concept": {"grace": [0.3, 0.3], "mario": [0.33, 0.26]},
}


def test_all_pairs_of_all_cases_by_hand() -> None:
    pooled = pool(collected(STUDY).frame, "mario", "grace")
    assert pooled is not None
    assert (pooled.cases, pooled.above, pooled.test.n) == (("good-cbas-concept", "good-webkb-concept"), 1, 4)
    assert pooled.test.mean_difference == pytest.approx((0.01 + 0.02 + 0.03 - 0.04) / 4)
    assert pooled.test.p_wilcoxon == paired([0.01, 0.02, 0.03, -0.04], [0.0] * 4).p_wilcoxon
    gap = pool(collected(STUDY).frame, "mario", "grace", score="gap")
    assert gap is not None
    assert gap.test.mean_difference == pytest.approx(0.0)  # ID is five points above OOD in every run
    assert pool(collected(STUDY).frame, "mario", "erm") is None


def test_a_case_that_two_studies_share_counts_once() -> None:
    scores = {"good-cbas-concept": STUDY["good-cbas-concept"], "webkb-concept": STUDY["good-webkb-concept"]}
    other = collected(scores, study="other")
    pooled = pool(pd.concat([collected(STUDY).frame, other.frame]), "mario", "grace")
    assert pooled is not None
    assert pooled.cases == ("good-cbas-concept", "good-webkb-concept", "webkb-concept")
    assert pooled.test.n == 6


def test_what_could_be_significant_after_holm() -> None:
    tests = {n: paired([0.1] * n, [0.0] * n) for n in (1, 5, 6, 8)}
    assert reachable([tests[6]]) == 1
    assert reachable([tests[6], tests[6]]) == 0  # 2 × 1/32
    assert reachable([tests[8], tests[8], tests[6], tests[5], tests[1], None]) == 2  # 4 × 1/128, 3 × 1/128, 2 × 1/32
