"""Plans: written, read again, grown piece by piece; and what their runs have come to."""

import json
import shutil
from pathlib import Path

import pytest

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.runs.execute import finish, load_data
from mario.lab.studies.collect import collect
from mario.lab.studies.plan import Plan, make_plan, missing_data, with_earlier
from mario.lab.studies.plan_files import read_plans, write_plan
from mario.lab.studies.read import find_study, read_study
from mario.lab.studies.study import Study

TINY = """
title = "Tiny"
rows = ["random-init", { label = "two layers", method = "random-init", given = { num_layers = 2 } }, "*", "grace"]
seeds = 2
epochs = 1
checkpoints = 1
given = { hidden_channels = 8, num_layers = 1, probe_epochs = 2 }
cases = [
  { dataset = "good-cbas", shift = "concept", rows = ["random-init", "two layers"] },
  { dataset = "good-cbas", shift = "covariate", rows = ["grace"] },
  { dataset = "good-cora", domain = "word", rows = ["grace"] },
]
"""


@pytest.fixture
def tiny() -> Study:
    return read_study("tiny", TINY, "tiny.toml")


@pytest.fixture(autouse=True)
def _no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MARIO_DATA", "")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))


def names(plan: Plan) -> list[tuple[str, str, int]]:
    return [(case.name, job.label, job.spec.seed) for case in plan.cases for job in case.jobs]


def test_a_plan_is_written_and_read_whole(tiny: Study, tmp_path: Path) -> None:
    plan = make_plan(tiny, command="mario reproduce tiny.toml")
    path = write_plan(plan, tmp_path)
    assert [path] == list((tmp_path / "plans").glob("tiny.*.json"))
    written = json.loads(path.read_text())
    told = {"study", "title", "paper", "show", "reference", "subject", "note", "quick", "command", "rows", "cases"}
    assert set(written) == told | {"order"}
    job = written["cases"][0]["jobs"][1]
    assert (job["label"], job["split_seed"], job["seed"]) == ("two layers", 0, 0)
    again = read_plans(tmp_path)[0]
    assert again == plan
    assert [job.spec.digest for job in again.jobs()] == [job.spec.digest for job in plan.jobs()]


def test_plans_are_in_the_order_of_the_paper_and_what_is_no_plan_is_named(tiny: Study, tmp_path: Path) -> None:
    for study in (tiny, find_study("encoders"), find_study("ablation")):
        write_plan(make_plan(study, quick=True, datasets=["good-cbas"]), tmp_path)
    assert [plan.study for plan in read_plans(tmp_path)] == ["ablation", "encoders", "tiny"]
    assert read_plans(tmp_path / "elsewhere") == []
    (tmp_path / "plans" / "ablation.01234567.json").write_text("{}")
    with pytest.raises(MarioError, match=r"ablation\.01234567\.json is not a plan"):
        read_plans(tmp_path)


def test_data_that_is_not_at_hand_is_found_without_a_download(tiny: Study, tmp_path: Path) -> None:
    plan = make_plan(tiny)
    assert [bool(case.missing) for case in plan.cases] == [False, False, True]
    assert "CitationFull/cora/raw/cora.npz" in (plan.cases[2].missing or "")
    assert {job.spec.case.dataset for job in plan.jobs()} == {"good-cbas"}
    assert len(plan.cases[2].jobs) == 2, "the runs stay in the plan"
    here = tmp_path / "CitationFull/cora/raw/cora.npz"
    here.parent.mkdir(parents=True)
    here.touch()
    assert missing_data(Case.find("good-cora"), tmp_path) is None


def test_a_case_without_a_chosen_row_is_left_out_and_a_study_without_rows_keeps_its_cases(tiny: Study) -> None:
    assert names(make_plan(tiny, methods=["two layers"], seeds=1)) == [
        ("good-cbas-concept", "two layers", 0),
        ("good-cbas-covariate", "two layers", 0),
        ("good-cora-word-concept", "two layers", 0),
    ], "a row that is asked for by name is in every case"
    rates = make_plan(find_study("label-rates"))
    assert [(case.name, case.asked, case.jobs) for case in rates.cases] == [("elliptic-label", 0, ())]
    assert make_plan(find_study("ablation"), methods=["grace"]).cases == ()


def test_pieces_of_a_study_grow_into_one_plan(tiny: Study) -> None:
    concept = make_plan(tiny, datasets=["good-cbas-concept"])
    covariate = make_plan(tiny, datasets=["good-cbas-covariate"], seeds=1)
    both = with_earlier(covariate, tiny, concept)
    assert names(both) == [
        *(("good-cbas-concept", label, seed) for seed in (0, 1) for label in ("random-init", "two layers")),
        ("good-cbas-covariate", "grace", 0),
    ]
    assert [case.asked for case in both.cases] == [2, 1]
    assert both.rows == ("random-init", "two layers", "grace"), "in the order of the study"
    one_row = make_plan(tiny, datasets=["good-cbas-concept"], methods=["random-init", "erm"], seeds=1)
    assert set(names(with_earlier(one_row, tiny, concept))) == {
        *names(concept),
        ("good-cbas-concept", "erm", 0),
    }
    assert with_earlier(covariate, tiny, one_row).rows == ("random-init", "two layers", "erm", "grace")
    assert with_earlier(concept, tiny, None) is concept


