"""Where raw files are searched for, and whether they are the published ones. No torch here."""

import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mario.datasets.card import DatasetCard, RawFile
from mario.errors import MarioError
from mario.files import cache_folder, write_json
from mario.untrusted import read_json

_REMEMBERED = 10_000  # files
_SETTLED = 2_000_000_000  # nanoseconds: a file this new may change again without another time
_TIMEOUT = 60.0  # seconds without an answer
_MOST = 2**30  # bytes of a download


@dataclass(frozen=True)
class FileState:
    """The state of one raw file: ``OK``, ``MISMATCH``, ``UNKNOWN`` (there is no checksum to compare) or ``absent``."""

    file: RawFile
    where: Path | None
    state: str


def downloads_folder() -> Path:
    """The data folder in the user's cache."""
    return cache_folder() / "data"


def search_folders(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Data folders in the order in which they are searched: ``root``, ``$MARIO_DATA``, the user's cache."""
    given = [root, os.environ.get("MARIO_DATA") or None]
    return [*(Path(folder).expanduser() for folder in given if folder is not None), downloads_folder()]


def locate(card: DatasetCard, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The first data folder that holds every file of a dataset."""
    if root is not None and not Path(root).expanduser().is_dir():
        raise MarioError(f"root {str(root)!r} is not a folder; give the folder that holds the datasets, or omit it")
    for folder in search_folders(root):
        if all(path.is_file() for path in file_paths(card, folder)):
            return folder
    return None


def file_paths(card: DatasetCard, folder: Path) -> list[Path]:
    """Paths of a dataset's files in a data folder, in the first layout that has all of them."""
    usual = [folder / file.path for file in card.files]
    others = ([folder / layout / path.name for path in usual] for layout in card.layouts)
    return next((paths for paths in (usual, *others) if all(path.is_file() for path in paths)), usual)


def absent_message(card: DatasetCard, root: str | os.PathLike[str] | None, reason: str) -> str:
    """Which files are missing, where they belong, and which dataset needs none."""
    folders = search_folders(root)
    home = folders[0]
    missing = [str(home / file.path) for file in card.files if not (home / file.path).is_file()]
    listed = "\n  ".join(missing)
    searched = ", ".join(str(folder) for folder in folders)
    return (
        f"{card.name} needs files that are not in {searched}, and {reason}.\n"
        f"Put them here (or set MARIO_DATA or root to a folder that has them):\n  {listed}\n"
        f"They come from {card.source}. good-cbas needs no files."
    )


def file_states(card: DatasetCard, root: str | os.PathLike[str] | None = None) -> list[FileState]:
    """The state of each file, in the folder that has all of them, otherwise in the first folder that has it."""
    whole = locate(card, root)
    folders = search_folders(root) if whole is None else [whole]
    states = []
    for index, file in enumerate(card.files):
        where = next((path for folder in folders if (path := file_paths(card, folder)[index]).is_file()), None)
        states.append(FileState(file, where, "absent" if where is None else _compare(file, where)))
    return states


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise MarioError(f"cannot read {path}: {error.strerror}") from None


def fetch_url(url: str) -> bytes:
    """What an https URL has. The server's certificate is checked, also after a redirect; PyG's downloads check none."""
    import http.client
    import ssl
    import urllib.error
    import urllib.request

    class OnlyHttps(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
            _check_https(newurl)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    _check_https(url)
    checked = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    try:
        with urllib.request.build_opener(checked, OnlyHttps).open(url, timeout=_TIMEOUT) as response:
            content: bytes = response.read(_MOST + 1)
    except (OSError, http.client.HTTPException, urllib.error.URLError) as error:
        raise MarioError(f"{url}: {getattr(error, 'reason', None) or error}") from None
    if len(content) > _MOST:
        raise MarioError(f"{url} has more than {_MOST:,} bytes")
    return content


def _check_https(url: str) -> None:
    if not url.startswith("https://"):
        raise MarioError(f"{url} is not an https URL; nothing is downloaded over an unchecked connection")


def checksums(paths: Sequence[Path]) -> list[str]:
    """The SHA-256 of each file. Those of files that have not changed since are remembered in the user's cache."""
    memory = cache_folder() / "checksums.json"
    known = _read_memory(memory)
    found, fresh = [], {}
    for path in paths:
        key, stamp = str(path.resolve()), _stamp(path)
        entry = known.get(key)
        if isinstance(entry, list) and entry[:-1] == stamp and isinstance(entry[-1], str):
            found.append(entry[-1])
            continue
        found.append(sha256(path))
        if time.time_ns() - max(stamp[1:], default=0) > _SETTLED and _stamp(path) == stamp:
            fresh[key] = [*stamp, found[-1]]
    if fresh:
        with suppress(MarioError):  # the cache may be read-only
            write_json(memory, {**known, **fresh} if len(known) < _REMEMBERED else fresh)
    return found


def _read_memory(path: Path) -> dict[str, Any]:
    with suppress(MarioError):
        found = read_json(path)
        return found if isinstance(found, dict) else {}
    return {}


def _stamp(path: Path) -> list[int]:
    """Size and times of a file: a change of its content changes one of them."""
    try:
        state = path.stat()
    except OSError as error:
        raise MarioError(f"cannot read {path}: {error.strerror}") from None
    return [state.st_size, state.st_mtime_ns, state.st_ctime_ns]


def _compare(file: RawFile, where: Path) -> str:
    if file.sha256 is None:
        return "UNKNOWN"
    return "OK" if sha256(where) == file.sha256 else "MISMATCH"
