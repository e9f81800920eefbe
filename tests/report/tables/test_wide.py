"""The table of a study from made-up runs: its shape, its marks and what it says under it."""

import pytest

from made_up import collected
from mario.report.tables.wide import wide_table

UP = [0.01, 0.02, 0.03, 0.04, 0.05]
CASES = {
    "good-cbas-concept": {"erm": [0.80] * 5, "irm": [0.80] * 5, "grace": [0.88] * 5, "mario": [0.88 + d for d in UP]},
    "good-twitch-concept": {"erm": [0.50], "grace": [0.55], "mario": [0.60]},
    "good-webkb-concept": {"erm": [0.2] * 5, "irm": [0.3] * 5, "grace": [0.3] * 5, "mario": [0.3 + d for d in UP]},
}


def test_a_row_a_label_and_two_columns_a_case() -> None:
    table = wide_table(collected(CASES))
    assert table.rows == ("erm", "irm", "grace", "mario")
    assert [(c.case, c.head) for c in table.columns] == [(case, head) for case in CASES for head in ("ID", "OOD")]
    assert table.cases == [("good-cbas, color", 2), ("good-twitch, language", 2), ("good-webkb, university", 2)]
    assert [len(row) for row in table.cells] == [6] * 4
    cell = table.cell("mario", "good-cbas-concept")
    assert cell.ours is not None
    assert cell.ours.mean == pytest.approx(0.91)
    assert (cell.place, cell.count, cell.against, str(cell.paper)) == (1, "5", "grace", "91.28 ± 1.10")
    assert table.cell("mario", "good-cbas-concept", "id").test is None
    assert table.heading == "All methods under concept shift (Table 2 of the paper)"


def test_what_a_case_does_not_ask_for_has_the_papers_figure_alone() -> None:
    cell = wide_table(collected(CASES)).cell("irm", "good-twitch-concept")
    assert (cell.ours, cell.empty, cell.asked, str(cell.paper)) == (None, "–", 0, "59.30 ± 1.79")


def test_five_pairs_cannot_be_marked_and_all_cases_together_can() -> None:
    table = wide_table(collected(CASES))
    assert not any(cell.direction for row in table.cells for cell in row)
    assert any("too few pairs a case for any scores to reach that" in note for note in table.notes)
    assert any("The last column takes the runs of all cases together: OOD less that of grace" in n for n in table.notes)
    erm, irm, grace, mario = table.overall
    assert grace is None
    assert mario is not None
    assert (mario.pooled.test.n, mario.pooled.above, len(mario.pooled.cases)) == (11, 3, 3)
    assert (mario.direction, table.overall_against) == ("above", "grace")
    assert erm is not None
    assert erm.direction == "below"
    assert irm is not None
    assert (irm.pooled.test.n, irm.pooled.cases) == (10, ("good-cbas-concept", "good-webkb-concept"))


def test_enough_pairs_are_marked_both_ways() -> None:
    rows = {"erm": [0.8 - 0.01 * i for i in range(9)], "grace": [0.85] * 9, "mario": [0.9 + 0.01 * i for i in range(9)]}
    table = wide_table(collected({"good-cbas-concept": rows}))
    assert [table.cell(label, "good-cbas-concept").direction for label in rows] == ["below", "", "above"]
    assert table.overall == ()
    assert any("Holm-corrected for the 2 tests of this table." in note for note in table.notes)


def test_missing_failed_and_short_cells_say_so() -> None:
    table = wide_table(
        collected(
            {
                "good-cbas-concept": {"grace": [0.9, 0.9, 0.9], "mvgrl": [None] * 3, "mario": [0.9, None, None]},
                "good-twitch-concept": {"grace": [None], "mario": [None]},
                "webkb-concept": {"grace": [0.5], "mario": [None]},
            },
            missing={"good-twitch-concept": "the files of good-twitch are not at hand"},
            failed={("good-cbas-concept", "mvgrl"): "MemoryError: 20 GB"},
        )
    )
    assert table.cell("mario", "good-cbas-concept").count == "1 of 3"
    assert table.cell("mvgrl", "good-cbas-concept").empty == "failed"
    assert table.cell("mario", "good-twitch-concept").empty == "no data"
    assert str(table.cell("mario", "good-twitch-concept").paper) == "63.33 ± 1.72"
    assert table.cell("mario", "webkb-concept").empty == "not done"
    for said in (
        "good-twitch-concept: the files of good-twitch are not at hand.",
        "good-cbas-concept, mvgrl: 3 failed (MemoryError: 20 GB).",
        "good-cbas-concept, mario: 2 not done.",
    ):
        assert said in table.notes


def test_what_several_cases_lack_is_said_once() -> None:
    rows = {"grace": [0.5], "mario": [None]}
    study = collected(
        {f"{name}-concept": rows for name in ("good-cbas", "webkb", "good-webkb", "good-twitch")},
        missing=dict.fromkeys(("good-webkb-concept", "good-twitch-concept"), "no files"),
    )
    notes = wide_table(study).notes
    assert "good-webkb-concept, good-twitch-concept: no files." in notes
    assert "good-cbas-concept, webkb-concept, mario: 1 not done." in notes


def test_the_metric_without_a_run_is_that_of_the_dataset() -> None:
    (first, *_) = wide_table(collected({"elliptic-label": {"grace": [None], "mario": [None]}})).columns
    assert first.metric_name == "F1"


def test_notes_say_metric_faults_quick_controls_and_unequal_schedules() -> None:
    study = collected(
        {"good-webkb-concept": {"raw-features": [0.6], "grace": [0.3], "mario": [0.35]}},
        quick=True,
        metric="roc_auc",
        faults=["Cornell's rows are Texas's."],
    )
    study.cases[0].results[1]["steps"] = 600
    study.cases[0].results[0]["steps"] = 0  # a control does not train
    text = "\n".join(wide_table(study).notes)
    assert "ROC-AUC in percent" in text
    assert "known fault of the data: Cornell's rows are Texas's." in text
    assert "The quick form" in text
    assert "A control is above every trained method without labels, OOD: good-webkb-concept (raw-features)." in text
    assert "not the same number of steps everywhere (200, 600)" in text


def test_one_split_is_said() -> None:
    study = collected({"amazon-photo-concept": {"grace": [0.9, 0.8], "mario": [0.9, 0.8]}}, split_seed=0)
    assert "All runs of a case share its one split" in wide_table(study).notes[0]


def test_groups_have_columns_and_id_only_where_there_is_one() -> None:
    study = collected({"amazon-photo-concept": {"grace": [0.5], "mario": [0.6]}})
    for run in study.cases[0].results:
        del run["scores"]["id_test"]
        run["scores"]["groups"] = {"T1": run["scores"]["ood_test"], "T2": 0.4}
    table = wide_table(study)
    assert [c.head for c in table.columns] == ["OOD", "T1", "T2"]
    assert [c.place for c in table.cells[1]] == [1, 1, 1]
    assert table.cell("mario", "amazon-photo-concept", "T1").test is None


def test_no_validation_set_is_said() -> None:
    study = collected({"proteins-25-covariate": {"graphcl": [0.7], "graphcl+mario": [0.8]}}, reference="graphcl")
    for run in study.cases[0].results:
        run["scores"] = {"ood_test": run["scores"]["ood_test"], "chosen_on": {"ood_test": "last"}}
    assert "the last checkpoint counts" in wide_table(study).notes[0]
