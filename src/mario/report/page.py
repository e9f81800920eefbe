"""One HTML file that shows a comparison: nothing is loaded from anywhere, so it can be mailed, archived and printed."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.files import write_whole
from mario.report.curves import SERIES, limits, methods_with_curves, plot_curves
from mario.report.embedding_map import plot_embeddings
from mario.report.svg import INK
from mario.report.table import CASE, CONTROLS, METRICS, Row, Table, percent, tabulate, to_html, verdict

PAPER = "https://arxiv.org/abs/2307.13055"
_NETWORK = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LIMITS = (
    "<b>ID and OOD.</b> ID is the test set from the domains trained on, OOD the one from other domains. The gap is ID "
    "less OOD of the same run; a small gap is worth something only where the scores are high.",
    "<b>Which checkpoint.</b> The best of more draws is larger, so methods are comparable only if all are looked at "
    "equally often; a note under the table says where they were not. The OOD column uses labels of the OOD validation "
    "set to choose, as the paper does; the column chosen on id_val is what one gets without any label from outside. "
    "No score in the table was chosen on a test set.",
    "<b>The controls.</b> <i>raw-features</i> is the linear probe on the input, <i>random-init</i> on an encoder that "
    "was never trained. What a method adds is what it has above them.",
    "<b>The test.</b> Runs are paired by split and seed. Seeds on one split share it, so the pairs are fewer "
    "independent draws than their number says, and p is smaller than it should be; the difference averaged by split "
    "is the careful one. A p above 0.05 does not show that two methods are equal.",
    "<b>Beside the paper.</b> The paper’s figures are of 10 runs on the split files that GOOD published, with settings "
    "and a number of epochs searched for each method. Splits here are drawn anew by the same procedure, so that "
    "figures can differ by the split alone.",
)


def write_page(
    path: str | os.PathLike[str],
    *,
    title: str,
    results: Iterable[Mapping[str, Any]],
    embeddings: Mapping[str, tuple[Any, Any, Any]] | None = None,
    command: str | None = None,
    reference: str = "grace",
    subject: str = "mario",
    asked: int | None = None,
    max_nodes: int = 5000,
) -> Path:
    """Write the page of a set of runs and return its path.

    ``results`` are the contents of ``result.json`` files; runs of several datasets or shifts get a table and curves
    each. ``embeddings`` maps a method to its embeddings of one run, the nodes' classes, and whether each node is out of
    distribution: ``(z, y, ood)``. ``command`` is what repeats the runs, ``asked`` how many runs a method should have.
    The same input gives the same bytes.

    Example:
        >>> import tempfile
        >>> from mario.report import write_page
        >>> run = {"dataset": "good-cbas", "shift": "concept", "setting": "transductive", "split_seed": 0, "seed": 0}
        >>> run |= {"method": "mario", "encoder": "gcn", "scores": {"id_test": 0.94, "ood_test": 0.91}}
        >>> page = write_page(tempfile.mkdtemp() + "/page.html", title="One run", results=[run])
        >>> "91.28" in page.read_text(encoding="utf-8")
        True
    """
    runs = list(results)
    if not runs:
        raise MarioError("results must hold at least one run, got none")
    cases: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for run in runs:
        cases.setdefault(tuple(run.get(name) for name in CASE), []).append(run)
    tables = [tabulate(case, reference=reference, asked=asked) for case in cases.values()]
    groups = list(zip(tables, cases.values(), strict=True))
    body = "\n".join(
        [
            _header(title, tables[0], subject) if len(tables) == 1 else f"<header><h1>{escape(title)}</h1></header>",
            "<main>",
            _section("run", "What was run", *(_what(t, case) for t, case in groups), _command(command)),
            _section("results", "Results", *(_results(t, subject, len(groups) > 1) for t in tables)),
            _section(
                "curves",
                "Scores while training",
                *(_curves(i, t, case, len(groups) > 1) for i, (t, case) in enumerate(groups)),
            ),
            _section("maps", "The embeddings", _maps(embeddings or {}, max_nodes)),
            _section("settings", "Settings and environment", _settings(runs), _environment(runs)),
            _section("reading", "How to read this, and its limits", _limits(tables)),
            "</main>",
            f'<footer>The paper: Zhu et al., <a href="{PAPER}">MARIO: Model Agnostic Recipe for Improving OOD '
            "Generalization of Graph Contrastive Learning</a>. Page made by <code>mario</code>.</footer>",
        ]
    )
    style = resources.files("mario.report").joinpath("page.css").read_text(encoding="utf-8")
    document = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        # A browser that is told so loads nothing and runs nothing, whatever a name in the results may hold.
        f'<meta http-equiv="Content-Security-Policy" content="{_NETWORK}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
    page = Path(path)

    def write(name: str) -> None:
        Path(name).write_text(document, encoding="utf-8", newline="\n")

    write_whole(page, write)
    return page


def _header(title: str, table: Table, subject: str) -> str:
    metric = METRICS.get(table.metric, table.metric)
    cards = []
    for method in (subject, table.reference, "erm", "random-init"):
        row = table.row(method) if method else None
        if row is not None and row.ood is not None:
            cards.append(_card(row, subject))
    lead = f"{table.title}. Out-of-distribution {metric}, checkpoint chosen on the OOD validation set:"
    return (
        f'<header><h1>{escape(title)}</h1>\n<p class="lead">{escape(lead)}</p>\n'
        f'<dl class="cards">{"".join(cards)}</dl></header>'
    )


def _card(row: Row, subject: str) -> str:
    mean, _, sd = percent(row.ood).partition(" ± ")
    spread = f" <small>± {sd}</small>" if sd else ""
    beside = "not in the paper" if row.paper_ood is None else f"paper {row.paper_ood}"
    kind = ' class="subject"' if row.method == subject else ""
    return (
        f'<div{kind}><dt>{escape(row.label)}</dt><dd class="number">{mean}{spread}</dd>'
        f'<dd class="beside">{escape(beside)}</dd><dd class="beside">n = {row.n}</dd></div>'
    )


def _section(name: str, heading: str, *parts: str) -> str:
    there = [part for part in parts if part]
    if not there:
        return ""
    return f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n' + "\n".join(there) + "\n</section>"


def _what(table: Table, runs: Sequence[Mapping[str, Any]]) -> str:
    facts = {
        "Dataset": table.title,
        "Metric": METRICS.get(table.metric, table.metric),
        "Methods": ", ".join(row.label for row in table.rows),
        "Encoder": _values(run.get("encoder") for run in runs),
        "Schedule": _schedule(runs),
        "Split seeds": _values(run.get("split_seed") for run in runs),
        "Seeds": _values(run.get("seed") for run in runs),
        "Runs": f"{len(runs)}" + _took(runs),
    }
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts.items() if value)
    return f'<dl class="facts">{items}</dl>'


def _schedule(runs: Sequence[Mapping[str, Any]]) -> str:
    trained = [run for run in runs if run["method"] not in CONTROLS and run.get("steps")]
    if not trained:
        return ""
    steps, checkpoints = (_values(run.get(name) for run in trained) for name in ("steps", "checkpoints"))
    alike = len({(run.get("steps"), run.get("checkpoints")) for run in trained}) == 1
    extent = "the same for every trained method" if alike else "not the same for every run"
    return f"{steps} optimiser steps, scores taken at {checkpoints} checkpoints, {extent}"


def _took(runs: Sequence[Mapping[str, Any]]) -> str:
    seconds = sum(run.get("seconds") or 0.0 for run in runs)
    if not seconds:
        return ""
    return f", {seconds / 60:.1f} minutes of training and evaluation in all"


def _command(command: str | None) -> str:
    return f"<p>To repeat it:</p>\n<pre><code>{escape(command)}</code></pre>" if command else ""


def _results(table: Table, subject: str, headed: bool) -> str:
    faults = [note for note in table.notes if note.startswith("Known fault")]
    warning = "".join(f'<p class="fault" role="note">{escape(fault)}</p>' for fault in faults)
    said = escape(verdict(table, subject=subject)).replace(" %", "&nbsp;%")
    heading = f"<h3>{escape(table.title)}</h3>" if headed else ""
    return f'{heading}{warning}<p class="verdict">{said}</p>\n{to_html(table)}'


def _curves(index: int, table: Table, runs: Sequence[Mapping[str, Any]], headed: bool) -> str:
    there = methods_with_curves(runs)
    ordered = [m for m in dict.fromkeys(row.method for row in table.rows) if m in there]
    if not ordered:
        return ""
    ylim = limits(runs)
    figures = []
    for place, method in enumerate(ordered):
        n = sum(1 for run in runs if run["method"] == method and run.get("curve"))
        svg = plot_curves(runs, methods=[method], ylim=ylim, legend=False, name=f"curve-{index}-{place}")
        figures.append(f"<figure>{svg}<figcaption>{escape(method)}: mean ± sd over {n} runs</figcaption></figure>")
    heading = f"<h3>{escape(table.title)}</h3>" if headed else ""
    still = [row.label for row in table.rows if row.method not in there]
    apart = (
        f"<p>No curve: {escape(', '.join(still))}, which are not trained or were looked at once.</p>" if still else ""
    )
    return f'{heading}{_legend()}<div class="figures">{"".join(figures)}</div>{apart}'


def _legend() -> str:
    items = []
    for series in SERIES:
        colour = "currentColor" if series.colour == INK else series.colour
        dash = " ".join(f"{2 * d:g}" for d in series.dash)
        stroke = f'stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash or "none"}"'
        line = f'<line x1="0" y1="5" x2="30" y2="5" {stroke}/>'
        items.append(f'<li><svg viewBox="0 0 30 10" aria-hidden="true">{line}</svg>{series.label}</li>')
    return f'<ul class="legend">{"".join(items)}</ul>'


def _maps(embeddings: Mapping[str, tuple[Any, Any, Any]], max_nodes: int) -> str:
    figures = []
    for place, (method, (z, y, ood)) in enumerate(embeddings.items()):
        svg = plot_embeddings(z, y, ood, method=method, max_nodes=max_nodes, name=f"map-{place}")
        caption = f"{method}: t-SNE of {min(len(z), max_nodes)} nodes, one run"
        figures.append(f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>")
    if not figures:
        return ""
    return (
        "<p>Each map is of one run. t-SNE keeps near neighbours near; the sizes of clusters and the distances between "
        f'them mean nothing.</p><div class="figures wide">{"".join(figures)}</div>'
    )


def _settings(runs: Sequence[Mapping[str, Any]]) -> str:
    methods = list(dict.fromkeys(run["method"] for run in runs))
    names = sorted({name for run in runs for name in run.get("settings") or {}})
    if not names:
        return ""
    values = {
        name: [_values((r.get("settings") or {}).get(name) for r in runs if r["method"] == m) or "–" for m in methods]
        for name in names
    }
    heads = "".join(f'<th scope="col">{escape(method)}</th>' for method in methods)
    rows = []
    for name in names:
        same = len(set(values[name])) == 1
        cells = (
            f'<td colspan="{len(methods)}">{escape(values[name][0])}</td>'
            if same
            else "".join(f"<td>{escape(value)}</td>" for value in values[name])
        )
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{cells}</tr>')
    return (
        "<details><summary>Every setting of every method</summary>"
        '<div class="scroll" role="region" tabindex="0" aria-label="Settings"><table class="plain">'
        f'<thead><tr><th scope="col">Setting</th>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _environment(runs: Sequence[Mapping[str, Any]]) -> str:
    names = sorted({name for run in runs for name in run.get("environment") or {}})
    if not names:
        return ""
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(_values((run.get('environment') or {}).get(name) for run in runs))}</dd>"
        for name in names
    )
    return f'<details><summary>Environment</summary><dl class="facts">{items}</dl></details>'


def _limits(tables: Sequence[Table]) -> str:
    points = list(_LIMITS)
    if any(note.startswith("Known fault") for table in tables for note in table.notes):
        points.append(
            "<b>The data.</b> It has the faults named above; these figures are of use only beside the paper’s."
        )
    return "<ul>" + "".join(f"<li>{point}</li>" for point in points) + "</ul>"


def _values(values: Iterable[Any]) -> str:
    # Numbers in order of size, anything else in order of appearance; runs of whole numbers as "0 to 4".
    known = list(dict.fromkeys(str(value) for value in values if value is not None))
    if known and all(re.fullmatch(r"\d+", value) for value in known):
        numbers = sorted(map(int, known))
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]} to {numbers[-1]}"
        return ", ".join(map(str, numbers))
    return ", ".join(known)
