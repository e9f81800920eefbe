"""One HTML file that shows what studies have come to: nothing is loaded, so it can be mailed, archived and printed.

The tables and pictures stand in the file as markup and can be read without a script. The script (`page.js`, `map.js`)
sorts, filters, saves files and draws the maps from one piece of JSON.
"""

import base64
import hashlib
import os
from collections.abc import Sequence
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

import mario
from mario.errors import MarioError
from mario.files import write_whole
from mario.lab.studies.plan import Collected
from mario.report.claims import Claim, claims
from mario.report.claims_text import claims_to_html, tally
from mario.report.page.data import embedded, looks_data, runs_data
from mario.report.page.introduction import Standing
from mario.report.page.markup import section_id
from mario.report.page.study import StudySection

PAPER = "https://arxiv.org/abs/2307.13055"
_READING = {
    "ID and OOD.": "ID is the test set from the domains trained on, OOD the one from other domains. A small gap "
    "between them is worth something only where the scores are high.",
    "Which checkpoint.": "The best of more draws is larger, so methods are comparable only if all are looked at "
    "equally often; a note under the table says where they were not. The OOD column uses labels of the OOD validation "
    "set to choose, as the paper does; the long form has the one chosen on id_val, which needs no label from outside. "
    "No score in a table was chosen on a test set.",
    "The controls.": "raw-features is the linear probe on the input, random-init on an encoder that was never trained. "
    "What a method adds is what it has above them.",
    "The test.": "Runs are paired by split and seed. Seeds on one split share it, so the pairs are fewer independent "
    "draws than their number says, and p is smaller than it should be. A p above 0.05 does not show that two methods "
    "are equal.",
    "Beside the paper.": "The paper’s figures are of 10 runs on the split files that GOOD published, with settings "
    "and a number of epochs searched for each method. Splits here are drawn anew by the same procedure, so that "
    "figures can differ by the split alone.",
}


def write_report(
    path: str | os.PathLike[str],
    collected: Sequence[Collected],
    *,
    title: str,
    command: str | None = None,
    root: Path | None = None,
    maps: bool = True,
) -> Path:
    """Write the page of ``collected`` studies, in their order, and return its path; pictures go to a folder beside it.

    Args:
        path: of the HTML file. Pictures are written into the folder ``pictures`` beside it.
        collected: the studies with what their runs have come to.
        title: the page's heading.
        command: what repeats all of it.
        root: the folder of datasets, which maps need the first time.
        maps: whether embeddings are mapped, which takes seconds a run the first time.

    Example:
        >>> import tempfile
        >>> from mario.lab.studies.plan import Collected, collect, make_plan
        >>> from mario.lab.studies.read import find_study
        >>> from mario.report import write_report
        >>> folder = Path(tempfile.mkdtemp())
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1)
        >>> page = write_report(folder / "report.html", [collect(plan, folder)], title="Nothing run yet")
        >>> "Table 4" in page.read_text(encoding="utf-8")
        True
    """
    if not collected:
        raise MarioError("collected must hold at least one study, got none")
    page = Path(path)
    parts = [StudySection(study, page.parent / "pictures", root, maps) for study in collected]
    groups: list[dict[str, Any]] = []
    sections = [part.html(groups) for part in parts]
    files = {name: text for part in parts for name, text in part.files.items()}
    found = claims(collected) if any(study.plan.paper for study in collected) else []
    data = {**runs_data(collected), **looks_data(), "files": files, "maps": groups}
    body = "\n".join(
        [
            '<a class="skip" href="#content">Skip to the content</a>',
            '<div class="page">',
            _header(title, collected, command),
            f'<div class="layout">{_contents(collected, bool(found), bool(data["runs"]))}',
            f'<main id="content" tabindex="-1">{_overview(collected, found)}{_filters()}',
            *sections,
            _claims(found),
            _runs(len(data["runs"])),
            _reading(),
            "</main></div>",
            f'<footer>The paper: Zhu et al., <a href="{PAPER}">MARIO: Model Agnostic Recipe for Improving OOD '
            "Generalization of Graph Contrastive Learning</a>. "
            f"Page made by <code>mario {escape(mario.__version__)}</code>.</footer>",
            "</div>",
        ]
    )
    write_whole(page, partial(_write, _document(title, body, embedded(data))))
    return page


