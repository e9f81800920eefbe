"""The progress view: a bar in a terminal, lines in a file."""

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from mario.cli import progress
from mario.cli.progress import follow, lasting
from mario.errors import RunFailedError
from mario.lab.launch import LaunchProgress


def launched() -> Iterator[LaunchProgress]:
    for done in range(3):
        yield LaunchProgress(
            done_runs=done,
            failed_runs=0,
            total_runs=3,
            running=["grace [good-cbas] 0/0"],
            done_steps=done,
            total_steps=3,
            seconds_left=None if not done else 30.0,
        )
    yield LaunchProgress(2, 1, 3, [], 3, 3, 0.0)


def test_a_file_gets_a_line_now_and_then_and_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SAY_EVERY", 0.0)
    file = io.StringIO()
    follow(Console(file=file), launched())
    assert file.getvalue().splitlines() == [
        "runs: 0 of 3 done, time left not known yet, 1 running: grace [good-cbas] 0/0",
        "runs: 1 of 3 done, 30 s left, 1 running: grace [good-cbas] 0/0",
        "runs: 2 of 3 done, 30 s left, 1 running: grace [good-cbas] 0/0",
        "runs: 2 of 3 done, 1 failed",
        "runs: 2 of 3 done, 1 failed",
    ]


def test_what_a_launch_raises_passes_through_after_the_last_word() -> None:
    def failing() -> Iterator[LaunchProgress]:
        yield from launched()
        raise RunFailedError("one failed")

    file = io.StringIO()
    with pytest.raises(RunFailedError, match="one failed"):
        follow(Console(file=file), failing())
    assert file.getvalue().splitlines() == ["runs: 2 of 3 done, 1 failed"]


def test_a_terminal_has_a_bar_and_names_are_no_markup() -> None:
    file = io.StringIO()
    follow(Console(file=file, force_terminal=True, width=200), list(launched())[:-1])
    assert "2 of 3 done, 30 s left, 1 running: grace [good-cbas] 0/0" in file.getvalue()


def test_lengths_of_time() -> None:
    said = [lasting(seconds) for seconds in (0, 89, 91, 3569, 3600, 7322)]
    assert said == ["0 s", "89 s", "2 min", "59 min", "1 h 00 min", "2 h 02 min"]
