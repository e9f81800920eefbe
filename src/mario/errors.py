"""The one error that a user's input can cause."""


class MarioError(ValueError):
    """Wrong input: the message names what was given, what is wrong with it and what would do.

    The command line prints it without a traceback and exits with code 2.
    """
