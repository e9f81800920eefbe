"""Runs in processes of this machine, several at once."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from mario.errors import RunFailedError
from mario.lab.launch.launcher import Launcher, register_launcher
from mario.lab.launch.progress import LaunchProgress, Pace, Task, progress_of, raise_failures, tasks_of
from mario.lab.runs import store
from mario.lab.runs.attempt import Ending, blame, end_attempt, newest_checkpoint, note_signal
from mario.lab.runs.job import Job
from mario.lab.runs.lock import HeldError, alone_in
from mario.lab.runs.processes import context, one_thread

LOOK_EVERY = 0.2  # seconds, at the processes of this launch
LOOK_ELSEWHERE_EVERY = 2.0  # seconds, at runs of other processes


@register_launcher("local")
class Local(Launcher):
    """``workers`` processes at once, one per run. They end with this process, however it ends."""

    def launch(
        self, jobs: Sequence[Job], folder: Path, *, workers: int, root: Path | None, retry_failed: bool
    ) -> Iterator[LaunchProgress]:
        tasks = tasks_of(jobs, folder, retry_failed=retry_failed)
        yield from carry_out_all(tasks, folder, workers=workers, root=root, wait_for_others=True)
        raise_failures(tasks)


def carry_out_all(
    tasks: Sequence[Task], folder: Path, *, workers: int, root: Path | None, wait_for_others: bool
) -> Iterator[LaunchProgress]:
    """Complete ``tasks``; without ``wait_for_others``, stop when other processes work on all that is left.

    Failures are recorded in the tasks. Only a full disk ends this early, with an error.
    """
    pace = Pace.of_folder(folder)
    waiting = deque(task for task in tasks if task.undone)
    mine: dict[Task, BaseProcess] = {}
    processes = context("mario.lab.runs.worker")
    looked = time.monotonic()
    yield progress_of(tasks, pace, workers)  # the first start takes seconds
    try:
        while True:
            for task, process in list(mine.items()):
                if not process.is_alive():
                    del mine[task]
                    _ended(task, process, folder, pace)
                    if task.undone:
                        waiting.append(task)
            if time.monotonic() - looked > LOOK_ELSEWHERE_EVERY:
                looked = time.monotonic()
                for task in waiting:
                    if task.state == store.RUNNING:
                        task.look(pace)
            for _ in range(len(waiting)):
                task = waiting.popleft()
                if task.state == store.WAITING and len(mine) < workers:
                    task.look(pace)  # another process may have finished it
                    if task.state == store.WAITING:
                        mine[task] = _start(processes, task, root)
                        continue
                if task.undone:
                    waiting.append(task)
            yield progress_of(tasks, pace, workers)
            if not mine and not any(wait_for_others or task.state == store.WAITING for task in waiting):
                break
            wait([process.sentinel for process in mine.values()], timeout=LOOK_EVERY)
    finally:
        for process in mine.values():
            process.kill()
        for task, process in mine.items():
            process.join()
            end_attempt(task.folder, process.pid or 0)


def _start(processes: Any, task: Task, root: Path | None) -> BaseProcess:
    with one_thread():
        process: BaseProcess = processes.Process(target=_work, args=(task.job, task.folder, root), daemon=True)
        process.start()
    task.state, task.mine, task.began = store.RUNNING, True, (time.monotonic(), task.made)
    return process


def _work(job: Job, folder: Path, root: Path | None) -> None:
    from mario.lab.runs.worker import work

    work(job, folder, root)


def _ended(task: Task, process: BaseProcess, folder: Path, pace: Pace) -> None:
    """Update ``task``, whose process has ended."""
    code = process.exitcode
    task.mine, task.began = False, None
    if code == Ending.FULL:
        raise RunFailedError(
            f"the disk of {folder} is full: free some space, or choose another folder, and repeat the same command. "
            "Nothing that was written is lost; the runs continue from their last checkpoints"
        )
    if code is not None and code < 0:
        note_signal(task.folder, process.pid or 0, -code)
    task.look(pace)
    if task.state != store.WAITING or code == Ending.HELD:
        return
    if code in (Ending.DONE, Ending.FAILED):
        task.state = store.FAILED
        task.reason = f"its process ended with code {code} and wrote neither a result nor an error"
        return
    # Killed or terminated. Once may be an accident.
    checkpoint = newest_checkpoint(task.folder)
    if task.interrupted_at == checkpoint:
        try:
            with alone_in(task.folder):
                task.reason = blame(task.folder, checkpoint, -code if code and code < 0 else None)
                task.state = store.FAILED
        except HeldError:
            task.look(pace)  # another process has taken it over
    task.interrupted_at = checkpoint
