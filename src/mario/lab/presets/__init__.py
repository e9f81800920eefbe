"""Presets: the settings of a method on a dataset before a user changes any.

They are in TOML files. ``datasets.toml`` has what belongs to a dataset, for all methods; ``methods/NAME.toml`` has what
belongs to one method. A plug-in brings files of the same form: the attribute ``presets_file`` of a method class or of a
dataset names the file. These apply in order, and later ones win:

1. the defaults of the method's class;
2. the dataset's section in ``datasets.toml``, after the section that it is ``like``. Settings that the method does not
   have are skipped;
3. the preset of the method that this method is ``like``, if its file begins with ``like = "..."``;
4. the method's own sections for the same names as in 2, the most general first;
5. what the user sets.

For example, ``good-cora`` is like ``good``, and ``good`` is like ``paper``. MARIO on ``good-cora`` takes the sections
[paper], [good] and [good-cora] of ``datasets.toml``, then the same sections of ``methods/mario.toml``.

Inside a section, values under ``DOMAIN.SHIFT`` override the others. ``source`` says where the values come from. In a
method's section, ``only = [...]`` drops every inherited setting that it does not name. In a dataset's section,
``methods.NAME`` has values for one method; it applies after that method's own section.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from mario.lab.presets.layers import RECIPE_SETTINGS, dataset_settings, file_settings
from mario.lab.presets.settings import Evaluation, parse_given, settings_of
from mario.methods import Method, find

__all__ = [
    "RECIPE_SETTINGS",
    "Evaluation",
    "complete_settings",
    "dataset_settings",
    "file_settings",
    "parse_given",
    "settings_of",
    "split_settings",
]


def complete_settings(
    method: str, dataset: str, domain: str, shift: str, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """All settings of the run by name. An unknown name in ``given`` is an error that suggests the nearest."""
    chosen = file_settings(method, dataset, domain, shift)
    chosen |= parse_given(given or {}, settings_of(method), method)
    model, evaluation = split_settings(method, chosen)
    return {**model.settings(), **dataclasses.asdict(evaluation)}


def split_settings(method: str, settings: Mapping[str, Any]) -> tuple[Method, Evaluation]:
    """The method and the evaluation that ``settings`` describe."""
    cls = find(method)
    own = {field.name for field in cls.fields()}
    model = cls.from_settings({k: v for k, v in settings.items() if k in own})
    return model, Evaluation(**{k: v for k, v in settings.items() if k not in own})
