"""What stands in the table of one case, and what it says in words."""

from mario.lab.statistics.paired import Paired, Summary
from mario.lab.studies.paper import Figure
from mario.report.numbers import METRICS, interval, p_value, percent, points
from mario.report.tables.one_case import Row, Table

# The score columns and the validation set on which the checkpoint of each was chosen.
CHOSEN = (("ID", "id_val"), ("OOD", "ood_val"), ("OOD", "id_val"))


def verdict(table: Table, *, subject: str = "mario") -> str:
    """What the paired test says about ``subject`` and the table's reference, in the same words whichever way it falls.

    Example:
        >>> from mario.report import tabulate, verdict
        >>> run = {"dataset": "good-cbas", "shift": "concept", "setting": "transductive", "split_seed": 0}
        >>> run |= {"encoder": "gcn", "scores": {"ood_test": 0.9}}
        >>> runs = [run | {"method": m, "seed": s} for m in ("grace", "mario") for s in (0, 1)]
        >>> verdict(tabulate(runs)).split(": ")[0]
        'OOD accuracy of mario less that of grace, same split and same seed'
    """
    row = table.row(subject)
    if table.reference is None or row is None or row.test is None:
        return f"No paired test: the results hold no runs of {subject} and of a reference on the same split and seed."
    test = row.test
    metric = METRICS.get(table.metric, table.metric)
    head = f"OOD {metric} of {row.label} less that of {table.reference}, same split and same seed"
    if test.p_wilcoxon is None:
        return f"{head}: {points(test.mean_difference)} points on a single pair, from which nothing follows."
    if shown := test.shown(test.p_wilcoxon, 0.05):
        direction = "above" if shown > 0 else "below"
        counted = ", every pair counted as independent, which seeds on one split are not" if _shared(test) else ""
        finding = f"On these runs {row.label} stands {direction} {table.reference} at the 5 % level{counted}."
    else:
        finding = "On these runs neither stands above the other at the 5 % level: this is no evidence of a difference."
    sentences = [
        f"{head}: {points(test.mean_difference)} points "
        f"({_between(test)}n = {test.n} pairs; Wilcoxon signed-rank "
        f"p = {p_value(test.p_wilcoxon)}; {test.wins} won, {test.ties} tied, {test.losses} lost).".replace("= <", "<"),
        finding,
    ]
    if test.by_split is not None:
        spread = "" if test.by_split.sd is None else f" ± {100 * test.by_split.sd:.2f}"
        splits = "1 split" if test.by_split.n_splits == 1 else f"{test.by_split.n_splits} splits"
        sentences.append(f"Averaged within each split first: {points(test.by_split.mean)}{spread} over {splits}.")
    ours, theirs = row.paper_ood, next(r.paper_ood for r in table.rows if r.method == table.reference)
    if ours is not None and theirs is not None and ours.mean is not None and theirs.mean is not None:
        gain = points((ours.mean - theirs.mean) / 100)
        sentences.append(f"The paper has {gain} ({ours.mean:.2f} and {theirs.mean:.2f}, {ours.table}), without a test.")
    return " ".join(sentences)


def header_notes(table: Table) -> list[str]:
    """How to read the table, as sentences for under it."""
    notes = ["Mean ± sample standard deviation over n runs, in percent."]
    if table.chosen_on == "last":
        notes[0] += " There is no validation set: the last checkpoint counts, for every method."
    elif not any(row.id for row in table.rows):
        notes[0] += " OOD: the checkpoint that is best on the OOD validation set; there is no ID test set."
    else:
        notes[0] += (
            " ID: the checkpoint that is best on the ID validation set; OOD: the one that is best on the OOD "
            "validation set, as in the paper; the second OOD column keeps the checkpoint chosen on the ID validation "
            "set, without any OOD label."
        )
    printed = {f.table for row in table.rows for f in (row.paper_id, row.paper_ood) if f is not None}
    if printed:
        notes.append(
            f"The paper’s figures are from its {' and '.join(sorted(printed))}: 10 runs on the published split and the "
            "authors’ full schedule."
        )
    if any(_far(row.id, row.paper_id) or _far(row.ood, row.paper_ood) for row in table.rows):
        notes.append("‡ off by more than two of the paper’s standard deviations.")
    if table.reference:
        notes.append(
            f"Differences to {table.reference} are in points over runs with the same split and seed: bootstrap "
            "interval, Wilcoxon signed-rank p, and p after Holm’s correction for the comparisons of this table."
        )
        if any(row.test and _shared(row.test) for row in table.rows):
            notes[-1] += " Seeds within a split are not independent, so both p-values are on the small side."
    return notes


