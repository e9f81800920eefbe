"""One odd run is reported as broken, and says nothing that the page would run; all others are shown."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab import results
from mario.cli import main
from mario.lab import anonymous
from mario.lab.result import RunResult

Call = Callable[..., tuple[int, str, str]]
MARKUP = "<script>alert(1)</script>"
DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    """Give a command in an empty folder; exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARIO_DATA", "")
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv(anonymous.VARIABLE, "")

    def given(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mario", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return given


def done(seed: int) -> RunResult:
    return results.result(results.spec(seed), 0.5 + seed / 100, environment={"platform": "Linux-of-me", "torch": "2"})


def odd(**change: Any) -> str:
    return json.dumps({**results.result(results.spec(9)).to_dict(), **change})


ODD = {
    "digits": odd().replace('"seed": 9', f'"seed": {"9" * 5000}'),
    "a huge integer": odd().replace('"seed": 9', f'"seed": {10**30}'),
    "deep": DEEP,
    "no number": odd().replace('"steps": 10', '"steps": NaN'),
    "a seed that is markup": odd(seed=MARKUP),
    "a split seed that is markup": odd(split_seed=MARKUP),
    "a list": "[]",
    "settings that are a list": odd(settings=[1]),
    "a curve of words": odd(curve=["a"]),
    "an unknown dataset": odd(dataset=f"no-such-{MARKUP}"),
    "a dataset outside": odd(dataset="/nowhere/../../x"),
    "an unknown method": odd(method="no-such"),
    "an unknown rule": odd(scores={"id_test": 0.5, "chosen_on": {"id_test": "no-such"}}),
    "a score that is too large": odd(scores={"ood_test": 1e300}),
    "no curve": odd(curve=[]),
}


def test_a_report_of_sound_and_odd_runs(call: Call, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    results.write(runs, done(0), done(1))
    for number, content in enumerate(ODD.values()):
        folder = runs / f"odd-{number}"
        folder.mkdir()
        (folder / "result.json").write_text(content)
        (folder / "settings.json").write_text(content)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    code, said, err = call("report", "runs")
    assert code == 0, err
    assert said.count("is left out") >= 8
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert MARKUP not in page
    assert "<script>alert" not in page
    assert "50.50" in page  # the mean of the two
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert all(path.is_relative_to(tmp_path / "pictures") or path.name == "report.html" for path in made)


@pytest.mark.parametrize("kind", ODD)
def test_each_of_them_alone_among_sound_ones(kind: str, call: Call, tmp_path: Path) -> None:
    results.write(tmp_path / "runs", done(0))
    folder = tmp_path / "runs" / "odd"
    folder.mkdir()
    (folder / "result.json").write_text(ODD[kind])
    code, _, err = call("report", "runs")
    assert code == 0, err
    assert MARKUP not in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_what_failed_is_text_on_the_page(call: Call, tmp_path: Path) -> None:
    results.write(tmp_path / "runs", done(0))
    spec = results.spec(3, method="grace", lr=MARKUP)
    folder = tmp_path / "runs" / spec.digest
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(spec.to_dict()))
    (folder / "error.txt").write_text(f"ValueError: {MARKUP} in {tmp_path}/secret/file.txt")
    assert call("report", "runs")[0] == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert MARKUP not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert f"{tmp_path}/secret" in page
    assert "Linux-of-me" in page


def test_an_anonymous_page(call: Call, tmp_path: Path) -> None:
    test_what_failed_is_text_on_the_page(call, tmp_path)
    assert call("report", "runs", "--anonymous", "-o", "other.html")[0] == 0
    page = (tmp_path / "other.html").read_text(encoding="utf-8")
    assert "Linux-of-me" not in page
    assert str(tmp_path) not in page
    assert "file.txt" in page
    assert '"torch":"2"' in page


def test_an_anonymous_run(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ("--method", "random-init", "--set", "hidden_channels=8", "--set", "epochs=1", "--set", "probe_epochs=2")
    code, _, err = call("run", "good-cbas", *quick, "--anonymous", "--out", str(tmp_path / "a"))
    assert code == 0, err
    text = "".join(path.read_text(errors="replace") for path in (tmp_path / "a").rglob("*") if path.is_file())
    for fact in (os.uname().nodename, os.uname().release, str(tmp_path)):
        assert fact not in text
    assert "torch" in json.loads((tmp_path / "a/result.json").read_text())["environment"]
    monkeypatch.setenv(anonymous.VARIABLE, "")
    assert call("run", "good-cbas", *quick, "--out", str(tmp_path / "b"))[0] == 0
    assert os.uname().release in (tmp_path / "b/result.json").read_text()
    assert not (tmp_path / "b/.holder").exists()


def test_an_anonymous_run_on_a_dataset_that_is_a_path(call: Call, tmp_path: Path) -> None:
    from mario.datasets import load_dataset, save_dataset

    save_dataset(load_dataset("good-cbas"), tmp_path / "mine")
    code, _, err = call("run", str(tmp_path / "mine"), "--anonymous")
    assert code == 2
    assert "--anonymous: the dataset" in err


def test_half_a_settings_file_and_advice_that_works(call: Call, tmp_path: Path) -> None:
    quick = ("--method", "random-init", "--set", "hidden_channels=8", "--set", "epochs=1", "--set", "probe_epochs=2")
    assert call("run", "good-cbas", *quick, "--out", "a")[0] == 0
    path = tmp_path / "a/settings.json"
    path.write_text(path.read_text()[:50])
    code, _, err = call("run", "good-cbas", *quick, "--out", "a")
    assert code == 2
    assert "without its settings the run cannot continue: remove a" in err
    for file in sorted((tmp_path / "a").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (tmp_path / "a").rmdir()
    assert call("run", "good-cbas", *quick, "--out", "a")[0] == 0
    (tmp_path / "a/result.json").write_text("{")
    code, _, err = call("run", "good-cbas", *quick, "--out", "a")
    assert code == 2
    assert "remove it, and the same command writes it again" in err
    (tmp_path / "a/result.json").unlink()
    assert call("run", "good-cbas", *quick, "--out", "a")[0] == 0


def test_too_many_threads_are_refused(call: Call) -> None:
    code, _, err = call("run", "good-cbas", "--threads", "100000")
    assert code == 2
    assert "'--threads': Input should be less than or equal to" in err


def test_too_little_memory_is_said(tmp_path: Path) -> None:
    program = (
        "import resource, sys\n"
        "from mario.cli import main\n"
        "import mario.lab.runs.worker, mario.cli.tracking\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, used + 2**28))\n"
        "sys.argv = ['mario', *sys.argv[1:]]\n"
        "main()\n"
    )
    words = ("run", "good-cbas", "--method", "grace", "--set", "hidden_channels=5000", "--set", "epochs=1", "-q")
    ended = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ended.returncode == 1, ended.stderr
    assert "mario: error: not enough memory (" in ended.stderr
    assert "a smaller roots or hidden_channels needs less" in ended.stderr
    assert "bug" not in ended.stderr


def test_a_disk_that_is_read_only(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", "runs")

    monkeypatch.setattr(Path, "mkdir", refuse)
    for words in (("run", "good-cbas", "--method", "random-init"), ("reproduce", "ablation", "--quick")):
        code, _, err = call(*words)
        assert code in (1, 2)
        assert "Read-only file system" in err
        assert "bug" not in err


def test_a_plug_in_that_exits_is_left_out(tmp_path: Path) -> None:
    for group, name in (("mario.datasets", "leaving"), ("mario.launchers", "launcher_leaving")):
        (tmp_path / f"{name}.py").write_text("import sys\nsys.exit(3)\n")
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "mario", "data", "list"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == 0, ended.stderr
    assert "good-cbas" in ended.stdout
    assert "it called sys.exit(3)" in ended.stderr


def test_files_keep_the_mode_of_the_umask(call: Call, tmp_path: Path) -> None:
    results.write(tmp_path / "runs", done(0))
    assert call("report", "runs")[0] == 0
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o644
