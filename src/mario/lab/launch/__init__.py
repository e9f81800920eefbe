"""Many runs carried out: in processes on this machine, or by Slurm on others."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mario.arguments import check_count
from mario.errors import MarioError
from mario.lab.launch.launcher import Launcher, launchers, make_launcher, register_launcher
from mario.lab.launch.progress import LaunchProgress
from mario.lab.runs.job import Job
from mario.lab.runs.lock import HeldError, alone_in

__all__ = ["LaunchProgress", "Launcher", "launch", "launchers", "make_launcher", "register_launcher"]


def launch(
    jobs: Sequence[Job],
    folder: Path,
    *,
    workers: int = 2,
    launcher: str | Launcher = "local",
    root: Path | None = None,
    retry_failed: bool = False,
    options: Mapping[str, str] | None = None,
) -> Iterator[LaunchProgress]:
    """Complete all ``jobs`` in ``folder/DIGEST`` and report progress while they run.

    Finished runs are not repeated, interrupted runs continue from their checkpoint, and runs that another process works
    on, here or on another machine that shares ``folder``, are waited for. A run that fails writes ``error.txt`` in its
    folder and does not stop the others; it is tried again only with ``retry_failed``, which also repairs broken
    folders. After the last run a :class:`~mario.errors.RunFailedError` names what failed.

    Args:
        workers: runs at once, each a process with one thread; with Slurm, tasks of its array.
        launcher: name of a launcher: see :func:`~mario.lab.launch.launcher.launchers`; or a launcher.
        root: folder of raw files to look in first.
        options: of the launcher; for Slurm, parameters of ``sbatch`` such as ``{"partition": "cpu", "time": "60"}``.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     *_, last = launch([], Path(folder))  # docs/runs.md shows how to make jobs
        >>> last.done_runs, last.total_runs, last.seconds_left
        (0, 0, 0.0)
    """
    chosen = make_launcher(launcher, options) if isinstance(launcher, str) else launcher
    check_count("workers", workers)
    _check_folder(folder)
    return chosen.launch(jobs, folder, workers=workers, root=root, retry_failed=retry_failed)


def _check_folder(folder: Path) -> None:
    """Raise one error now, instead of one per run, if the folder cannot be written or locked."""
    try:
        with suppress(HeldError), alone_in(folder):
            pass
    except OSError as error:
        raise MarioError(f"cannot write in {folder}: {error.strerror}") from error
