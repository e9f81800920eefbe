"""One study on the page: what is said first, which pictures are where, and as what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_up import changed, collected
from mario.lab.studies.collect import Collected, CollectedCase
from mario.report.html import render
from mario.report.maps import MapData, mapped_runs
from mario.report.page.study import facts_of, state_of, study_part, values
from mario.report.pictures import Picture
from mario.report.pictures.picture import COLUMN, PAGE
from report.test_registered import even, study as registered_study


def section(
    study: Collected, pictures: list[Picture], monkeypatch: pytest.MonkeyPatch, nodes: dict[str, int] | None = None
) -> str:
    def made(folder: Path, root: Path | None = None) -> MapData:
        count = np.arange((nodes or {}).get(folder.name, 5))
        shape = np.ones((5, 2), dtype=int)
        return MapData(count, np.zeros((len(count), 2)), count, count, count, count, shape, shape, "node")

    monkeypatch.setattr("mario.report.page.study.draw", lambda *_, **__: pictures)
    monkeypatch.setattr("mario.report.maps.map_of", made)
    groups: list[dict[str, Any]] = []
    html = render("study", study=study_part(study, Path("pictures"), None, groups))
    assert html.count("data-map-of=") == len(groups)
    return html


def picture(
    kind: str,
    svg: str = "<svg></svg>",
    case: str = "good-cbas-concept",
    paths: tuple[Path, ...] = (),
    width: float = COLUMN,
) -> Picture:
    return Picture(f"{kind}-x", kind, case, f"A {kind} & more", "In words.", width, svg, paths)


def study(*show: str) -> Collected:
    made = collected({"good-cbas-concept": {"erm": [0.5], "grace": [0.6], "mario": [0.7]}}, plan={"show": show})
    return changed(made, lambda job, _: {"folder": Path("runs") / job.label})


def test_a_picture_of_a_map_is_beside_the_map(monkeypatch: pytest.MonkeyPatch) -> None:
    html = section(study("table", "map"), [picture("map"), picture("curves")], monkeypatch)
    pictures, _, maps = html.partition("<h3>Maps of the embeddings</h3>")
    assert "A curves &amp; more" in pictures
    assert "A map &amp; more" in maps
    assert html.count("<figcaption><b>A map &amp; more.</b></figcaption>") == 1


def test_a_broad_picture_has_the_whole_width(monkeypatch: pytest.MonkeyPatch) -> None:
    html = section(study("table"), [picture("curves", width=PAGE), picture("grid")], monkeypatch)
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
    assert "mario</span></th>" not in numbers
    assert "no map of mario on good-cbas-concept: its run is on another split than the others" in html


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
    plan = study("label-rates").plan
    bare = tuple(replace(case, jobs=()) for case in plan.cases)
    made = Collected(replace(plan, cases=bare), [CollectedCase(case) for case in bare])
    html = section(made, [picture("label-rates")], monkeypatch)
    assert "<table" not in html
    assert "data-save" not in html
    assert "A label-rates" in html


def test_runs_of_no_figure_have_a_few_maps_the_named_rows_first() -> None:
    labels = ["a", "b", "c", "random-init", "grace", "mario"]
    made = collected({"good-cbas-concept": {label: [0.5, 0.6] for label in labels}})
    made = changed(made, lambda job, _: {"folder": Path(f"runs/{job.label}/{job.spec.seed}")})
    (case,) = made.cases
    assert list(mapped_runs(made.plan, case)) == labels
    found = mapped_runs(replace(made.plan, paper=""), case)
    assert list(found) == ["a", "random-init", "grace", "mario"]
    assert {folder.name for folder in found.values()} == {"0"}
    fewer = replace(case, runs=[run for run in case.runs if (run.job.label, run.job.spec.seed) != ("a", 0)])
    assert {folder.name for folder in mapped_runs(made.plan, fewer).values()} == {"1"}, "that most rows have"


def test_schedules_that_differ_are_said_case_by_case() -> None:
    made = collected({"good-cbas-concept": {"mario": [0.5], "random-init": [0.4]}, "webkb-concept": {"mario": [0.6]}})
    assert facts_of(made)["Schedule"] == "200 optimizer steps, evaluated at 2 checkpoints"
    steps = {("good-cbas", "mario"): 200, ("good-cbas", "random-init"): 10, ("webkb", "mario"): 50}
    facts = facts_of(changed(made, lambda job, _: {"steps": steps[job.spec.case.dataset, job.label]}))
    assert facts["Split seeds and seeds"] == "splits 0; seeds 0; 1 run per row planned"
    said = "good-cbas-concept: 200 optimizer steps, evaluated at 2 checkpoints. webkb-concept: 50 opt"
    assert facts["Schedule"].startswith(said), "a control takes no steps"


def test_runs_are_counted_and_missing_data_is_no_run_undone() -> None:
    made = collected(
        {"good-cbas-concept": {"mario": [0.5, None, None]}, "webkb-concept": {"mario": [None]}},
        failed={("good-cbas-concept", "mario"): "boom"},
        missing={"webkb-concept": "no files"},
    )
    assert state_of(made) == "1 run done, 2 failed, no data for webkb-concept"


def test_text_in_backticks_is_code_and_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"webkb-concept": "`mario data <x>` fetches it"}
    made = collected({"webkb-concept": {"mario": [None]}}, missing=missing)
    assert "<code>mario data &lt;x&gt;</code> fetches it" in section(made, [], monkeypatch)
    made = collected({"good-webkb-concept": {"mario": [0.5]}}, faults=("`webkb` is <sound>",))
    assert "<code>webkb</code> is &lt;sound&gt;</p>" in section(made, [], monkeypatch)


def test_values_are_listed_once_and_numbers_in_order() -> None:
    assert values([2, 0, 1, 1]) == "0 to 2"
    assert values([10, 2]) == "2, 10"
    assert values(["b", None, "a", "b"]) == "b, a"
    assert values([]) == ""


def test_a_registered_study_begins_with_its_outcome() -> None:
    whole = registered_study(even(0.1))
    html = render("study", study=study_part(whole, Path("pictures"), None, [], maps=False, page=[whole]))
    assert html.index("10.10 points above GRACE") < html.index("The registered comparisons") < html.index("<h3>Table")


def test_settings_that_differ_between_rows_are_said() -> None:
    made = collected({"good-cbas-concept": {"mario": [0.5], "grace": [0.6], "random-init": [0.4]}})
    each = {"mario": {"lr": 0.1, "batch_norm": True}, "grace": {"lr": 0.01, "batch_norm": False, "tau": 0.5}}

    facts = facts_of(changed(made, lambda job, _: {"settings": {"hidden_channels": 8, **each.get(job.label, {})}}))
    assert facts["Settings that differ between rows"] == "batch_norm on, but off for grace. lr 0.1, but 0.01 for grace"
    assert facts_of(made)["Settings that differ between rows"] == ""


def test_rows_without_a_map_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = ["a", "b", "c", "random-init", "grace", "mario"]
    made = collected({"good-cbas-concept": {label: [0.5] for label in labels}}, plan={"show": ("table", "map")})
    made = changed(made, lambda job, _: {"folder": Path("runs") / job.label})
    html = section(replace(made, plan=replace(made.plan, paper="")), [], monkeypatch)
    assert "no map of b, c on good-cbas-concept: at most 4 rows of a case are mapped" in html
    assert "at its last checkpoint. The table has means over runs at the checkpoints that validation chose" in html
