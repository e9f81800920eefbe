"""Slurm, as far as it goes without one: `tests/integration/test_slurm.py` has the rest."""

import shutil
import sys
from pathlib import Path

import pytest

from experiments.launch.tiny import job
from mario.errors import MarioError
from mario.experiments.launch import launch
from mario.experiments.launch.slurm import parameters

KNOWN = {"partition", "time", "mem", "cpus_per_task", "job_name"}


def test_options_of_sbatch() -> None:
    assert parameters({}, KNOWN) == {"time": None, "cpus_per_task": 1}
    given = {"partition": "cpu", "time": "60", "memory": "4G", "cpus": "2", "mail-type": "END"}
    assert parameters(given, KNOWN) == {
        "partition": "cpu",
        "time": 60,
        "mem": "4G",
        "cpus_per_task": 2,
        "additional_parameters": {"mail-type": "END"},
    }
    with pytest.raises(MarioError, match="NAME=VALUE such as partition=cpu"):
        parameters({"--time 3": ""}, KNOWN)


def test_what_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MarioError, match=r"pip install 'mario-gcl\[slurm\]'"):
        list(launch([job()], tmp_path, launcher="slurm"))
    monkeypatch.setitem(sys.modules, "submitit", sys)  # any module will do
    with pytest.raises(MarioError, match="there is no sbatch here"):
        list(launch([job()], tmp_path, launcher="slurm"))
