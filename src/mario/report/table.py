"""The table of a comparison: every method in and out of distribution, beside the paper's figures and with its test.

Scores come in as fractions and are printed in percent. The `last` and `oracle` selection rules of a result never enter
a table; `oracle` looks at test labels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.experiments import paper
from mario.experiments.paper import Figure
from mario.experiments.statistics import NothingToPairError, Paired, Summary, holm, pair, paired, summarise
from mario.report.numbers import METRICS, p_value, percent, points, to_md

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Result = Mapping[str, Any]

CASE = ("dataset", "domain", "shift", "setting")
CONTROLS = ("raw-features", "random-init")
# The score columns and the validation set on which the checkpoint of each was chosen.
_CHOSEN = (("ID", "id_val"), ("OOD", "ood_val"), ("OOD", "id_val"))

# Supervised first, then the controls, then what is compared, MARIO last: the order of the paper's tables.
_ORDER = (
    *("erm", "irm", "eerm", "raw-features", "random-init", "gae", "vgae", "graphmae", "dgi", "mvgrl"),
    *("graphcl", "grace", "rosa", "bgrl", "costa", "swav"),
)


@dataclass(frozen=True)
class Row:
    """One method. Summaries are fractions, the paper's figures percent; ``test`` compares OOD with the reference."""

    method: str
    encoder: str
    label: str
    n: int
    id: Summary | None
    ood: Summary | None
    ood_by_id_val: Summary | None
    gap: Summary | None
    paper_id: Figure | None
    paper_ood: Figure | None
    test: Paired | None
    p_holm: float | None


@dataclass(frozen=True)
class Table:
    """All methods on one dataset under one shift. ``notes`` belong under the table wherever it is shown."""

    dataset: str
    domain: str
    shift: str
    setting: str
    metric: str
    reference: str | None
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    chosen_on: str = "ood_val"

    @property
    def title(self) -> str:
        shift = "no shift" if self.shift == "no_shift" else f"{self.shift} shift" if self.shift else ""
        parts = (self.dataset, f"{self.domain} domain" if self.domain else "", shift, self.setting)
        return ", ".join(part for part in parts if part)

    def row(self, method: str) -> Row | None:
        return next((row for row in self.rows if row.method == method), None)


def tabulate(results: Iterable[Result], *, reference: str | None = "grace", asked: int | None = None) -> Table:
    """Sum up the results of one dataset, domain, shift and setting.

    Every other method is compared with ``reference`` on the runs both have. ``asked`` is the number of runs that each
    method should have; a note says where it is not met.

    Example:
        >>> from mario.report import tabulate, to_markdown
        >>> def run(method, seed, id_test, ood_test):
        ...     return {
        ...         "dataset": "good-cbas", "domain": "color", "shift": "concept", "setting": "transductive",
        ...         "split_seed": 0, "method": method, "seed": seed, "encoder": "gcn", "metric": "accuracy",
        ...         "scores": {"id_test": id_test, "ood_test": ood_test, "ood_test_by_id_val": ood_test},
        ...     }
        >>> table = tabulate([run("grace", 0, 0.92, 0.88), run("mario", 0, 0.94, 0.91), run("mario", 1, 0.96, 0.93)])
        >>> [(row.label, row.n, round(row.ood.mean, 4)) for row in table.rows]
        [('grace', 1, 0.88), ('mario', 2, 0.92)]
        >>> round(table.row("mario").test.mean_difference, 4), table.row("mario").paper_ood.mean
        (0.03, 91.28)
    """
    runs = [_checked(result) for result in results]
    if not runs:
        raise MarioError("results must hold at least one run, got none")
    cases = {tuple(run.get(name) for name in CASE) for run in runs}
    if len(cases) > 1:
        raise MarioError(
            f"results must be of one dataset, domain, shift and setting, got {len(cases)} of them; "
            "tabulate_all makes a table of each"
        )
    groups: dict[tuple[str, str], list[Result]] = {}
    for run in runs:
        groups.setdefault((run["method"], run.get("encoder") or "none"), []).append(run)
    several_encoders = len({encoder for method, encoder in groups if method not in CONTROLS}) > 1
    tests = {key: _against(reference, key, groups) for key in groups}
    adjusted = dict(zip(tests, holm([test.p_wilcoxon if test else None for test in tests.values()]), strict=True))

    dataset, domain, shift, setting = (runs[0].get(name) or "" for name in CASE)
    rows = []
    for key in sorted(groups, key=_rank):
        method, encoder = key
        where: dict[str, Any] = {
            "dataset": dataset, "domain": domain or None, "shift": shift, "setting": setting,
            "method": method, "encoder": encoder,
        }  # fmt: skip
        rows.append(
            Row(
                method=method,
                encoder=encoder,
                label=f"{method} ({encoder})" if several_encoders else method,
                n=len(groups[key]),
                id=_summary(run["scores"].get("id_test") for run in groups[key]),
                ood=_summary(run["scores"].get("ood_test") for run in groups[key]),
                ood_by_id_val=_summary(run["scores"].get("ood_test_by_id_val") for run in groups[key]),
                gap=_summary(_gap(run) for run in groups[key]),
                paper_id=paper.figure(column="id", **where),
                paper_ood=paper.figure(column="ood", **where),
                test=tests[key],
                p_holm=adjusted[key],
            )
        )
    return Table(
        dataset=dataset,
        domain=domain,
        shift=shift,
        setting=setting,
        metric=runs[0].get("metric", "accuracy"),
        reference=reference if any(row.method == reference for row in rows) else None,
        rows=tuple(rows),
        notes=tuple(_notes(rows, runs, reference, asked)),
        chosen_on=(runs[0]["scores"].get("chosen_on") or {}).get("ood_test", "ood_val"),
    )


