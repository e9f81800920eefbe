"""The process of one run: claim its folder, complete it, and report how it ended."""

import errno
import os
import signal
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError

import mario.datasets.readers.pyg
import mario.methods  # noqa: F401 (both imported here, so that a fork server has them before it forks)
from mario.errors import MarioError
from mario.files import write_text
from mario.lab import anonymous
from mario.lab.process import return_freed_memory
from mario.lab.runs import store
from mario.lab.runs.attempt import Ending, begin_attempt, end_attempt
from mario.lab.runs.execute import claim, load_data, proceed
from mario.lab.runs.job import Job
from mario.lab.runs.lock import HeldError, alone_in
from mario.lab.runs.processes import after_parent


def work(job: Job, folder: Path, root: Path | None) -> None:
    """Run ``job`` in ``folder`` with one thread and exit with the code of how it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends this process
    for name in ("SIGTERM", "SIGHUP", "SIGUSR2"):  # Slurm sends the last shortly before the time limit
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: _stop(folder))
    threading.Thread(target=after_parent, args=(partial(_stop, folder),), daemon=True).start()
    torch.set_num_threads(1)
    return_freed_memory()
    warnings.showwarning = lambda message, *_: print(f"mario: {job.name}: {message}", file=sys.stderr)
    sys.exit(carry_out(job, folder, root))


def carry_out(job: Job, folder: Path, root: Path | None) -> Ending:
    """Complete ``job`` in ``folder`` and return how it ended; raises nothing but interruptions."""
    try:
        claim(job.spec, folder)
        with alone_in(folder):
            # Write before looking for a result: on a network filesystem, only a write of ours refreshes the folder.
            if not begin_attempt(folder):
                return Ending.FAILED
            try:
                if store.look(folder, mine=True).state != store.DONE:
                    for _ in proceed(job.spec, load_data(job.spec, root), folder, device="cpu"):
                        pass
            except Exception as error:
                end_attempt(folder, os.getpid())
                return _failed(job, folder, error)
            (folder / "error.txt").unlink(missing_ok=True)
            end_attempt(folder, os.getpid())
    except HeldError:
        return Ending.HELD
    except Exception as error:  # any error is recorded, and the other runs go on
        try:
            with alone_in(folder):
                return _failed(job, folder, error)
        except (MarioError, OSError):  # nothing can be written there
            if disk_is_full(error):
                return Ending.FULL
            print(f"mario: {job.name}: {' '.join(str(error).split())}", file=sys.stderr)
            return Ending.FAILED
    return Ending.DONE


def _failed(job: Job, folder: Path, error: Exception) -> Ending:
    """Record ``error`` in the folder, whose lock this process holds, unless the disk is full."""
    if disk_is_full(error):
        return Ending.FULL
    with suppress(MarioError):
        said = f"{job.name}\n\n{traceback.format_exc()}"
        write_text(folder / "error.txt", anonymous.without_paths(said) if anonymous.wanted() else said)
    return Ending.FAILED


def disk_is_full(error: BaseException | None) -> bool:
    """Whether ``error``, or its cause, is a full disk."""
    codes = (errno.ENOSPC, errno.EDQUOT)
    while error is not None:
        if isinstance(error, OSError) and error.errno in codes:
            return True
        if isinstance(error, SafetensorError) and any(f"(os error {code})" in str(error) for code in codes):
            return True
        error = error.__cause__ or error.__context__
    return False


def _stop(folder: Path) -> None:
    """Terminated: not the run's fault, so it continues from its checkpoint next time."""
    end_attempt(folder, os.getpid())
    os._exit(Ending.STOPPED)
