"""``python -m PROGRAM WORDS`` that stops before it begins, so that strace can attach: ``traced PROGRAM WORDS``."""

import importlib
import os
import signal
import sys


def main() -> None:
    program = importlib.import_module(sys.argv.pop(1))
    os.kill(os.getpid(), signal.SIGSTOP)
    program.main()


if __name__ == "__main__":
    main()
