"""The entries of made-up studies, worked by hand."""

import math

import pytest

from made_up import changed, collected
from mario.lab.statistics.paired import holm
from mario.report.tables.entries import Entry, best_two, entries


def row(rows: list[Entry], label: str, case: str = "good-cbas-concept") -> Entry:
    return next(r for r in rows if (r.label, r.case.name) == (label, case))


CBAS = {"erm": [0.80, 0.82], "raw-features": [0.95, 0.95], "grace": [0.88, 0.90], "mario": [0.90, 0.93]}


def test_an_entry_sums_up_its_runs_beside_the_paper() -> None:
    rows = entries(collected({"good-cbas-concept": CBAS}))
    assert [r.label for r in rows] == ["erm", "raw-features", "grace", "mario"]
    mario = row(rows, "mario")
    ood, id_test, gap, splits = mario.ood.ours, mario.id.ours, mario.scores["gap"].ours, mario.ood.by_split
    assert ood is not None
    assert id_test is not None
    assert gap is not None
    assert splits is not None
    assert (mario.n, mario.asked, mario.why) == (2, 2, "")
    assert (ood.mean, ood.sd) == (pytest.approx(0.915), pytest.approx(0.03 / math.sqrt(2)))
    assert (id_test.mean, gap.mean) == (pytest.approx(0.965), pytest.approx(0.05))
    assert (splits.n_splits, splits.sd) == (2, ood.sd)
    # The paper has 91.28 ± 1.10 and 94.36 ± 1.21.
    assert (mario.ood.off, mario.ood.off_sd) == (pytest.approx(0.22), pytest.approx(0.2))
    assert (mario.id.off, mario.id.off_sd) == (pytest.approx(2.14), pytest.approx(2.14 / 1.21))
    assert row(rows, "raw-features").ood.off is None
    assert [r.supervised for r in rows] == [True, False, False, False]
    assert [r.control for r in rows] == [False, True, False, False]


def test_places_are_among_all_rows_with_controls_and_supervised_ones() -> None:
    rows = entries(collected({"good-cbas-concept": CBAS | {"dgi": [0.915, 0.915]}}))
    best = max(r.ood.ours.mean for r in rows if r.ood.ours)
    assert {r.label: r.ood.place for r in rows if r.ood.place} == {"raw-features": 1, "mario": 2, "dgi": 2}
    assert row(rows, "raw-features").ood.ours.mean == best  # type: ignore[union-attr]
    assert best_two({"a": None, "b": None}) == {}


def test_every_row_is_tested_against_the_reference_and_holm_takes_all_cases() -> None:
    webkb = {"grace": [0.30] * 6, "mario": [0.31, 0.32, 0.33, 0.34, 0.35, 0.36], "erm": [0.2, 0.4, 0.2, 0.4, 0.2, 0.4]}
    rows = entries(collected({"good-cbas-concept": CBAS, "good-webkb-concept": webkb}))
    assert {r.label: r.against for r in rows} == {
        "erm": "grace",
        "raw-features": "grace",
        "grace": None,
        "mario": "grace",
    }
    tested = [r for r in rows if r.test is not None]
    assert len(tested) == 5
    assert [r.p_holm for r in tested] == holm([r.test.p_wilcoxon for r in tested if r.test])
    # All six pairs of one sign give 1/32, times the five tests of the study.
    assert row(rows, "mario", "good-webkb-concept").p_holm == pytest.approx(5 / 32)


def test_the_subject_is_marked_on_every_encoder_and_host() -> None:
    def marked(scores: dict[str, list[float]], **plan: str) -> list[str]:
        return [r.label for r in entries(collected({"good-cbas-concept": scores}, **plan)) if r.subject]  # type: ignore[arg-type]

    assert marked(CBAS) == ["mario"]
    of_encoders = {f"{name} ({encoder})": [0.8] for encoder in ("gcn", "sage") for name in ("erm", "grace", "mario")}
    assert marked(of_encoders, reference="grace (gcn)", subject="mario (gcn)") == ["mario (gcn)", "mario (sage)"]
    hosts = {key: [0.8] for key in ["grace", "mario", "costa", "costa+mario"]}
    assert marked(hosts) == ["mario", "costa+mario"]
    ablation = {key: [0.8] for key in ["mario", "mario w/o ad", "mario w/o cmi"]}
    assert marked(ablation, reference="mario", subject="mario") == ["mario"]
    steady = {key: [0.8] for key in ["grace", "mario", "mario strong", "grace+steady"]}
    assert marked(steady, subject="mario strong") == ["mario strong"]


