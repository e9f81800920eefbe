"""The long form: a target is called again and again until its time is over."""

import json
import os
import time
from pathlib import Path

import pytest

from fuzz import targets


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not targets.SECONDS:
        return None
    end = time.monotonic() + targets.SECONDS
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    while True:
        pyfuncitem.obj(**arguments)
        if time.monotonic() > end:
            return True


def pytest_sessionfinish() -> None:
    if tally := os.environ.get("MARIO_FUZZ_TALLY"):
        Path(tally).write_text(json.dumps(targets.tried))
