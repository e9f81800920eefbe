"""The settings that a run has: those of its method and those of its evaluation."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from mario.errors import MarioError, nearest
from mario.methods import find, parse_setting, setting
from mario.methods.settings import check_settings


@dataclasses.dataclass(kw_only=True)
class Evaluation:
    """How a run is evaluated. A run has these settings in addition to those of its method."""

    # fmt: off
    checkpoints: int = setting(10, low=1, help="evaluations during a run; the same for all methods of a table")
    probe: str = setting("linear", choices=("linear", "optimum", "liblinear", "logistic"),
                         help="layer by Adam or at its optimum; logistic regression, C on held-out or validation rows")
    probe_epochs: int = setting(100, low=1, search=(50, 100, 200, 500, 2000), help="epochs of the linear probe")
    probe_steps_per_epoch: int = setting(10, low=1, help="probe steps per epoch; 10 as released, one per subgraph")
    probe_lr: float = setting(1e-2, low=0.0, search=(1e-1, 1e-2, 1e-3, 1e-4), help="learning rate of the linear probe")
    invariance: bool = setting(False, help="also measure average and worst-case alignment at every checkpoint")
    # fmt: on

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def probe_steps(self) -> int:
        """Optimizer steps of the linear probe."""
        return self.probe_epochs * self.probe_steps_per_epoch


def settings_of(method: str) -> dict[str, "dataclasses.Field[Any]"]:
    """The settings of a run of ``method``, by name.

    Example:
        >>> settings_of("grace")["tau"].default, settings_of("grace")["probe"].default
        (0.5, 'linear')
    """
    return {field.name: field for field in (*find(method).fields(), *dataclasses.fields(Evaluation))}


def parse_given(given: Mapping[str, Any], known: Mapping[str, "dataclasses.Field[Any]"], method: str) -> dict[str, Any]:
    """Values for the names in ``given``; text is parsed as the type of its setting.

    An unknown name is an error that suggests the nearest.
    """
    if not isinstance(given, Mapping):
        raise MarioError(f"settings must be given by name, got {given!r}")
    parsed = {}
    for name, value in given.items():
        if name not in known:
            hint = nearest(name, known, f"it has {', '.join(sorted(known))}")
            raise MarioError(f"{method} has no setting '{name}'; {hint}")
        parsed[name] = parse_setting(known[name], value) if isinstance(value, str) else value
    return parsed
