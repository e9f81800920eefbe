"""Runs that no plan asked for, such as those of ``mario run``: a plan made of what is there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.lab.runs import store
from mario.lab.runs.job import Job
from mario.lab.studies.plan import Plan, PlannedCase, PlannedRun

CASE = ("dataset", "domain", "shift", "setting")


def plan_of_runs(folder: Path, complain: Callable[[str], None] | None = None) -> Plan:
    """A plan of every run in ``folder``, grouped by dataset, domain, shift and setting.

    Runs of one method with other settings are rows of their own, labeled by what differs. ``complain`` is told of
    folders that are left out because what they hold cannot be read.
    """
    there = {path.parent for name in ("settings.json", "result.json") for path in folder.glob(f"*/{name}")}
    found = _once((path for path in sorted(there) if ".broken-" not in path.name), complain)
    if not found and (folder / "settings.json").is_file():
        raise MarioError(f"{folder} is a single run: give the folder that it lies in, {folder.resolve().parent}")
    if not found:
        raise MarioError(
            f"{folder} holds no runs: give a folder with a folder for each run, such as runs or runs/paper"
        )
    cases: dict[tuple[str, ...], list[tuple[str, dict[str, Any]]]] = {}
    for name, run in found:
        cases.setdefault(tuple(run[key] for key in CASE), []).append((name, run))
    planned = []
    for case, runs in cases.items():
        labels = _labels([run for _, run in runs])
        planned_runs = tuple(
            PlannedRun(
                label=label, paper=run["method"] if label == run["method"] else None, digest=name, job=_job(run, label)
            )
            for (name, run), label in zip(runs, labels, strict=True)
        )
        planned.append(
            PlannedCase(
                name="-".join(case),
                **dict(zip(CASE, case, strict=True)),
                asked=max(labels.count(label) for label in labels),
                runs=planned_runs,
            )
        )
    return Plan(
        study="runs",
        title="Your runs",
        show=("table", "curves", "map"),
        reference="grace",
        subject="mario",
        rows=tuple(dict.fromkeys(run.label for case in planned for run in case.runs)),
        cases=tuple(planned),
    )


def _once(folders: Iterable[Path], complain: Callable[[str], None] | None) -> list[tuple[str, dict[str, Any]]]:
    """The folder and the settings of each run; of one that several folders hold, the first that is done counts."""
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder in sorted(folders, key=lambda folder: not (folder / "result.json").exists()):
        try:
            run = store.read_result(folder) or store.read_run(folder / "settings.json")
        except MarioError as error:
            if complain:
                complain(f"{folder} is left out: {error}")
            continue
        found.setdefault(store.digest(run), (folder.name, run))
    return sorted(found.values(), key=lambda one: one[0])


def _labels(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The method of each run, and the settings in which it differs from others of its method."""
    labels = []
    for run in runs:
        alike = [other["settings"] for other in runs if other["method"] == run["method"]]
        keys = sorted({key for settings in alike for key in settings})
        differing = [key for key in keys if any(other.get(key) != alike[0].get(key) for other in alike)]
        shown = [f"{key}={run['settings'].get(key)}" for key in differing]
        labels.append(", ".join([run["method"], *shown]))
    return labels


def _job(run: Mapping[str, Any], label: str) -> Job:
    facts = {key: run[key] for key in (*CASE, "method", "split_seed", "seed")}
    return Job(**facts, given=run["settings"], label=label)
