"""The page: one file, nothing loaded, everything escaped, the paper's figures beside ours."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mario.errors import MarioError
from mario.report import write_page
from mario.report.page import _values

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Collects attributes and text, and fails on a tag closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data


def run(method: str, seed: int, ood: float, **other: Any) -> dict[str, Any]:
    keys = ("train", "id_val", "id_test", "ood_val", "ood_test")
    points = [{"step": step} | dict.fromkeys(keys, ood - 0.1 / step) for step in (10, 20, 30)]
    result: dict[str, Any] = {
        "dataset": "good-cbas", "domain": "color", "shift": "concept", "split_seed": 0, "setting": "transductive",
        "method": method, "seed": seed, "encoder": "gcn", "metric": "accuracy", "steps": 30, "checkpoints": 3,
        "seconds": 12.0, "scores": {"id_test": ood + 0.03, "ood_test": ood, "ood_test_by_id_val": ood - 0.01},
        "curve": points, "settings": {"tau": 0.2, "seed": seed, "gamma": 0.1 if method == "mario" else None},
        "environment": {"torch": "2.13.0"}, "faults": [],
    }  # fmt: skip
    return result | other


RESULTS = [run(m, s, v + 0.01 * s) for m, v in (("erm", 0.83), ("grace", 0.88), ("mario", 0.91)) for s in range(3)]


def embeddings() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    z = np.random.default_rng(0).normal(size=(24, 4))
    return {"grace": (z, np.arange(24) % 4, np.arange(24) % 2 == 0), "mario": (z, np.arange(24) % 4, np.arange(24) < 9)}


def parse(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


def test_everything_is_on_the_page(tmp_path: Path) -> None:
    path = write_page(
        tmp_path / "new" / "page.html",
        title="Concept shift",
        results=RESULTS,
        embeddings=embeddings(),
        command="mario demo --seeds 3",
        asked=3,
    )
    page = parse(path)
    assert [tag for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)] == ["h1"] + ["h2"] * 6
    for said in ("91.28", "88.64", "92.00\xa0±\xa01.00", "mario demo --seeds 3", "30 optimiser steps", "3 checkpoints"):
        assert said in page.text
    for said in ("chosen on ood_val", "OOD accuracy of mario less that of grace", "torch", "2.13.0", "gamma", "0 to 2"):
        assert said in page.text
    # Three curves and two maps, each with a caption and a name for those who do not see it.
    assert sum(tag == "figure" for tag, _ in page.tags) == sum(tag == "figcaption" for tag, _ in page.tags) == 5
    assert sum(a.get("role") == "img" and "aria-labelledby" in a for tag, a in page.tags if tag == "svg") == 5


def test_nothing_is_loaded_and_nothing_runs(tmp_path: Path) -> None:
    path = write_page(tmp_path / "page.html", title="t", results=RESULTS, embeddings=embeddings())
    page = parse(path)
    for tag, attributes in page.tags:
        assert tag not in ("script", "link", "iframe", "img", "object", "embed")
        assert not any(name.startswith("on") for name in attributes)
        allowed = "https://arxiv.org/" if tag == "a" else ("#", "data:image/png")
        for name in ("src", "href", "xlink:href"):
            assert name not in attributes or (attributes[name] or "").startswith(allowed)
    text = path.read_text(encoding="utf-8")
    assert "@import" not in text
    assert "@font-face" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "prefers-color-scheme: dark" in text


def test_ids_are_unique_and_references_hold(tmp_path: Path) -> None:
    page = parse(write_page(tmp_path / "page.html", title="t", results=RESULTS, embeddings=embeddings()))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in (attributes.get("aria-labelledby") or "").split():
            assert name in ids


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    evil = "<script>alert('x')</script>\"><img src=x onerror=1> $\\frac$"
    results = [
        run(evil, 0, 0.9, dataset=evil, faults=[evil], settings={evil: evil}, environment={evil: evil}, encoder=evil)
    ]
    z = np.random.default_rng(0).normal(size=(12, 3))
    path = write_page(
        tmp_path / "page.html",
        title=evil,
        results=results,
        embeddings={evil: (z, np.zeros(12, dtype=int), np.zeros(12, dtype=bool))},
        command=evil,
    )
    page = parse(path)
    assert not any(tag in ("script", "img") for tag, _ in page.tags)
    assert evil in page.text


def test_same_input_same_bytes_and_nothing_left_behind(tmp_path: Path) -> None:
    one = write_page(tmp_path / "one.html", title="t", results=RESULTS, embeddings=embeddings())
    two = write_page(tmp_path / "two.html", title="t", results=RESULTS, embeddings=embeddings())
    assert one.read_bytes() == two.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.html", "two.html"]


def test_a_failure_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")

    def broken(source: str, target: str) -> None:
        raise OSError("disk")

    monkeypatch.setattr("os.replace", broken)
    with pytest.raises(MarioError, match="disk"):
        write_page(path, title="t", results=[run("mario", 0, 0.9)])
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text(encoding="utf-8") == "old"


def test_several_datasets_have_a_table_each(tmp_path: Path) -> None:
    results = RESULTS + [r | {"dataset": "webkb", "domain": "university", "faults": ["a fault"]} for r in RESULTS]
    page = parse(write_page(tmp_path / "page.html", title="t", results=results))
    captions = [tag for tag, _ in page.tags if tag == "caption"]
    assert len(captions) == 4
    assert "webkb, university domain, concept shift, transductive" in page.text
    assert "Known fault of the data: a fault" in page.text


def test_controls_alone_make_a_page_without_curves(tmp_path: Path) -> None:
    page = parse(write_page(tmp_path / "page.html", title="t", results=[run("random-init", 0, 0.7, curve=[], steps=0)]))
    assert "Scores while training" not in page.text
    assert "No paired test" in page.text


def test_no_results_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MarioError, match="results"):
        write_page(tmp_path / "page.html", title="t", results=[])


def test_values_are_listed_once_and_numbers_in_order() -> None:
    assert _values([2, 0, 1, 1]) == "0 to 2"
    assert _values([10, 2]) == "2, 10"
    assert _values(["b", None, "a", "b"]) == "b, a"
    assert _values([]) == ""
