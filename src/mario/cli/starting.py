"""What a command is doing before it has something to print: torch alone takes seconds to import."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def starting(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show ``what`` on the terminal at once and remove it at the end. Pipes and files never have it.

    Example:
        >>> with starting("importing torch"):
        ...     import torch
    """
    shown = not quiet and sys.stderr.isatty() and os.environ.get("RANK", "0") == "0"
    erases = os.environ.get("TERM", "") != "dumb"
    if shown:
        print(f"{what} ...", end="" if erases else "\n", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if shown and erases:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)
