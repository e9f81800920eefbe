"""A run before it is carried out: everything that decides its bits."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from mario.arguments import check_seed
from mario.errors import MarioError
from mario.from_json import from_json
from mario.lab.case import Case


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that decides the bits of a run, and nothing else.

    :meth:`plan` makes one with the settings of the presets. ``settings`` are complete and hold plain JSON values.
    """

    case: Case
    method: str
    settings: Mapping[str, Any] = field(hash=False)
    split_seed: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("seed", "split_seed"):
            check_seed(name, getattr(self, name))
        try:
            plain = json.loads(json.dumps(dict(self.settings)))  # tuples become lists
        except (TypeError, ValueError) as error:
            raise MarioError(f"settings must be plain values by name, as JSON can hold ({error})") from None
        object.__setattr__(self, "settings", plain)

    @classmethod
    def plan(
        cls, case: Case, method: str, *, given: Mapping[str, Any] | None = None, split_seed: int = 0, seed: int = 0
    ) -> "RunSpec":
        """The run of ``method`` on ``case`` with complete settings: defaults, presets, then ``given``.

        Nothing is loaded. ``grace+mario`` becomes ``mario``.

        Example:
            >>> spec = RunSpec.plan(Case.find("good-cbas"), "grace", given={"epochs": 5}, seed=1)
            >>> spec.settings["epochs"], spec.seed
            (5, 1)
        """
        from mario.lab.presets import complete_settings
        from mario.methods import find

        found = find(method)
        found.check_level(case.card.level)
        settings = complete_settings(found.name, case.dataset, case.domain, case.shift, given)
        return cls(case=case, method=found.name, settings=settings, split_seed=split_seed, seed=seed)

    @cached_property
    def digest(self) -> str:
        """The name of the run's folder: a hash of :meth:`to_dict`."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole run."""
        return int(self.settings["epochs"] * self.settings["steps_per_epoch"])

    def to_dict(self) -> dict[str, Any]:
        """The content of ``settings.json``."""
        return {**self.facts(), "settings": dict(self.settings)}

    def facts(self) -> dict[str, Any]:
        """The case, the method and the seeds as flat keys, in the order of ``settings.json`` and ``result.json``."""
        return {**asdict(self.case), "split_seed": self.split_seed, "method": self.method, "seed": self.seed}

    @classmethod
    def from_dict(cls, written: Any, where: str = "the run") -> "RunSpec":
        """Read what :meth:`to_dict` wrote; ``where`` names the file in errors."""
        return from_json(cls, written, where, case=from_json(Case, written, where))
