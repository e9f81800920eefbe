"""The process of one run: claim its folder, carry it to its end, leave word of how that went."""

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
from mario.lab.launch.local import DONE, FAILED, FULL, HELD, STOPPED
from mario.lab.launch.processes import after_parent
from mario.lab.process import return_freed_memory
from mario.lab.runs import store
from mario.lab.runs.execute import claim, proceed
from mario.lab.runs.job import Job


def work(job: Job, folder: Path, root: Path | None) -> None:
    """Run ``job`` in ``folder`` with one thread and end the process with a code that says how that went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    for name in ("SIGTERM", "SIGHUP", "SIGUSR2"):  # the last is Slurm's word that the time is nearly up
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, frame: _stop(folder))
    threading.Thread(target=after_parent, args=(partial(_stop, folder),), daemon=True).start()
    torch.set_num_threads(1)
    return_freed_memory()
    warnings.showwarning = lambda message, *_: print(f"mario: {job.name}: {message}", file=sys.stderr)
    sys.exit(carry_out(job, folder, root))


def carry_out(job: Job, folder: Path, root: Path | None) -> int:
    """Carry ``job`` to its end in ``folder`` and return how that went; nothing is raised but an interruption."""
    try:
        run = job.plan()
        claim(run, folder)
        with store.alone_in(folder):
            # Written before looking for a result: over a network only a change of its own makes this machine look anew.
            if not store.begin_attempt(folder):
                return FAILED
            if store.look(folder, mine=True).state == store.DONE:
                store.end_attempt(folder, os.getpid())
                return DONE
            try:
                for _ in proceed(run, run.load(root), folder, device="cpu"):
                    pass
            except Exception:
                store.end_attempt(folder, os.getpid())
                raise
            (folder / "error.txt").unlink(missing_ok=True)
            store.end_attempt(folder, os.getpid())
    except store.HeldError:
        return HELD
    except Exception as error:  # whatever it is, it is told and the other runs go on
        if disk_is_full(error):
            return FULL
        told = f"{job.name}\n\n{traceback.format_exc()}"
        with suppress(MarioError):
            write_text(folder / "error.txt", told)
        return FAILED
    return DONE


def disk_is_full(error: BaseException | None) -> bool:
    """Whether ``error``, or what caused it, is that there is no room to write."""
    codes = (errno.ENOSPC, errno.EDQUOT)
    while error is not None:
        if isinstance(error, OSError) and error.errno in codes:
            return True
        if isinstance(error, SafetensorError) and any(f"(os error {code})" in str(error) for code in codes):
            return True
        error = error.__cause__ or error.__context__
    return False


def _stop(folder: Path) -> None:
    """Asked to end: no fault of the run, which goes on from its checkpoint next time."""
    store.end_attempt(folder, os.getpid())
    os._exit(STOPPED)
