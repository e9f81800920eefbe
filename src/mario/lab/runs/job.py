"""A job: a run before its graph is loaded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mario.lab.runs.execute import Run


@dataclass(frozen=True, kw_only=True, eq=False)
class Job:
    """A run before its graph is loaded. ``label`` names its row: a method, or a variant of one."""

    dataset: str
    method: str
    shift: str
    domain: str | None = None
    setting: str | None = None
    split_seed: int = 0
    seed: int = 0
    given: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def name(self) -> str:
        """For people: its row, its dataset and its seeds."""
        row = self.label or self.method
        return f"{row} on {self.dataset} ({self.shift}) with split seed {self.split_seed} and seed {self.seed}"

    def plan(self) -> Run:
        return Run.plan(
            self.dataset,
            self.method,
            domain=self.domain,
            shift=self.shift,
            setting=self.setting,
            split_seed=self.split_seed,
            seed=self.seed,
            given=self.given,
        )
