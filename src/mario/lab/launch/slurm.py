"""Runs on Slurm, through submitit: an array of workers that share only the folder of the runs with this process.

Every worker goes through the same list of jobs, claims a run, completes it and takes the next. This process only
watches the folder. The workers do not depend on it, and repeating the command watches the existing workers.
"""

import dataclasses
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mario.errors import MarioError, RunFailedError
from mario.files import write_json
from mario.lab.launch.launcher import Launcher, register_launcher
from mario.lab.launch.local import carry_out_all
from mario.lab.launch.progress import LaunchProgress, Pace, Task, progress_of, raise_failures, tasks_of
from mario.lab.runs import store
from mario.lab.runs.attempt import newest_checkpoint
from mario.lab.runs.job import Job
from mario.untrusted import read_json

LOOK_EVERY = 2.0  # seconds, at the folder
ASK_EVERY = 10.0  # seconds, the controller, which serves other users too
ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "SPECIAL_EXIT", "TIMEOUT"),
}
SHORT = {"memory": "mem", "cpus": "cpus_per_task"}


@register_launcher("slurm")
class Slurm(Launcher):
    """An array of ``workers`` tasks, each with as many runs at once as it has CPUs (one by default).

    Waiting and running tasks of an earlier launch of the same jobs count as ``workers``. When all tasks have ended and
    runs are left, for example because of a time limit, new tasks are submitted as long as the runs make progress.

    Options are parameters of ``sbatch``, such as ``partition=cpu`` or ``time=60``.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options
        parameters(options, ())

    def launch(
        self, jobs: Sequence[Job], folder: Path, *, workers: int, root: Path | None, retry_failed: bool
    ) -> Iterator[LaunchProgress]:
        array = Array.prepare(jobs, folder, workers, root, self.options)
        tasks = tasks_of(jobs, folder, retry_failed=retry_failed)
        pace = Pace.of_folder(folder)
        undone = [task for task in tasks if task.undone]
        asked, before = 0.0, None
        try:
            while undone:
                if not asked or time.monotonic() - asked > ASK_EVERY:
                    alive, pending = array.alive()
                    asked = time.monotonic()
                    undone = _still(undone, pace)  # after the question: a task that ended since has left its result
                    left = [task for task in undone if task.state == store.WAITING]
                    reached = [(task.folder, newest_checkpoint(task.folder)) for task in left]
                    if left and not alive and reached == before:
                        raise RunFailedError(array.complaint(len(left)))
                    # Tasks that end later are not replaced one by one: what ended them may also end the next.
                    if (before is None or not alive) and array.submit(min(workers - alive, len(left) - pending)):
                        before = reached
                undone = _still(undone, pace)
                yield dataclasses.replace(progress_of(tasks, pace, workers), note=array.note)
                if undone:
                    time.sleep(LOOK_EVERY)
        except (KeyboardInterrupt, GeneratorExit):
            print(
                f"\nmario: Slurm continues with {len(undone)} runs: repeat the same command to watch them, "
                f"or cancel them with scancel --name={array.name}",
                file=sys.stderr,
            )
            raise
        yield progress_of(tasks, pace, workers)
        raise_failures(tasks)


def _still(undone: Sequence[Task], pace: Pace) -> list[Task]:
    for task in undone:
        task.look(pace)
    return [task for task in undone if task.undone]


@dataclasses.dataclass
class Array:
    """The workers of one list of jobs in one folder, which Slurm knows by their name."""

    name: str
    logs: Path
    arguments: tuple[str, str, str | None]
    executor: Any
    seen: set[str] = dataclasses.field(default_factory=set)
    """Tasks that waited or ran while this launch was watching."""
    note: str = ""

    @classmethod
    def prepare(
        cls, jobs: Sequence[Job], folder: Path, workers: int, root: Path | None, options: Mapping[str, str]
    ) -> "Array":
        try:
            import submitit
        except ImportError:
            raise MarioError(
                "the launcher slurm needs submitit: install it with `pip install 'mario-gcl[slurm]'`"
            ) from None
        for tool in ("sbatch", "squeue"):
            if shutil.which(tool) is None:
                raise MarioError(
                    f"{tool} is not installed: launch on a machine of the cluster, or use the launcher local"
                )
        folder = folder.resolve()
        digests = [job.spec.digest for job in jobs]
        name = "mario-" + hashlib.sha256("\n".join([str(folder), *sorted(digests)]).encode()).hexdigest()[:8]
        logs = folder / ".submitit" / name
        write_json(logs / "jobs.json", [job.to_dict() for job in jobs])
        executor = submitit.SlurmExecutor(folder=logs)
        executor.update_parameters(
            **parameters(options, executor._valid_parameters()), job_name=name, array_parallelism=workers
        )
        return cls(name, logs, (str(folder), str(logs / "jobs.json"), str(root.resolve()) if root else None), executor)

    def alive(self) -> tuple[int, int]:
        """The number of tasks that wait or run, and of those that wait, from this and earlier launches.

        Raises if tasks that this launch saw were canceled.
        """
        states = self._states()
        self.seen |= {task for task, (state, _) in states.items() if state not in ENDED}
        if canceled := [task for task in self.seen if task in states and states[task][0] == "CANCELLED"]:
            raise RunFailedError(f"{len(canceled)} of Slurm's workers were canceled; repeat the command to continue")
        waiting = [reason for state, reason in states.values() if state == "PENDING"]
        self.note = f"in Slurm's queue: {len(waiting)} ({', '.join(sorted(set(waiting)))})" if waiting else ""
        return sum(state not in ENDED for state, _ in states.values()), len(waiting)

    def _states(self) -> dict[str, tuple[str, str]]:
        for _ in range(5):
            asked = subprocess.run(
                ["squeue", "--noheader", "--array", "--states=all", "--format=%i|%T|%r", f"--name={self.name}"],
                capture_output=True,
                text=True,
                check=False,
            )
            if asked.returncode == 0:
                listed = [line.split("|") for line in asked.stdout.splitlines() if line.strip()]
                return {task: (state, reason) for task, state, reason in listed}
            time.sleep(LOOK_EVERY)  # the controller may be busy
        raise RunFailedError(
            f"squeue does not answer ({asked.stderr.strip()}); repeat the same command to watch the runs"
        )

    def submit(self, tasks: int) -> bool:
        """Submit ``tasks`` workers; return whether there was anything to submit."""
        if tasks <= 0:
            return False
        try:
            with self.executor.batch():
                for _ in range(tasks):
                    self.executor.submit(work, *self.arguments)
        except Exception as error:  # submitit has several
            said = [line for line in str(error).splitlines() if line.strip()]
            raise RunFailedError(
                f"sbatch refused the jobs: {said[-1].strip() if said else type(error).__name__}"
            ) from error
        return True

    def complaint(self, undone: int) -> str:
        last = ""
        for path in sorted(self.logs.glob("*_log.err"), key=lambda path: path.stat().st_mtime):
            lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            last = lines[-1] if lines else last
        said = f": {last}" if last else ""
        return f"Slurm's workers ended and left {undone} runs unfinished; their logs are in {self.logs}{said}"


def parameters(options: Mapping[str, str], known: Collection[str]) -> dict[str, Any]:
    """Options of sbatch in submitit's form; those that submitit does not know are passed to sbatch unchanged.

    The default time limit is the partition's.
    """
    found: dict[str, Any] = {"time": None, "cpus_per_task": 1}
    others = {}
    for option, value in options.items():
        name = option.strip().replace("-", "_")
        name = SHORT.get(name, name)
        if not re.fullmatch("[a-z_]+", name):
            raise MarioError(f"options of Slurm are NAME=VALUE such as partition=cpu or time=60, got '{option}'")
        if name in ("job_name", "array_parallelism"):
            raise MarioError(f"the option {option} is not allowed: mario sets it from the runs and --workers")
        if name in known:
            found[name] = int(value) if value.isdigit() else value
        else:
            others[name.replace("_", "-")] = value
    return {**found, "additional_parameters": others} if others else found


def work(folder: str, jobs: str, root: str | None) -> None:
    """The work of one task of the array: claim runs and complete them until other tasks work on all that is left."""
    stopped = []
    for name in ("SIGTERM", "SIGUSR2"):  # a time limit, a preemption, scancel
        signal.signal(getattr(signal, name), lambda number, frame: stopped.append(number))
    at_once = int(os.environ.get("SLURM_CPUS_PER_TASK") or 1)
    tasks = tasks_of(map(Job.from_dict, read_json(Path(jobs))), Path(folder))
    where = Path(root) if root else None
    for _ in carry_out_all(tasks, Path(folder), workers=at_once, root=where, wait_for_others=False):
        if stopped:
            break
