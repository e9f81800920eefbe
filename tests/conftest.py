"""Fixtures shared by all tests."""

import os
from pathlib import Path

# Tests and the commands they start run side by side on few cores: threads that wait for one another only spin.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    # Tests run in parallel processes; more threads than cores only slow them down.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def mario_data() -> Path:
    """The folder of real datasets, or a skip that says how to have it."""
    where = os.environ.get("MARIO_DATA")
    if not where or not Path(where).is_dir():
        pytest.skip("real datasets absent: set MARIO_DATA to a folder laid out as docs/data.md says")
    return Path(where)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
