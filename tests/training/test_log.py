"""The log holds every entry up to the step at which a run resumes, and whole lines only."""

import json
from pathlib import Path

import pytest

from mario.errors import MarioError
from mario.training import Log


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "log.jsonl"


def entries(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_one_object_a_line_and_there_at_once(path: Path) -> None:
    log = Log(path)
    assert path.read_text() == ""
    log.write({"step": 1, "loss": 0.5})
    assert path.read_text() == '{"step": 1, "loss": 0.5}\n'
    log.write({"step": 2, "loss": 0.25})
    assert entries(path) == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]


def test_what_was_logged_after_the_resumed_step_is_dropped(path: Path) -> None:
    log = Log(path)
    for step in (1, 2, 2, 3, 4):
        log.write({"step": step})
    Log(path, resume_at=2).write({"step": 3, "again": True})
    assert entries(path) == [{"step": 1}, {"step": 2}, {"step": 2}, {"step": 3, "again": True}]


def test_a_new_run_starts_an_empty_log(path: Path) -> None:
    Log(path).write({"step": 1})
    Log(path)
    assert path.read_text() == ""


def test_a_line_that_a_kill_cut_short_is_dropped(path: Path) -> None:
    Log(path).write({"step": 1})
    with path.open("a") as file:
        file.write('{"step": 2, "los')
    Log(path, resume_at=5).write({"step": 6})
    assert entries(path) == [{"step": 1}, {"step": 6}]


def test_what_cannot_be_written_is_an_error_with_the_path(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.path = Path("/dev/full")
    with pytest.raises(MarioError, match="cannot write /dev/full: No space left on device"):
        log.write({"step": 1})
