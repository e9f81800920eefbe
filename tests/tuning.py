"""One worker of ``mario tune``, alone: ``tuning WANTED SECONDS FOLDER``, where WANTED is a file for ``Tuning.plan``.

No trial starts after SECONDS: with 0, the study is opened and that is all.
"""

import sys
import time
from pathlib import Path

from mario.lab.case import Case
from mario.lab.tune.plan import Tuning
from mario.lab.tune.work import work
from mario.untrusted import read_json


def plan(wanted: Path, folder: Path) -> Tuning:
    return Tuning.plan(Case.find("good-cbas", shift="concept"), "grace", folder=folder, **read_json(wanted))


def main() -> None:
    wanted, seconds, folder = sys.argv[1:]
    try:
        work(plan(Path(wanted), Path(folder)), until=time.time() + float(seconds))
    except Exception as error:  # as a worker of the command does
        sys.exit(f"mario: error: {' '.join(str(error).split())}")
