"""A job: a run with the name of its row in a table."""

from dataclasses import dataclass
from typing import Any

from mario.from_json import from_json, without_nulls
from mario.lab.spec import RunSpec


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run and its row.

    Attributes:
        spec: the run.
        label: name of the row: the method, or a variant of it.
        paper: name of the row in the paper's tables, if it has one.
        folder: name of the run's folder, if it is not the digest.
    """

    spec: RunSpec
    label: str
    paper: str | None = None
    folder: str = ""

    @property
    def folder_name(self) -> str:
        return self.folder or self.spec.digest

    def to_dict(self) -> dict[str, Any]:
        return {"label": self.label, "paper": self.paper, **self.spec.to_dict()}

    @classmethod
    def from_dict(cls, written: Any, where: str = "the job") -> "Job":
        """Read what :meth:`to_dict` wrote; ``where`` names the file in errors."""
        return from_json(cls, without_nulls(written), where, spec=RunSpec.from_dict(written, where), folder="")

    @property
    def name(self) -> str:
        """The job in one phrase, for messages."""
        spec = self.spec
        seeds = f"split seed {spec.split_seed} and seed {spec.seed}"
        return f"{self.label} on {spec.case.dataset} ({spec.case.shift}) with {seeds}"
