"""One HTML file that shows the results of studies. It loads nothing, so it can be mailed, archived and printed.

Tables and pictures are markup in the file and need no script. The script (`page.js`, `map.js`) sorts, filters, saves
files and draws the maps from one piece of JSON.
"""

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

import mario
from mario.errors import MarioError
from mario.files import check_path, write_text
from mario.lab.anonymous import without_paths
from mario.lab.studies.collect import Collected, labeled_frame
from mario.report.claims import claims
from mario.report.claims_table import claims_table, tally
from mario.report.html import render, section_id
from mario.report.page.data import embedded, looks_data, runs_data
from mario.report.page.study import state_of, study_part
from mario.report.tables.table import Cell, Line, Table, TableColumn

PAPER = "https://arxiv.org/abs/2307.13055"
_READING = {
    "ID and OOD.": "ID is the test set from the domains of the training set, OOD the one from other domains. A small "
    "gap between them is worth something only if the scores are high.",
    "Which checkpoint.": "The best of more draws is larger, so methods are comparable only if all are evaluated "
    "equally often; a note under the table says where they were not. The OOD column uses labels of the OOD validation "
    "set to choose, as the paper does; the long form has the one chosen on id_val, which needs no label from outside. "
    "No score in a table was chosen on a test set.",
    "The controls.": "raw-features is the linear probe on the input, random-init on an encoder that was never trained. "
    "A method adds what it has above them.",
    "The test.": "Runs are paired by split and seed. Seeds on one split share it, so there are fewer independent draws "
    "than pairs, and p is smaller than it should be. A p above 0.05 does not show that two methods are equal.",
    "Beside the paper.": "The paper’s figures are from 10 runs on the split files that GOOD published, with settings "
    "and a number of epochs searched for each method. Splits here are drawn again by the same procedure, so figures "
    "can differ because of the split alone.",
}


def write_report(
    path: str | os.PathLike[str],
    collected: Sequence[Collected],
    *,
    title: str,
    command: str | None = None,
    root: Path | None = None,
    maps: bool = True,
    anonymous: bool = False,
) -> Path:
    """Write the page of ``collected`` studies, in their order, and return its path.

    Args:
        path: of the HTML file. Pictures are written to the folder ``pictures`` beside it.
        collected: the studies with the results of their runs.
        title: the page's heading.
        command: the command that repeats all of it.
        root: the folder of datasets, which maps need the first time.
        maps: whether to map embeddings, which takes seconds per run the first time.
        anonymous: whether to leave out the platform of the runs and cut paths to their last part.

    Example:
        >>> import tempfile
        >>> from mario.lab.studies.collect import collect
        >>> from mario.lab.studies.plan import make_plan
        >>> from mario.lab.studies.read import find_study
        >>> folder = Path(tempfile.mkdtemp())
        >>> plan = make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1)
        >>> page = write_report(folder / "report.html", [collect(plan, folder)], title="Nothing run yet")
        >>> "Table 4" in page.read_text(encoding="utf-8")
        True
    """
    if not collected or not all(isinstance(study, Collected) for study in collected):
        raise MarioError("collected must hold at least one study, each with the results of its runs")
    if anonymous:
        collected = [study.anonymous() for study in collected]
        command = command and without_paths(command)
    page = check_path("path", path)
    groups: list[dict[str, Any]] = []
    parts = [
        study_part(study, page.parent / "pictures", root, groups, maps=maps, page=collected) for study in collected
    ]
    for part in parts if anonymous else ():
        part.complaints = [without_paths(said) for said in part.complaints]
    files = {name: text for part in parts for name, text in part.files.items()}
    found = claims(collected) if any(study.plan.paper for study in collected) else []
    frame = labeled_frame(run for study in collected for case in study.cases for run in case.runs)
    data = {**runs_data(frame), **looks_data(), "files": files, "maps": groups}
    script = _resource("page.js") + _resource("map.js") + "start();\n"
    document = render(
        "page",
        title=title,
        command=command,
        policy=_policy(script),
        style=Markup(_resource("page.css")),
        script=Markup(script),
        data=embedded(data),
        studies=parts,
        quick=sum(part.plan.quick for part in parts),
        runs=len(data["runs"]),
        overview=_overview(collected),
        claims=claims_table(found) if found else None,
        tally=tally(found),
        reading=_READING,
        paper=PAPER,
        version=mario.__version__,
    )
    write_text(page, f"{document}\n")
    return page


def _overview(collected: Sequence[Collected]) -> Table:
    return Table(
        name="overview",
        title="Studies and their state",
        columns=(TableColumn(head="In the paper", names=True), TableColumn(head="Study"), TableColumn(head="State")),
        lines=tuple(
            Line(
                cells=(
                    Cell(text=study.plan.paper or "–"),
                    Cell(text=study.plan.title, href=f"#{section_id(study.plan.study)}"),
                    Cell(text=("quick form; " if study.plan.quick else "") + state_of(study)),
                )
            )
            for study in collected
        ),
        style="words",
    )


def _policy(script: str) -> str:
    # The browser loads nothing and runs only this script, even if a name in the results contains markup. Styles are
    # allowed: the pictures have theirs as attributes.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _resource(name: str) -> str:
    return resources.files("mario.report.page").joinpath(name).read_text(encoding="utf-8")
