"""A file of settings, TOML or JSON, in the form of a run's own ``settings.json``: what is run, and its settings."""

import dataclasses
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import read_json, read_text, write_json, write_text
from mario.lab.presets import Evaluation, parse_given
from mario.methods import find

WHAT = ("dataset", "domain", "shift", "setting", "method")
SEEDS = ("split_seed", "seed")  # of a run's settings.json; a settings file is for all of them


@dataclasses.dataclass(frozen=True, kw_only=True)
class SettingsFile:
    """What a file of settings says; ``None`` where it says nothing."""

    path: Path
    settings: Mapping[str, Any]
    dataset: str | None = None
    domain: str | None = None
    shift: str | None = None
    setting: str | None = None
    method: str | None = None

    def of(self, method: str) -> dict[str, Any]:
        """The settings, which ``method`` must have."""
        known = {field.name: field for field in (*find(method).fields(), *dataclasses.fields(Evaluation))}
        try:
            return parse_given(self.settings, known, method)
        except MarioError as error:
            raise MarioError(f"{self.path}: {error}") from None


def read_settings_file(path: Path | str) -> SettingsFile:
    """Read a file that :func:`write_settings_file` wrote, one of the same form, or a run's ``settings.json``.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = path.write_text("method = 'grace'\\n[settings]\\nlr = 1e-3\\n")
        >>> read_settings_file(path).of("grace")
        {'lr': 0.001}
    """
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise MarioError(f"settings are read from .toml or .json, got {path}")
    said = read_json(path) if path.suffix == ".json" else _read_toml(path)
    if not isinstance(said, dict) or not isinstance(said.get("settings"), dict):
        raise MarioError(f"{path} has no settings: it needs a table [settings], in JSON an object under 'settings'")
    unknown = sorted(set(said) - {*WHAT, *SEEDS, "settings"})
    if unknown:
        raise MarioError(f"{path} has '{unknown[0]}' beside its settings; it may have {', '.join(WHAT)} there")
    wrong = [key for key in WHAT if not isinstance(said.get(key, ""), str)]
    if wrong:
        raise MarioError(f"{path}: {wrong[0]} must be a word, got {said[wrong[0]]!r}")
    return SettingsFile(path=path, settings=said["settings"], **{key: said[key] for key in WHAT if key in said})


def write_settings_file(path: Path | str, run: Mapping[str, Any], comment: str = "") -> None:
    """Write ``run``, a dict with ``settings`` and as much of what is run as is known, to a file for ``mario run``.

    ``comment`` goes to the head of a TOML file; JSON has no place for it.
    """
    path = Path(path)
    what = {key: run[key] for key in WHAT if key in run}
    if path.suffix == ".json":
        write_json(path, {**what, "settings": dict(run["settings"])})
        return
    if path.suffix != ".toml":
        raise MarioError(f"settings are written to .toml or .json, got {path}")
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{key} = {_toml(value)}" for key, value in what.items()]
    lines += ["", "[settings]", *(f"{key} = {_toml(value)}" for key, value in run["settings"].items())]
    write_text(path, "\n".join(lines) + "\n")


def _read_toml(path: Path) -> Any:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise MarioError(f"{path} is not valid TOML: {error}") from None


def _toml(value: Any) -> str:
    # JSON writes words, numbers, truth and lists of them as TOML does.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
