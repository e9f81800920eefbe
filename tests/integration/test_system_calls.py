"""A fault at a system call that changes the folder of a run: a kill, a full disk, a failing disk.

strace attaches to a process and injects the fault at the Nth call of a kind. What it does to a run is the same at every
call: it ends with the same bits, or it is refused in one line, and then the same command ends with the same bits.
``MARIO_FAULTS=all`` tries every call (`make faults`); otherwise a few calls of each kind are tried.
"""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

import tuning
from forked import start
from lab.launch.tiny import TINY, job
from mario.lab.runs.attempt import ATTEMPT, Ending
from mario.lab.runs.lock import HOLDER
from mario.lab.tune.study import counted, open_study
from mario.untrusted import read_json, safetensors_header

pytestmark = [
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed: tests/integration/install.sh does"),
]
CHANGES = ("openat", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "mkdir", "rename", "unlink", "flock")
TRIED = None if os.environ.get("MARIO_FAULTS") == "all" else 8  # calls per test
FAULTS = {"a kill": "signal=KILL", "a full disk": "error=ENOSPC", "a failing disk": "error=EIO"}
GIVEN = {**TINY, "epochs": 3, "checkpoints": 3, "roots": 20}
SET = [word for name, value in GIVEN.items() for word in ("--set", f"{name}={value}")]


@dataclass(frozen=True)
class Call:
    """A call that changes the folder: the ``number``-th of its ``name`` in this process."""

    name: str
    number: int
    shown: str
    written: frozenset[str]
    """The files that were complete when it was made."""


@dataclass(frozen=True)
class Ended:
    code: int
    said: str
    trace: list[str]


def carry_out(words: tuple[str, ...], folder: Path, fault: str = "") -> Ended:
    """``WORDS FOLDER``, where the first word is a program, under strace if there is a ``fault`` to inject."""
    said = folder.with_name(f"{folder.name}-said")
    shutil.rmtree(said, ignore_errors=True)
    if not fault:
        process = start(words[0], *words[1:], str(folder), said=said)
        return _ended(process, said)
    process = start("traced", *words, str(folder), said=said)
    _until(lambda: _state(process.pid or 0) == "T")
    command = ["strace", "-f", "-y", "-s", "1", "-p", str(process.pid), "-o", f"{said}/trace"]
    command += ["-e", f"trace={','.join(CHANGES)}", *(["-e", f"inject={fault}"] if ":" in fault else [])]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert tracer.stderr is not None
    assert "attached" in tracer.stderr.readline()
    os.kill(process.pid or 0, signal.SIGCONT)
    ended = _ended(process, said)
    tracer.communicate(timeout=60)
    mine = [line for line in (said / "trace").read_text().splitlines() if line.startswith(f"{process.pid} ")]
    return Ended(ended.code, ended.said, mine)


def _ended(process: ForkServerProcess, said: Path) -> Ended:
    process.join(120)
    assert process.exitcode is not None, "it did not end"
    return Ended(process.exitcode, (said / "err").read_text(), [])


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.001)


def calls(trace: list[str], folder: Path) -> list[Call]:
    """The calls of a trace that change ``folder``."""
    seen: Counter[str] = Counter()
    written: set[str] = set()
    found = []
    for line in trace:
        match = re.match(r"\d+ +(\w+)\((.*)", line)
        if not match:
            continue
        name, rest = match.groups()
        seen[name] += 1
        paths = re.findall(rf'[<"]{re.escape(str(folder))}(?:/([^>"]*))?[>"]', rest)
        changes = name != "openat" or re.search("O_CREAT|O_WRONLY|O_RDWR", rest)
        if not paths or not changes or " = -1 " in rest:
            continue
        found.append(Call(name, seen[name], rest.replace(str(folder), "."), frozenset(written)))
        if name == "rename":
            written.add(paths[1])
        if name == "unlink":
            written.discard(paths[0])
    return found