def full(table: Table) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the columns in which any row has something to show."""
    heads, rows = _heads(table), [_cells(row, table.reference) for row in table.rows]
    shown = [i for i in range(len(heads)) if i < 2 or any(cells[i] != "–" for cells in rows)]
    return [heads[i] for i in shown], [[cells[i] for i in shown] for cells in rows]


def _heads(table: Table) -> list[str]:
    metric = METRICS.get(table.metric, table.metric)
    heads = ["method", "n", *(f"{column} {metric} % (chosen on {rule})" for column, rule in CHOSEN)]
    heads += ["gap ID − OOD", "paper ID", "ours − paper", "paper OOD", "ours − paper"]
    if table.chosen_on != "ood_val":
        heads[3] = f"OOD {metric} % ({table.chosen_on} checkpoint)"
    if table.reference:
        heads += [f"OOD − {table.reference}", "95 % interval", "p", "p (Holm)"]
    return heads


def _cells(row: Row, reference: str | None) -> list[str]:
    cells = [row.label, str(row.n), *score_cells(row), *paper_cells(row)]
    if reference is None:
        return cells
    if row.test is None:
        return [*cells, "reference" if row.method == reference else "–", "–", "–", "–"]
    _, difference, between, _, p, p_holm, _ = test_cells(row)
    return [*cells, difference, between, p, p_holm]


def narrow_cells(row: Row, reference: str | None) -> list[str]:
    """A row in the eight columns of a terminal."""
    cells = [row.label, str(row.n), percent(row.id), percent(row.ood)]
    cells.append("–" if row.gap is None else points(row.gap.mean))
    cells += [str(figure or "–").partition(" ")[0] for figure in (row.paper_id, row.paper_ood)]
    if reference is not None:
        cells.append("–" if row.test is None else points(row.test.mean_difference))
    return cells


def score_cells(row: Row) -> list[str]:
    """ID, OOD, OOD chosen on the ID validation set, and the gap."""
    return [percent(row.id), percent(row.ood), percent(row.ood_by_id_val), percent(row.gap)]


def paper_cells(row: Row) -> list[str]:
    """The paper's ID and OOD, each with ours less the paper's."""
    cells = []
    for ours, theirs in ((row.id, row.paper_id), (row.ood, row.paper_ood)):
        if ours is None or theirs is None or theirs.mean is None:
            cells += [str(theirs or "–"), "–"]
        else:
            mark = " ‡" if _far(ours, theirs) else ""
            cells += [str(theirs), points(ours.mean - theirs.mean / 100) + mark]
    return cells


def _far(ours: Summary | None, theirs: Figure | None) -> bool:
    """Whether we are off by more than two of the paper's standard deviations."""
    if ours is None or theirs is None or theirs.mean is None or not theirs.sd:
        return False
    return abs(100 * ours.mean - theirs.mean) > 2 * theirs.sd


def test_cells(row: Row) -> list[str]:
    """Pairs, difference, interval, wins, p, corrected p, and the difference averaged by split."""
    test = row.test
    if test is None:
        return ["–"] * 7
    by_split = "–"
    if test.by_split is not None:
        spread = "" if test.by_split.sd is None else f" ± {100 * test.by_split.sd:.2f}"
        by_split = f"{points(test.by_split.mean)}{spread} ({test.by_split.n_splits})"
    return [
        str(test.n),
        points(test.mean_difference),
        interval(test),
        f"{test.wins} / {test.ties} / {test.losses}",
        p_value(test.p_wilcoxon),
        p_value(row.p_holm),
        by_split,
    ]


def _between(test: Paired) -> str:
    return "" if test.ci_low is None else f"95 % interval {interval(test)}; "


def _shared(test: Paired) -> bool:
    return test.by_split is not None and test.by_split.n_splits < test.n
