"""Progress on the terminal: of one task, and of many runs."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from mario.lab.launch import LaunchProgress

SAY_EVERY = 60.0
"""Seconds between lines if the output is a file."""


def progress_bar(console: "Console") -> "Progress":
    """A bar with a description, counts, the time left, and ``note``."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
    )


def follow(console: "Console", launched: Iterable["LaunchProgress"]) -> None:
    """Show the progress of a launch until it ends: a bar in a terminal, one line per minute in a file."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    if not console.is_terminal:
        _in_lines(console, launched)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("runs", total=None, note="starting")
        for now in launched:
            progress.update(task, completed=now.done_steps, total=now.total_steps, note=note(now))


def _in_lines(console: "Console", launched: Iterable["LaunchProgress"]) -> None:
    def say(line: str) -> None:
        console.print(f"runs: {line}", highlight=False, markup=False, soft_wrap=True)

    said, line = time.monotonic(), "none"
    try:
        for now in launched:
            line = note(now)
            if time.monotonic() - said >= SAY_EVERY:
                said = time.monotonic()
                say(line)
    finally:
        say(line)


def note(now: "LaunchProgress") -> str:
    """The progress of a launch in one line.

    Example:
        >>> from mario.lab.launch import LaunchProgress
        >>> note(LaunchProgress(done_runs=3, failed_runs=1, total_runs=8, running=["erm good-cbas concept 0/0"],
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
    """A duration in words.

    Example:
        >>> lasting(42), lasting(600), lasting(7000)
        ('42 s', '10 min', '1 h 57 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
