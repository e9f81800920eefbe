"""Verdicts on made-up studies, whichever way they fall."""

import dataclasses
import re
import tomllib
from importlib import resources

import pytest

from made_up import changed, collected, points
from mario.lab.result import RunResult
from mario.lab.runs.job import Job
from mario.lab.studies.collect import Collected
from mario.report import Claim, claims, claims_table, to_html, to_markdown
from mario.report.claims_table import numbers, tally

PAIRS = [0.01 * i for i in range(1, 6)]


def tables(step: float, *, quick: bool = False) -> list[Collected]:
    """MARIO above GRACE by ``step`` times five different amounts in four cases; ERM ten points below GRACE."""
    found = []
    for study, shift in (("table-concept", "concept"), ("table-covariate", "covariate")):
        rows = {"erm": [0.7] * 5, "grace": [0.8] * 5, "mario": [0.8 + step * d for d in PAIRS]}
        found.append(collected({f"{d}-{shift}": rows for d in ("good-cbas", "good-webkb")}, study=study, quick=quick))
    return found


def one(studies: list[Collected], name: str, *, whole: bool = False) -> Claim:
    return next(claim for claim in claims(studies, whole=whole) if claim.name == name)


@pytest.mark.parametrize(("step", "verdict"), [(1.0, "held"), (-1.0, "contradicted"), (0.0, "not shown")])
def test_the_main_claim_whichever_way_it_falls(step: float, verdict: str) -> None:
    claim = one(tables(step), "mario-above-grace")
    assert claim.verdict == verdict
    (comparison,) = claim.comparisons
    assert comparison.pooled is not None
    assert (comparison.pooled.test.n, len(comparison.pooled.cases)) == (20, 4)
    # The paper: 91.28 − 88.64, 37.15 − 34.86, 91.00 − 89.29, 35.24 − 28.10.
    assert comparison.paper == pytest.approx((2.64 + 2.29 + 1.71 + 7.14) / 4)


def test_where_ranks_and_mean_point_to_different_sides_nothing_is_shown() -> None:
    near = {"grace": [0.8] * 5, "mario": [0.81, 0.82, 0.83, 0.84, 0.85]}
    far = {"grace": [0.8] * 5, "mario": [0.81, 0.82, 0.83, 0.2, 0.3]}
    names = ("good-cbas-concept", "good-webkb-concept", "webkb-concept", "good-twitch-concept")
    study = collected(dict.fromkeys(names, near) | {"good-cbas-concept": far})
    (comparison,) = one([study], "mario-above-grace").comparisons
    assert comparison.pooled is not None
    assert comparison.pooled.test.mean_difference < 0 < comparison.pooled.test.side
    assert dataclasses.replace(comparison, p_holm=0.01).verdict == "not shown"


def test_a_case_without_runs_keeps_a_claim_on_each_case_from_holding() -> None:
    both = {"grace": [0.8] * 10, "mario": [0.8 + 0.001 * i for i in range(1, 11)]}
    study = collected({"good-cbas-concept": both, "good-webkb-concept": {"grace": [0.8] * 10}})
    claim = one([study], "mario-above-grace-everywhere")
    assert [c.verdict for c in claim.comparisons] == ["held", "not run"]
    assert claim.verdict == "not shown"
    assert "No runs of both: mario and grace on good-webkb-concept." in numbers(claim)


def test_runs_that_are_not_done_keep_a_claim_from_holding() -> None:
    claim = one(tables(1.0), "mario-above-grace", whole=True)
    assert claim.verdict == "not shown"
    assert {"good-twitch-concept", "webkb-covariate", "coauthor-cs-word-concept"} <= set(claim.lacking)
    assert "good-cbas-concept" not in claim.lacking
    assert [
        line for line in numbers(claim) if line.startswith("Not all runs are done, so the claim is not held: good-")
    ]
    small = one(tables(1.0), "grace-above-supervised-small", whole=True).comparisons[0]
    assert (small.verdict, small.lacking) == ("held", ())
    rows = {"erm": [0.7] * 5, "grace": [0.8, 0.81, 0.82, 0.83, None]}
    absent = {"good-cbas-concept": "its files are missing"}
    short = collected({"good-webkb-concept": rows, "good-cbas-concept": {}}, missing=absent)
    (first, *_) = one([short], "grace-above-supervised-small", whole=True).comparisons
    assert set(first.lacking) == {"good-webkb-concept", "good-cbas-covariate", "good-webkb-covariate"}
    assert "Without data: good-cbas-concept." in numbers(one([short], "grace-above-supervised-small", whole=True))
    assert "good-cora-word-concept" in one(tables(1.0), "mario-above-grace", whole=True).lacking, (
        "no plan says that it has no data"
    )
    missing = {"good-twitch-concept": "its files are missing"}
    claim = one([collected({"good-twitch-concept": {}}, missing=missing)], "mario-above-grace", whole=True)
    assert "good-twitch-concept" in claim.absent
    assert "good-twitch-concept" not in claim.lacking, "nobody can be asked for what is not there"


