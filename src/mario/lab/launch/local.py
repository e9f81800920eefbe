"""Runs in processes of this machine, several at once."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from mario.errors import RunFailedError
from mario.lab.launch.processes import context, one_thread
from mario.lab.launch.standing import Pace, Standing, Task, raise_failures, standing_of, tasks_of
from mario.lab.runs import store
from mario.lab.runs.job import Job

LOOK_EVERY = 0.2  # seconds, at the processes of this launch
LOOK_ELSEWHERE_EVERY = 2.0  # seconds, at runs that others are at work on
DONE, FAILED, HELD, FULL, STOPPED = 0, 1, 75, 76, 77
"""How a worker ends: see :mod:`mario.lab.launch.worker`."""


def launch_local(
    jobs: Sequence[Job], folder: Path, *, workers: int, root: Path | None, retry_failed: bool
) -> Iterator[Standing]:
    """``workers`` processes at once, a run each. They end with this one, in whatever way it ends."""
    tasks = tasks_of(jobs, folder, retry_failed=retry_failed)
    yield from carry_out_all(tasks, folder, workers=workers, root=root, wait_for_others=True)
    raise_failures(tasks)


def carry_out_all(
    tasks: Sequence[Task], folder: Path, *, workers: int, root: Path | None, wait_for_others: bool
) -> Iterator[Standing]:
    """Carry ``tasks`` to their end; without ``wait_for_others``, until all that is left is at work elsewhere.

    Failures are left in the tasks. A full disk is the one thing that ends it before its time, with an error.
    """
    pace = Pace.of_folder(folder)
    waiting = deque(task for task in tasks if task.undone)
    mine: dict[Task, BaseProcess] = {}
    processes = context("mario.lab.launch.worker")
    looked = time.monotonic()
    yield standing_of(tasks, pace, workers)  # the first start takes seconds
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
                    task.look(pace)  # it may have been done elsewhere since
                    if task.state == store.WAITING:
                        mine[task] = _start(processes, task, root)
                        continue
                if task.undone:
                    waiting.append(task)
            yield standing_of(tasks, pace, workers)
            if not mine and not any(wait_for_others or task.state == store.WAITING for task in waiting):
                break
            wait([process.sentinel for process in mine.values()], timeout=LOOK_EVERY)
    finally:
        for process in mine.values():
            process.kill()
        for task, process in mine.items():
            process.join()
            store.end_attempt(task.folder, process.pid or 0)


def _start(processes: Any, task: Task, root: Path | None) -> BaseProcess:
    with one_thread():
        process: BaseProcess = processes.Process(target=_work, args=(task.job, task.folder, root), daemon=True)
        process.start()
    task.state, task.mine, task.began = store.RUNNING, True, (time.monotonic(), task.made)
    return process


def _work(job: Job, folder: Path, root: Path | None) -> None:
    from mario.lab.launch.worker import work

    work(job, folder, root)


def _ended(task: Task, process: BaseProcess, folder: Path, pace: Pace) -> None:
    """Find out what became of ``task``, whose process has ended."""
    code = process.exitcode
    task.mine, task.began = False, None
    if code == FULL:
        raise RunFailedError(
            f"there is no room left in {folder}: make room, or take another folder, and give the same command again. "
            "Nothing that was written is lost; the runs go on from their last checkpoints"
        )
    if code is not None and code < 0:
        store.note_signal(task.folder, process.pid or 0, -code)
    task.look(pace)
    if task.state != store.WAITING or code == HELD:
        return
    if code in (DONE, FAILED):
        task.state = store.FAILED
        task.reason = f"its process ended with code {code} and could leave neither a result nor an error"
        return
    # Killed, or asked to end. Once may be an accident.
    checkpoint = store.newest_checkpoint(task.folder)
    if task.interrupted_at == checkpoint:
        task.state = store.FAILED
        task.reason = store.blame(task.folder, checkpoint, -code if code and code < 0 else None)
    task.interrupted_at = checkpoint
