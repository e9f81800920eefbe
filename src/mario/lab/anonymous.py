"""``--anonymous``: results and pages that say nothing about the machine or its user.

The option sets ``MARIO_ANONYMOUS``, which the processes of a launch inherit.
"""

import os
import re
import socket
import uuid
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError

if TYPE_CHECKING:
    from mario.lab.case import Case

VARIABLE = "MARIO_ANONYMOUS"
_PATH = re.compile(r"""(?<![\w/\\.:<])(?:~|[A-Za-z]:)?(?:[\\/][^\s\\/'":;,()<>]+)+[\\/]?""")


def wanted() -> bool:
    """Whether results are written without facts about the machine."""
    return os.environ.get(VARIABLE, "").lower() in ("1", "true", "yes")


def ask(cases: "Iterable[Case]") -> None:
    """Make this process and those that it starts write anonymous results of ``cases``.

    Raises `MarioError` for a dataset of your own: its path is its name, and part of the run.
    """
    for case in cases:
        if os.path.isabs(case.dataset):
            raise MarioError(
                f"--anonymous: the dataset {case.dataset} is known by its path, which results and pages show; install "
                "it as a package with the entry point mario.datasets, or leave --anonymous out"
            )
    os.environ[VARIABLE] = "1"


def without_paths(text: str) -> str:
    """``text`` with absolute paths cut to their last part.

    Example:
        >>> without_paths("cannot write /home/me/runs/a.json: see https://example.org/help or runs/a")
        'cannot write a.json: see https://example.org/help or runs/a'
    """
    return _PATH.sub(lambda found: re.split(r"[\\/]", found.group().rstrip("\\/"))[-1], text)


def worker_name() -> str:
    """Who this process is, for others that work on the same tuning: host and process id, or a random name."""
    pid = os.getpid()
    return f"worker {_random_name(pid)}" if wanted() else f"{socket.gethostname()} {pid}"


@cache
def _random_name(pid: int) -> str:
    return uuid.uuid4().hex[:8]  # of each process: what a fork server has drawn, all its processes have


def without_machine(environment: Mapping[str, Any]) -> dict[str, Any]:
    """The versions in an environment, without the platform."""
    return {key: value for key, value in environment.items() if key != "platform"}
