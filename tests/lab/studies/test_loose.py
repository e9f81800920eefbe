"""Runs without a plan: grouped by what they are of, and settings are not mixed."""

from pathlib import Path
from typing import Any

import pytest

from lab import results
from mario.errors import MarioError
from mario.files import write_json
from mario.lab.case import Case
from mario.lab.spec import RunSpec
from mario.lab.studies.loose import plan_of_runs


def put(folder: Path, name: str, method: str, *, seed: int = 0, shift: str = "concept", **given: Any) -> None:
    spec = RunSpec.plan(Case.find("good-cbas", shift=shift), method, seed=seed, given=given)
    write_json(folder / name / "settings.json", spec.to_dict())


def put_result(folder: Path, method: str) -> None:
    spec = RunSpec.plan(Case.find("good-cbas", shift="concept"), method)
    write_json(folder / "result.json", results.result(spec).to_dict())


def test_runs_are_grouped_by_case_and_other_settings_are_other_rows(tmp_path: Path) -> None:
    put(tmp_path, "a", "grace")
    put(tmp_path, "b", "grace", seed=1)
    put(tmp_path, "c", "mario", gamma=0.5)
    put(tmp_path, "d", "mario", gamma=0.5, clusters=10)
    put(tmp_path, "e", "grace", shift="covariate", hidden_channels=8)
    plan = plan_of_runs(tmp_path)
    concept, covariate = plan.cases
    assert [(job.folder_name, job.label) for job in concept.jobs] == [
        ("a", "grace"),
        ("b", "grace"),
        ("c", "mario, clusters=100"),
        ("d", "mario, clusters=10"),
    ]
    assert [job.paper for job in concept.jobs] == ["grace", "grace", None, None]
    assert (concept.asked, covariate.asked, covariate.jobs[0].label) == (2, 1, "grace")
    assert concept.jobs[3].spec.settings["clusters"] == 10


def test_a_single_run_is_told_from_a_folder_of_runs(tmp_path: Path) -> None:
    put(tmp_path, "a", "grace")
    with pytest.raises(MarioError, match=f"a is a single run: give the folder that contains it, {tmp_path}"):
        plan_of_runs(tmp_path / "a")


def test_a_run_that_two_folders_hold_counts_once(tmp_path: Path) -> None:
    put(tmp_path, "a", "grace")
    put(tmp_path, "b", "grace")
    put(tmp_path, "c.broken-1", "grace", seed=1)
    assert [job.folder_name for job in plan_of_runs(tmp_path).cases[0].jobs] == ["a"]
    put_result(tmp_path / "b", "grace")
    assert [job.folder_name for job in plan_of_runs(tmp_path).cases[0].jobs] == ["b"], "the one that is done"


def test_a_folder_without_runs_is_an_error_and_what_is_no_run_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "settings.json").write_text("[1]")
    (tmp_path / "y").mkdir()
    (tmp_path / "y" / "settings.json").write_text("{")
    with pytest.raises(MarioError, match="holds no runs"):
        plan_of_runs(tmp_path)
    put(tmp_path, "a", "grace")
    said: list[str] = []
    assert len(plan_of_runs(tmp_path, said.append).cases[0].jobs) == 1
    assert [line.partition(" is left out: ")[0] for line in said] == [str(tmp_path / "x"), str(tmp_path / "y")]


def test_a_run_that_is_done_counts_without_its_settings_file(tmp_path: Path) -> None:
    put(tmp_path, "a", "grace")
    put_result(tmp_path / "b", "erm")
    (tmp_path / "b" / "settings.json").write_text("{")
    said: list[str] = []
    assert [one.label for one in plan_of_runs(tmp_path, said.append).cases[0].jobs] == ["grace", "erm"]
    assert said == []