def spread(found: list[Call], number: int | None) -> list[Call]:
    """``number`` of them, from the first to the last, of every kind; all of them without a number."""
    if number is None or len(found) <= number:
        return found
    kinds: dict[str, list[Call]] = {}
    for call in found:
        kinds.setdefault(call.name, []).append(call)
    each = [kind[len(kind) // 2] for kind in kinds.values()]
    rest = [call for call in found if call not in each]
    more = max(number - len(each), 2)
    return [*each, *(rest[round(i * (len(rest) - 1) / (more - 1))] for i in range(more))]


def content(folder: Path) -> dict[str, Any]:
    """The names of all files; the content of those that must have the same bits."""
    files: dict[str, Any] = {str(path.relative_to(folder)): "" for path in folder.rglob("*") if path.is_file()}
    for name in files:
        if name.endswith(("model.safetensors", "log.jsonl")):
            files[name] = (folder / name).read_bytes()
        if name.endswith("result.json"):
            result = json.loads((folder / name).read_text())
            files[name] = {key: value for key, value in result.items() if "seconds" not in key}
    return files


def check_written(folder: Path, call: Call) -> None:
    """What was complete before the fault is there and can be read, except notes about the process itself."""
    for name in call.written - {HOLDER, ATTEMPT}:
        if name.endswith(".json"):
            assert read_json(folder / name)
        elif name.endswith(".safetensors"):
            safetensors_header(folder / name, "mario")
        else:
            assert (folder / name).exists(), name


def check_refusal(ended: Ended, folder: Path) -> None:
    """``mario run``: one line that names a file of the run, and what is wrong with it."""
    assert ended.code in (1, 2)
    (line,) = ended.said.splitlines()
    assert line.startswith("mario: error: ")
    assert str(folder) in line
    assert re.search("No space left on device|Input/output error", line), line


def check_ending(ended: Ended, folder: Path) -> None:
    """A worker of ``mario reproduce``: the launcher is told of a full disk, another error is in the folder or said."""
    if ended.code == Ending.FULL:
        assert ended.said == ""
        return
    assert ended.code == Ending.FAILED
    said = ended.said or (folder / "error.txt").read_text()
    assert re.search("No space left on device|Input/output error", said.splitlines()[-1]), said


Check = Callable[[Ended, Path], None]


@pytest.fixture(params=["run", "worker"], scope="module")
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[tuple[str, ...], Check]:
    if request.param == "run":
        words = ("run", "good-cbas", "--shift", "concept", "--method", "grace", *SET, "--threads", "1", "-q", "--out")
        return ("mario.cli", *words), check_refusal
    file = tmp_path_factory.mktemp("job") / "job.json"
    file.write_text(json.dumps(job("grace", **GIVEN).to_dict()))
    return ("working", str(file)), check_ending


@pytest.fixture(scope="module")
def whole(program: tuple[tuple[str, ...], Check], tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Call]]:
    """What a run that nothing disturbs ends with, and the calls it makes."""
    folder = tmp_path_factory.mktemp("whole")
    assert carry_out(program[0], folder / "warm").code == 0  # the first writes caches of Python
    ended = carry_out(program[0], folder / "run", fault="none")
    assert ended.code == 0, ended.said
    found = calls(ended.trace, folder / "run")
    assert {call.name for call in found} >= {"openat", "write", "fsync", "mkdir", "rename", "unlink", "flock"}
    assert content(folder / "warm") == content(folder / "run"), "the same bits under strace"
    return content(folder / "run"), found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_any_call_costs_no_more_than_a_repetition(
    program: tuple[tuple[str, ...], Check], whole: tuple[Any, list[Call]], fault: str, tmp_path: Path
) -> None:
    words, check = program
    outcomes: Counter[str] = Counter()
    failures = []
    tried = spread(whole[1], TRIED)
    for number, call in enumerate(tried):
        folder = tmp_path / str(number)
        ended = carry_out(words, folder, f"{call.name}:{FAULTS[fault]}:when={call.number}")
        hit = [line for line in ended.trace if "INJECTED" in line or "killed by SIGKILL" in line]
        assert hit, f"no fault at {call}"
        try:
            check_written(folder, call)
            if fault == "a kill":
                assert ended.code == -signal.SIGKILL
                outcomes["killed"] += 1
            elif ended.code:
                check(ended, folder)
                outcomes["refused"] += 1
            else:
                outcomes["finished"] += 1
            again = carry_out(words, folder)
            assert (again.code, again.said) == (0, "")
            assert content(folder) == whole[0]
        except (AssertionError, ValueError, OSError) as error:
            failures.append(f"{fault} at {call.name}({call.shown}: {ended.code} {ended.said}{error}")
            print(failures[-1], flush=True)
        shutil.rmtree(folder)
    print(f"{words[0]}, {fault}: {len(tried)} of {len(whole[1])} calls, {dict(outcomes)}", flush=True)
    assert not failures, "\n\n".join(failures)


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tuning of one trial."""
    file = tmp_path_factory.mktemp("tuning") / "wanted.json"
    asked = {"given": GIVEN, "only": ["lr"], "pruner": "none", "sampler": "random", "trials": 1, "heartbeat": 1}
    file.write_text(json.dumps(asked))
    return file


def let_an_hour_pass(folder: Path) -> None:
    """So that a worker that was killed is taken for dead at once."""
    for file in folder.glob("tune/*.db"):
        with closing(sqlite3.connect(file)) as database, database:
            if database.execute("select 1 from sqlite_master where name = 'trial_heartbeats'").fetchone():
                database.execute("update trial_heartbeats set heartbeat = datetime('now', '-1 hour')")
            if database.execute("select 1 from sqlite_master where name = 'trials'").fetchone():
                database.execute("update trials set datetime_start = datetime('now', '-1 hour')")


def check_study(wanted: Path, folder: Path, trials: int) -> None:
    """So many trials count, each with the score of its run, and there is nothing else."""
    plan = tuning.plan(wanted, folder)
    found = counted(open_study(plan).get_trials())
    assert [trial.state for trial in found] == [TrialState.COMPLETE] * trials
    runs = {plan.runs(trial.params)[0].digest: trial.value for trial in found}
    assert {path.name for path in folder.iterdir()} == {"tune", *runs}
    assert {path.name for path in (folder / "tune").iterdir()} == {f"{plan.name}.db", f".{plan.name}.db.lock"}
    for digest, value in runs.items():
        result = read_json(folder / digest / "result.json")
        assert value == max(point["ood_val"] for point in result["curve"])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("trials", [0, 1])
def test_a_fault_in_the_database_of_a_tuning_loses_no_trial(
    wanted: Path, fault: str, trials: int, tmp_path: Path
) -> None:
    """0 trials: the study is created. 1 trial: it is there already."""
    words = ("tuning", str(wanted), str(1000 * trials))

    def begun(name: str) -> Path:
        if trials:
            open_study(tuning.plan(wanted, tmp_path / name))
        return tmp_path / name

    assert carry_out(words, begun("warm")).code == 0
    whole = carry_out(words, begun("whole"), fault="none")
    assert (whole.code, whole.said) == (0, "")
    check_study(wanted, tmp_path / "whole", trials)
    found = [call for call in calls(whole.trace, tmp_path / "whole") if "./tune/" in call.shown]
    assert {call.name for call in found} >= {"openat", "pwrite64", "fdatasync", "unlink"}
    outcomes: Counter[str] = Counter()
    failures = []
    tried = spread(found, TRIED)
    for number, call in enumerate(tried):
        folder = begun(str(number))
        ended = carry_out(words, folder, f"{call.name}:{FAULTS[fault]}:when={call.number}")
        try:
            if fault == "a kill":
                assert ended.code == -signal.SIGKILL
                outcomes["killed"] += 1
            elif ended.code:
                (line,) = ended.said.splitlines()
                assert re.match(
                    r"mario: error: (the storage|cannot) .*\.db\b.*: .*(disk|database|device|output error)", line
                )
                outcomes["refused"] += 1
            else:
                outcomes["finished"] += 1
            let_an_hour_pass(folder)
            again = carry_out(words, folder)
            assert (again.code, again.said) == (0, "")
            check_study(wanted, folder, trials)
        except (AssertionError, ValueError, OSError) as error:
            failures.append(f"{fault} at {call.name}({call.shown}: {ended.code} {ended.said}{error}")
            print(failures[-1], flush=True)
        shutil.rmtree(folder)
    print(f"{fault}, {trials} trials: {len(tried)} of {len(found)} calls, {dict(outcomes)}", flush=True)
    assert not failures, "\n\n".join(failures)
