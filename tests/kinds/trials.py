"""Kinds that crash and hang, for a test of the runner."""

import os
import signal
import sys
import time

from kinds.kind import Kind, refused
from mario.errors import MarioError


def kinds() -> list[Kind]:
    def refuse() -> object:
        raise MarioError("it is wrong")

    return [
        refused("crashes", lambda: os.kill(os.getpid(), signal.SIGSEGV)),
        refused("is refused", refuse),
        refused("hangs", lambda: time.sleep(600)),
        refused("exits", lambda: sys.exit(0)),
        Kind("is right", lambda: 3, lambda result: result == 3),
    ]
