"""The pins of constraints.txt: complete, met by what is installed, and compared with databases of vulnerabilities."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HOME = Path(__file__).parents[1]
PINS = HOME / "constraints.txt"
OURS = "mario-gcl"


def pins() -> dict[str, str]:
    lines = [line for line in PINS.read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.!+]+", line) for line in lines), "exact versions and nothing else"
    found = dict(line.split("==") for line in lines)
    return {str(canonicalize_name(name)): version for name, version in found.items()}


def closure(extras: set[str]) -> set[str]:
    """The distributions that an installation of mario with ``extras`` needs, as far as they are installed."""
    found: set[str] = set()
    todo = [(OURS, frozenset(extras))]
    while todo:
        name, asked = todo.pop()
        try:
            needed = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform, or an extra that is not installed
        found.add(name)
        for text in needed:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": extra}) for extra in asked | {""}):
                continue
            child = str(canonicalize_name(requirement.name))
            if child not in found:
                todo.append((child, frozenset(requirement.extras)))
    return found - {OURS}


def test_everything_that_mario_needs_is_pinned_and_installed_as_pinned() -> None:
    needed = closure({"test", "lint", "docs", "tune", "clusters", "tensorboard"})
    assert {"torch", "numpy", "jinja2", "mpmath", "pytest", "optuna"} <= needed, "the closure was found"
    pinned = pins()
    # A build of torch for CUDA brings libraries of its vendor, which its own metadata pins.
    missing = {name for name in needed - pinned.keys() if not name.startswith(("nvidia-", "cuda-", "triton"))}
    assert not missing, "pin them in constraints.txt, as its head says"
    here = {name: importlib.metadata.version(name).partition("+")[0] for name in needed & pinned.keys()}
    assert here == {name: pinned[name] for name in here}


def test_no_pin_is_made_twice() -> None:
    names = re.findall(r"^([\w.-]+)==", PINS.read_text(), flags=re.MULTILINE)
    assert len({canonicalize_name(name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("services", "database", "code", "said"),
    [
        (
            {"osv": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "version": "2", "vulns": []}]},
            {"a": ["<1"]},
            0,
            ["osv: 2 of 2 pins looked up, 0 vulnerable", "2 pins compared with 1 entries, 0 vulnerable"],
        ),
        (
            {"osv": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}]},
            {},
            1,
            ["VULNERABLE a==1: CVE-1, fixed in 1.1", "1 of 2 pins were compared with no current database"],
        ),
        ({}, {"b": ["<1", ">=2,<2.5"]}, 1, ["osv: not reachable: no such host", "VULNERABLE b==2: >=2,<2.5"]),
        (
            {"pypi": [{"name": "a", "skip_reason": "not found: a"}, {"name": "b", "skip_reason": "not found: b"}]},
            {},
            0,
            ["pypi: not reachable: not found", "2 of 2 pins were compared with no current database"],
        ),
    ],
)
def test_a_finding_fails_and_what_was_not_looked_up_is_said(
    services: dict[str, object], database: dict[str, list[str]], code: int, said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pip_audit.py").write_text(
        "import json, sys\n"
        f"answers = json.loads({json.dumps(services)!r})\n"
        "service = sys.argv[sys.argv.index('--vulnerability-service') + 1]\n"
        "if service not in answers: sys.exit('no such host')\n"
        "print(json.dumps({'dependencies': answers[service]}))\n"
    )
    (tmp_path / "safety_db").mkdir()
    (tmp_path / "safety_db/__init__.py").write_text("raise FileNotFoundError\n")
    (tmp_path / "safety_db/insecure.json").write_text(json.dumps(database))
    (tmp_path / "pins.txt").write_text("# pins\na==1\nb==2\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, str(HOME / ".ci/audit.py"), str(tmp_path / "pins.txt")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert ended.returncode == code, ended.stderr
    for line in said:
        assert line in ended.stdout
