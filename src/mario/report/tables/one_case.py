"""The table of one case: every method in and out of distribution, beside the paper's figures and with its test.

Scores come in as fractions and are printed in percent. The `last` and `oracle` selection rules of a result never enter
a table; `oracle` looks at test labels.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mario.errors import MarioError
from mario.lab.statistics.paired import NothingToPairError, Paired, Summary, holm, pair, paired, summarize
from mario.lab.studies import paper
from mario.lab.studies.paper import Figure

Result = Mapping[str, Any]

CASE = ("dataset", "domain", "shift", "setting")
CONTROLS = ("raw-features", "random-init")

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
    for key in sorted(groups, key=in_order):
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
                id=summary_of(run["scores"].get("id_test") for run in groups[key]),
                ood=summary_of(run["scores"].get("ood_test") for run in groups[key]),
                ood_by_id_val=summary_of(run["scores"].get("ood_test_by_id_val") for run in groups[key]),
                gap=summary_of(gap_of(run) for run in groups[key]),
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


def _checked(result: Result) -> Result:
    for name in ("dataset", "method", "scores"):
        if name not in result:
            raise MarioError(f"results must be result.json contents; one has no {name!r}, only {sorted(result)}")
    return result


def in_order(key: tuple[str, str]) -> tuple[int, str, str]:
    """The place of a method and its encoder in a table, to sort by."""
    method, encoder = key
    if method == "mario":
        return len(_ORDER) + 1, method, encoder
    host = method.partition("+")[0]  # costa+mario stands under costa
    return _ORDER.index(host) if host in _ORDER else len(_ORDER), method, encoder


def summary_of(values: Iterable[float | None]) -> Summary | None:
    """Mean and spread of the values that are there; None if none is."""
    known = [value for value in values if value is not None]
    return summarize(known) if known else None


def gap_of(run: Result) -> float | None:
    """ID less OOD of a run, or None where it has not both."""
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