def tabulate_all(
    results: Iterable[Result], *, reference: str | None = "grace", asked: int | None = None
) -> list[Table]:
    """One table for each dataset, domain, shift and setting among the results, in the order of first appearance.

    Example:
        >>> from mario.report import tabulate_all
        >>> run = {"dataset": "webkb", "setting": "transductive", "method": "erm", "scores": {"ood_test": 0.8}}
        >>> [table.title for table in tabulate_all([run | {"shift": "concept"}, run | {"shift": "covariate"}])]
        ['webkb, concept shift, transductive', 'webkb, covariate shift, transductive']
    """
    cases: dict[tuple[Any, ...], list[Result]] = {}
    for result in results:
        cases.setdefault(tuple(result.get(name) for name in CASE), []).append(result)
    return [tabulate(runs, reference=reference, asked=asked) for runs in cases.values()]


def to_rich(table: Table) -> "RichTable":
    """The table for a terminal of 80 columns, with its notes as caption; the other forms have more columns."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    metric = METRICS.get(table.metric, table.metric)
    heads = ["method", "n", "ID\nby id_val", f"OOD\nby {table.chosen_on}", "gap", "paper\nID", "paper\nOOD"]
    if table.reference:
        heads.append(f"OOD −\n{table.reference}")
    caption = Text("\n".join(_header_notes(table) + list(table.notes)))
    out = RichTable(
        title=Text(f"{table.title}: {metric}, %"),
        caption=caption,
        caption_justify="left",
        box=box.SIMPLE,
        pad_edge=False,
        collapse_padding=True,
    )
    for index, head in enumerate(heads):
        out.add_column(Text(head), justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in table.rows:
        style = "bold" if row.method == "mario" else ("dim" if row.method in CONTROLS else None)
        out.add_row(*(Text(cell) for cell in _narrow_cells(row, table.reference)), style=style)
    return out


def to_markdown(table: Table) -> str:
    """The table in GitHub's markdown, with its title above and its notes below."""
    heads, rows = _full(table)
    lines = [f"**{to_md(table.title)}**", ""]
    lines.append("| " + " | ".join(to_md(head) for head in heads) + " |")
    lines.append("|:---" + "|---:" * (len(heads) - 1) + "|")
    lines += ["| " + " | ".join(to_md(cell) for cell in cells) + " |" for cells in rows]
    lines.append("")
    lines += [f"- {to_md(note)}" for note in _header_notes(table) + list(table.notes)]
    return "\n".join(lines) + "\n"


