"""A new picture is one new file: a study shows it by its name."""

import importlib
import sys
from pathlib import Path

import pytest

import mario.report.pictures
from made_up import collected
from mario.errors import MarioError
from mario.report.pictures import check_shown, draw, registry

FILE = """
from mario.report.pictures.picture import COLUMN, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture


@register_picture("seconds")
def sketches(study, root):
    for case in study.cases:
        yield Sketch(lambda case=case: seconds(case.frame), case.name)


def seconds(runs):
    with sheet(COLUMN, 2.0) as figure:
        figure.subplots().hist(runs["seconds"])
    return Drawing(figure, "Seconds per run", f"{len(runs)} runs, {runs['seconds'].sum():g} seconds.")
"""


def test_a_picture_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seconds.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(mario.report.pictures, "__path__", [*mario.report.pictures.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    registry._load.cache_clear()
    importlib.invalidate_caches()
    made = collected({"good-cbas-concept": {"mario": [0.5, 0.6]}}, plan={"show": ("seconds",)})
    try:
        (picture,) = draw(made, tmp_path / "pictures")
    finally:
        sys.modules.pop("mario.report.pictures.seconds", None)
        registry._load.cache_clear()
    assert picture.name == "table-concept-seconds-good-cbas-concept"
    assert picture.description == "2 runs, 3 seconds."
    assert "<svg" in picture.svg


def test_names_are_checked() -> None:
    check_shown(["table", "validation", "ranking", "map-id-ood", "label-rates"])
    with pytest.raises(MarioError, match=r"show must be any of table, validation, bars, .*, got 'pie'"):
        check_shown(["pie"])
