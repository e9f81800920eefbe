"""The notes below a study's table."""

from collections.abc import Iterable, Sequence

from mario.lab.studies.collect import Collected
from mario.report.numbers import counted, metric_title
from mario.report.tables.entries import CONTROLS, LEVEL, Entry
from mario.report.tables.pooled import reachable


def notes(study: Collected, found: Sequence[Entry], *, overall: bool) -> list[str]:
    """How to read the table, its tests, faults of its data, which runs are missing, and what makes it unfair.

    ``overall`` says whether the table has a column for all cases together.
    """
    return [
        *_reading(study, found),
        *_tests(study, found, overall),
        *_controls(found),
        *_data(study),
        *_lacking(found),
        *_fewer_pairs(found),
        *_schedule(study),
    ]


def faults_of(study: Collected) -> dict[str, list[str]]:
    """The known faults of the data, and the cases that have each."""
    found: dict[str, list[str]] = {}
    for case in study.cases:
        for fault in dict.fromkeys(fault for faults in case.frame["faults"] for fault in faults):
            found.setdefault(fault, []).append(case.name)
    return found


def _reading(study: Collected, found: Sequence[Entry]) -> list[str]:
    metrics = dict.fromkeys(metric_title(entry.metric) for entry in found)
    notes = [f"Mean ± sample standard deviation over runs (how many), {' or '.join(metrics)} in percent."]
    rules = {entry.chosen_on for entry in found if entry.n}
    if rules == {"last"}:
        notes[0] += " There is no validation set: the last checkpoint counts, for every method."
    elif rules:
        notes[0] += " The checkpoint is the best on the ID validation set for ID and on the OOD validation set for OOD."
    split = [e.ood.by_split for e in found if e.ood.by_split and e.ood.by_split.n_splits < e.n]
    if split and max(s.n_splits for s in split) > 1:
        notes[0] += " Several seeds share a split; the long form has the spread over splits."
    elif split:
        notes[0] += " All runs of a case share its one split: the spread is over seeds."
    printed = sorted({f.table for entry in found for f in (entry.id.paper, entry.ood.paper) if f is not None})
    if printed:
        notes.append(
            f"Below ours: the paper’s figure ({', '.join(printed)}; 10 runs), and our difference from it in its "
            "standard deviations."
        )
    if any(entry.ood.place for entry in found):
        several = " with the same encoder" if len({e.encoder for e in found if not e.control}) > 1 else ""
        counts = {(entry.case, entry.n) for entry in found if entry.n}
        fewer = ", among those with the most runs" if len(counts) > len({case for case, _ in counts}) else ""
        notes.append(f"Bold and underlined: best and second of all rows{several}{fewer}, controls included.")
    if study.plan.quick:
        notes.append("The quick form: with so few steps, no figure here can be compared with the paper’s.")
    return notes


def _tests(study: Collected, found: Sequence[Entry], overall: bool) -> list[str]:
    tests = [entry.test for entry in found if entry.test is not None and entry.test.p_wilcoxon is not None]
    against = list(dict.fromkeys(entry.against for entry in found if entry.test is not None))
    if not against:
        reference = study.plan.reference
        alone = reference and any(entry.n for entry in found) and reference not in {entry.label for entry in found}
        return [f"Nothing is tested: there is no row of {reference} to compare with."] if alone else []
    named = against[0] if len(against) == 1 else "the row that it is compared with (its host, or that of its encoder)"
    notes = []
    if tests:
        notes.append(
            f"↑ and ↓: OOD above and below {named}, p < {LEVEL} by Wilcoxon’s signed-rank test over runs of the same "
            f"split and seed, Holm-corrected for the {counted(len(tests), 'test')} of this table."
        )
        possible = reachable(tests, LEVEL)
        if not possible:
            notes[-1] += " With so few pairs per case, no difference could reach significance."
        elif possible < len(tests):
            notes[-1] += f" {len(tests) - possible} of them have too few pairs to reach significance."
        if any(test.by_split and 1 < test.by_split.n_splits < test.n for test in tests):
            notes[-1] += " Seeds on one split are not independent, so p is too small."
    if overall:
        notes.append(
            f"The last column takes the runs of all cases together: OOD minus that of {named}, the same test, "
            "Holm-corrected for the rows."
        )
    return notes


def _controls(found: Sequence[Entry]) -> list[str]:
    above = []
    for case in dict.fromkeys(entry.case for entry in found):
        here = [(entry, entry.ood.ours.mean) for entry in found if entry.case == case and entry.ood.ours]
        trained = [mean for entry, mean in here if entry.compared]
        over = [entry.label for entry, mean in here if entry.control and trained and mean > max(trained)]
        if over:
            above.append(f"{case.name} ({', '.join(over)})")
    return [f"A control is above every trained method without labels, OOD: {', '.join(above)}."] if above else []


def _data(study: Collected) -> list[str]:
    missing: dict[str, list[str]] = {}
    for case in study.cases:
        if case.missing:
            missing.setdefault(case.missing, []).append(case.name)
    return [
        *(f"{', '.join(names)}: {why}." for why, names in missing.items()),
        *(f"{', '.join(names)}, known fault of the data: {fault}" for fault, names in faults_of(study).items()),
    ]


def _lacking(found: Sequence[Entry]) -> list[str]:
    return _together((entry, entry.why) for entry in found if entry.why and not entry.missing)


def _fewer_pairs(found: Sequence[Entry]) -> list[str]:
    return _together(
        (entry, f"compared with {entry.against} on the {counted(entry.test.n, 'run')} that both have")
        for entry in found
        if entry.test is not None and entry.ood.ours is not None and entry.test.n < entry.ood.ours.n
    )


def _together(said: Iterable[tuple[Entry, str]]) -> list[str]:
    """What is said of several rows of several cases, once for those of which the same is said."""
    labels: dict[tuple[str, str], list[str]] = {}
    for entry, words in said:
        labels.setdefault((entry.case.name, words), []).append(entry.label)
    cases: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (case, words), rows in labels.items():
        cases.setdefault((words, tuple(rows)), []).append(case)
    return [f"{', '.join(names)}, {'; '.join(rows)}: {words}." for (words, rows), names in cases.items()]


def _schedule(study: Collected) -> list[str]:
    notes = []
    for case in study.cases:
        trained = case.frame[~case.frame["method"].isin(CONTROLS)]
        for name in ("steps", "checkpoints"):
            values = sorted(set(trained[name].dropna()))
            if len(values) > 1:
                shown = ", ".join(map(str, values))
                notes.append(f"{case.name}: not the same number of {name} everywhere ({shown}): not a fair comparison.")
    return notes