def to_html(table: Table) -> str:
    """The table as an HTML fragment, the paired tests in a second one; both scroll in themselves on a narrow screen."""
    metric = METRICS.get(table.metric, table.metric)
    top = (
        '<tr><th rowspan="2" scope="col">Method</th><th rowspan="2" scope="col">n</th>'
        f'<th colspan="4" scope="colgroup">Ours, {escape(metric)} %</th>'
        '<th colspan="4" scope="colgroup">The paper’s, and ours less the paper’s</th></tr>\n'
    )
    heads = [f"{column} <small>chosen on {rule}</small>" for column, rule in _CHOSEN]
    if table.chosen_on != "ood_val":
        heads[1] = f"OOD <small>{escape(table.chosen_on)} checkpoint</small>"
    heads += ["Gap <small>ID − OOD</small>", "ID", "diff.", "OOD", "diff."]
    main = _html_table(
        f"Results: {table.title}",
        top + _html_heads(heads),
        [(row, [row.label, str(row.n), *_score_cells(row), *_paper_cells(row)]) for row in table.rows],
    )
    notes = "".join(f"<li>{escape(note)}</li>" for note in _header_notes(table) + list(table.notes))
    tests = ""
    if table.reference and any(row.test for row in table.rows):
        heads = ["Method", "pairs", "difference", "95 % interval", "won / tied / lost", "p", "p <small>Holm</small>"]
        heads.append("difference <small>averaged by split</small>")
        tests = _html_table(
            f"OOD {metric} less that of {table.reference}, same split and seed, in points",
            _html_heads(heads),
            [(row, [row.label, *_test_cells(row)]) for row in table.rows if row.test],
        )
    return f'{main}\n{tests}\n<ul class="notes">{notes}</ul>'


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
    direction = "above" if test.mean_difference > 0 else "below"
    if test.p_wilcoxon < 0.05:
        counted = ", every pair counted as independent, which seeds on one split are not" if _shared(test) else ""
        finding = f"On these runs {row.label} stands {direction} {table.reference} at the 5 % level{counted}."
    else:
        finding = "On these runs neither stands above the other at the 5 % level: this is no evidence of a difference."
    sentences = [
        f"{head}: {points(test.mean_difference)} points "
        f"(95 % interval {points(test.ci_low)} to {points(test.ci_high)}; n = {test.n} pairs; Wilcoxon signed-rank "
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


def far_from_paper(table: Table) -> str:
    """Which figures are off by more than two of the paper's standard deviations, in one sentence; nothing if none is.

    Example:
        >>> from mario.report import far_from_paper, tabulate
        >>> run = {"dataset": "good-cbas", "domain": "color", "shift": "concept", "setting": "transductive", "seed": 0}
        >>> run |= {"method": "mario", "encoder": "gcn", "scores": {"id_test": 0.94, "ood_test": 0.80}}
        >>> far_from_paper(tabulate([run]))
        'Off by more than two of the paper’s standard deviations: mario OOD −11.28 (10.3 sd).'
    """
    found = []
    for row in table.rows:
        for name, ours, theirs in (("ID", row.id, row.paper_id), ("OOD", row.ood, row.paper_ood)):
            if ours is not None and theirs is not None and theirs.mean is not None and _far(ours, theirs):
                off = ours.mean - theirs.mean / 100
                found.append(f"{row.label} {name} {points(off)} ({abs(100 * off) / (theirs.sd or 1):.1f} sd)")
    return f"Off by more than two of the paper’s standard deviations: {', '.join(found)}." if found else ""


def groups_to_markdown(results: Iterable[Result]) -> str:
    """A row a method and a column a test group (T1, T2, ...), mean ± sd; nothing where the results have no groups.

    Example:
        >>> from mario.report import groups_to_markdown
        >>> run = {"dataset": "amazon-photo", "method": "erm", "seed": 0}
        >>> print(groups_to_markdown([run | {"scores": {"groups": {"T1": 0.5, "T2": 0.25}}}]))
        | method | T1 | T2 |
        |:---|---:|---:|
        | erm | 50.00 | 25.00 |
    """
    scores: dict[tuple[str, str], list[Mapping[str, float]]] = {}
    for run in results:
        if run["scores"].get("groups"):
            scores.setdefault((run["method"], run.get("encoder") or ""), []).append(run["scores"]["groups"])
    if not scores:
        return ""
    several = len({encoder for _, encoder in scores}) > 1
    names = list(dict.fromkeys(name for runs in scores.values() for groups in runs for name in groups))
    lines = ["| method | " + " | ".join(names) + " |", "|:---" + "|---:" * len(names) + "|"]
    for key in sorted(scores, key=_rank):
        cells = (percent(_summary(groups.get(name) for groups in scores[key])) for name in names)
        label = f"{key[0]} ({key[1]})" if several else key[0]
        lines.append(f"| {to_md(label)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _checked(result: Result) -> Result:
    for name in ("dataset", "method", "scores"):
        if name not in result:
            raise MarioError(f"results must be result.json contents; one has no {name!r}, only {sorted(result)}")
    return result


def _rank(key: tuple[str, str]) -> tuple[int, str, str]:
    method, encoder = key
    if method == "mario":
        return len(_ORDER) + 1, method, encoder
    host = method.partition("+")[0]  # costa+mario stands under costa
    return _ORDER.index(host) if host in _ORDER else len(_ORDER), method, encoder


def _summary(values: Iterable[float | None]) -> Summary | None:
    known = [value for value in values if value is not None]
    return summarise(known) if known else None


def _gap(run: Result) -> float | None:
    id_test, ood_test = run["scores"].get("id_test"), run["scores"].get("ood_test")
    return None if id_test is None or ood_test is None else id_test - ood_test


def _against(
    reference: str | None, key: tuple[str, str], groups: Mapping[tuple[str, str], Sequence[Result]]
) -> Paired | None:
    method, encoder = key
    candidates = {e: runs for (m, e), runs in groups.items() if m == reference}
    # Raw features have no encoder: they are set against the reference wherever there is only one of it.
    other = candidates.get(encoder) or (next(iter(candidates.values())) if len(candidates) == 1 else None)
    if method == reference or other is None:
        return None
    try:
        pairs = pair(groups[key], other, "ood_test")
    except NothingToPairError:
        return None
    return paired(pairs.a, pairs.b, splits=pairs.splits)


def _heads(table: Table) -> list[str]:
    metric = METRICS.get(table.metric, table.metric)
    heads = ["method", "n", *(f"{column} {metric} % (chosen on {rule})" for column, rule in _CHOSEN)]
    heads += ["gap ID − OOD", "paper ID", "ours − paper", "paper OOD", "ours − paper"]
    if table.chosen_on != "ood_val":
        heads[3] = f"OOD {metric} % ({table.chosen_on} checkpoint)"
    if table.reference:
        heads += [f"OOD − {table.reference}", "95 % interval", "p", "p (Holm)"]
    return heads


def _full(table: Table) -> tuple[list[str], list[list[str]]]:
    """Heads and cells of the columns in which any row has something to show."""
    heads, rows = _heads(table), [_cells(row, table.reference) for row in table.rows]
    shown = [i for i in range(len(heads)) if i < 2 or any(cells[i] != "–" for cells in rows)]
    return [heads[i] for i in shown], [[cells[i] for i in shown] for cells in rows]


def _cells(row: Row, reference: str | None) -> list[str]:
    cells = [row.label, str(row.n), *_score_cells(row), *_paper_cells(row)]
    if reference is None:
        return cells
    if row.test is None:
        return [*cells, "reference" if row.method == reference else "–", "–", "–", "–"]
    _, difference, interval, _, p, p_holm, _ = _test_cells(row)
    return [*cells, difference, interval, p, p_holm]


def _narrow_cells(row: Row, reference: str | None) -> list[str]:
    cells = [row.label, str(row.n), percent(row.id), percent(row.ood)]
    cells.append("–" if row.gap is None else points(row.gap.mean))
    cells += [str(figure or "–").partition(" ")[0] for figure in (row.paper_id, row.paper_ood)]
    if reference is not None:
        cells.append("–" if row.test is None else points(row.test.mean_difference))
    return cells


def _score_cells(row: Row) -> list[str]:
    return [percent(row.id), percent(row.ood), percent(row.ood_by_id_val), percent(row.gap)]


def _paper_cells(row: Row) -> list[str]:
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


def _test_cells(row: Row) -> list[str]:
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
        f"{points(test.ci_low)} to {points(test.ci_high)}",
        f"{test.wins} / {test.ties} / {test.losses}",
        p_value(test.p_wilcoxon),
        p_value(row.p_holm),
        by_split,
    ]


def _shared(test: Paired) -> bool:
    return test.by_split is not None and test.by_split.n_splits < test.n


def _html_heads(heads: Sequence[str]) -> str:
    return "<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"


def _html_table(caption: str, head: str, body: Sequence[tuple[Row, Sequence[str]]]) -> str:
    rows = []
    for row, (label, *cells) in body:
        kind = "subject" if row.method == "mario" else ("control" if row.method in CONTROLS else "compared")
        data = "".join(f"<td>{escape(cell).replace(' ± ', '&nbsp;±&nbsp;')}</td>" for cell in cells)
        rows.append(f'<tr class="{kind}"><th scope="row">{escape(label)}</th>{data}</tr>')
    text = escape(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{text}"><table>\n<caption>{text}</caption>\n'
        f"<thead>{head}</thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table></div>"
    )


def _header_notes(table: Table) -> list[str]:
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


def _notes(rows: Sequence[Row], runs: Sequence[Result], reference: str | None, asked: int | None) -> list[str]:
    faults = dict.fromkeys(fault for run in runs for fault in run.get("faults") or ())
    notes = [f"Known fault of the data: {fault}" for fault in faults]
    if asked is not None:
        short = [f"{row.label} has {row.n}" for row in rows if row.n != asked]
        if short:
            notes.append(f"{asked} runs a method were asked for; {', '.join(short)}.")
    for row in rows:
        scored = row.ood.n if row.ood else 0
        if scored != row.n:
            notes.append(
                f"{row.label}: {row.n - scored} of {row.n} runs have no OOD score and are left out of that mean."
            )
        if row.test is not None and row.test.n != scored:
            notes.append(f"{row.label} is compared with {reference} on the {row.test.n} runs that both have.")
    for name in ("steps", "checkpoints"):
        trained = {str(r[name]) for r in runs if r["method"] not in CONTROLS and name in r}
        if len(trained) > 1:
            notes.append(
                f"Not the same number of {name} everywhere ({', '.join(sorted(trained))}): not a fair comparison."
            )
    return notes
