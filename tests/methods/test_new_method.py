"""A method is one file: put into the package, it is in the command line, the tester, the tables and the docs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "graph_barlow_twins.py"

# Imports the project once and forks a process for each line that it is given: a program and its words.
SERVER = """
import importlib, json, os, sys
import mario.cli.methods, mario.cli.reproduce, mario.cli.run, pytest
for line in sys.stdin:
    program, *words = json.loads(line)
    process = os.fork()
    if not process:
        file = os.open("said.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv = [program, *words]
        sys.exit(getattr(importlib.import_module({"mario": "mario.cli"}.get(program, program)), "main")())
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""
Call = Callable[..., str]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that differs in one new file."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("src", "docs", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "pyproject.toml", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(EXAMPLE, folder / "src" / "mario" / "methods" / "gbt.py")
    return folder


@pytest.fixture(scope="module")
def environment(project: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(project / "src"), "OMP_NUM_THREADS": "1", "COLUMNS": "200"}


@pytest.fixture(scope="module")
def call(project: Path, environment: dict[str, str]) -> Iterator[Call]:
    command = [sys.executable, "-c", SERVER]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=project, env=environment, **pipes) as server:  # type: ignore[call-overload]

        def call(*words: str) -> str:
            server.stdin.write(json.dumps(words) + "\n")
            server.stdin.flush()
            code, said = server.stdout.readline(), (project / "said.txt").read_text(encoding="utf-8")
            assert code == "0\n", said
            return said

        yield call
        server.stdin.close()


def test_it_is_about_sixty_lines() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 65


def test_the_command_line_knows_it_and_runs_it(project: Path, call: Call) -> None:
    row = next(row for row in json.loads(call("mario", "methods", "--json")) if row["name"] == "gbt")
    assert row["recipe_host"]
    assert row["what"].startswith("Graph Barlow Twins")
    assert "redundancy" in call("mario", "methods", "gbt")
    for method in ("gbt", "gbt+mario"):
        quick = (
            "--set",
            "epochs=1",
            "--set",
            "hidden_channels=8",
            "--set",
            "steps_per_epoch=2",
            "--set",
            "checkpoints=1",
        )
        call("mario", "run", "good-cbas", "--method", method, *quick, "--out", method)
        result = json.loads((project / method / "result.json").read_text(encoding="utf-8"))
        assert result["method"] == method
        assert 0 < result["scores"]["ood_test"] <= 1


def test_the_method_tester_takes_it(call: Call) -> None:
    suite = ("tests/methods/test_every_method.py", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist")
    # All of its trials are there; a few are run, as each passes or fails by the method and not by how it came in.
    assert call("pytest", *suite, "-k", "gbt", "--collect-only").count("gbt") > 50
    said = call("pytest", *suite, "-k", "gbt and (same_bits or resumes or above_the_random or odd_graphs)")
    assert int(said.split(" passed")[0].split()[-1]) >= 14, said


def test_it_has_a_row_in_the_tables(call: Call) -> None:
    table = ("mario", "reproduce", "table-concept", "--datasets", "good-cbas")
    assert "swav; gbt; mario" in call(*table, "--dry-run")
    shown = call(*table, "--quick", "--methods", "gbt,gbt+mario,random-init", "--out", "runs")
    rows = [line.split()[0] for line in shown.splitlines() if line.split()]
    assert {"gbt", "gbt+mario", "random-init"} <= set(rows), shown


def test_it_is_in_the_documentation(project: Path, environment: dict[str, str]) -> None:
    for page in (project / "docs").rglob("*.md"):
        if page.name != "methods.md":
            page.unlink()  # the others take as long and are none of its business
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", "site"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (project / "site" / "reference" / "methods.html").read_text(encoding="utf-8")
    assert "Bielak et al., Knowledge-Based Systems 2022" in page
    assert "redundancy" in page
