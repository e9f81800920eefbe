"""One study on the page: which pictures stand where, and as what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_up import collected
from mario.lab.studies.plan import Collected
from mario.report.maps import MapData, mapped_runs
from mario.report.page.study import StudySection
from mario.report.pictures import Picture


def section(
    study: Collected, pictures: list[Picture], monkeypatch: pytest.MonkeyPatch, nodes: dict[str, int] | None = None
) -> str:
    def made(folder: Path, root: Path | None = None) -> MapData:
        count = np.arange((nodes or {}).get(folder.name.split("-")[0], 5))
        shape = np.ones((5, 2), dtype=int)
        return MapData(count, np.zeros((len(count), 2)), count, count, count, count, shape, shape, "node")

    monkeypatch.setattr("mario.report.page.study.draw", lambda *_, **__: pictures)
    monkeypatch.setattr("mario.report.maps.map_of", made)
    groups: list[dict[str, Any]] = []
    html = StudySection(study, Path("pictures"), None, True).html(groups)
    assert html.count("data-map-of=") == len(groups)
    return html


def picture(
    kind: str, svg: str = "<svg></svg>", case: str = "good-cbas-concept", paths: tuple[Path, ...] = ()
) -> Picture:
    return Picture(f"{kind}-x", kind, case, f"A {kind} & more", "In words.", svg, paths)


def study(*show: str) -> Collected:
    made = collected({"good-cbas-concept": {"erm": [0.5], "grace": [0.6], "mario": [0.7]}})
    for result in made.cases[0].results:
        result["folder"] = f"runs/{result['label']}-0"
    return replace(made, plan=replace(made.plan, show=show))


def test_a_picture_of_a_map_stands_beside_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    html = section(study("table", "map"), [picture("map"), picture("curves")], monkeypatch)
    pictures, _, maps = html.partition("<h3>Maps of the embeddings</h3>")
    assert "A curves &amp; more" in pictures
    assert "A map &amp; more" in maps
    assert html.count("A map &amp; more</figcaption>") == 1


def test_a_broad_picture_has_the_whole_width(monkeypatch: pytest.MonkeyPatch) -> None:
    broad = picture("curves", '<svg style="--inches: 7"></svg>')
    narrow = picture("grid", '<svg style="--inches: 3.33"></svg>')
    html = section(study("table"), [broad, narrow], monkeypatch)
    assert html.count('class="picture broad"') == html.count('class="picture"') == 1


def test_a_heavy_picture_is_a_png(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(b"png")
    html = section(study("table"), [picture("boxes", f"<svg>{'x' * 500_000}</svg>", paths=(path,))], monkeypatch)
    assert '<img src="data:image/png;base64,cG5n" alt="A boxes &amp; more. In words.">' in html
    assert "<svg" not in html


def test_maps_on_other_nodes_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    html = section(study("map"), [], monkeypatch, nodes={"mario": 4})
    numbers = html[html.index("in numbers") : html.index("nodes of each class")]
    assert "grace" in numbers
    assert "mario</th>" not in numbers
    assert "no map of mario on good-cbas-concept: its run is of another split than the others" in html


def test_what_is_no_table_has_its_figures_folded_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "<h3>Table</h3>" in section(study("table"), [], monkeypatch)
    html = section(study("bars"), [], monkeypatch)
    assert "<h3>Table</h3>" not in html
    assert "The figures as a table" in html


def test_variants_are_judged_by_validation_scores_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    html = section(study("validation"), [], monkeypatch)
    assert "90.00" in html
    assert "80.00" in html
    assert "70.00" not in html


def test_a_study_without_runs_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made = study("label-rates")
    bare = replace(made, plan=replace(made.plan, cases=tuple(replace(c, runs=()) for c in made.plan.cases)))
    bare.cases[0].results.clear()
    html = section(bare, [picture("label-rates")], monkeypatch)
    assert "<table" not in html
    assert "data-save" not in html
    assert "A label-rates" in html


def test_runs_of_no_figure_have_a_few_maps_the_named_rows_first() -> None:
    labels = ["a", "b", "c", "random-init", "grace", "mario"]
    made = collected({"good-cbas-concept": {label: [0.5, 0.6] for label in labels}})
    assert list(mapped_runs(made, made.cases[0])) == labels
    loose = replace(made, plan=replace(made.plan, paper=""))
    found = mapped_runs(loose, loose.cases[0])
    assert list(found) == ["a", "random-init", "grace", "mario"]
    assert {run["seed"] for run in found.values()} == {0}
    made.cases[0].results = [run for run in made.cases[0].results if (run["label"], run["seed"]) != ("a", 0)]
    assert {run["seed"] for run in mapped_runs(made, made.cases[0]).values()} == {1}, "that most rows have"
