"""The page as a file: one piece, nothing loaded, nothing run but its script, whatever came from a run escaped."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_up import changed, collected, job, points, result
from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.studies.collect import Collected, CollectedCase, FailedRun, FinishedRun
from mario.lab.studies.plan import Plan, PlannedCase
from mario.report import write_report
from mario.report.maps import MapData

VOID = {"meta", "br", "link", "img", "input", "hr"}
SCORES = {
    "good-cbas-concept": {"erm": [0.8, 0.81], "grace": [0.85, 0.86], "mario": [0.9, 0.91]},
    "good-webkb-concept": {"erm": [0.3, None], "grace": [0.31, 0.3], "mario": [None, None]},
}
EVIL = "<script>alert('x')</script>\"><img src=x onerror=1> </script> $\\frac$ `code`"


class Page(HTMLParser):
    """Collects attributes and text, and fails on a tag closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data


def parse(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


def shown(study: Collected, *kinds: str) -> Collected:
    return replace(study, plan=replace(study.plan, show=kinds))


def made_map(folder: Path, root: Path | None = None) -> MapData:
    """The map of a run that is not there; MARIO's cannot be made."""
    if "mario" in folder.name:
        raise MarioError("there is no file model.safetensors\nPut it there")
    place = np.arange(20)
    xy = np.random.default_rng(0).normal(size=(20, 2))
    counts = np.array([[4], [4], [4], [4], [4]])
    return MapData(place, xy, 0 * place, place % 3, place % 5, place % 2, counts, counts // 2, "node")


def made_study() -> Collected:
    made = collected(
        SCORES,
        failed={("good-webkb-concept", "mario"): "RuntimeError: out of memory"},
        settings={"tau": 0.2, "lr": 0.1},
        environment={"torch": "2.13.0"},
        faults=("labels are wrong",),
    )
    return changed(made, lambda job, _: {"folder": Path("runs") / job.label})


@pytest.fixture(autouse=True)
def maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mario.report.maps.map_of", made_map)


@pytest.fixture
def study(monkeypatch: pytest.MonkeyPatch) -> Collected:
    """A study whose pictures, which take seconds, are left out."""
    monkeypatch.setattr("mario.report.page.study.draw", lambda *_, **__: [])
    return shown(made_study(), "table", "map")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A page with everything, pictures too."""
    path = tmp_path_factory.mktemp("page") / "new" / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mario.report.maps.map_of", made_map)
        whole = shown(made_study(), "table", "map")
        return parse(write_report(path, [whole], title="All of it", command="mario reproduce x"))


def test_a_study_is_complete(page: Page) -> None:
    for said in ("All of it", "Table 2", "All methods under concept shift", "mario reproduce x"):
        assert said in page.text
    for said in (
        "200 optimizer steps",
        "2 checkpoints",
        "90.50\xa0±\xa00.71",
        "91.28\xa0±\xa01.10",
        "labels are wrong",
    ):
        assert said in page.text
    for said in ("2 runs failed", "mario on good-webkb-concept, split 1, seed 1: RuntimeError: out of memory"):
        assert said in page.text
    assert "9 runs done, 2 failed, 1 not done" in page.text
    assert "The paper’s claims" in page.text


def test_headings_are_in_order_and_every_part_has_a_name(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for tag, attributes in page.tags:
        if tag == "nav" or attributes.get("role") in ("region", "search", "group"):
            assert attributes.get("aria-label")
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes["aria-labelledby"]
        if tag == "input":
            assert any(other.get("for") == attributes["id"] for _, other in page.tags)
    assert {tag for tag, _ in page.tags} >= {"header", "nav", "main", "footer"}


def test_ids_are_unique_and_references_hold(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids
        if tag == "a" and (attributes.get("href") or "").startswith("#"):
            assert (attributes["href"] or "")[1:] in ids


def test_nothing_is_loaded_and_only_the_script_runs(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed")
        assert not any(name.startswith("on") for name in attributes)
        allowed = ("https://arxiv.org/", "#") if tag == "a" else ("#", "data:image/png")
        for name in ("src", "href", "xlink:href"):
            assert name not in attributes or (attributes[name] or "").startswith(allowed)
    data, script = page.scripts
    policy = next(a["content"] or "" for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; ")
    assert "unsafe-eval" not in policy
    assert "fetch(" not in script
    assert "innerHTML" not in script
    json.loads(data)


def test_the_data_has_every_run_once_and_the_files(page: Page) -> None:
    data = json.loads(page.scripts[0])
    assert len(data["runs"]) == 9
    assert data["settings"] == [{"encoder": "gcn", "tau": 0.2, "lr": 0.1}]
    assert data["environments"] == [{"torch": "2.13.0"}]
    assert set(data["files"]) == {"table-concept.tex", "table-concept.md", "table-concept.csv"}
    assert "\\begin{table" in data["files"]["table-concept.tex"]
    group = data["maps"][0]
    assert [one["label"] for one in group["maps"]] == ["erm", "grace"]
    assert len(group["node"]) == len(group["maps"][0]["x"]) == 20


def test_a_map_has_its_numbers_and_a_failed_one_its_reason(page: Page) -> None:
    assert "no map of mario on good-cbas-concept: there is no file model.safetensors" in page.text
    assert "Put it there" not in page.text
    assert "percent of all in the set" in page.text
    assert sum("data-map-of" in attributes for _, attributes in page.tags) == 2


def test_a_run_that_two_studies_share_is_kept_once(study: Collected, tmp_path: Path) -> None:
    cases = [replace(case, runs=[replace(run, study="other") for run in case.runs]) for case in study.cases]
    other = Collected(replace(study.plan, study="other", show=("table",)), cases)
    page = parse(write_report(tmp_path / "page.html", [shown(study, "table"), other], title="t"))
    runs = json.loads(page.scripts[0])["runs"]
    assert len(runs) == 9
    assert [one["study"] for one in runs[0]["studies"]] == ["table-concept", "other"]


def test_a_quick_form_is_said_loudly(study: Collected, tmp_path: Path) -> None:
    quick = replace(shown(study, "table"), plan=replace(study.plan, show=("table",), quick=True))
    text = parse(write_report(tmp_path / "page.html", [quick], title="t")).text
    assert "This is a quick form: its figures mean nothing." in text
    assert "A quick form: these figures mean nothing." in text
    assert "mean nothing" not in parse(write_report(tmp_path / "page.html", [shown(study, "table")], title="t")).text


def test_missing_data_is_said_in_its_place(tmp_path: Path) -> None:
    made = collected(
        {"good-twitch-concept": {"grace": [None], "mario": [None]}}, missing={"good-twitch-concept": "no files"}
    )
    page = parse(write_report(tmp_path / "page.html", [made], title="t"))
    assert "Data is missing." in page.text
    assert "good-twitch-concept: no files" in page.text
    assert "0 runs done, no data for good-twitch-concept" in page.text
    assert "not done" not in page.text, "what has no data was not left undone"


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    case = Case(EVIL, EVIL, EVIL, EVIL)
    evil = [job(EVIL, case, seed, **{EVIL: EVIL}) for seed in range(3)]
    evil = [replace(one, label=EVIL, paper=EVIL, spec=replace(one.spec, method=EVIL)) for one in evil]
    facts = {
        "chosen_on": {"ood_test": "ood_val"},
        "metric": EVIL,
        "faults": (EVIL,),
        "environment": {EVIL: EVIL},
        "groups": {EVIL: 0.5},
    }
    curve = points([{"step": i, "ood_val": 0.5, EVIL: 0.5} for i in range(6)])
    runs = [FinishedRun(EVIL, one, result(one, 0.8, curve=curve, folder=Path("runs"), **facts)) for one in evil[:2]]
    planned = PlannedCase(case=case, jobs=tuple(evil), missing=EVIL)
    plan = Plan(
        study=EVIL, title=EVIL, paper=EVIL, note=EVIL, command=EVIL, cases=(planned,), reference=EVIL, subject=EVIL
    )
    plan = replace(plan, show=("map", "curves", "boxes", "table", "validation", EVIL))
    made = Collected(plan, [CollectedCase(planned, runs, [FailedRun(evil[2], EVIL)])])
    page = parse(write_report(tmp_path / "page.html", [made], title=EVIL, command=EVIL))
    assert [tag for tag, _ in page.tags].count("script") == len(page.scripts) == 2
    assert not any(a.get("src") == "x" or "onerror" in a for _, a in page.tags)
    assert json.loads(page.scripts[0])["runs"][0]["settings"] == 0
    assert "<script>alert('x')</script>" in page.text


def test_same_input_same_bytes(study: Collected, tmp_path: Path) -> None:
    one = write_report(tmp_path / "one.html", [shown(study, "table")], title="t")
    two = write_report(tmp_path / "two.html", [shown(study, "table")], title="t")
    assert one.read_bytes() == two.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_file()) == ["one.html", "two.html"]


def test_without_maps_none_is_made(study: Collected, tmp_path: Path) -> None:
    page = parse(write_report(tmp_path / "page.html", [study], title="t", maps=False))
    assert json.loads(page.scripts[0])["maps"] == []
    assert "no map of" not in page.text


def test_a_failure_leaves_the_old_page(study: Collected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")

    def broken(source: str, target: Any) -> None:
        raise OSError("disk")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(MarioError, match="disk"):
        write_report(path, [shown(study, "table")], title="t")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_no_study_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MarioError, match="at least one study"):
        write_report(tmp_path / "page.html", [], title="t")
