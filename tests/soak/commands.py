"""Commands that are killed and started again, and all processes they start."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# How often each kind of process is killed, and by which signal.
KINDS = {"worker": 94, "command": 4, "fork server": 1, "resource tracker": 1}
SIGNALS = {
    "worker": {signal.SIGKILL: 6, signal.SIGTERM: 3, signal.SIGINT: 1},
    "command": {signal.SIGKILL: 4, signal.SIGTERM: 2, signal.SIGINT: 4},
    "fork server": {signal.SIGKILL: 1},
    "resource tracker": {signal.SIGKILL: 1},
}


@dataclass
class Command:
    """A command in a session of its own. One that is ``steady`` is never killed; its workers are."""

    words: list[str]
    folder: Path
    log: Path
    steady: bool = False
    process: "subprocess.Popen[bytes] | None" = None
    sessions: set[int] = field(default_factory=set)
    """Of all its starts."""
    hit: bool = False
    """Whether one of its processes, other than a worker, was killed since it was started."""
    memory: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    """Of each of its long-living processes: seconds and bytes."""

    def start(self) -> None:
        self.hit = False
        with self.log.open("ab") as log:
            # A shell starts what runs in its background with SIGINT ignored, and its children inherit that.
            self.process = subprocess.Popen(
                [sys.executable, *self.words],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        self.sessions.add(self.process.pid)

    @property
    def session(self) -> int:
        return self.process.pid if self.process else -1

    def ended(self) -> int | None:
        return self.process.poll() if self.process else None

    def draws(self) -> bool:
        """Whether it is done but for its page, for which it imports a library for pictures."""
        return b"drawing the pictures" in self.log.read_bytes()

    def end(self) -> None:
        """Ctrl-C, and ``kill -9`` of what is left a minute later."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Process:
    pid: int
    kind: str
    command: Command
    bytes: int


def processes(commands: list[Command]) -> list[Process]:
    """The processes of all commands."""
    by_session = {command.session: command for command in commands if command.process}
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            state, parent, session = fields[0], int(fields[1]), int(fields[3])
            if session not in by_session or state == "Z":
                continue
            words = (folder / "cmdline").read_bytes()
            kind = "worker"
            if int(folder.name) == session:
                kind = "command"
            elif b"resource_tracker" in words:
                kind = "resource tracker"
            elif b"forkserver" in words and parent == session:
                kind = "fork server"
            pages = int((folder / "statm").read_text().split()[1])
            found.append(Process(int(folder.name), kind, by_session[session], 4096 * pages))
    return found


def kill_one(commands: list[Command], kills: Counter[str], draw: random.Random) -> None:
    """Kill a process of a kind, by a signal, all drawn at random."""
    kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
    there = [p for p in processes(commands) if p.kind == kind and not (kind == "command" and p.command.steady)]
    if not there:
        return
    victim = draw.choice(there)
    number = draw.choices(list(SIGNALS[kind]), list(SIGNALS[kind].values()))[0]
    with suppress(ProcessLookupError):
        os.kill(victim.pid, number)
        kills[f"{kind} {number.name}"] += 1
        victim.command.hit |= kind != "worker"


def left(sessions: set[int]) -> list[str]:
    """The processes of ``sessions`` that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) in sessions and fields[0] != "Z":
                found.append(f"{folder.name} {(folder / 'cmdline').read_bytes()[:200]!r}")
    return found


def measure(commands: list[Command]) -> None:
    """Take note of the memory of commands and their fork servers, until a command draws its page at the end."""
    for process in processes(commands):
        if process.kind in ("command", "fork server") and not process.command.draws():
            process.command.memory.setdefault(process.pid, []).append((time.monotonic(), process.bytes))