def _header(title: str, collected: Sequence[Collected], command: str | None) -> str:
    done = len({result.get("folder") or id(result) for s in collected for c in s.cases for result in c.results})
    quick = [study for study in collected if study.plan.quick]
    lead = f"{len(collected)} {'study' if len(collected) == 1 else 'studies'}, {done} {'run' if done == 1 else 'runs'}."
    warning = (
        f'<p class="quick" role="note"><b>{"This is" if len(quick) == len(collected) else "Some of this is"} a quick '
        "form: its figures mean nothing.</b> It shows that everything runs, not how well anything works.</p>"
        if quick
        else ""
    )
    repeat = f"<pre><code>{escape(command)}</code></pre>" if command else ""
    return (
        f'<header><div class="headline"><h1>{escape(title)}</h1>'
        '<button type="button" class="theme" id="theme" aria-pressed="false">Dark</button></div>'
        f'<p class="lead">{lead}</p>{warning}{repeat}'
        "<noscript><p>Without scripts the tables and pictures are all here; sorting, filters, maps and files to keep "
        "are not.</p></noscript></header>"
    )


def _contents(collected: Sequence[Collected], claimed: bool, run: bool) -> str:
    items = []
    for study in collected:
        place = f'<span class="place">{escape(study.plan.paper)}</span>' if study.plan.paper else ""
        items.append(f'<li><a href="#{section_id(study.plan.study)}">{place}{escape(study.plan.title)}</a></li>')
    for there, name, words in (
        (claimed, "claims", "The paper’s claims"),
        (run, "runs", "Every run"),
        (True, "reading", "How to read this"),
    ):
        items += [f'<li><a href="#{name}">{words}</a></li>'] if there else []
    return f'<nav class="contents" aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def _overview(collected: Sequence[Collected], found: Sequence[Claim]) -> str:
    rows = []
    for study in collected:
        plan, standing = study.plan, Standing.of(study)
        name = f'<a href="#{section_id(plan.study)}">{escape(plan.title)}</a>'
        quick = "quick form; " if plan.quick else ""
        rows.append(
            f'<tr><th scope="row">{escape(plan.paper or "–")}</th><td>{name}</td>'
            f"<td>{escape(quick + standing.words)}</td></tr>"
        )
    told = f'<p>{escape(tally(found))} <a href="#claims">Which, and by which test</a></p>' if found else ""
    return (
        '<section><h2 id="overview">What is here</h2>'
        '<div class="scroll" role="region" tabindex="0" aria-label="Studies and their state"><table class="words">'
        '<thead><tr><th scope="col">In the paper</th><th scope="col">Study</th><th scope="col">State</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>{told}</section>"
    )


def _claims(found: Sequence[Claim]) -> str:
    return f'<section><h2 id="claims">The paper’s claims</h2>{claims_to_html(found)}</section>' if found else ""


def _filters() -> str:
    fields = "".join(
        f'<label for="filter-{name}">{text} <input type="search" id="filter-{name}" placeholder="{hint}" '
        'autocomplete="off" spellcheck="false"></label>'
        for name, text, hint in (("methods", "Methods", "mario, grace"), ("datasets", "Datasets", "good-cbas"))
    )
    return (
        f'<div class="filters" role="search" aria-label="Rows to show">{fields}'
        '<p id="filter-status" role="status"></p></div>'
    )


def _runs(count: int) -> str:
    if not count:
        return ""
    return (
        '<section id="runs"><h2>Every run</h2>'
        '<p class="save"><button type="button" data-save="runs" data-name="runs.csv">all runs, CSV</button></p>'
        f'<details class="scripted-only"><summary>Settings and environment of {count} runs</summary>'
        '<p><label for="run-search">Search </label><input type="search" id="run-search" autocomplete="off" '
        'spellcheck="false" placeholder="mario good-cbas tau=0.2"></p><p class="status" role="status"></p><ol></ol>'
        '<p><button type="button" data-more hidden>Show more</button></p></details></section>'
    )


def _reading() -> str:
    items = "".join(f"<li><b>{escape(name)}</b> {escape(text)}</li>" for name, text in _READING.items())
    return f'<section><h2 id="reading">How to read this, and its limits</h2><ul>{items}</ul></section>'


def _document(title: str, body: str, data: str) -> str:
    style, script = _resource("page.css"), _resource("page.js") + _resource("map.js") + "start();\n"
    # A browser that is told so loads nothing, and runs nothing but this script, whatever a name in the results holds.
    # Styles are free: the pictures carry theirs as attributes.
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}\n"
        f'<script type="application/json" id="data">{data}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _resource(name: str) -> str:
    return resources.files("mario.report.page").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _write(document: str, name: str) -> None:
    Path(name).write_text(document, encoding="utf-8", newline="\n")
