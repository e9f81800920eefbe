"""Finished runs whose data is not that of the others, or not the data that is there now."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.result import RunResult
from mario.lab.runs import store
from mario.lab.runs.job import Job
from mario.lab.runs.lock import alone_in


def changed(jobs: Iterable[Job], folder: Path, root: Path | None = None) -> dict[str, str]:
    """By digest, why a finished run of ``jobs`` in ``folder`` is not one on the data that is there now.

    Data that is not there, and runs from before fingerprints were recorded, cannot be compared. Nothing is downloaded.
    """
    runs: dict[tuple[Case, int], list[RunResult]] = {}
    for job in jobs:
        result = store.read_result(folder / job.folder_name)
        if result is not None and result.data is not None:
            runs.setdefault((job.spec.case, job.spec.split_seed), []).append(result)
    reasons = {}
    for (case, split_seed), done in runs.items():
        now = _fingerprint(case, split_seed, root)
        for result in done:
            if now not in (None, result.data):
                reasons[result.spec.digest] = (
                    f"it was done on other data: the fingerprint of {case.dataset} was {result.data} and is {now}"
                )
    return reasons


def disagreeing(results: Iterable[RunResult]) -> dict[str, str]:
    """By digest, why a run does not belong with the other ``results`` on its case and split: their data differs.

    The fingerprint that most runs have is taken to be right; of two that are as frequent, the first.
    """
    found: dict[tuple[Case, int], dict[str, RunResult]] = {}
    for result in results:
        if result.data is not None:
            found.setdefault((result.spec.case, result.spec.split_seed), {})[result.spec.digest] = result
    reasons = {}
    for (case, split_seed), runs in found.items():
        (usual, count), *others = Counter(result.data for result in runs.values()).most_common()
        for digest, result in runs.items() if others else ():
            if result.data != usual:
                reasons[digest] = (
                    f"it was done on other data than {count} of {len(runs)} runs on split {split_seed} of {case.name}: "
                    f"the fingerprint is {result.data} and theirs {usual}"
                )
    return reasons


def set_aside(folders: Sequence[Path]) -> None:
    """Rename finished runs to ``NAME.broken-1``, so that they are run again. A checkpoint on other data is no start."""
    for folder in folders:
        with alone_in(folder):
            store.aside(folder)


def _fingerprint(case: Case, split_seed: int, root: Path | None) -> str | None:
    from mario.graphs.fingerprint import fingerprint

    try:
        return fingerprint(case.load(split_seed=split_seed, root=root, download=False))
    except MarioError:
        return None
