"""Runs without a plan, such as those of ``mario run``: a plan made from the folders."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.runs import store
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec
from mario.lab.studies.plan import Plan, PlannedCase


def plan_of_runs(folder: Path, complain: Callable[[str], None] | None = None) -> Plan:
    """A plan of every run in ``folder``, grouped by case.

    Runs of one method with different settings are separate rows, labeled by what differs. ``complain`` is called for
    each folder that is left out because it cannot be read.
    """
    found = _unique(store.run_folders(folder), complain)
    if not found and (folder / "settings.json").is_file():
        raise MarioError(f"{folder} is a single run: give the folder that contains it, {folder.resolve().parent}")
    if not found:
        raise MarioError(f"{folder} holds no runs: give a folder with one folder per run, such as runs or runs/paper")
    cases: dict[Case, list[tuple[str, RunSpec]]] = {}
    for name, spec in found:
        cases.setdefault(spec.case, []).append((name, spec))
    planned = tuple(PlannedCase(case=case, jobs=tuple(_jobs(runs))) for case, runs in cases.items())
    return Plan(
        study="runs",
        title="Your runs",
        show=("table", "curves", "map"),
        reference="grace",
        subject="mario",
        rows=tuple(dict.fromkeys(job.label for case in planned for job in case.jobs)),
        cases=planned,
    )


def _unique(folders: Iterable[Path], complain: Callable[[str], None] | None) -> list[tuple[str, RunSpec]]:
    """The folder's name and the spec of each run; if several folders have it, the first one that is done counts."""
    found: dict[str, tuple[str, RunSpec]] = {}
    data: dict[str, str | None] = {}
    for folder in sorted(folders, key=lambda folder: not (folder / "result.json").exists()):
        try:
            result = store.read_result(folder)
            spec = result.spec if result else store.read_spec(folder)
        except MarioError as error:
            if complain:
                complain(f"{folder} is left out: {error}")
            continue
        kept = found.setdefault(spec.digest, (folder.name, spec))
        if complain and kept[0] != folder.name and result and result.data != data.get(spec.digest):
            complain(f"{folder} is left out: it is the run of {folder.with_name(kept[0])}, on other data")
        data.setdefault(spec.digest, result.data if result else None)
    return sorted(found.values(), key=lambda one: one[0])


def _jobs(runs: Sequence[tuple[str, RunSpec]]) -> list[Job]:
    """Each run labeled by its method and the settings in which it differs from others of its method."""
    jobs = []
    for name, spec in runs:
        alike = [other.settings for _, other in runs if other.method == spec.method]
        keys = sorted({key for settings in alike for key in settings})
        differing = [key for key in keys if any(other.get(key) != alike[0].get(key) for other in alike)]
        label = ", ".join([spec.method, *(f"{key}={spec.settings.get(key)}" for key in differing)])
        jobs.append(Job(spec=spec, label=label, paper=None if differing else spec.method, folder=name))
    return jobs
