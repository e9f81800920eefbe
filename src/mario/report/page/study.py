"""The part of the page that is one study: its tables, pictures and maps, and the files that can be kept of it."""

import base64
import re
from collections import Counter
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from mario.errors import MarioError
from mario.lab.statistics.paired import summarize
from mario.lab.studies.plan import Collected, CollectedCase
from mario.report import maps as run_maps
from mario.report.maps import MapData
from mario.report.numbers import percent
from mario.report.page.data import map_group
from mario.report.page.embedding import map_block
from mario.report.page.introduction import folded, introduction
from mario.report.page.markup import file_name, section_id, table_html
from mario.report.pictures import Picture
from mario.report.pictures.draw import draw
from mario.report.pictures.picture import COLUMN
from mario.report.tables import long_rows, long_to_html, to_csv, to_html, to_latex, to_markdown, wide_table

MAPS = ("map", "map-id-ood")
MOST_SVG = 400_000
"""Bytes of an SVG in the page."""


class StudySection:
    """One study on the page: its pictures, its maps, and the files that can be kept of it."""

    def __init__(self, study: Collected, folder: Path, root: Path | None, maps: bool) -> None:
        self.study = study
        self.name = study.plan.study
        self.root = root
        self.complaints: list[str] = []
        self.maps = {case.name: self._maps(case) for case in study.cases} if maps and _mapped(study) else {}
        shown = study if maps else _without_maps(study)
        self.pictures = draw(shown, folder, root=root, complain=self.complaints.append)
        self.files: dict[str, str] = {}
        self.wide = wide_table(study) if any(case.runs for case in study.plan.cases) else None
        if self.wide is not None:
            self.rows = long_rows(study)
            self.files = {
                f"{self.name}.tex": to_latex(self.wide),
                f"{self.name}.md": to_markdown(self.wide),
                f"{self.name}.csv": to_csv(self.rows),
            }

    def _maps(self, case: CollectedCase) -> dict[str, MapData]:
        """A map for each row; those that cannot be made, or are of another split, are complained of."""
        found: dict[str, MapData] = {}
        for label, result in run_maps.mapped_runs(self.study, case).items():
            try:
                found[label] = run_maps.map_of(Path(result["folder"]), self.root)
            except MarioError as error:
                self.complaints.append(f"no map of {label} on {case.name}: {error}")
        if not found:
            return {}
        # Side by side they share nodes, classes, domains and sets: those of the split that most rows have.
        shared = Counter(_nodes(one) for one in found.values()).most_common(1)[0][0]
        for label in [label for label, one in found.items() if _nodes(one) != shared]:
            del found[label]
            self.complaints.append(f"no map of {label} on {case.name}: its run is of another split than the others")
        return found

    def html(self, groups: list[dict[str, Any]]) -> str:
        """The section; its maps are added to ``groups`` and referred to by their place there."""
        plan, name = self.study.plan, section_id(self.name)
        place = f'<span class="place">{escape(plan.paper)}</span> ' if plan.paper else ""
        tables, rest = self._tables(), [self._pictures(), self._map_blocks(groups), self._complaints()]
        parts = [
            f'<section class="study" id="{name}">',
            f"<h2>{place}{escape(plan.title)}</h2>",
            introduction(self.study),
            # A figure of the paper begins with its pictures.
            *([tables, *rest] if {"table", "validation"} & set(plan.show) else [*rest, tables]),
            self._save(),
            "</section>",
        ]
        return "\n".join(part for part in parts if part)

    def _tables(self) -> str:
        if self.wide is None:
            return ""
        if "validation" in self.study.plan.show:
            return "<h3>Table</h3>" + "".join(_validation_table(case) for case in self.study.cases)
        heading = self.study.plan.paper or self.study.plan.title
        form = (
            "<details><summary>Every row with its test</summary>"
            f"{long_to_html(self.rows, caption=f'{heading}: every case and row, with its test')}</details>"
        )
        if "table" in self.study.plan.show:
            return f"<h3>Table</h3>{to_html(self.wide)}{form}"
        return f"<details><summary>The figures as a table</summary>{to_html(self.wide)}</details>{form}"

    def _pictures(self) -> str:
        apart = [picture for picture in self.pictures if picture not in self._of_maps(picture.case)]
        return f'<h3>Pictures</h3><div class="figures">{"".join(map(_figure, apart))}</div>' if apart else ""

    def _of_maps(self, case: str) -> list[Picture]:
        """Pictures of maps that stand beside the map itself."""
        return [p for p in self.pictures if p.kind in MAPS and p.case == case and self.maps.get(case)]

    def _map_blocks(self, groups: list[dict[str, Any]]) -> str:
        blocks = []
        for case in self.study.cases:
            if self.maps.get(case.name):
                drawn = "".join(map(_figure, self._of_maps(case.name)))
                blocks.append(map_block(len(groups), case, self.maps[case.name], drawn))
                named = (self.study.plan.reference, self.study.plan.subject)
                groups.append(map_group(case.name, case.domain, self.maps[case.name], named))
        return f"<h3>Maps of the embeddings</h3>{''.join(blocks)}" if blocks else ""

    def _complaints(self) -> str:
        if not self.complaints:
            return ""
        # The error of a missing dataset goes on for lines, with the place of each file.
        first = dict.fromkeys(said.splitlines()[0] for said in self.complaints)
        items = "".join(f"<li>{escape(said)}</li>" for said in first)
        return folded("missing", "What could not be drawn", items, len(first))

    def _save(self) -> str:
        if not any(case.results for case in self.study.cases):
            return ""
        kinds = {"tex": "table, LaTeX", "md": "table, Markdown", "csv": "table, CSV"}
        buttons = [("file", name, kinds[name.rpartition(".")[2]]) for name in self.files]
        buttons.append(("runs", f"{file_name(self.name)}-runs.csv", "runs, CSV"))
        shown = "".join(
            f'<button type="button" data-save="{kind}" data-study="{escape(self.name)}" data-name="{escape(name)}">'
            f"{words}</button>"
            for kind, name, words in buttons
        )
        return f'<p class="save"><span>Keep:</span>{shown}</p>'