def test_what_several_machines_asked_for_is_merged_by_copying_folders(tiny: Study, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    write_plan(make_plan(tiny, datasets=["good-cbas-concept"], command="one"), here)
    more = make_plan(tiny, datasets=["good-cbas-covariate"], command="other")
    shutil.copy(write_plan(more, there), here / "plans")
    (both,) = read_plans(here)
    assert names(both) == names(make_plan(tiny, datasets=["good-cbas"]))
    assert (both.rows, both.command) == (("random-init", "two layers", "grace"), "one\nother")
    again = with_earlier(make_plan(tiny, datasets=["good-cbas-concept"], command="one"), tiny, both)
    write_plan(again, here)
    assert len(list((here / "plans").glob("*.json"))) == 2, "its own file is replaced, what was copied stays"
    assert names(read_plans(here)[0]) == names(again)
    (here / "plans" / "tiny.backup.json").write_text("{}")
    assert len(read_plans(here)) == 1, "what is no plan by its name is none"
    other = read_study("tiny", TINY.replace("epochs = 1", "epochs = 2", 1), "tiny.toml")
    shutil.copy(write_plan(make_plan(other, datasets=["good-cbas-concept"]), there), here / "plans")
    with pytest.raises(MarioError, match="have different settings for random-init on good-cbas-concept"):
        read_plans(here)


def test_folders_that_are_merged_by_copying_again_and_again_lose_no_plan(tiny: Study, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    asked = []
    for case in ("good-cbas-concept", "good-cbas-covariate"):
        for folder, row in ((here, "random-init"), (there, "two layers")):
            plan = make_plan(tiny, datasets=[case], methods=[row])
            earlier = {known.study: known for known in read_plans(folder)}
            write_plan(with_earlier(plan, tiny, earlier.get("tiny")), folder)
            asked += names(plan)
        shutil.copytree(there, here, dirs_exist_ok=True)
    (merged,) = read_plans(here)
    assert set(names(merged)) == set(asked)


def test_every_seed_on_every_split(tiny: Study) -> None:
    study = read_study("tiny", TINY.replace("seeds = 2", "seeds = 2\nsplits = 3"), "tiny.toml")
    runs = make_plan(study, datasets=["good-cbas-covariate"]).cases[0]
    assert [(job.spec.split_seed, job.spec.seed) for job in runs.jobs] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
        (1, 1),
        (2, 1),
    ]
    assert runs.asked == 6
    with pytest.raises(MarioError, match="one_split and splits"):
        read_study("tiny", TINY.replace("seeds = 2", "seeds = 2\nsplits = 3\none_split = true"), "tiny.toml")


def test_a_plan_on_another_schedule_is_not_grown(tiny: Study) -> None:
    other = read_study("tiny", TINY.replace("epochs = 1", "epochs = 2", 1), "tiny.toml")
    covariate = make_plan(other, datasets=["good-cbas-covariate"])
    assert names(with_earlier(covariate, other, make_plan(tiny))) == names(covariate)
    quick = make_plan(tiny, datasets=["good-cbas-covariate"], quick=True)
    with pytest.raises(MarioError, match="of the full form of tiny: give the quick form its own folder, --out"):
        with_earlier(quick, tiny, make_plan(tiny))
    fewer = read_study("tiny", TINY.replace('"random-init", "two layers"]', '"random-init"]', 1), "tiny.toml")
    grown = with_earlier(make_plan(fewer, datasets=["good-cbas-covariate"]), fewer, make_plan(tiny))
    assert ("good-cbas-concept", "two layers", 0) in names(grown), "it is still a row of the study"


def test_what_runs_have_come_to(tiny: Study, tmp_path: Path) -> None:
    plan = make_plan(tiny, datasets=["good-cbas-concept", "good-cora"], methods=["random-init"])
    done, failed, broken, _ = plan.cases[0].jobs
    finish(done.spec, load_data(done.spec), tmp_path / done.spec.digest)
    (tmp_path / failed.spec.digest).mkdir()
    (tmp_path / failed.spec.digest / "error.txt").write_text("Traceback\nmario.errors.MarioError: no luck\n")
    (tmp_path / broken.spec.digest).mkdir()
    (tmp_path / broken.spec.digest / "result.json").write_text('{"scores": ')
    found = collect(plan, tmp_path)
    concept, cora = found.cases
    assert [(run.job, run.result.spec) for run in concept.runs] == [(done, done.spec)]
    assert concept.runs[0].result.folder == tmp_path / done.spec.digest
    assert [failure.job for failure in concept.failed] == [failed, broken]
    assert concept.failed[0].reason.endswith("no luck")
    assert "JSON" in concept.failed[1].reason
    assert (concept.unfinished, concept.asked, concept.missing) == (1, 2, None)
    assert (cora.runs, cora.unfinished, bool(cora.missing)) == ([], 4, True)
    row = found.frame.iloc[0]
    assert len(found.frame) == 1
    assert (row.study, row.case, row.label, row.paper) == ("tiny", "good-cbas-concept", "random-init", "random-init")
    assert (row.method, row.seed, row.folder) == ("random-init", 0, str(tmp_path / done.spec.digest))
    assert concept.frame.equals(found.frame)
    assert len(cora.frame) == 0