def test_encoders_are_compared_with_the_reference_of_the_same_encoder() -> None:
    scores = {
        "erm (gcn)": [0.8],
        "grace (gcn)": [0.85],
        "mario (gcn)": [0.9],
        "grace (sage)": [0.7],
        "mario (sage)": [0.6],
    }
    rows = entries(collected({"good-cbas-concept": scores}, paper="Table 5", reference="grace (gcn)"))
    assert {r.label: r.against for r in rows} == {
        "erm (gcn)": "grace (gcn)", "grace (gcn)": None, "mario (gcn)": "grace (gcn)", "grace (sage)": None,
        "mario (sage)": "grace (sage)",
    }  # fmt: skip
    sage = row(rows, "mario (sage)")
    assert sage.test is not None
    assert sage.test.mean_difference == pytest.approx(-0.1)
    assert str(sage.ood.paper) == "76.29 ± 3.01"
    assert {r.label: r.ood.place for r in rows if r.ood.place} == {
        "mario (gcn)": 1, "grace (gcn)": 2, "grace (sage)": 1, "mario (sage)": 2,
    }  # fmt: skip


def test_a_recipe_is_compared_with_its_host() -> None:
    scores = {"grace": [0.8], "grace+mario": [0.9], "costa": [0.7], "costa+mario": [0.75]}
    rows = entries(collected({"good-cbas-concept": scores}, paper="Table 8", reference="costa"))
    assert {r.label: r.against for r in rows} == {
        "grace": None, "grace+mario": "grace", "costa": None, "costa+mario": "costa",
    }  # fmt: skip
    assert str(row(rows, "costa+mario").ood.paper) == "94.36 ± 1.51"
    graphs = {"erm": [0.7], "raw-features": [0.6], "graphcl": [0.7], "graphcl+mario": [0.8]}
    rows = entries(collected({"proteins-25-covariate": graphs}, paper="Table 7", reference="graphcl"))
    assert [r.against for r in rows] == ["graphcl", "graphcl", None, "graphcl"]
    assert [str(r.ood.paper) for r in rows] == ["77.24 ± 0.95", "None", "76.92 ± 0.91", "78.08 ± 0.97"]


def test_ablations_are_of_table_4() -> None:
    scores = {"mario": [0.9], "mario w/o ad": [0.89], "mario w/o cmi, ad": [0.88]}
    rows = entries(collected({"good-cbas-concept": scores}, paper="Table 4", reference="mario"))
    figures = [r.ood.paper for r in rows]
    assert [(str(f), f.table) for f in figures if f] == [
        ("91.28 ± 1.10", "Table 4"), ("90.29 ± 0.91", "Table 4"), ("89.64 ± 1.73", "Table 4"),
    ]  # fmt: skip
    assert [r.against for r in rows] == [None, "mario", "mario"]


def test_why_runs_are_missing() -> None:
    scores = {
        "good-cbas-concept": {"grace": [0.9, None, None], "mvgrl": [None, None], "mario": [None]},
        "good-twitch-concept": {"mario": [None, None]},
    }
    rows = entries(
        collected(
            scores,
            missing={"good-twitch-concept": "the files are missing"},
            failed={("good-cbas-concept", "mvgrl"): "MemoryError: 20 GB"},
        )
    )
    assert {(r.label, r.n, r.asked, r.why) for r in rows} == {
        ("grace", 1, 3, "2 not done"),
        ("mvgrl", 0, 2, "2 failed (MemoryError: 20 GB)"),
        ("mario", 0, 1, "1 not done"),
        ("mario", 0, 2, "the files are missing"),
    }
    twitch = row(rows, "mario", "good-twitch-concept")
    assert (twitch.ood.ours, str(twitch.ood.paper)) == (None, "63.33 ± 1.72")


def test_groups_are_summed_up_and_placed() -> None:
    of = {"grace": {"T1": 0.5, "T2": 0.6}, "mario": {"T1": 0.7, "T2": 0.4}}
    study = collected({"amazon-photo-concept": {"grace": [0.55, 0.55], "mario": [0.55, 0.55]}})
    grace, mario = entries(changed(study, lambda job, _: {"groups": of[job.label]}))
    means = {name: score.ours.mean for name, score in mario.groups.items() if score.ours}
    assert means == {"T1": pytest.approx(0.7), "T2": pytest.approx(0.4)}
    assert {name: score.place for name, score in grace.groups.items()} == {"T1": 2, "T2": 1}
    assert {name: score.place for name, score in mario.groups.items()} == {"T1": 1, "T2": 2}
    assert (grace.ood.place, mario.ood.place) == (1, 1)
