"""The tables of a document, written between their markers."""

from pathlib import Path

import pytest

from made_up import collected
from mario.cli.document import check_markers, markers, section, write_document
from mario.errors import MarioError
from mario.lab.studies.collect import Collected
from report.test_registered import even, study


def marked(part: str, text: str) -> str:
    begin, end = markers(part)
    return f"{begin}\n{text}\n{end}"


def between(part: str, text: str) -> str:
    begin, end = markers(part)
    return text.split(begin)[1].split(end)[0]


def table(**other: object) -> Collected:
    scores = {"good-cbas-concept": {"grace": [0.9, 0.8], "mario": [0.95, None]}}
    return collected(scores, **other)  # type: ignore[arg-type]


def test_tables_are_between_the_markers_and_the_text_around_them_stays(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    kept = marked("study ablation", "kept")
    page.write_text(f"before\n{marked('study table-concept', 'what was there')}\n{kept}\nafter\n")
    empty = collected({"good-cbas-concept": {"mario": [None]}}, study="ablation")
    write_document(page, [table(), empty])
    text = page.read_text()
    assert kept in text, "a study without a run stays as it was"
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "what was there" not in text
    assert "91.28 ± 1.10" in text, "the paper's figure is beside ours"
    assert "1 not done" in text, "a row with fewer runs than asked says so"
    write_document(page, [table()])
    assert page.read_text() == text


def test_claims_are_written_where_a_document_has_a_place_for_them(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text(f"{marked('study table-concept', '')}\n{marked('claims', 'before')}\n")
    write_document(page, [table()])
    text = page.read_text()
    assert "before" not in text
    assert "MARIO is above GRACE" in between("claims", text)


def test_a_page_with_a_place_for_the_summary_needs_none_for_each_study(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"before\n{marked('summary', 'what was there')}\nafter\n")
    rows = ("raw-features", "random-init", "erm", "grace", "mario")
    write_document(page, [collected({"good-cbas-concept": {row: [0.5, 0.75] for row in rows}})])
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "what was there" not in text
    assert "| good-cbas color concept | 62.50 ± 17.68 |" in text


def test_convergence_is_written_where_a_document_has_a_place_for_it(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text(f"{marked('study table-concept', '')}\n{marked('convergence', 'before')}\n")
    write_document(page, [table()])
    text = page.read_text()
    assert "before" not in text
    assert "| late gain id_val |" in between("convergence", text)


def test_a_study_that_is_judged_by_validation_shows_no_test_score() -> None:
    variants = table(study="variants", plan={"show": ("validation",)})
    assert section(variants).splitlines() == [
        "**good-cbas-concept: validation scores, percent, mean ± sd**",
        "",
        "| variant | n | ID validation | OOD validation |",
        "|:---|---:|---:|---:|",
        "| grace | 2 | 90.00 ± 0.00 | 80.00 ± 0.00 |",
        "| mario | 1 | 90.00 | 80.00 |",
    ]


def test_a_document_without_a_place_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(MarioError, match="no place for the study table-concept: it needs the lines <!-- study"):
        write_document(page, [table()])
    page.write_text("\n".join(reversed(markers("study table-concept"))))
    with pytest.raises(MarioError, match="no place"):
        check_markers(page, ["table-concept"])
    with pytest.raises(MarioError, match="no file"):
        check_markers(tmp_path / "absent.md", [])


def test_no_placeholder_is_left_in_the_documents() -> None:
    root = Path(__file__).parents[2]
    for page in [root / "README.md", *root.glob("docs/**/*.md")]:
        assert "RESULTS_" not in page.read_text(encoding="utf-8"), page


def test_the_outcome_of_a_registered_study_has_sentences_and_a_picture_beside_the_document(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    parts = ("outcome steady", "study steady", "claims", "convergence")
    page.write_text("\n".join(marked(part, "before") for part in parts))
    write_document(page, [study(even(0.1))])
    text = page.read_text()
    said = between("outcome steady", text)
    assert "10.10 points above GRACE" in said
    assert "](steady-columns.svg)" in said
    assert (tmp_path / "steady-columns.svg").read_text().startswith("<svg")
    assert "**The registered comparisons: mean over columns, points**" in between("study steady", text)
    assert "before" in between("claims", text), "nothing of the paper was run"
    assert "before" in between("convergence", text)


def test_before_a_column_is_done_the_outcome_has_no_picture(tmp_path: Path) -> None:
    page = tmp_path / "results.md"
    page.write_text(f"{marked('outcome steady', '')}\n{marked('study steady', 'kept')}\n")
    write_document(page, [study(lambda *_: None)])
    assert "0 of 21 columns done" in between("outcome steady", page.read_text())
    assert "kept" in between("study steady", page.read_text())
    assert list(tmp_path.iterdir()) == [page]
