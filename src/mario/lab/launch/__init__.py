"""Many runs carried to their end: in processes here, or by Slurm on other machines."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mario.errors import MarioError
from mario.lab.launch.local import launch_local
from mario.lab.launch.standing import Standing
from mario.lab.runs import store
from mario.lab.runs.job import Job

LAUNCHERS = ("local", "slurm")

__all__ = ["LAUNCHERS", "Standing", "check_launcher", "launch"]


def check_launcher(launcher: str, slurm: Mapping[str, str]) -> None:
    """Refuse a launcher that does not exist, and parameters of Slurm that are none or not for it."""
    if launcher not in LAUNCHERS:
        raise MarioError(f"there is no launcher '{launcher}'; there are {', '.join(LAUNCHERS)}")
    if slurm and launcher != "slurm":
        raise MarioError(f"parameters of Slurm ({', '.join(slurm)}) need the launcher slurm, not {launcher}")
    if slurm:
        from mario.lab.launch.slurm import parameters

        parameters(slurm, ())


def launch(
    jobs: Sequence[Job],
    folder: Path,
    *,
    workers: int = 2,
    launcher: str = "local",
    root: Path | None = None,
    retry_failed: bool = False,
    slurm: Mapping[str, str] | None = None,
) -> Iterator[Standing]:
    """Carry all ``jobs`` to their end in ``folder/HASH`` and say again and again how far they are.

    What is done is not repeated, what was interrupted goes on from its checkpoint, and what another process is at work
    on, here or on another machine that shares ``folder``, is waited for. A run that fails leaves ``error.txt`` in its
    folder and stops no other; it is tried again only with ``retry_failed``, which also mends broken folders. After
    the last run a :class:`~mario.errors.RunFailedError` names what failed.

    Args:
        workers: runs at once, each a process with one thread; with Slurm, tasks of its array.
        launcher: ``local``, or ``slurm``, which needs the extra of that name.
        root: folder of raw files to look in first.
        slurm: parameters of ``sbatch`` such as ``{"partition": "cpu", "time": "60"}``.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     *_, last = launch([], Path(folder))  # jobs as docs/runs.md has them
        >>> last.done_runs, last.total_runs, last.seconds_left
        (0, 0, 0.0)
    """
    check_launcher(launcher, slurm or {})
    if workers < 1:
        raise MarioError(f"workers has to be at least 1, got {workers}")
    _check_folder(folder)
    if launcher == "slurm":
        from mario.lab.launch.slurm import launch_slurm

        return launch_slurm(jobs, folder, workers=workers, root=root, retry_failed=retry_failed, options=slurm or {})
    return launch_local(jobs, folder, workers=workers, root=root, retry_failed=retry_failed)


def _check_folder(folder: Path) -> None:
    """One error now, not one for each run, if nothing can be written or locked there."""
    try:
        with suppress(store.HeldError), store.alone_in(folder):
            pass
    except OSError as error:
        raise MarioError(f"cannot write in {folder}: {error.strerror}") from error
