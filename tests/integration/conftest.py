"""Tests that start servers or a browser: run only when this folder is named, as `make integration` does."""

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = any("integration" in str(arg) for arg in config.args)
    return None if named else True
