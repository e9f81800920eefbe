"""The table of a study from made-up runs: its shape, its marks and what it says under it."""

from made_up import changed, collected
from mario.report.tables.columns import CASE_COLUMNS, CaseColumn
from mario.report.tables.entries import entries
from mario.report.tables.study import overall_of, study_table
from mario.report.tables.table import Cell

UP = [0.01, 0.02, 0.03, 0.04, 0.05]
CASES = {
    "good-cbas-concept": {"erm": [0.80] * 5, "irm": [0.80] * 5, "grace": [0.88] * 5, "mario": [0.88 + d for d in UP]},
    "good-twitch-concept": {"erm": [0.50], "grace": [0.55], "mario": [0.60]},
    "good-webkb-concept": {"erm": [0.2] * 5, "irm": [0.3] * 5, "grace": [0.3] * 5, "mario": [0.3 + d for d in UP]},
}


def test_a_line_per_row_and_two_columns_per_case() -> None:
    table = study_table(collected(CASES))
    assert [line.label for line in table.lines] == ["erm", "irm", "grace", "mario"]
    method, *columns, overall = table.columns
    assert (method.head, overall.group, overall.head) == ("method", "all cases", "OOD − grace")
    assert [(c.case, c.head) for c in columns] == [(case, head) for case in CASES for head in ("ID", "OOD")]
    groups = [(column.group, width) for column, width in table.spans[1:-1]]
    assert groups == [("good-cbas, color", 2), ("good-twitch, language", 2), ("good-webkb, university", 2)]
    assert [len(line.cells) for line in table.lines] == [8] * 4
    cell = table.cell("mario", "OOD", "good-cbas-concept")
    assert cell.text == "91.00 ± 1.58"
    assert (cell.emphasis, cell.count, cell.paper) == ("best", "5", "91.28 ± 1.10")
    assert table.title == "All methods under concept shift (Table 2 of the paper)"


def test_what_a_case_does_not_ask_for_has_the_papers_figure_alone() -> None:
    cell = study_table(collected(CASES)).cell("irm", "OOD", "good-twitch-concept")
    assert (cell.text, cell.sort, cell.count, cell.paper) == ("–", "", "", "59.30 ± 1.79")


def test_five_pairs_cannot_be_marked_and_all_cases_together_can() -> None:
    study = collected(CASES)
    table = study_table(study)
    assert not any(cell.direction for line in table.lines for cell in line.cells[:-1])
    notes = table.notes
    assert any("With so few pairs per case, no difference could reach significance" in note for note in notes)
    assert any(
        "The last column takes the runs of all cases together: OOD minus that of grace" in n for n in table.notes
    )
    overall = overall_of(study, entries(study))
    assert list(overall) == ["erm", "irm", "mario"]
    mario, irm = overall["mario"], overall["irm"]
    assert (mario.test.n, mario.above, len(mario.cases), mario.against) == (11, 3, 3, "grace")
    assert (irm.test.n, irm.cases) == (10, ("good-cbas-concept", "good-webkb-concept"))
    assert [line.cells[-1].direction for line in table.lines] == ["below", "", "", "above"]
    assert table.cell("mario", "OOD − grace").detail.startswith("11 pairs, 3 of 3 cases above, p")


def test_enough_pairs_are_marked_both_ways() -> None:
    rows = {"erm": [0.8 - 0.01 * i for i in range(9)], "grace": [0.85] * 9, "mario": [0.9 + 0.01 * i for i in range(9)]}
    table = study_table(collected({"good-cbas-concept": rows}))
    assert [table.cell(label, "OOD").direction for label in rows] == ["below", "", "above"]
    assert [column.head for column in table.columns] == ["method", "ID", "OOD"], "one case has no column for all cases"
    assert any("Holm-corrected for the 2 tests of this table." in note for note in table.notes)