def _nodes(found: MapData) -> bytes:
    return b"".join(part.tobytes() for part in (found.node, found.y, found.domain, found.split))


def _mapped(study: Collected) -> bool:
    return bool(set(MAPS) & set(study.plan.show))


def _without_maps(study: Collected) -> Collected:
    shown = tuple(kind for kind in study.plan.show if kind not in MAPS)
    return replace(study, plan=replace(study.plan, show=shown))


def _figure(picture: Picture) -> str:
    case = f' data-case="{escape(picture.case)}"' if picture.case else ""
    inches = re.search(r"--inches: ([\d.]+)", picture.svg[:2000])
    broad = " broad" if inches and float(inches[1]) > COLUMN else ""
    return (
        f'<figure{case} class="picture{broad}"><div class="sheet">{_shown(picture)}</div>'
        f"<figcaption>{escape(picture.title)}</figcaption></figure>"
    )


def _shown(picture: Picture) -> str:
    """The picture as SVG, or as PNG where thousands of marks would make the page heavy."""
    png = next((path for path in picture.paths if path.suffix == ".png"), None)
    if len(picture.svg) <= MOST_SVG or png is None:
        return picture.svg
    whole = base64.b64encode(png.read_bytes()).decode()
    said = escape(f"{picture.title}. {picture.description}")
    return f'<img src="data:image/png;base64,{whole}" alt="{said}">'


def _validation_table(case: CollectedCase) -> str:
    """Rows by their validation scores alone, for what is chosen without looking at a test set."""
    rows = []
    for label in dict.fromkeys(result["label"] for result in case.results):
        scores = [result.get("scores") or {} for result in case.results if result["label"] == label]
        cells = [str(len(scores))]
        for name in ("id_val", "ood_val"):
            known = [score[name] for score in scores if score.get(name) is not None]
            cells.append(percent(summarize(known) if known else None))
        shown = "".join(f"<td>{escape(cell).replace(' ± ', '&nbsp;±&nbsp;')}</td>" for cell in cells)
        rows.append(f'<tr data-label="{escape(label)}"><th scope="row">{escape(label)}</th>{shown}</tr>')
    if not rows:
        return ""
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("Variant", "n", "ID validation", "OOD validation"))
    table = table_html(f"{case.name}: validation scores, percent, mean ± sd", f"<tr>{heads}</tr>", rows)
    return f'<div data-case="{escape(case.name)}">{table}</div>'
