"""Search for settings on validation sets, over many workers. Needs the extra ``tune``."""

from mario.errors import MarioError

try:
    import optuna  # noqa: F401 (imported here, so that every module of the package reports it if it is missing)
except ImportError:
    raise MarioError("tuning needs Optuna, which is not installed: pip install 'mario-gcl[tune]'") from None
