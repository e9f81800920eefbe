"""Where raw files are looked for, and whether they are the published ones. No torch here."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from mario.errors import MarioError
from mario.files import cache_folder
from mario.graphs.catalog import DatasetCard, RawFile


@dataclass(frozen=True)
class FileState:
    """One raw file: ``OK``, ``MISMATCH`` (other bytes than published), ``UNKNOWN`` (nothing to compare), ``absent``."""

    file: RawFile
    where: Path | None
    state: str


def downloads_folder() -> Path:
    """The part of the cache that is laid out as a data folder."""
    return cache_folder() / "data"


def made_folder(card: DatasetCard, split_seed: int = 0) -> Path:
    """Where the user's cache has a graph that is generated, or would have it."""
    # Raise the number when the graph that a seed gives changes.
    return cache_folder() / "graphs" / f"{card.name}-{split_seed}-v1"


def is_made(card: DatasetCard, split_seed: int = 0) -> bool:
    """Whether it is there, as a whole."""
    return (made_folder(card, split_seed) / "graph.json").is_file()


def search_folders(root: str | os.PathLike[str] | None = None) -> list[Path]:
    """Data folders in the order they are searched: ``root``, ``$MARIO_DATA``, the user's cache."""
    given = [root, os.environ.get("MARIO_DATA") or None]
    return [*(Path(folder).expanduser() for folder in given if folder is not None), downloads_folder()]


def locate(card: DatasetCard, root: str | os.PathLike[str] | None = None) -> Path | None:
    """The first data folder that holds every file of a dataset."""
    if root is not None and not Path(root).expanduser().is_dir():
        raise MarioError(
            f"root {str(root)!r} is not a folder; give the folder that holds the datasets, or leave it out"
        )
    for folder in search_folders(root):
        if all(path.is_file() for path in file_paths(card, folder)):
            return folder
    return None


def file_paths(card: DatasetCard, folder: Path) -> list[Path]:
    """Where a data folder has the files of a dataset, or would have them: in the first layout that holds all."""
    usual = [folder / file.path for file in card.files]
    others = ([folder / layout / path.name for path in usual] for layout in card.layouts)
    return next((paths for paths in (usual, *others) if all(path.is_file() for path in paths)), usual)


def absent_message(card: DatasetCard, root: str | os.PathLike[str] | None, reason: str) -> str:
    """What to do about files that are nowhere: which ones, where they go, and what needs none."""
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
    """The state of each file of a dataset, from the folder that has all of them, else from the first that has it."""
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


def _compare(file: RawFile, where: Path) -> str:
    if file.sha256 is None:
        return "UNKNOWN"
    return "OK" if sha256(where) == file.sha256 else "MISMATCH"
