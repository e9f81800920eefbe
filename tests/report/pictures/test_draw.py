"""All pictures of a study: which there are, how they are called, what is left out and said."""

import importlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.result import RunResult, Scores
from mario.lab.runs.job import Job
from mario.lab.studies.collect import Collected, CollectedCase, FinishedRun
from mario.lab.studies.plan import Plan, PlannedCase, make_plan
from mario.lab.studies.read import read_study
from mario.report.maps import MapData
from mario.report.pictures import draw
from mario.report.pictures.picture import Picture
from report.pictures.made_up import run


def case(name: str, results: Iterable[RunResult], missing: str | None = None, shift: str = "concept") -> CollectedCase:
    """A case of a dataset that is not installed, whose name has all of its parts."""
    where = Case(name, "color", shift, "inductive")
    placed = [replace(result, spec=replace(result.spec, case=where)) for result in results]
    runs = [FinishedRun("mine", Job(spec=result.spec, label=result.spec.method), result) for result in placed]
    return CollectedCase(PlannedCase(case=where, jobs=tuple(run.job for run in runs), missing=missing), runs)


def study(show: tuple[str, ...], *cases: CollectedCase, rows: tuple[str, ...] = ()) -> Collected:
    return Collected(Plan(study="mine", title="Mine", show=show, subject="mario", rows=rows), list(cases))


