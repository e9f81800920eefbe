"""`fastest`: what it measures, what it keeps, and when it measures nothing."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch

import forked
from mario import tuning
from mario.errors import MarioError
from mario.tuning import fastest


def busy(seconds: float, calls: list[str], name: str) -> Callable[[], None]:
    def call() -> None:
        calls.append(name)
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass

    return call


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def candidates(calls: list[str]) -> dict[str, Callable[[], None]]:
    return {"slow": busy(0.004, calls, "slow"), "quick": busy(0.0005, calls, "quick")}


@pytest.fixture(autouse=True)
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.delenv("MARIO_TUNING")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tuning, "_answers", {})
    yield tmp_path / "cache" / "tuning.json"
    assert not list(tmp_path.glob("**/*.part"))


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_answers", {})


def test_the_quickest_is_taken_in_turns_once_and_kept(
    monkeypatch: pytest.MonkeyPatch, file: Path, candidates: dict[str, Callable[[], None]], calls: list[str]
) -> None:
    assert fastest("wait", candidates, "slow") == "quick"
    assert calls == ["slow", "quick"] * (1 + tuning._ROUNDS)
    ((machine, entries),) = json.loads(file.read_text()).items()
    assert str(torch.__version__) in machine
    assert f"{torch.get_num_threads()} threads" in machine
    assert entries["wait"]["fastest"] == "quick"
    assert 0.0005 <= entries["wait"]["seconds"]["quick"] < 0.004 <= entries["wait"]["seconds"]["slow"]

    calls.clear()
    file.rename(file.with_name("away"))
    assert fastest("wait", candidates, "slow") == "quick"  # from this process
    file.with_name("away").rename(file)
    new_process(monkeypatch)
    assert fastest("wait", candidates, "slow") == "quick"  # from the file
    assert calls == []


def test_other_keys_threads_and_names_are_measured_anew_and_all_are_kept(
    monkeypatch: pytest.MonkeyPatch, file: Path, candidates: dict[str, Callable[[], None]], calls: list[str]
) -> None:
    fastest("one", candidates, "slow")
    fastest("two", candidates, "slow")
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    fastest("one", candidates, "slow")
    known = json.loads(file.read_text())
    assert sorted(sorted(entries) for entries in known.values()) == [["one"], ["one", "two"]]
    assert len(calls) == 3 * 2 * (1 + tuning._ROUNDS)

    # A newer mario has other names for its ways: the old answer is none of them.
    renamed = {"patient": candidates["slow"], "prompt": candidates["quick"]}
    assert fastest("one", renamed, "patient") == "prompt"
    new_process(monkeypatch)
    calls.clear()
    assert fastest("one", renamed, "patient") == "prompt"
    assert calls == []


def test_the_default_stays_unless_another_is_clearly_quicker(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    ways: dict[str, Callable[[], object]] = {"a": int, "b": int}
    monkeypatch.setattr(tuning, "_measure", lambda _: {"a": 1.0, "b": 0.94})
    assert fastest("close", ways, "a") == "a"
    assert fastest("close the other way", ways, "b") == "b"
    monkeypatch.setattr(tuning, "_measure", lambda _: {"a": 1.0, "b": 0.9})
    assert fastest("clear", ways, "a") == "b"


def test_a_process_that_measured_first_is_followed(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    @contextmanager
    def waited_for(path: Path) -> Iterator[None]:
        path.parent.mkdir()
        path.write_text(json.dumps({tuning._machine(): {"race": {"fastest": "a"}}}))
        yield

    monkeypatch.setattr(tuning, "locked", waited_for)
    monkeypatch.setattr(tuning, "_measure", lambda _: pytest.fail("it is on record"))
    assert fastest("race", {"a": int, "b": int}, "b") == "a"


@pytest.mark.parametrize("text", ["{", "[]", '{"machine": 3}', "\udcff"])
def test_a_file_that_makes_no_sense_is_left_alone(
    file: Path, candidates: dict[str, Callable[[], None]], calls: list[str], text: str
) -> None:
    file.parent.mkdir()
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert fastest("wait", candidates, "slow") == "slow"
    assert calls == []
    assert file.read_bytes() == text.encode("utf-8", "surrogateescape")


def test_nothing_is_measured_where_it_cannot_be_kept(
    file: Path, candidates: dict[str, Callable[[], None]], calls: list[str]
) -> None:
    file.parent.write_text("a file where the folder should be")
    assert fastest("wait", candidates, "slow") == "slow"
    assert calls == []


def test_nothing_is_measured_when_it_is_off_or_there_is_no_choice(
    monkeypatch: pytest.MonkeyPatch, file: Path, candidates: dict[str, Callable[[], None]], calls: list[str]
) -> None:
    assert fastest("wait", {"slow": candidates["slow"]}, "slow") == "slow"
    monkeypatch.setenv("MARIO_TUNING", "off")
    assert fastest("wait", candidates, "slow") == "slow"
    assert calls == []
    assert not file.exists()


def race(cache: str, out: str) -> None:
    os.environ.pop("MARIO_TUNING", None)
    os.environ["MARIO_CACHE"] = cache
    torch.set_num_threads(1)
    ways = {str(n): partial(sum, range(300 * n)) for n in range(4)}
    Path(out).write_text(" ".join(fastest(key, ways, "3") for key in "abc"))


def test_processes_that_race_leave_a_whole_file_and_agree_with_it(file: Path, tmp_path: Path) -> None:
    answers = [tmp_path / str(number) for number in range(3)]
    started = [forked.context().Process(target=race, args=(str(file.parent), str(out))) for out in answers]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0, 0, 0]
    (entries,) = json.loads(file.read_text()).values()
    assert set(entries) == set("abc")
    assert [out.read_text() for out in answers] == ["0 0 0"] * 3
    assert all(entry["fastest"] == "0" for entry in entries.values())


def test_the_default_is_a_candidate() -> None:
    with pytest.raises(MarioError, match="default must be one of the candidates a, b, got 'c'"):
        fastest("wait", {"a": int, "b": int}, "c")
