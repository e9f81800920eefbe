"""Complete settings of a run: the method's defaults, the dataset's file, and what a user sets, in this order."""

import dataclasses
import difflib
import functools
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from mario.errors import MarioError
from mario.methods import Method, TwoView, find, parse_setting, setting
from mario.methods.recipe import WithRecipe
from mario.methods.settings import check_settings


@dataclasses.dataclass(kw_only=True)
class Evaluation:
    """How a run is judged; these settings stand beside those of the method."""

    # fmt: off
    checkpoints: int = setting(10, low=1, help="how often a run is evaluated; the same for all methods of a table")
    probe: str = setting("linear", choices=("linear", "optimum", "logistic"),
                         help="linear layer by Adam, or at its optimum, or logistic regression with C from a grid")
    probe_epochs: int = setting(100, low=1, search=(50, 100, 200, 500, 2000), help="epochs of the linear probe")
    probe_steps_per_epoch: int = setting(10, low=1, help="steps in an epoch; 10 as released, one a subgraph")
    probe_lr: float = setting(1e-2, low=0.0, search=(1e-1, 1e-2, 1e-3, 1e-4), help="learning rate of the linear probe")
    invariance: bool = setting(False, help="also measure average and worst-case alignment at every checkpoint")
    # fmt: on

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def probe_steps(self) -> int:
        """Steps of a linear probe by Adam."""
        return self.probe_epochs * self.probe_steps_per_epoch


RECIPE_SETTINGS = {field.name for field in WithRecipe.fields()} - {field.name for field in TwoView.fields()}
"""What the recipe adds to its host."""


def file_settings(method: str, dataset: str, domain: str, shift: str) -> dict[str, Any]:
    """What the files in this folder say of ``method`` on this dataset, domain and shift; nothing of an unknown dataset.

    A method has the cell of its own file, ``METHOD.toml``, or of ``default.toml`` if there is none. ``HOST+mario`` has
    its host's, with the recipe's settings from ``mario.toml`` and whatever ``HOST+mario.toml`` says.
    ``no_shift`` and a held-out university take the cell that is nearest: covariate, and the domain ``university``.
    """
    cls = find(method)
    host = cls.name.removesuffix("+mario")
    chosen = _cell(host, dataset, domain, shift)
    if chosen is None:
        known = {field.name for field in (*cls.fields(), *dataclasses.fields(Evaluation))}
        chosen = {k: v for k, v in (_cell("default", dataset, domain, shift) or {}).items() if k in known}
    if host != cls.name:
        recipe = _cell("mario", dataset, domain, shift) or {}
        chosen |= {k: v for k, v in recipe.items() if k in RECIPE_SETTINGS}
        chosen |= _cell(cls.name, dataset, domain, shift) or {}
    return chosen


def _cell(name: str, dataset: str, domain: str, shift: str) -> dict[str, Any] | None:
    cells = _tables(name).get(dataset)
    if not cells:
        return None
    shifts: dict[str, Any] = cells.get(domain) or next(iter(cells.values()))
    return dict(shifts.get(shift) or shifts.get("covariate") or next(iter(shifts.values())))


@functools.cache
def _tables(name: str) -> dict[str, dict[str, Any]]:
    source = files("mario.lab.presets") / f"{name}.toml"
    return tomllib.loads(source.read_text(encoding="utf-8")) if source.is_file() else {}


def complete_settings(
    method: str, dataset: str, domain: str, shift: str, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Every setting of the run by name. An unknown name in ``given`` is an error that suggests the nearest."""
    cls = find(method)
    known = {field.name: field for field in (*cls.fields(), *dataclasses.fields(Evaluation))}
    chosen = {**file_settings(method, dataset, domain, shift), **parse_given(given or {}, known, method)}
    own = {field.name for field in cls.fields()}
    model = cls.from_settings({k: v for k, v in chosen.items() if k in own})
    evaluation = Evaluation(**{k: v for k, v in chosen.items() if k not in own})
    return {**model.settings(), **dataclasses.asdict(evaluation)}


def parse_given(given: Mapping[str, Any], known: Mapping[str, "dataclasses.Field[Any]"], method: str) -> dict[str, Any]:
    """Values for the names in ``given``; a text is read as the type of its setting."""
    parsed = {}
    for name, value in given.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(sorted(known))}"
            raise MarioError(f"{method} has no setting '{name}'; {hint}")
        parsed[name] = parse_setting(known[name], value) if isinstance(value, str) else value
    return parsed


def split_settings(method: str, settings: Mapping[str, Any]) -> tuple[Method, Evaluation]:
    """The method and the evaluation that complete ``settings`` describe."""
    cls = find(method)
    own = {field.name for field in cls.fields()}
    model = cls.from_settings({k: v for k, v in settings.items() if k in own})
    return model, Evaluation(**{k: v for k, v in settings.items() if k not in own})
