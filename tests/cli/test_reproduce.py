"""The tables of a results page, written between their markers."""

from pathlib import Path

import pytest

from mario.cli.reproduce import BEGIN, END, write_tables
from mario.errors import MarioError
from mario.experiments.comparison import Job
from mario.experiments.run import finish

QUICK = {"hidden": 8, "layers": 1, "epochs": 1, "steps_per_epoch": 1, "probe_epochs": 2}


def test_tables_stand_between_the_markers_and_the_text_around_them_stays(tmp_path: Path) -> None:
    jobs = [
        Job(dataset="good-cbas", method=method, shift="concept", seed=seed, given=given, label=method)
        for method, given in (("grace", QUICK), ("mario", {**QUICK, "clusters": 3}))
        for seed in range(2)
    ]
    for job in jobs[:-1]:
        run = job.plan()
        finish(run, run.load(), tmp_path / run.digest())
    page = tmp_path / "results.md"
    name = "good-cbas-concept"
    other = f"{BEGIN.format('variants')}\nkept\n{END.format('variants')}"
    page.write_text(f"before\n{BEGIN.format(name)}\nold\n{END.format(name)}\n{other}\nafter\n")
    write_tables(page, {name: jobs, "variants": []}, tmp_path)
    text = page.read_text()
    assert other in text, "a table without runs stays as it was"
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "### good-cbas-concept" in text
    assert "91.28" in text, "the paper's figure stands beside ours"
    assert "| grace | 2 |" in text
    assert "2 runs a method were asked for; mario has 1" in text, "a row with fewer runs than asked says so"
    write_tables(page, {"good-cbas-concept": jobs}, tmp_path)
    assert page.read_text() == text


def test_a_page_without_a_place_for_tables_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(MarioError, match="no place for the table"):
        write_tables(page, {"good-cbas-concept": []}, tmp_path)
    with pytest.raises(MarioError, match="no file"):
        write_tables(tmp_path / "absent.md", {}, tmp_path)


def test_no_placeholder_is_left_in_the_documents() -> None:
    root = Path(__file__).parents[2]
    for page in [root / "README.md", *root.glob("docs/**/*.md")]:
        assert "RESULTS_" not in page.read_text(encoding="utf-8"), page
