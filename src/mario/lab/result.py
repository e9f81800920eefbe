"""The result of a run, as ``result.json`` holds it."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mario.arguments import check_count, check_number
from mario.errors import MarioError
from mario.from_json import from_json
from mario.lab.spec import RunSpec
from mario.untrusted import read_json


@dataclass(frozen=True)
class TestScores:
    """Test scores of one checkpoint. ``allowed_for_claims`` is false where the test set chose it."""

    __test__ = False  # not a test class of pytest

    id_test: float | None = None
    ood_test: float | None = None
    allowed_for_claims: bool = True

    def to_dict(self) -> dict[str, Any]:
        return _present(dataclasses.asdict(self))


@dataclass(frozen=True)
class Scores:
    """The scores of a run, each of the checkpoint that its rule chose; fractions, ``None`` where there is no such set.

    Attributes:
        id_test: in-distribution test score of the checkpoint best on ``id_val``.
        ood_test: out-of-distribution test score of the checkpoint best on ``ood_val``.
        ood_test_by_id_val: out-of-distribution test score of the checkpoint best on ``id_val``.
        id_val: the best in-distribution validation score.
        ood_val: the best out-of-distribution validation score.
        groups: scores of the test groups, of the same checkpoint as ``ood_test``.
        calibration: expected calibration error of ``id_test`` and ``ood_test``, of a probe with probabilities.
        chosen_on: for each test score, the rule that chose its checkpoint.
        last: test scores of the last checkpoint.
        oracle: test scores of the checkpoint best on the test set: an upper bound, not allowed for claims.
    """

    id_test: float | None = None
    ood_test: float | None = None
    ood_test_by_id_val: float | None = None
    id_val: float | None = None
    ood_val: float | None = None
    groups: Mapping[str, float] | None = None
    calibration: Mapping[str, float] | None = None
    chosen_on: Mapping[str, str] = field(default_factory=dict)
    last: TestScores | None = None
    oracle: TestScores | None = None

    @property
    def gap(self) -> float | None:
        """``id_test`` minus ``ood_test``."""
        return None if self.id_test is None or self.ood_test is None else self.id_test - self.ood_test

    def to_dict(self) -> dict[str, Any]:
        rules = {key: rule.to_dict() if rule else None for key, rule in (("last", self.last), ("oracle", self.oracle))}
        return _present({f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | rules)


@dataclass(frozen=True)
class CurvePoint:
    """The scores of one checkpoint, by the name of the set or of the diagnostic."""

    step: int
    scores: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {"step": self.step, **self.scores}

    @classmethod
    def from_dict(cls, written: Any, where: str) -> "CurvePoint":
        found = dict(written) if isinstance(written, dict) else {}
        step = {"step": found.pop("step")} if "step" in found else {}
        return from_json(cls, {**step, "scores": found}, where)


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What came out of a run.

    Attributes:
        spec: what was run.
        metric: of all scores.
        steps: optimizer steps until the last checkpoint.
        ranks: processes that trained together.
        seconds: wall-clock time of training and evaluation, over all attempts.
        scores: the scores, chosen by the rules of the protocol.
        curve: the scores of every checkpoint.
        environment: versions and device.
        faults: known faults of the dataset.
        decisions: what the method decided by itself, such as which channels are centered, and why.
        data: fingerprint of the graph with its split; ``None`` for runs before it was recorded.
        folder: where it was read from; ``None`` for one from a records file.
    """

    spec: RunSpec
    metric: str
    steps: int
    ranks: int = 1
    seconds: float
    cpu_seconds: float
    scores: Scores
    curve: Sequence[CurvePoint]
    environment: Mapping[str, Any] = field(default_factory=dict)
    faults: Sequence[str] = ()
    decisions: Sequence[str] | None = None
    data: str | None = None
    folder: Path | None = field(default=None, compare=False)

    @property
    def checkpoints(self) -> int:
        return len(self.curve)

    @property
    def encoder(self) -> str | None:
        """The encoder's name; ``None`` for a method without one."""
        return self.spec.settings.get("encoder")

    def chosen_step(self, score: str) -> int | None:
        """The step of the checkpoint that ``score``, such as ``"ood_test"``, is from."""
        from mario.evaluation.selection import RULES, select_checkpoint

        rule = self.scores.chosen_on.get(score)
        if rule is None:
            return None
        if rule not in RULES:
            raise MarioError(f"selection rule must be one of {', '.join(RULES)}, got '{rule}'")
        seen = [{key: value for key, value in point.scores.items() if key == RULES[rule]} for point in self.curve]
        return self.curve[select_checkpoint(rule, seen)].step

    def check(self) -> None:
        """Raise `MarioError` unless its numbers can be those of a run."""
        from mario.evaluation.metrics import find_metric

        find_metric(self.metric)
        check_count("steps", self.steps, low=0)
        check_count("ranks", self.ranks)
        check_number("seconds", self.seconds, low=0)
        check_number("cpu_seconds", self.cpu_seconds, low=0)
        if not self.curve:
            raise MarioError("curve must have a checkpoint")

    def to_dict(self) -> dict[str, Any]:
        """The content of ``result.json``."""
        known = _present({"decisions": self.decisions and list(self.decisions), "data": self.data})
        return {
            **self.spec.facts(),
            "encoder": self.encoder,
            "metric": self.metric,
            "steps": self.steps,
            "checkpoints": self.checkpoints,
            "ranks": self.ranks,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "scores": self.scores.to_dict(),
            "curve": [point.to_dict() for point in self.curve],
            "settings": dict(self.spec.settings),
            "environment": dict(self.environment),
            "faults": list(self.faults),
            **known,
            "model": "last",  # model.safetensors is the last checkpoint
        }

    @classmethod
    def read(cls, folder: Path) -> "RunResult":
        """The result in the folder of a run, or the error that explains why there is none."""
        path = folder / "result.json"
        written = read_json(path, "remove it, and the same command writes it again")
        return cls.from_dict(written, str(path), folder)

    @classmethod
    def from_dict(cls, written: Any, where: str = "the result", folder: Path | None = None) -> "RunResult":
        """Read what :meth:`to_dict` wrote; ``where`` names the file in errors."""
        result = from_json(cls, written, where, spec=RunSpec.from_dict(written, where), folder=folder)
        try:
            result.check()
        except MarioError as error:
            raise MarioError(f"{where}: {error}") from None
        for score in result.scores.chosen_on:
            try:
                result.chosen_step(score)
            except MarioError as error:
                raise MarioError(f"{where}: 'chosen_on' of {score}: {error}") from None
        return result


def _present(found: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value is not None}
