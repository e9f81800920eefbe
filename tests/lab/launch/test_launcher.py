"""Launchers by name. ``tests/test_newcomer.py`` adds one."""

import pytest

from mario.errors import MarioError
from mario.lab.launch import launchers, make_launcher


def test_launchers_have_names_and_options() -> None:
    assert sorted(launchers()) == ["local", "slurm"]
    assert make_launcher("slurm", {"partition": "cpu"}).name == "slurm"
    with pytest.raises(MarioError, match="the launcher local has no options, got partition"):
        make_launcher("local", {"partition": "cpu"})
    with pytest.raises(MarioError, match="there is no launcher 'ssh'; choose local, slurm"):
        make_launcher("ssh")
