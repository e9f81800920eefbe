"""What stands under a study's table."""

from collections.abc import Iterable, Sequence

from mario.lab.studies.plan import Collected
from mario.report.numbers import METRICS
from mario.report.tables.one_case import CONTROLS
from mario.report.tables.pooled import reachable
from mario.report.tables.rows import LongRow

LEVEL = 0.05


def notes(collected: Collected, rows: Sequence[LongRow], *, overall: bool) -> list[str]:
    """How to read the table, its tests, what its data lacks, which runs are missing, and what is not fair in it.

    ``overall`` says whether the table has a column for all cases together.
    """
    return [
        *_reading(collected, rows),
        *_tests(collected, rows, overall),
        *_controls(rows),
        *_data(collected),
        *_lacking(collected, rows),
        *_schedule(collected),
    ]


def _reading(collected: Collected, rows: Sequence[LongRow]) -> list[str]:
    metrics = dict.fromkeys(METRICS.get(row.metric, row.metric) for row in rows)
    notes = [f"Mean ± sample standard deviation over runs (how many), {' or '.join(metrics)} in percent."]
    rules = {row.chosen_on.get("ood_test", "ood_val") for row in rows if row.n}
    if rules == {"last"}:
        notes[0] += " There is no validation set: the last checkpoint counts, for every method."
    elif rules:
        notes[0] += " The checkpoint is the best on the ID validation set for ID and on the OOD validation set for OOD."
    split = [row.ood_by_split for row in rows if row.ood_by_split and row.ood_by_split.n_splits < row.n]
    if split and max(s.n_splits for s in split) > 1:
        notes[0] += " Several seeds share a split; the long form has the spread over splits."
    elif split:
        notes[0] += " All runs of a case share its one split: the spread is that of seeds."
    printed = sorted({f.table for row in rows for f in (row.paper_id, row.paper_ood) if f is not None})
    if printed:
        notes.append(
            f"Below ours the paper’s figure ({', '.join(printed)}; 10 runs) and ours less the paper’s in units of its "
            "standard deviation."
        )
    if any(row.ood_place for row in rows):
        several = " with the same encoder" if len({row.encoder for row in rows if not row.control}) > 1 else ""
        counts = {(row.case, row.n) for row in rows if row.n}
        fewer = ", of those with the most runs" if len(counts) > len({case for case, _ in counts}) else ""
        notes.append(f"Bold and underlined: best and second of the trained methods without labels{several}{fewer}.")
    if collected.plan.quick:
        notes.append("The quick form: so few steps that no figure here can stand beside the paper’s.")
    return notes


def _tests(collected: Collected, rows: Sequence[LongRow], overall: bool) -> list[str]:
    tests = [row for row in rows if row.test is not None and row.test.p_wilcoxon is not None]
    against = list(dict.fromkeys(row.against for row in rows if row.test is not None))
    if not against:
        reference = collected.plan.reference
        alone = reference and any(row.n for row in rows) and reference not in {row.label for row in rows}
        return [f"Nothing is tested: there is no row of {reference} to compare with."] if alone else []
    named = against[0] if len(against) == 1 else "the row that it is compared with (its host, or that of its encoder)"
    notes = []
    if tests:
        notes.append(
            f"↑ and ↓: OOD above and below {named}, p < {LEVEL} by Wilcoxon’s signed-rank test over runs of the same "
            f"split and seed, Holm-corrected for the {len(tests)} tests of this table."
        )
        possible = reachable([row.test for row in tests], LEVEL)
        if not possible:
            notes[-1] += " There are too few pairs a case for any scores to reach that."
        elif possible < len(tests):
            notes[-1] += f" {len(tests) - possible} of them have too few pairs to reach it."
        if any(row.test and row.test.by_split and 1 < row.test.by_split.n_splits < row.test.n for row in tests):
            notes[-1] += " Seeds within a split are not independent, so that p is on the small side."
    if overall:
        notes.append(
            f"The last column takes the runs of all cases together: OOD less that of {named}, the same test, "
            "Holm-corrected for the rows."
        )
    return notes


def _controls(rows: Sequence[LongRow]) -> list[str]:
    above = []
    for case in dict.fromkeys(row.case for row in rows):
        here = [row for row in rows if row.case == case and row.ood is not None]
        trained = [row.ood.mean for row in here if row.ood and not row.supervised and not row.control]
        over = [row.label for row in here if row.ood and row.control and trained and row.ood.mean > max(trained)]
        if over:
            above.append(f"{case} ({', '.join(over)})")
    return [f"A control is above every trained method without labels, OOD: {', '.join(above)}."] if above else []


def _data(collected: Collected) -> list[str]:
    missing: dict[str, list[str]] = {}
    faults: dict[str, list[str]] = {}
    for case in collected.cases:
        if case.missing:
            missing.setdefault(case.missing, []).append(case.name)
        for fault in dict.fromkeys(fault for run in case.results for fault in run.get("faults") or ()):
            faults.setdefault(fault, []).append(case.name)
    return [
        *(f"{', '.join(names)}: {why}." for why, names in missing.items()),
        *(f"{', '.join(names)}, known fault of the data: {fault}" for fault, names in faults.items()),
    ]


def _lacking(collected: Collected, rows: Sequence[LongRow]) -> list[str]:
    missing = {case.name for case in collected.cases if case.missing}
    lacking: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.why and row.case not in missing:
            lacking.setdefault((row.case, row.why), []).append(row.label)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (case, why), labels in lacking.items():
        together.setdefault((why, tuple(labels)), []).append(case)
    return [f"{', '.join(cases)}, {'; '.join(labels)}: {why}." for (why, labels), cases in together.items()]


def _schedule(collected: Collected) -> list[str]:
    notes = []
    for case in collected.cases:
        for name in ("steps", "checkpoints"):
            trained = _values(run.get(name) for run in case.results if run.get("method") not in CONTROLS)
            if len(trained) > 1:
                shown = ", ".join(map(str, sorted(trained)))
                notes.append(f"{case.name}: not the same number of {name} everywhere ({shown}): no fair comparison.")
    return notes


def _values(values: Iterable[int | None]) -> set[int]:
    return {value for value in values if value is not None}