def test_missing_failed_and_short_cells_say_so() -> None:
    table = study_table(
        collected(
            {
                "good-cbas-concept": {"grace": [0.9, 0.9, 0.9], "mvgrl": [None] * 3, "mario": [0.9, None, None]},
                "good-twitch-concept": {"grace": [None], "mario": [None]},
                "webkb-concept": {"grace": [0.5], "mario": [None]},
            },
            missing={"good-twitch-concept": "the files of good-twitch are missing"},
            failed={("good-cbas-concept", "mvgrl"): "MemoryError: 20 GB"},
        )
    )
    short = table.cell("mario", "OOD", "good-cbas-concept")
    assert (short.count, short.short) == ("1 of 3", True)
    assert table.cell("mvgrl", "OOD", "good-cbas-concept").text == "failed"
    assert table.cell("mario", "OOD", "good-twitch-concept").text == "no data"
    assert table.cell("mario", "OOD", "good-twitch-concept").paper == "63.33 ± 1.72"
    assert table.cell("mario", "OOD", "webkb-concept").text == "not done"
    for said in (
        "good-twitch-concept: the files of good-twitch are missing.",
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
    notes = study_table(study).notes
    assert "good-webkb-concept, good-twitch-concept: no files." in notes
    assert "good-cbas-concept, webkb-concept, mario: 1 not done." in notes


def test_the_metric_without_a_run_is_that_of_the_dataset() -> None:
    (_, first, *_) = study_table(collected({"elliptic-label": {"grace": [None], "mario": [None]}})).columns
    assert first.unit == "F1 %"


def test_notes_say_metric_faults_quick_controls_and_unequal_schedules() -> None:
    study = collected(
        {"good-webkb-concept": {"raw-features": [0.6], "grace": [0.3], "mario": [0.35]}},
        quick=True,
        metric="roc_auc",
        faults=["Cornell's rows are Texas's."],
    )
    steps = {"raw-features": 0, "grace": 600, "mario": 200}  # a control does not train
    study = changed(study, lambda job, _: {"steps": steps[job.label]})
    text = "\n".join(study_table(study).notes)
    assert "ROC-AUC in percent" in text
    assert "known fault of the data: Cornell's rows are Texas's." in text
    assert "The quick form" in text
    assert "A control is above every trained method without labels, OOD: good-webkb-concept (raw-features)." in text
    assert "not the same number of steps everywhere (200, 600)" in text


def test_one_split_is_said() -> None:
    study = collected({"amazon-photo-concept": {"grace": [0.9, 0.8], "mario": [0.9, 0.8]}}, split_seed=0)
    assert "All runs of a case share its one split" in study_table(study).notes[0]


def test_groups_have_columns_and_id_only_where_there_is_one() -> None:
    study = collected({"amazon-photo-concept": {"grace": [0.5], "mario": [0.6]}})
    groups = {"grace": {"T1": 0.5, "T2": 0.4}, "mario": {"T1": 0.6, "T2": 0.4}}
    table = study_table(changed(study, lambda job, _: {"id_test": None, "groups": groups[job.label]}))
    assert [c.head for c in table.columns] == ["method", "OOD", "T1", "T2"]
    assert [c.emphasis for c in table.lines[1].cells[1:]] == ["best"] * 3
    assert table.cell("mario", "T1").direction == ""


def test_no_validation_set_is_said() -> None:
    study = collected({"proteins-25-covariate": {"graphcl": [0.7], "graphcl+mario": [0.8]}}, reference="graphcl")
    last = {"id_test": None, "id_val": None, "ood_val": None, "chosen_on": {"ood_test": "last"}}
    assert "the last checkpoint counts" in study_table(changed(study, lambda *_: last)).notes[0]


def test_fewer_pairs_than_runs_is_said() -> None:
    notes = study_table(collected({"good-cbas-concept": {"grace": [0.9], "mario": [0.9, 0.9]}})).notes
    assert "good-cbas-concept, mario: compared with grace on the 1 run that both have." in notes
    notes = study_table(collected({"good-cbas-concept": {"grace": [0.9, 0.9], "mario": [0.9, 0.9]}})).notes
    assert not any("that both have" in note for note in notes)


def test_without_the_reference_nothing_is_compared() -> None:
    table = study_table(collected({"good-cbas-concept": {"erm": [0.8, 0.8], "mario": [0.9, 0.9]}}))
    assert "Nothing is tested: there is no row of grace to compare with." in table.notes
    assert not any(cell.direction for line in table.lines for cell in line.cells)


def test_out_of_memory_in_the_paper_is_shown_as_such() -> None:
    table = study_table(collected({"good-twitch-concept": {"mvgrl": [0.9]}}, metric="roc_auc"))
    assert [table.cell("mvgrl", head).paper for head in ("ID", "OOD")] == ["OOM", "OOM"]
    assert table.columns[1].unit == "ROC-AUC %"


def test_a_detailed_table_has_the_gap_and_the_difference() -> None:
    scores = {"grace": [0.88, 0.90], "mario": [0.90, 0.94]}
    table = study_table(collected({"good-cbas-concept": scores}), detail=True)
    assert [column.head for column in table.columns] == ["method", "ID", "OOD", "gap", "OOD − grace"]
    assert [cell.text for cell in table.lines[1].cells[3:]] == ["5.00 ± 0.00", "+3.00"]
    assert table.cell("grace", "OOD − grace").text == "–"


def test_a_column_is_declared_in_one_place() -> None:
    column = CaseColumn(head="done", score="ood_test", cell=lambda entry: Cell(text=f"{entry.n} of {entry.asked}"))
    CASE_COLUMNS.append(column)
    try:
        table = study_table(collected({"good-cbas-concept": {"grace": [0.9, None]}}))
    finally:
        CASE_COLUMNS.remove(column)
    assert [column.head for column in table.columns] == ["method", "ID", "OOD", "done"]
    assert table.cell("grace", "done").text == "1 of 2"


def test_a_study_without_rows_has_a_table_without_lines() -> None:
    study = collected({"elliptic-label": {}})
    table = study_table(study)
    assert (table.lines, [column.head for column in table.columns]) == ((), ["method", "OOD"])