def test_more_seeds_of_another_row_are_not_asked_of_the_compared_ones() -> None:
    rows = {"grace": [0.8] * 5, "mario": [0.81] * 5, "erm": [0.7] * 8}
    claim = one([collected({"good-cbas-concept": rows})], "mario-above-grace", whole=True)
    assert "good-cbas-concept" not in claim.lacking
    rows["mario"] = [0.81] * 4 + [None]
    claim = one([collected({"good-cbas-concept": rows})], "mario-above-grace", whole=True)
    assert "good-cbas-concept" in claim.lacking


def test_a_case_without_data_does_not_keep_a_claim_on_each_case_from_holding() -> None:
    both = {"grace": [0.8] * 10, "mario": [0.8 + 0.001 * i for i in range(1, 11)]}
    missing = {"good-twitch-concept": "its files are missing"}
    study = collected({"good-cbas-concept": both, "good-twitch-concept": {}}, missing=missing)
    claim = one([study], "mario-above-grace-everywhere")
    assert [c.verdict for c in claim.comparisons] == ["held", "not run"]
    assert claim.verdict == "held"


def test_a_row_is_judged_by_the_curves_of_its_own_study() -> None:
    curve = points([{"step": i, "id_val": 0.5, "ood_val": 0.5 + 0.05 * i} for i in range(10)])
    table = collected({"good-cbas-concept": {"grace": [0.8], "mario": [0.9]}}, curve=curve)
    encoders = collected(
        {"good-cbas-concept": {"grace (gcn)": [0.8], "mario (gcn)": [0.9]}}, study="encoders", curve=curve
    )
    claim = one([table, encoders], "encoders")
    assert "mario (gcn) was still improving at the end of its schedule: good-cbas-concept." in numbers(claim)


def test_a_row_that_still_rose_is_named() -> None:
    curve = points([{"step": i, "id_val": 0.5, "ood_val": 0.5 + 0.05 * i} for i in range(10)])
    study = collected({"good-cbas-concept": {"grace": [0.8] * 5, "mario": [0.9] * 5}})
    study = changed(study, lambda job, _: {"curve": curve} if job.label == "grace" else {})
    assert "grace was still improving at the end of its schedule: good-cbas-concept." in numbers(
        one([study], "mario-above-grace")
    )


def test_settings_that_differ_beside_the_recipe_are_named() -> None:
    rows = {"grace": [0.8] * 5, "mario": [0.9] * 5, "mario w/o ad": [0.8] * 5, "costa": [0.8] * 5}
    study = collected({"good-cbas-concept": rows})
    values = {"grace": 0.01, "mario": 0.1, "mario w/o ad": 0.2, "costa": 0.3}
    recipe = {"gamma": 0.1}
    study = changed(
        study,
        lambda job, _: {"settings": {"lr": values[job.label], "tau": 0.5, **(recipe if "mario" in job.label else {})}},
    )
    said = [line for line in numbers(one([study], "mario-best")) if line.startswith("Not only the recipe")]
    assert said == ["Not only the recipe differs: mario and grace each have their own lr."], "other methods are others"
    ablation = collected({"good-cbas-concept": rows}, study="ablation")
    ablation = changed(ablation, lambda job, _: {"settings": {"adversarial": job.label == "mario"}})
    assert not one([ablation], "ablation").apart, "what an ablation takes away is what it is about"


def test_five_pairs_per_case_cannot_hold_and_it_is_said() -> None:
    claim = one(tables(1.0), "mario-above-grace-everywhere")
    assert [c.case for c in claim.comparisons][:2] == ["good-cbas-concept", "good-webkb-concept"]
    assert (claim.verdict, claim.possible) == ("not shown", 0)
    assert numbers(claim)[0] == (
        "OOD, mario − grace on good-cbas-concept: +3.00 (95 % interval +1.20 to +4.80; 5 pairs; 5 won, 0 tied, 0 lost; "
        "p = 0.250; the paper has +2.64)"
    )
    assert numbers(claim)[-1] == "With so few pairs, no difference could be significant."


def test_a_part_that_was_not_run_keeps_a_claim_from_being_held() -> None:
    claim = one(tables(1.0), "contrast-above-erm")
    assert [(c.label, c.verdict) for c in claim.comparisons] == [
        ("grace", "held"), ("bgrl", "not run"), ("costa", "not run")
    ]  # fmt: skip
    assert claim.verdict == "not shown"
    assert "No runs of both: bgrl and erm, costa and erm." in numbers(claim)


def test_others_are_the_trained_rows_without_labels() -> None:
    rows = {name: [0.8] * 6 for name in ("erm", "raw-features", "dgi", "grace")} | {
        "mario": [0.81 + 0.01 * i for i in range(6)]
    }
    claim = one([collected({"good-cbas-concept": rows})], "mario-best")
    assert [c.against for c in claim.comparisons] == ["dgi", "grace"]
    assert claim.verdict == "not shown"  # 2 × 1/32
    assert [c.p_holm for c in claim.comparisons] == [0.0625, 0.0625]


