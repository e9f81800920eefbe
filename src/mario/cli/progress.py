"""The progress view of many runs."""

import time
from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from mario.lab.launch import Standing

SAY_EVERY = 60.0
"""Seconds between lines where the output is a file."""


def follow(console: Console, standings: Iterable[Standing]) -> None:
    """Show how far a launch is until it ends: runs done, running and failed, and the time left.

    In a terminal that is a bar; in a file a line a minute.
    """
    if not console.is_terminal:
        _in_lines(console, standings)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("runs", total=None, note="starting")
        for now in standings:
            progress.update(task, completed=now.done_steps, total=now.total_steps, note=note(now))


def _in_lines(console: Console, standings: Iterable[Standing]) -> None:
    def say(line: str) -> None:
        console.print(f"runs: {line}", highlight=False, markup=False, soft_wrap=True)

    said, line = time.monotonic(), "none"
    try:
        for now in standings:
            line = note(now)
            if time.monotonic() - said >= SAY_EVERY:
                said = time.monotonic()
                say(line)
    finally:
        say(line)


def note(now: Standing) -> str:
    """Where the runs stand, in one line.

    Example:
        >>> from mario.lab.launch import Standing
        >>> note(Standing(done_runs=3, failed_runs=1, total_runs=8, running=["erm good-cbas concept 0/0"],
        ...      done_steps=30, total_steps=80, seconds_left=95.0))
        '3 of 8 done, 1 failed, 2 min left, 1 running: erm good-cbas concept 0/0'
    """
    parts = [f"{now.done_runs} of {now.total_runs} done"]
    parts += [f"{now.failed_runs} failed"] if now.failed_runs else []
    if now.done_runs + now.failed_runs < now.total_runs:
        parts.append("time left not known yet" if now.seconds_left is None else f"{lasting(now.seconds_left)} left")
    parts += [f"{len(now.running)} running: {'; '.join(now.running)}"] if now.running else []
    parts += [now.note] if now.note else []
    return ", ".join(parts)


def lasting(seconds: float) -> str:
    """A length of time as people say it.

    Example:
        >>> lasting(42), lasting(600), lasting(7000)
        ('42 s', '10 min', '1 h 57 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
