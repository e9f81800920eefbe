"""The benchmarks, which no other test runs, still fit the package."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [module.name for module in pkgutil.iter_modules([str(ROOT / "benchmarks")])]


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
    command = f"python -m benchmarks.{name}".removesuffix(".__main__")
    assert not hasattr(module, "main") or command in module.__doc__, "it says how to run it"