def test_stars_mean_the_same_text() -> None:
    encoders = {
        "erm (sage)": [0.7],
        "grace (gcn)": [0.8],
        "mario (gcn)": [0.9],
        "grace (sage)": [0.7],
        "mario (sage)": [0.8],
    }
    claim = one([collected({"good-cbas-concept": encoders}, study="encoders", paper="Table 5")], "encoders")
    assert [(c.label, c.against) for c in claim.comparisons] == [
        ("mario (gcn)", "grace (gcn)"), ("mario (sage)", "grace (sage)"), ("mario (sage)", "erm (sage)")
    ]  # fmt: skip
    hosts = {"costa": [0.8], "costa+mario": [0.9], "grace": [0.8], "grace+mario": [0.85]}
    claim = one([collected({"good-cbas-concept": hosts}, study="other-methods", paper="Table 8")], "hosts-id")
    assert [(c.label, c.against) for c in claim.comparisons] == [("costa+mario", "costa"), ("grace+mario", "grace")]
    assert claim.comparisons[0].paper == pytest.approx(98.00 - 93.50)


def test_a_smaller_gap_is_the_claimed_sign() -> None:
    def wider(job: Job, result: RunResult) -> dict[str, float]:
        assert result.scores.id_test is not None
        return {"id_test": result.scores.id_test + 0.001 * (job.spec.seed + 1)} if job.label == "erm" else {}

    claim = one([changed(study, wider) for study in tables(1.0)], "gap")
    assert claim.verdict == "held"
    assert claim.comparisons[0].paper is not None
    assert "gap between ID and OOD, mario − erm: −0.30" in numbers(claim)[0]


def test_groups_are_told_by_their_medians() -> None:
    study = collected({"amazon-photo-concept": {"erm": [0.5] * 3, "mario": [0.6] * 3}}, study="photo", paper="Figure 3")
    groups = {"mario": {"T1": 0.6, "T2": 0.6}, "erm": {"T1": 0.5, "T2": 0.7}}
    claim = one([changed(study, lambda job, _: {"groups": groups[job.label]})], "photo")
    assert claim.comparisons[0].groups == (1, 2)
    assert "median above in 1 of 2 groups" in numbers(claim)[0]
    assert claim.verdict == "not shown"
    held = dataclasses.replace(claim.comparisons[0], p_holm=0.01)
    assert held.verdict == "not shown", "it is claimed of every group"
    assert dataclasses.replace(held, groups=(2, 2)).verdict == "held"
    assert dataclasses.replace(held, less=True, groups=(0, 2)).verdict == "contradicted"
    assert dataclasses.replace(held, every_group=False).verdict == "held"


def test_only_the_datasets_of_the_claim() -> None:
    study = collected({f"{d}-concept": {"erm": [0.7] * 5, "grace": [0.8] * 5} for d in ("good-cbas", "webkb")})
    (first, *_) = one([study], "grace-above-supervised-small").comparisons
    assert first.pooled is not None
    assert first.pooled.cases == ("good-cbas-concept",)


def test_nothing_run_and_the_quick_form_are_said() -> None:
    assert {claim.verdict for claim in claims([])} == {"not run"}
    assert numbers(claims([])[0]) == ["No runs to compare yet."]
    assert "From the quick form, from which nothing follows." in numbers(
        one(tables(1.0, quick=True), "mario-above-grace")
    )


def test_a_case_that_two_studies_share_counts_once() -> None:
    curves = collected({"good-cbas-concept": {"erm": [0.7] * 5, "mario": [0.9] * 5}}, study="curves")
    (comparison,) = one([*tables(1.0), curves], "gap").comparisons
    assert comparison.pooled is not None
    assert comparison.pooled.test.n == 20


def test_rendered_claims_are_whole_and_escaped() -> None:
    found = claims(tables(1.0), whole=False)
    text = to_markdown(claims_table(found))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == len(found) + 2
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {4}
    assert rows[2].startswith("| **held** | MARIO is above GRACE")
    assert "p &lt; 0.001" in rows[2]
    html = to_html(claims_table(found))
    assert html.count("<tr class=") == len(found)
    assert '<tr class="not-shown"' in html
    assert 'scope="row"' in html
    assert "p < 0.05" not in html  # escaped
    assert tally(found).startswith(f"Of {len(found)} claims, ")


def test_every_claim_is_of_studies_that_there_are() -> None:
    text = resources.files("mario.report").joinpath("claims.toml").read_text(encoding="utf-8")
    known = {"name", "claim", "said", "where", "studies", "datasets", "compare", "each", "score", "less"}
    studies = resources.files("mario.lab").joinpath("studies")
    for entry in tomllib.loads(text)["claim"]:
        assert set(entry) <= known
        assert all(studies.joinpath(f"{name}.toml").is_file() for name in entry["studies"])
