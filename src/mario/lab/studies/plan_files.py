"""Plans as files in the folder of the runs.

``RUNS/plans/STUDY.ORIGIN.json`` lists every run that was requested. A report reads plans and run folders and nothing
else, so results of several machines are merged by copying folders: each folder of runs has its own ``ORIGIN``, and the
plan of a study is the union of its files.
"""

import hashlib
import re
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mario.errors import MarioError
from mario.files import cache_folder, write_json, write_text
from mario.lab.runs import store
from mario.lab.studies.plan import Plan, union
from mario.lab.studies.study import PAPER
from mario.untrusted import read_json, read_text


def write_plan(plan: Plan, folder: Path) -> Path:
    """Write ``folder/plans/STUDY.ORIGIN.json``, replacing what this folder requested of the study before.

    Files that were copied from elsewhere have another origin and are kept.
    """
    path = folder / "plans" / f"{plan.study}.{_origin(folder)}.json"
    if path.exists():
        try:
            _read_plan(path)
        except MarioError:
            store.aside(path)
    write_json(path, plan.to_dict())
    return path


def read_plans(folder: Path, complain: Callable[[str], None] | None = None) -> list[Plan]:
    """The plans in ``folder``, one per study, the paper's studies first and in its order.

    ``complain`` is called for each file that is left out because it cannot be read, or does not go with an earlier one
    of its study. Without it, the first such file is an error.
    """
    plans: dict[str, Plan] = {}
    for path in sorted((folder / "plans").glob(f"*.{'[0-9a-f]' * 8}.json")):
        try:
            plan = _read_plan(path)
            plans[plan.study] = _both(plans[plan.study], plan, path) if plan.study in plans else plan
        except MarioError as error:
            if complain is None:
                raise
            complain(f"{path} is left out: {error}")
    order = {name: rank for rank, name in enumerate(PAPER)}
    return sorted(plans.values(), key=lambda plan: order.get(plan.study, len(order)))


def _both(one: Plan, other: Plan, path: Path) -> Plan:
    try:
        return union(one, other)
    except MarioError as error:
        raise MarioError(f"{path.parent} has two plans of {one.study}: {error}. Remove one file") from None


def _read_plan(path: Path) -> Plan:
    written = read_json(path)
    try:
        return Plan.from_dict(written, "it")
    except MarioError as error:
        raise MarioError(f"{path} is not a plan of this version of mario ({error}): remove it") from None


def _origin(folder: Path) -> str:
    """The name of this folder of runs in its plans. A copy of the folder has another."""
    return hashlib.sha256(f"{_machine()} {folder.resolve()}".encode()).hexdigest()[:8]


def _machine() -> str:
    """A random name of this machine, drawn once and kept in the cache; the host name if it cannot be kept."""
    path = cache_folder() / "machine"
    with suppress(MarioError):
        if re.fullmatch("[0-9a-f]{32}", known := read_text(path).strip()):
            return known
    drawn = uuid.uuid4().hex
    try:
        write_text(path, f"{drawn}\n")
    except MarioError:
        return socket.gethostname()
    return drawn
