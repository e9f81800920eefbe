import ast
import shutil
import subprocess
from pathlib import Path

import pytest

import mario

SOURCE = Path(mario.__file__)


def test_rooms_and_methods_are_there_by_name() -> None:
    for room in (
        "contrast",
        "datasets",
        "encoders",
        "evaluation",
        "lab",
        "graphs",
        "methods",
        "report",
        "training",
        "views",
    ):
        assert mario.__getattr__(room).__name__ == f"mario.{room}"
        assert room in dir(mario)
    assert mario.__getattr__("GRACE") is mario.methods.GRACE
    with pytest.raises(AttributeError, match="no attribute 'cli'"):
        mario.__getattr__("cli")


def known_to_type_checkers() -> dict[str, str]:
    """Of each class imported from ``mario.methods`` for type checkers, the module."""
    (block,) = (node for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names if "methods" in str(node.module)}


def under_version_control(module: str) -> bool:
    file = SOURCE.parent / f"{module.removeprefix('mario.').replace('.', '/')}.py"
    command = ["git", "-C", str(SOURCE.parent), "ls-files", "--error-unmatch", str(file)]
    return shutil.which("git") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_every_method_is_known_to_type_checkers() -> None:
    known = known_to_type_checkers()
    methods = {cls.__name__: cls.__module__ for cls in mario.methods.REGISTRY.values()}
    assert {name: known[name] for name in known if name not in ("Recipe", "Steady", "load")}.items() <= methods.items()
    # A file that is new here, or not ours, works without a line in mario/__init__.py.
    ours = {name: home for name, home in methods.items() if under_version_control(home)}
    assert ours.items() <= known.items(), "add the import of a method to mario/__init__.py"
