"""The storage of a tuning's trials: an SQLite file, or a database that several machines share."""

import os
import re
import socket
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import optuna
import sqlalchemy.exc

from mario.errors import MarioError, RunFailedError

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
        super().record_heartbeat(trial_id)
        if trial_id not in self._signed:
            self._signed.add(trial_id)
            with suppress(optuna.exceptions.UpdateFinishedTrialError):
                self.set_trial_user_attr(trial_id, "worker", f"{socket.gethostname()} {os.getpid()}")


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
        _make_folder(url)
        arguments["connect_args"] = {"timeout": 60}  # one process writes at a time, the others wait
    elif url.startswith(("postgresql", "mysql", "mariadb")):
        arguments["connect_args"] = {"connect_timeout": 10}
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
                return Storage(
                    url,
                    engine_kwargs=dict(arguments),
                    heartbeat_interval=heartbeat,
                    grace_period=6 * heartbeat,
                    heartbeat_stale_trial_callback=lost,
                )
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


def _make_folder(url: str) -> None:
    place = url.partition("///")[2].partition("?")[0]
    if place and place != ":memory:":
        try:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
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
