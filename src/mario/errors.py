"""The errors that mario raises deliberately."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class MarioError(ValueError):
    """Wrong input: the message names the argument, the given value, and what to use instead.

    The command line prints it without a traceback and exits with code 2.
    """


class RunFailedError(MarioError):
    """A run that started and failed: it diverged, was killed, or the disk is full. Exit code 1."""


def nearest(given: str, known: Iterable[str], otherwise: str = "") -> str:
    """``did you mean 'NAME'?`` for the name closest to ``given``; ``otherwise`` if none is close.

    Example:
        >>> nearest("grac", ["mario", "grace"])
        "did you mean 'grace'?"
        >>> nearest("hidden", ["hidden_channels", "num_layers"])
        "did you mean 'hidden_channels'?"
    """
    names = list(known)
    close = get_close_matches(given.lower(), names, n=1) or [name for name in names if given and name.startswith(given)]
    return f"did you mean '{close[0]}'?" if close else otherwise


def out_of_memory(error: BaseException | None) -> bool:
    """Whether ``error``, or its cause, is a lack of memory; torch has no type for that on a CPU."""
    while error is not None:
        said = str(error)
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            return True
        if isinstance(error, OSError) and error.errno == errno.ENOMEM:
            return True
        if isinstance(error, RuntimeError) and ("allocate memory" in said or "not enough memory" in said):
            return True
        error = error.__cause__ or error.__context__
    return False
