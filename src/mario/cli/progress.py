"""The progress view of many runs."""

from collections.abc import Iterable

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from mario.experiments.launch import Standing


def follow(console: Console, standings: Iterable[Standing]) -> None:
    """Show how far a launch is until it ends: runs done, running and failed, and the time left."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("runs", total=None, note="starting")
        for now in standings:
            progress.update(task, completed=now.done_steps, total=now.total_steps, note=_note(now))


def _note(now: Standing) -> str:
    failed = f", [red]{now.failed_runs} failed[/red]" if now.failed_runs else ""
    left = "time left not known yet" if now.seconds_left is None else f"{lasting(now.seconds_left)} left"
    if now.done_runs + now.failed_runs == now.total_runs:
        left = "finished"
    return f"{now.done_runs} of {now.total_runs} done{failed}, {left}  {', '.join(now.running)}"


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
