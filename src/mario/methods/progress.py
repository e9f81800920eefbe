"""The progress bar of ``fit(verbose=True)``."""

from collections.abc import Generator, Iterable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from mario.training import Epoch


def with_progress(epochs: Iterable[Epoch], total: int) -> Generator[Epoch, None, None]:
    """``epochs`` as they come, with a bar on standard error that shows the epoch, the loss and the time left."""
    columns = (
        TextColumn("epoch"),
        MofNCompleteColumn(),
        BarColumn(),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("fit", total=total, loss="")
        for epoch in epochs:
            loss = epoch.losses.get("loss")
            bar.update(task, completed=epoch.number, loss="" if loss is None else f"loss {loss:.4f}")
            yield epoch
