"""The errors that mario raises on purpose."""


class MarioError(ValueError):
    """Wrong input: the message names what was given, what is wrong with it and what would do.

    The command line prints it without a traceback and exits with code 2.
    """


class RunFailedError(MarioError):
    """A run that began and could not end: it diverged, was killed, or the disk is full. Exit code 1."""
