"""A launcher is one file: what a newcomer writes to add one."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.launch.tiny import job
from mario.errors import MarioError
from mario.lab.launch import launch, launcher, launchers, make_launcher
from mario.lab.runs import store

FILE = '''
from mario.lab.launch import Launcher, register_launcher
from mario.lab.launch.progress import Pace, progress_of, raise_failures, tasks_of
from mario.lab.runs.worker import carry_out


@register_launcher("inline")
class Inline(Launcher):
    """One run after the other in this process."""

    def launch(self, jobs, folder, *, workers, root, retry_failed):
        tasks = tasks_of(jobs, folder, retry_failed=retry_failed)
        for task in tasks:
            carry_out(task.job, task.folder, root)
            task.look()
            yield progress_of(tasks, Pace(), workers)
        raise_failures(tasks)
'''


@pytest.fixture
def inline(tmp_path: Path) -> Iterator[None]:
    file = tmp_path / "inline.py"
    file.write_text(FILE)
    spec = importlib.util.spec_from_file_location("mario.lab.launch.inline", file)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    yield
    del launcher._REGISTERED["inline"]


@pytest.mark.usefixtures("inline")
def test_a_launcher_is_added_in_one_file(tmp_path: Path) -> None:
    assert sorted(launchers()) == ["inline", "local", "slurm"]
    told = list(launch([job(), job(seed=1)], tmp_path / "runs", launcher="inline"))
    assert [now.done_runs for now in told] == [1, 2]
    assert store.state(tmp_path / "runs" / job().spec.digest) == "done"
    with pytest.raises(MarioError, match="the launcher inline has no options, got partition"):
        make_launcher("inline", {"partition": "cpu"})
