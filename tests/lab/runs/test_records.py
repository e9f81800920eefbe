"""Results in one file: taken over by another folder of runs, added to, and refused where a line is not a result."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab import results
from lab.results import write
from mario.errors import MarioError
from mario.lab.result import RunResult
from mario.lab.runs import lock, records, store
from mario.lab.runs.records import read_records, take_records, write_records


def result(seed: int, score: float = 0.5) -> RunResult:
    return results.result(results.spec(seed), score)


def test_runs_of_two_machines_become_one_file_and_are_done_on_a_third(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    write(first, result(0), result(1))
    write(second, result(1), result(2))
    file = tmp_path / "kept" / "runs.jsonl"
    assert read_records(file) == {}, "no file yet"
    assert write_records(file, first) == 2
    assert write_records(file, second) == 3, "what was there before stays"
    assert read_records(file) == {result(seed).spec.digest: result(seed) for seed in range(3)}
    bytes_then = file.read_bytes()
    assert bytes_then.count(b"\n") == 3

    assert take_records(file, third) == 3
    assert take_records(file, third) == 0, "once is enough"
    for seed in range(3):
        assert store.look(third / result(seed).spec.digest) == store.Found("done", result=result(seed))
    assert write_records(file, third) == 3
    assert file.read_bytes() == bytes_then


def test_two_launches_that_write_one_file_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "runs.jsonl"
    read = records.read_records

    def slow(path: Path) -> dict[str, RunResult]:
        found = read(path)
        time.sleep(0.05)  # the other has time to write, if it may
        return found

    monkeypatch.setattr(records, "read_records", slow)
    for seed in range(4):
        write(tmp_path / str(seed), result(seed))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda seed: write_records(file, tmp_path / str(seed)), range(4)))
    assert len(read(file)) == 4


def test_only_what_is_done_is_recorded(tmp_path: Path) -> None:
    runs, file = tmp_path / "runs", tmp_path / "runs.jsonl"
    write(runs, result(0), result(1), result(2))
    (runs / result(1).spec.digest / "result.json").unlink()
    (runs / result(2).spec.digest / "result.json").write_text('{"half')
    assert write_records(file, runs) == 1


def test_a_folder_that_is_broken_or_at_work_is_left_alone_and_a_failure_is_not(tmp_path: Path) -> None:
    elsewhere, runs, file = tmp_path / "elsewhere", tmp_path / "runs", tmp_path / "runs.jsonl"
    write(elsewhere, *map(result, range(4)))
    write_records(file, elsewhere)
    folders = [runs / result(seed).spec.digest for seed in range(4)]
    write(runs, result(0, score=0.9))
    for folder in folders[1:]:
        folder.mkdir()
    (folders[1] / "settings.json").write_text('{"half')
    (folders[2] / "error.txt").write_text("it failed here\n")
    with lock.alone_in(folders[3]):
        assert take_records(file, runs) == 1
    assert store.read_result(folders[0]) == result(0, score=0.9), "a run of one's own is not replaced"
    assert store.state(folders[1]) == "broken"
    assert store.read_result(folders[2]) == result(2)
    assert store.state(folders[3]) == "waiting"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"dataset": "good-', "line 2 of .*runs.jsonl is not valid JSON"),
        ("", "line 2 of .*runs.jsonl is not valid JSON"),
        ("[1]", "line 2 of .*runs.jsonl is not the result of a run"),
        ('{"dataset": "good-cbas"}', "line 2 of .*runs.jsonl is not the result of a run"),
    ],
)
def test_a_line_that_is_no_result_is_named_and_nothing_is_lost(tmp_path: Path, line: str, fault: str) -> None:
    file, runs = tmp_path / "runs.jsonl", tmp_path / "runs"
    text = f"{json.dumps(result(0).to_dict())}\n{line}\n{json.dumps(result(1).to_dict())}\n"
    file.write_text(text)
    write(runs, result(3))
    for act in (lambda: write_records(file, runs), lambda: take_records(file, runs)):
        with pytest.raises(MarioError, match=fault):
            act()
    assert file.read_text() == text
    assert [path.parent.name for path in runs.glob("*/result.json")] == [result(3).spec.digest]
