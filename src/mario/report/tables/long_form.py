"""Rows and runs with a name for every number: what a spreadsheet or another program takes."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from mario.lab.statistics.paired import BySplit, Summary
from mario.lab.studies.plan import Collected
from mario.report.tables.rows import LongRow

COLUMNS = (
    *("study", "case", "dataset", "domain", "shift", "setting", "metric", "label", "method", "encoder"),
    *("asked", "n", "id_mean", "id_sd", "id_splits", "id_sd_by_split", "ood_mean", "ood_sd", "ood_splits"),
    *("ood_sd_by_split", "ood_by_id_val_mean", "ood_by_id_val_sd", "gap_mean", "gap_sd"),
    *("paper", "paper_id_mean", "paper_id_sd", "id_difference", "id_difference_in_sd"),
    *("paper_ood_mean", "paper_ood_sd", "ood_difference", "ood_difference_in_sd"),
    *("against", "pairs", "mean_difference", "ci_low", "ci_high", "wins", "ties", "losses", "p", "p_holm", "why"),
)
"""The columns of the long form. Scores and differences are percent.

``ci`` is the 95 % bootstrap interval, which five pairs are needed for.
"""

RUN_COLUMNS = (
    *("study", "case", "label", "method", "dataset", "domain", "shift", "setting", "split_seed", "seed", "encoder"),
    *("metric", "steps", "checkpoints", "id_test", "ood_test", "ood_test_by_id_val", "id_val", "ood_val"),
    *("id_test_chosen_on", "id_test_step", "ood_test_chosen_on", "ood_test_step", "last_id_test", "last_ood_test"),
    *("seconds", "digest"),
)
"""The columns of the runs; after them come one for each test group. Scores are percent.

``last`` is the last checkpoint. The oracle's scores, chosen on the test set, are in ``result.json`` alone.
"""


def values(row: LongRow) -> dict[str, Any]:
    """A row by the names of :data:`COLUMNS`; what is not there is None."""
    test = row.test
    printed = row.paper_ood or row.paper_id
    return {
        **{name: getattr(row, name) for name in COLUMNS[:10]},
        "asked": row.asked,
        "n": row.n,
        **_summary("id", row.id),
        **_splits("id", row.id_by_split),
        **_summary("ood", row.ood),
        **_splits("ood", row.ood_by_split),
        **_summary("ood_by_id_val", row.ood_by_id_val),
        **_summary("gap", row.gap),
        "paper": printed.table if printed else None,
        "paper_id_mean": row.paper_id.mean if row.paper_id else None,
        "paper_id_sd": row.paper_id.sd if row.paper_id else None,
        "id_difference": row.off_id,
        "id_difference_in_sd": row.off_id_sd,
        "paper_ood_mean": row.paper_ood.mean if row.paper_ood else None,
        "paper_ood_sd": row.paper_ood.sd if row.paper_ood else None,
        "ood_difference": row.off_ood,
        "ood_difference_in_sd": row.off_ood_sd,
        "against": row.against,
        "pairs": test.n if test else None,
        "mean_difference": 100 * test.mean_difference if test else None,
        "ci_low": _percent(test.ci_low) if test else None,
        "ci_high": _percent(test.ci_high) if test else None,
        "wins": test.wins if test else None,
        "ties": test.ties if test else None,
        "losses": test.losses if test else None,
        "p": test.p_wilcoxon if test else None,
        "p_holm": row.p_holm,
        "why": row.why,
    }


def to_csv(rows: Iterable[LongRow]) -> str:
    """The long form as CSV, a line for each case and label, with the columns of :data:`COLUMNS`.

    Example:
        >>> from mario.report import to_csv
        >>> print(to_csv([])[:42])
        study,case,dataset,domain,shift,setting,me
    """
    return _csv(COLUMNS, (values(row) for row in rows))


def runs_to_csv(collected: Collected | Iterable[Collected]) -> str:
    """Every run that is done as CSV, with the columns of :data:`RUN_COLUMNS` and one for each test group.

    A run that two studies share is there once for each.

    Example:
        >>> from mario.report import runs_to_csv
        >>> runs_to_csv([]).split(",")[:4]
        ['study', 'case', 'label', 'method']
    """
    several = [collected] if isinstance(collected, Collected) else list(collected)
    runs = [(one.plan.study, case.name, run) for one in several for case in one.cases for run in case.results]
    groups = dict.fromkeys(name for _, _, run in runs for name in run["scores"].get("groups") or ())
    return _csv((*RUN_COLUMNS, *groups), (_run(study, case, run) for study, case, run in runs))


def _run(study: str, case: str, run: Mapping[str, Any]) -> dict[str, Any]:
    scores, curve = run["scores"], run.get("curve") or ()
    chosen, last = scores.get("chosen_on") or {}, scores.get("last") or {}
    return {
        **{name: run.get(name) for name in RUN_COLUMNS},
        "study": study,
        "case": case,
        **{name: _percent(scores.get(name)) for name in RUN_COLUMNS[14:19]},
        "id_test_chosen_on": chosen.get("id_test"),
        "id_test_step": _step(curve, chosen.get("id_test")),
        "ood_test_chosen_on": chosen.get("ood_test"),
        "ood_test_step": _step(curve, chosen.get("ood_test")),
        "last_id_test": _percent(last.get("id_test")),
        "last_ood_test": _percent(last.get("ood_test")),
        "digest": Path(run["folder"]).name if run.get("folder") else None,
        **{name: _percent(score) for name, score in (scores.get("groups") or {}).items()},
    }


def _step(curve: Sequence[Mapping[str, Any]], rule: str | None) -> int | None:
    """The step of the checkpoint that ``rule`` chose."""
    from mario.errors import MarioError
    from mario.evaluation.selection import select

    if rule is None:
        return None
    try:
        return curve[select(rule, [{k: v for k, v in point.items() if k == rule} for point in curve])].get("step")
    except MarioError:  # a result of another version, without the scores that the rule looks at
        return None


def _summary(name: str, summary: Summary | None) -> dict[str, float | None]:
    if summary is None:
        return {f"{name}_mean": None, f"{name}_sd": None}
    return {f"{name}_mean": _percent(summary.mean), f"{name}_sd": _percent(summary.sd)}


def _splits(name: str, by_split: BySplit | None) -> dict[str, float | None]:
    if by_split is None:
        return {f"{name}_splits": None, f"{name}_sd_by_split": None}
    return {f"{name}_splits": by_split.n_splits, f"{name}_sd_by_split": _percent(by_split.sd)}


def _percent(fraction: float | None) -> float | None:
    return None if fraction is None else 100 * fraction


def _csv(columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    out = StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n", extrasaction="raise")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: round(v, 6) if isinstance(v, float) else v for name, v in line.items()})
    return out.getvalue()
