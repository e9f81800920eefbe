"""Runs by Slurm, through submitit: an array of workers that share nothing with us but the folder of the runs.

Every worker goes through the same list of jobs, claims a run, carries it out and takes the next. Here the folder
is only watched: the workers need nobody to watch them, and the same command given again watches those that are there.
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
from mario.files import read_json, write_json
from mario.lab.launch.local import carry_out_all
from mario.lab.launch.standing import Pace, Standing, Task, raise_failures, standing_of, tasks_of
from mario.lab.runs import store
from mario.lab.runs.job import Job

LOOK_EVERY = 2.0  # seconds, at the folder
ASK_EVERY = 10.0  # seconds, the controller: it serves others too
ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED"),
    *("REVOKED", "SPECIAL_EXIT", "TIMEOUT"),
}
SHORT = {"memory": "mem", "cpus": "cpus_per_task"}


def launch_slurm(
    jobs: Sequence[Job],
    folder: Path,
    *,
    workers: int,
    root: Path | None,
    retry_failed: bool,
    options: Mapping[str, str],
) -> Iterator[Standing]:
    """An array of ``workers`` tasks, each with as many runs at once as it has CPUs (one, unless asked otherwise).

    Tasks of an earlier launch of the same jobs that wait or run count among the ``workers``. When all tasks have ended
    and left runs undone, by a time limit for example, new ones are submitted as long as that gets the runs further.
    """
    array = Array.prepare(jobs, folder, workers, root, options)
    tasks = tasks_of(jobs, folder, retry_failed=retry_failed)
    pace = Pace.of_folder(folder)
    undone = [task for task in tasks if task.undone]
    asked, before = 0.0, None
    try:
        while undone:
            if not asked or time.monotonic() - asked > ASK_EVERY:
                alive, pending = array.alive()
                asked = time.monotonic()
                undone = _still(undone, pace)  # after the question: whoever has ended since has left its result
                left = [task for task in undone if task.state == store.WAITING]
                reached = [(task.folder, store.newest_checkpoint(task.folder)) for task in left]
                if left and not alive and reached == before:
                    raise RunFailedError(array.complaint(len(left)))
                # Those that end later are not replaced one by one: what ended them may end the next as well.
                if (before is None or not alive) and array.submit(min(workers - alive, len(left) - pending)):
                    before = reached
            undone = _still(undone, pace)
            yield dataclasses.replace(standing_of(tasks, pace, workers), note=array.note)
            if undone:
                time.sleep(LOOK_EVERY)
    except (KeyboardInterrupt, GeneratorExit):
        print(
            f"\nmario: Slurm goes on with {len(undone)} runs: the same command again watches them, "
            f"scancel --name={array.name} cancels them",
            file=sys.stderr,
        )
        raise
    yield standing_of(tasks, pace, workers)
    raise_failures(tasks)


def _still(undone: Sequence[Task], pace: Pace) -> list[Task]:
    for task in undone:
        task.look(pace)
    return [task for task in undone if task.undone]


@dataclasses.dataclass
class Array:
    """The workers of one list of jobs in one folder, known to Slurm by their name."""

    name: str
    logs: Path
    arguments: tuple[str, str, str | None]
    executor: Any
    seen: set[str] = dataclasses.field(default_factory=set)
    """Tasks that have waited or run while this launch was watching."""
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
                    f"there is no {tool} here: launch on a machine of the cluster, or with the launcher local"
                )
        folder = folder.resolve()
        digests = [job.plan().digest() for job in jobs]
        name = "mario-" + hashlib.sha256("\n".join([str(folder), *sorted(digests)]).encode()).hexdigest()[:8]
        logs = folder / ".submitit" / name
        write_json(logs / "jobs.json", [dataclasses.asdict(job) for job in jobs])
        executor = submitit.SlurmExecutor(folder=logs)
        executor.update_parameters(
            **parameters(options, executor._valid_parameters()), job_name=name, array_parallelism=workers
        )
        return cls(name, logs, (str(folder), str(logs / "jobs.json"), str(root.resolve()) if root else None), executor)

    def alive(self) -> tuple[int, int]:
        """How many tasks wait or run, and how many of them wait, by whomever they were submitted.

        An error if those we saw were cancelled.
        """
        states = self._states()
        self.seen |= {task for task, (state, _) in states.items() if state not in ENDED}
        if cancelled := [task for task in self.seen if task in states and states[task][0] == "CANCELLED"]:
            raise RunFailedError(f"{len(cancelled)} of Slurm's workers were cancelled; the same command again goes on")
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
            f"squeue does not answer ({asked.stderr.strip()}); the same command again watches the runs"
        )

    def submit(self, tasks: int) -> bool:
        """Whether there was anything to submit."""
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
        return f"Slurm's workers ended and left {undone} runs undone; their logs are in {self.logs}{said}"


def parameters(options: Mapping[str, str], known: Collection[str]) -> dict[str, Any]:
    """Options of sbatch as submitit takes them; what it does not know by name goes to sbatch as it is.

    The time limit is the partition's, unless given.
    """
    found: dict[str, Any] = {"time": None, "cpus_per_task": 1}
    others = {}
    for option, value in options.items():
        name = option.strip().replace("-", "_")
        name = SHORT.get(name, name)
        if not re.fullmatch("[a-z_]+", name):
            raise MarioError(f"parameters of Slurm are NAME=VALUE such as partition=cpu or time=60, got '{option}'")
        if name in ("job_name", "array_parallelism"):
            raise MarioError(f"--slurm {option} cannot be given: mario sets it itself, from the runs and --workers")
        if name in known:
            found[name] = int(value) if value.isdigit() else value
        else:
            others[name.replace("_", "-")] = value
    return {**found, "additional_parameters": others} if others else found


def work(folder: str, jobs: str, root: str | None) -> None:
    """What a task of the array does: claim runs and carry them out until none is left that nobody is at work on."""
    told_to_end = []
    for name in ("SIGTERM", "SIGUSR2"):  # a time limit, a preemption, scancel
        signal.signal(getattr(signal, name), lambda number, frame: told_to_end.append(number))
    at_once = int(os.environ.get("SLURM_CPUS_PER_TASK") or 1)
    tasks = tasks_of((Job(**job) for job in read_json(Path(jobs))), Path(folder))
    where = Path(root) if root else None
    for _ in carry_out_all(tasks, Path(folder), workers=at_once, root=where, wait_for_others=False):
        if told_to_end:
            break
