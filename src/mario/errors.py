"""The errors that mario raises deliberately."""


class MarioError(ValueError):
    """Wrong input: the message names the argument, the given value, and what to use instead.

    The command line prints it without a traceback and exits with code 2.
    """


class RunFailedError(MarioError):
    """A run that started and failed: it diverged, was killed, or the disk is full. Exit code 1."""
