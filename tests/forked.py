"""Processes that need not import torch again: all are forked from one server, which the first of them starts."""

import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from unittest import mock

# Before any test has changed it.
_ENVIRONMENT = dict(os.environ)


def context() -> ForkServerContext:
    """Its processes begin with mario imported, and with nothing else of this one."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["mario.lab.runs.worker", "mario.cli.tracking", "mario.cli.document"])
    with mock.patch.dict(os.environ, _ENVIRONMENT, clear=True):
        forkserver.ensure_running()
    return made


def mario(
    *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """The command line as a person types it, in a process of its own; it takes what it does and not seconds more."""
    there = {**os.environ, "COLUMNS": "120", **(env or {})}
    with tempfile.TemporaryDirectory() as said:
        process = start("mario.cli", *words, said=Path(said), cwd=cwd, env=there)
        process.join()
        assert process.exitcode is not None
        out, err = (Path(said, name).read_text(encoding="utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess(list(words), process.exitcode, out, err)


def start(
    program: str, *words: str, said: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> ForkServerProcess:
    """``python -m PROGRAM WORDS``, where that module has a ``main``; what it says is in files ``out`` and ``err``."""
    said.mkdir(parents=True, exist_ok=True)
    arguments = (program, words, str(cwd or Path.cwd()), dict(env or os.environ), str(said))
    process: ForkServerProcess = context().Process(target=_run, args=arguments)
    process.start()
    return process


def _run(program: str, words: tuple[str, ...], cwd: str, env: dict[str, str], said: str) -> None:
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{said}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = [program.partition(".")[0], *words]
    importlib.import_module(program).main()
