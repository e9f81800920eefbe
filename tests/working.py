"""One worker of ``mario reproduce``, alone: ``working JOB FOLDER``, where JOB is a file; it exits with its ending."""

import sys
from pathlib import Path

from mario.lab.runs.job import Job
from mario.lab.runs.worker import work
from mario.untrusted import read_json


def main() -> None:
    work(Job.from_dict(read_json(Path(sys.argv[1]))), Path(sys.argv[2]), None)