@pytest.fixture
def unsaved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files take a second each; the tests of `save_picture` write them."""
    module = importlib.import_module("mario.report.pictures.draw")
    monkeypatch.setattr(module, "save_picture", lambda figure, stem, title: [Path(f"{stem}.png")])
    monkeypatch.setattr(module, "to_svg", lambda figure, **named: f"<svg>{named['name']}</svg>")


RUNS = [run(m, s, v + 0.01 * s) for m, v in (("mario", 0.7), ("erm", 0.6)) for s in range(2)]
GROUPED = [run(m, s, v + 0.01 * s, groups=3) for m, v in (("mario", 0.7), ("erm", 0.6)) for s in range(2)]


REST = "-color-concept-inductive"


def placed(result: RunResult, folder: str) -> RunResult:
    return replace(result, folder=Path(folder))


def names(pictures: list[Picture]) -> list[str]:
    return [picture.name for picture in pictures]


def test_files_and_a_drawing_for_the_page(tmp_path: Path) -> None:
    (picture,) = draw(study(("curves",), case("good-cbas", RUNS), rows=("erm", "mario")), tmp_path)
    assert (picture.name, picture.kind, picture.case) == (
        "mine-curves-good-cbas-concept-inductive",
        "curves",
        "good-cbas-concept-inductive",
    )
    assert picture.title == "Scores during training, good-cbas, color domain, concept shift, inductive"
    assert [path.name for path in picture.paths] == [f"{picture.name}.{form}" for form in ("png", "svg", "pdf")]
    assert all(path.parent == tmp_path and path.is_file() for path in picture.paths)
    assert f'id="{picture.name}-title">{picture.title}<' in picture.svg
    assert picture.description in picture.svg
    # In the order of the plan, not in that of the results.
    assert picture.svg.index(">erm (n = 2)<") < picture.svg.index(">mario (n = 2)<")


@pytest.mark.usefixtures("unsaved")
def test_a_picture_for_each_case_that_has_something_to_show(tmp_path: Path) -> None:
    collected = study(("curves", "boxes", "invariance"), case("a", RUNS), case("b", []), case("c", GROUPED))
    found = names(draw(collected, tmp_path))
    assert found == [f"mine-curves-a{REST}", f"mine-curves-c{REST}", f"mine-boxes-c{REST}"]


@pytest.mark.usefixtures("unsaved")
def test_bars_of_plain_cases_stand_together_and_of_groups_alone(tmp_path: Path) -> None:
    plain, grouped = draw(study(("bars",), case("a", RUNS), case("b", RUNS), case("c", GROUPED)), tmp_path)[::-1]
    assert (plain.name, grouped.name) == ("mine-bars", f"mine-bars-c{REST}")
    assert plain.title == "ID and OOD scores, concept shift, inductive"
    assert "a OOD: mario 70.5" in plain.description
    assert "b ID: " in plain.description
    assert "T3: mario" in grouped.description


@pytest.mark.usefixtures("unsaved")
def test_bars_of_one_dataset_under_two_shifts_stand_beside_each_other(tmp_path: Path) -> None:
    other = [run("mario", s, 0.3) for s in range(2)]
    both = [case("a", RUNS), case("a", other, shift="covariate")]
    (plain,) = draw(study(("bars",), *both), tmp_path)
    assert plain.title == "ID and OOD scores"
    assert "a-color-concept-inductive OOD: mario 70.5" in plain.description
    assert "a-color-covariate-inductive OOD: mario 30.0" in plain.description


@pytest.mark.usefixtures("unsaved")
def test_a_grid_is_over_the_settings_that_vary(tmp_path: Path) -> None:
    grid = {"tau": [0.2, 0.5], "lr": [0.1, 0.01]}
    text = f"""
    title = "Mine"
    show = ["grid"]
    reference = ""
    subject = ""
    rows = ["grace"]
    grid = {{ tau = {grid["tau"]}, lr = {grid["lr"]} }}
    cases = [{{ dataset = "good-cbas", shift = "concept" }}]
    """
    plan = make_plan(read_study("mine", text, "mine.toml"), seeds=1)
    runs = [
        FinishedRun("mine", job, run("grace", 0, 0.5, spec=job.spec, scores=Scores(ood_val=0.5 + i / 10)))
        for i, job in enumerate(plan.cases[0].jobs)
    ]
    (picture,) = draw(Collected(plan, [CollectedCase(plan.cases[0], runs)]), tmp_path)
    assert "Best on OOD validation: tau 0.5, lr 0.01: 80.0" in picture.description
    said: list[str] = []
    assert draw(study(("grid",), case("a", RUNS)), tmp_path, complain=said.append) == []
    assert "a grid needs two settings that vary, mario has none" in said[0]


@pytest.mark.usefixtures("unsaved")
def test_many_rows_of_boxes_come_with_the_papers_four_apart(tmp_path: Path) -> None:
    rows = ("mario", "erm", "grace", "eerm", "a", "b", "c")
    many = [run(row, s, 0.5 + 0.01 * s, groups=2) for row in rows for s in range(2)]
    paper, whole = draw(study(("boxes",), case("photo", many)), tmp_path)
    assert (paper.name, whole.name) == (f"mine-boxes-photo{REST}-paper", f"mine-boxes-photo{REST}")
    assert "a: T1" not in paper.description
    assert "a: T1" in whole.description


@pytest.mark.usefixtures("unsaved")
def test_ranking_over_cases_or_over_the_runs_of_one(tmp_path: Path) -> None:
    (over_cases,) = draw(study(("ranking",), case("a", RUNS), case("b", RUNS), case("c", [])), tmp_path)
    assert over_cases.name == "mine-ranking"
    assert over_cases.description.startswith("Average rank over 2 cases, 1 is best: mario 1.00, erm 2.00")
    (over_runs,) = draw(study(("ranking",), case("a", RUNS)), tmp_path)
    assert over_runs.description.startswith("Average rank over 2 runs")
    assert draw(study(("ranking",), case("a", [])), tmp_path) == []


def made_map(folder: Path, root: Path | None) -> MapData:
    n = 12
    node = np.arange(n)
    xy = np.random.default_rng(0).normal(size=(n, 2))
    # Sets in the order of SETS: train, id_val, id_test, ood_val, ood_test.
    return MapData(node, xy, node % 2, node % 3, node % 5, node % 2, np.array([[n]]), np.array([[n]]), "node")


@pytest.mark.usefixtures("unsaved")
def test_maps_are_of_the_first_run_of_each_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def noted(folder: Path, root: Path | None) -> MapData:
        asked.append((folder.name, root))
        return made_map(folder, root)

    monkeypatch.setattr("mario.report.maps.map_of", noted)
    results = [placed(result, f"runs/{result.spec.method}{result.spec.seed}") for result in reversed(RUNS)]
    pictures = draw(study(("map", "map-id-ood"), case("a", results), rows=("erm", "mario")), tmp_path, root=tmp_path)
    assert names(pictures) == [f"mine-map-a{REST}", f"mine-map-id-ood-a{REST}"]
    assert asked == [("erm0", tmp_path), ("mario0", tmp_path)] * 2
    assert "erm: 12 nodes, 4 of them out of distribution, 2 classes, 3 domains." in pictures[0].description


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MarioError("the files of good-cora are missing"), "the files of good-cora are missing"),
        (KeyError("xy"), "a fault of mario, KeyError('xy')"),
    ],
)
def test_what_cannot_be_drawn_is_left_out_and_said(
    error: Exception, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(folder: Path, root: Path | None) -> MapData:
        raise error

    monkeypatch.setattr("mario.report.maps.map_of", failing)
    said: list[str] = []
    wanted = study(("map", "curves"), case("a", [placed(result, "runs/x") for result in RUNS]))
    assert names(draw(wanted, tmp_path, complain=said.append)) == [f"mine-curves-a{REST}"]
    assert said == [f"no picture mine-map-a{REST}: {told}"]


def test_a_fault_is_raised_where_nobody_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(folder: Path, root: Path | None) -> MapData:
        raise KeyError("xy")

    monkeypatch.setattr("mario.report.maps.map_of", failing)
    with pytest.raises(KeyError, match="xy"):
        draw(study(("map",), case("a", [placed(result, "runs/x") for result in RUNS])), tmp_path)


def test_a_case_without_data_has_no_picture(tmp_path: Path) -> None:
    assert draw(study(("label-rates",), case("elliptic", [], missing="no files")), tmp_path) == []


def test_label_rates_need_test_groups(tmp_path: Path) -> None:
    said: list[str] = []
    assert draw(study(("label-rates",), case("good-cbas", [])), tmp_path, complain=said.append) == []
    assert "data must have test groups, as elliptic does, for label rates; it has none" in said[0]


@pytest.mark.usefixtures("unsaved")
def test_label_rates_come_from_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch_geometric.data import Data

    from mario.datasets.elliptic import elliptic_graph

    step = torch.arange(1, 50)
    graph = elliptic_graph(Data(x=torch.ones(49, 1), edge_index=torch.zeros(2, 0).long(), y=step % 2, time_step=step))
    monkeypatch.setattr(Case, "load", lambda case, **where: graph if case.dataset == "elliptic" else None)
    (picture,) = draw(study(("label-rates",), case("elliptic", [])), tmp_path)
    assert picture.name == "mine-label-rates-elliptic-color-concept"
    assert "Tr: 100.0 and 60.0." in picture.description


@pytest.mark.usefixtures("unsaved")
def test_a_name_that_is_no_picture_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    assert names(draw(study(("pie", "curves"), case("a", RUNS)), tmp_path, complain=said.append)) == [
        f"mine-curves-a{REST}"
    ]
    assert said[0].startswith("no picture mine-pie: unknown show 'pie'; use one of table, validation, bars, boxes, ")
