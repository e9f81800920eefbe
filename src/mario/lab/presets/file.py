"""A user's preset: a TOML or JSON file in the form of a run's ``settings.json``, for ``mario run --preset FILE``."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import write_json, write_text
from mario.lab.presets.settings import parse_given, settings_of
from mario.untrusted import read_json, read_toml

WHAT = ("dataset", "domain", "shift", "setting", "method")
OF_A_RUN = ("split_seed", "seed", "data")  # a run's settings.json has them; a preset is for all seeds and all data


@dataclasses.dataclass(frozen=True, kw_only=True)
class PresetFile:
    """The contents of a preset file; ``None`` for what it leaves open."""

    path: Path
    settings: Mapping[str, Any]
    dataset: str | None = None
    domain: str | None = None
    shift: str | None = None
    setting: str | None = None
    method: str | None = None

    def of(self, method: str) -> dict[str, Any]:
        """The settings, all of which ``method`` must have."""
        try:
            return parse_given(self.settings, settings_of(method), method)
        except MarioError as error:
            raise MarioError(f"{self.path}: {error}") from None


def read_preset(path: Path | str) -> PresetFile:
    """Read a file that :func:`write_preset` wrote, another file of that form, or a run's ``settings.json``.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.toml"
        >>> _ = path.write_text("method = 'grace'\\n[settings]\\nlr = 1e-3\\n")
        >>> read_preset(path).of("grace")
        {'lr': 0.001}
    """
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise MarioError(f"a preset is read from .toml or .json, got {path}")
    content = read_json(path) if path.suffix == ".json" else read_toml(path)
    if not isinstance(content, dict) or not isinstance(content.get("settings"), dict):
        raise MarioError(f"{path} has no settings: it needs a table [settings], in JSON an object under 'settings'")
    unknown = sorted(set(content) - {*WHAT, *OF_A_RUN, "settings"})
    if unknown:
        raise MarioError(f"{path} has '{unknown[0]}' beside its settings; it may have {', '.join(WHAT)} there")
    wrong = [key for key in WHAT if not isinstance(content.get(key, ""), str)]
    if wrong:
        raise MarioError(f"{path}: {wrong[0]} must be a word, got {content[wrong[0]]!r}")
    return PresetFile(path=path, settings=content["settings"], **{key: content[key] for key in WHAT if key in content})


def write_preset(path: Path | str, run: Mapping[str, Any], comment: str = "") -> None:
    """Write ``run`` to a file for ``mario run --preset``: its settings and as many of the names in ``WHAT`` as it has.

    ``comment`` goes to the top of a TOML file. JSON has no comments.
    """
    path = Path(path)
    what = {key: run[key] for key in WHAT if key in run}
    if path.suffix == ".json":
        write_json(path, {**what, "settings": dict(run["settings"])})
        return
    if path.suffix != ".toml":
        raise MarioError(f"a preset is written to .toml or .json, got {path}")
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"{key} = {_toml(value)}" for key, value in what.items()]
    lines += ["", "[settings]", *(f"{key} = {_toml(value)}" for key, value in run["settings"].items())]
    write_text(path, "\n".join(lines) + "\n")


def _toml(value: Any) -> str:
    # For words, numbers, booleans and lists of them, JSON is valid TOML.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
