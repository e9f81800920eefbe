"""The storage of a tuning's trials: an SQLite file, or a database that several machines share."""

import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import optuna
import sqlalchemy.exc

from mario.errors import MarioError, RunFailedError
from mario.files import locked, write_whole
from mario.lab.anonymous import worker_name

ATTEMPTS = 4
_USER = re.compile(r"[\w.%+-]*")
_PLACE = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]*)(:\d+)?(/[\w.-]*)?")


class Storage(optuna.storages.RDBStorage):
    """A database of trials. A worker signs its trial, as ``worker``, with the first heartbeat and not earlier.

    Optuna detects a killed worker only after a first heartbeat, so it detects every worker that signed.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url, **options)
        self._signed: set[int] = set()

    def record_heartbeat(self, trial_id: int) -> None:
        # An error would end the thread of the heartbeats, and the next heartbeat may succeed. If the storage fails for
        # longer, the trial itself says so.
        with suppress(optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError):
            super().record_heartbeat(trial_id)
            if trial_id not in self._signed:
                with suppress(optuna.exceptions.UpdateFinishedTrialError):
                    self.set_trial_user_attr(trial_id, "worker", worker_name())
                self._signed.add(trial_id)


def storage_url(storage: str | Path) -> str:
    """The URL of ``storage``, a file or a URL already.

    Example:
        >>> storage_url("sqlite:///trials.db")
        'sqlite:///trials.db'
        >>> storage_url("postgresql://me@example.org/tuning")  # the driver that the extra `postgres` installs
        'postgresql+psycopg://me@example.org/tuning'
    """
    if not isinstance(storage, str | Path) or not str(storage).strip():
        raise MarioError(f"storage must be a file or the URL of a database, got {storage!r}")
    text = str(storage)
    if "://" not in text:
        return f"sqlite:///{Path(text).expanduser().absolute()}"
    scheme, _, rest = text.partition("://")
    return f"postgresql+psycopg://{rest}" if scheme in ("postgres", "postgresql") else text


def without_password(url: str) -> str:
    """``url`` without its password, for messages. If it is not clear where the password ends, only its kind is shown.

    Example:
        >>> without_password("postgresql+psycopg://me:secret@example.org:5432/tuning?password=secret")
        'postgresql+psycopg://me@example.org:5432/tuning'
        >>> without_password("postgresql://me:SEC?RET@example.org/tuning")
        'postgresql://***'
    """
    scheme, separator, rest = url.partition("://")
    if scheme.startswith("sqlite") or not separator:
        return url.partition("?")[0]  # a file
    # A password may contain an unescaped @: the user is the part before the last @, up to the first colon.
    who, at, place = rest.rpartition("@")
    user, place = who.partition(":")[0], place.partition("?")[0]
    if "?" in who or "#" in who or not (_USER.fullmatch(user) and _PLACE.fullmatch(place)):
        return f"{scheme}://***"
    return f"{scheme}://{user}{at}{place}"


def open_storage(
    url: str, *, heartbeat: int, lost: Callable[[optuna.Study, optuna.trial.FrozenTrial], None]
) -> Storage:
    """The storage at ``url``, created if needed. ``lost`` is called with a trial whose worker stopped its heartbeat."""
    arguments: dict[str, Any] = {"pool_pre_ping": True}  # the server may have closed an idle connection
    if url.startswith("sqlite:"):
        arguments["connect_args"] = {"timeout": 60}  # one process writes at a time, the others wait
    elif url.startswith(("postgresql", "mysql", "mariadb")):
        arguments["connect_args"] = {"connect_timeout": 10}
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                _create_file(url)
                return Storage(
                    url,
                    engine_kwargs=dict(arguments),
                    heartbeat_interval=heartbeat,
                    grace_period=6 * heartbeat,
                    heartbeat_stale_trial_callback=lost,
                )
        except MarioError:
            raise
        except ImportError as error:
            hint = ": pip install 'mario-gcl[postgres]'" if "psycopg" in url else ""
            raise MarioError(
                f"the storage {without_password(url)} needs a driver{hint} ({_first_line(error, hide=url)})"
            ) from None
        except (sqlalchemy.exc.ArgumentError, ValueError):  # ValueError: of a port that is no number
            raise MarioError(f"the storage {without_password(url)} is neither a file nor a database URL") from None
        except (sqlalchemy.exc.SQLAlchemyError, RuntimeError) as error:
            # Two workers create the tables at once: the second finds them at the next attempt.
            if attempt == ATTEMPTS:
                raise RunFailedError(
                    f"cannot reach the storage {without_password(url)}: {_first_line(error, hide=url)}"
                ) from None
            time.sleep(0.25 * attempt)
    raise AssertionError("unreachable")


@contextmanager
def failing_in_words(url: str) -> Iterator[None]:
    """Turn errors of the database at ``url``, and what Optuna makes of them, into one :class:`RunFailedError`."""
    try:
        yield
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, sqlalchemy.exc.SQLAlchemyError):
            cause = cause.__cause__ or cause.__context__
        if cause is None or isinstance(error, MarioError):
            raise
        raise RunFailedError(
            f"the storage {without_password(url)} failed: {_first_line(cause, hide=url)}; "
            "repeat the same command to continue"
        ) from error


def _create_file(url: str) -> None:
    """Create an SQLite file, which has all tables or is absent.

    SQLite creates tables and their indices one after the other. A kill between them would leave a file that looks
    complete, in which one study could be created twice.
    """
    place = url.partition("///")[2].partition("?")[0]
    if not url.startswith("sqlite:") or not place or place.startswith((":memory:", "file:")) or Path(place).exists():
        return
    path = Path(place)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            if path.exists():  # another worker was first
                return
            for left in path.parent.glob(f".{path.name}.*.part*"):  # by a kill
                left.unlink(missing_ok=True)
            write_whole(path, lambda name: optuna.storages.RDBStorage(f"sqlite:///{name}").engine.dispose())
    except OSError as error:
        raise RunFailedError(f"cannot reach the storage {url}: {error.strerror}") from None


def _first_line(error: BaseException, hide: str = "") -> str:
    """The first line of an error's cause, without the secrets of the URL ``hide``."""
    who, _, place = hide.partition("://")[2].rpartition("@")
    secrets = [who.partition(":")[2], *(value for _, value in parse_qsl(place.partition("?")[2]))]
    if without_password(hide).endswith("://***") or any(set(secret) & set("@:/?#") for secret in secrets):
        return type(error).__name__  # the driver may split the URL elsewhere and show a part of the password
    line = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
    for shown in {form for secret in secrets for form in (secret, unquote(secret)) if form}:
        line = line.replace(shown, "***")
    return line
