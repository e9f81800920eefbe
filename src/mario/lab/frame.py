"""Results as a pandas DataFrame, one row per run: what tables, pictures and pages are made from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.files import check_path
from mario.lab.result import RunResult, TestScores
from mario.lab.runs import store
from mario.lab.runs.records import read_records

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Column:
    """A column of :func:`frame`: its name, how its value is read from a result, and what it means."""

    name: str
    value: Callable[[RunResult], Any]
    help: str
    dtype: str | None = None


# fmt: off
COLUMNS = [
    Column("digest", lambda r: r.spec.digest, "name of the run's folder"),
    Column("folder", lambda r: r.folder and str(r.folder), "path of the run's folder; missing for a records file"),
    Column("dataset", lambda r: r.spec.case.dataset, "name of the dataset"),
    Column("domain", lambda r: r.spec.case.domain, "attribute that shifts"),
    Column("shift", lambda r: r.spec.case.shift, "covariate, concept, no_shift or label"),
    Column("setting", lambda r: r.spec.case.setting, "transductive or inductive"),
    Column("split_seed", lambda r: r.spec.split_seed, "seed of the split"),
    Column("seed", lambda r: r.spec.seed, "seed of weights, views and batches"),
    Column("method", lambda r: r.spec.method, "name of the method"),
    Column("encoder", lambda r: r.encoder, "name of the encoder"),
    Column("metric", lambda r: r.metric, "metric of all scores"),
    Column("steps", lambda r: r.steps, "optimizer steps until the last checkpoint"),
    Column("checkpoints", lambda r: r.checkpoints, "number of checkpoints that were evaluated"),
    Column("ranks", lambda r: r.ranks, "processes that trained together"),
    Column("seconds", lambda r: r.seconds, "wall-clock seconds"),
    Column("cpu_seconds", lambda r: r.cpu_seconds, "CPU seconds"),
    Column("id_test", lambda r: r.scores.id_test, "in-distribution test score", "float64"),
    Column("ood_test", lambda r: r.scores.ood_test, "out-of-distribution test score", "float64"),
    Column("ood_test_by_id_val", lambda r: r.scores.ood_test_by_id_val, "ood_test, chosen on id_val", "float64"),
    Column("gap", lambda r: r.scores.gap, "id_test minus ood_test", "float64"),
    Column("id_val", lambda r: r.scores.id_val, "best in-distribution validation score", "float64"),
    Column("ood_val", lambda r: r.scores.ood_val, "best out-of-distribution validation score", "float64"),
    Column("id_test_chosen_on", lambda r: r.scores.chosen_on.get("id_test"), "rule that chose its checkpoint"),
    Column("id_test_step", lambda r: r.chosen_step("id_test"), "step of that checkpoint", "Int64"),
    Column("ood_test_chosen_on", lambda r: r.scores.chosen_on.get("ood_test"), "rule that chose its checkpoint"),
    Column("ood_test_step", lambda r: r.chosen_step("ood_test"), "step of that checkpoint", "Int64"),
    Column("last_id_test", lambda r: _of(r.scores.last).id_test, "id_test of the last checkpoint", "float64"),
    Column("last_ood_test", lambda r: _of(r.scores.last).ood_test, "ood_test of the last checkpoint", "float64"),
    Column("oracle_ood_test", lambda r: _of(r.scores.oracle).ood_test, "highest ood_test; not for claims", "float64"),
    Column("calibration_id_test", lambda r: _error(r, "id_test"), "calibration error of id_test", "float64"),
    Column("calibration_ood_test", lambda r: _error(r, "ood_test"), "calibration error of ood_test", "float64"),
    Column("groups", lambda r: dict(r.scores.groups or {}), "score of each test group by its name", "object"),
    Column("curve", lambda r: tuple(r.curve), "scores of all checkpoints, as CurvePoint", "object"),
    Column("settings", lambda r: dict(r.spec.settings), "complete settings by name", "object"),
    Column("environment", lambda r: dict(r.environment), "versions and device", "object"),
    Column("data", lambda r: r.data, "fingerprint of the graph and its split; missing in old runs"),
    Column("faults", lambda r: tuple(r.faults), "known faults of the dataset", "object"),
    Column("decisions", lambda r: tuple(r.decisions or ()), "what the method decided by itself, and why", "object"),
]
# fmt: on
"""The columns of :func:`frame`. Another column is one more line here. Scores are fractions."""

SCORES = [c.name for c in COLUMNS if c.dtype == "float64" and not c.name.startswith(("oracle", "calibration"))]
"""The columns with scores that may be shown: an oracle's are chosen on test labels, and errors are no scores."""


def frame(results: Iterable[RunResult]) -> "DataFrame":
    """A DataFrame with one row per result and the columns of :data:`COLUMNS`.

    Example:
        >>> frame([]).columns[:4].tolist()
        ['digest', 'folder', 'dataset', 'domain']
    """
    import pandas as pd

    listed = list(results) if isinstance(results, Iterable) else [results]
    if wrong := [result for result in listed if not isinstance(result, RunResult)]:
        raise MarioError(f"a frame is made of results of runs (RunResult), got {type(wrong[0]).__name__}")
    return pd.DataFrame({c.name: pd.Series([c.value(r) for r in listed], dtype=c.dtype) for c in COLUMNS})


def load_runs(path: Path | str) -> "DataFrame":
    """The finished runs in ``path`` as a DataFrame: see :func:`frame`.

    Args:
        path: a folder of runs, such as ``runs/``, or a ``.jsonl`` file of records.

    Example:
        >>> import tempfile
        >>> import mario
        >>> len(mario.lab.load_runs(tempfile.mkdtemp()))
        0
    """
    path = check_path("path", path)
    if path.is_dir():
        return frame(store.finished(path))
    if path.suffix != ".jsonl" or not path.exists():
        raise MarioError(f"path must be a folder of runs or a .jsonl file of records, got {path}")
    return frame(read_records(path).values())


def _error(result: RunResult, score: str) -> float | None:
    return (result.scores.calibration or {}).get(score)


def _of(scores: TestScores | None) -> TestScores:
    return scores or TestScores()
