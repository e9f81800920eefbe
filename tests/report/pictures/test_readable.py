"""Every kind of picture: no text below 8 pt, none cut off, none over another; wide enough for a column or a page."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from pandas import DataFrame

from mario.lab.case import Case
from mario.lab.frame import frame
from mario.lab.statistics.paired import paired, summarize
from mario.lab.statistics.ranking import average_ranks
from mario.lab.studies.paper import Figure
from mario.report import Entry, Score
from mario.report.pictures import (
    Drawing,
    ForestLine,
    Map,
    bars,
    boxes,
    critical_difference,
    curves,
    differences,
    embedding_maps,
    forest,
    grid,
    id_and_ood_maps,
    invariance_curves,
    label_rates,
)
from mario.report.pictures.label_rates import Counts
from mario.report.pictures.picture import COLUMN, PAGE
from mario.report.svg import style
from report.pictures.made_up import run

FEW = ("erm", "irm", "graphmae", "grace", "mario")
MAPPED = ("random-init", "eerm", "grace", "mario")
SPLITS = ("Tr", "Val", *(f"T{k}" for k in range(1, 10)))
MANY = (*FEW, "raw-features", "random-init", "eerm", "gae", "vgae", "dgi", "mvgrl", "rosa", "bgrl", "costa", "swav")


def results(rows: tuple[str, ...], groups: int = 0) -> DataFrame:
    return frame(run(row, s, 0.6 + 0.02 * i + 0.01 * s, groups=groups) for i, row in enumerate(rows) for s in range(2))


def maps(classes: int, domains: int) -> list[Map]:
    node = np.arange(80)
    xy = np.random.default_rng(0).normal(size=(80, 2))
    return [
        Map(row, xy, node % classes, node % domains, node < 30) for row in ("random-init", "eerm", "grace", "mario")
    ]


def sensitivity() -> DataFrame:
    settings = [{"gamma": g, "clusters": c} for g in (0.001, 0.01, 0.1, 0.5, 1.0) for c in (10, 50, 100, 200, 300)]
    return frame(run("mario", s, 0.3 + 0.1 * s, settings=given) for given in settings for s in range(2))


def aligned() -> DataFrame:
    curve = [{"step": 1000 * s, "align_mean": 1 / s, "align_worst": 2 / s} for s in range(1, 20)]
    return frame(run(row, 0, 0.5, curve=curve) for row in FEW)


def beside() -> list[Entry]:
    score = Score(ours=summarize([0.5, 0.6]), paper=Figure(70.0, 3.0, 10, "Table 2"))
    facts = {"study": "mine", "case": Case.find("good-cbas"), "encoder": "gcn", "metric": "accuracy", "asked": 2}
    facts |= {"supervised": False, "scores": {"id_test": score, "ood_test": score}}
    return [Entry(label=row, method=row, **facts) for row in MANY]


def lines() -> list[ForestLine]:
    test = paired([0.91, 0.85, 0.97, 0.83, 0.9], [0.98, 0.95, 0.99, 0.93, 0.90])
    facts = {"label": "mario+steady strong", "against": "grace+steady, centering alone", "p": 0.0005}
    names = ["coauthor-physics, degree, covariate", "good-webkb, covariate"]
    found = [ForestLine(name=name, test=test, **facts) for name in names]
    other = ForestLine(name="all 21 columns", label="mario", against="grace", test=test, pooled=True)
    return [*found, other]


def ranked(rows: tuple[str, ...]) -> Drawing:
    rng = np.random.default_rng(0)
    return critical_difference(average_ranks({str(i): {row: float(rng.normal()) for row in rows} for i in range(8)}))


KINDS: dict[str, Callable[[], Drawing]] = {
    "one curve": lambda: curves(results(("mario",))),
    "five curves": lambda: curves(results(FEW)),
    "boxes": lambda: boxes(results(FEW, 8)),
    "boxes in panels": lambda: boxes(results(MANY[:7], 8)),
    "bars of groups": lambda: bars({"elliptic": results(("erm", "eerm", "grace", "mario"), 9)}),
    "bars of two cases": lambda: bars({"good-webkb": results(FEW), "good-cbas": results(FEW)}),
    "grid": lambda: grid(sensitivity()),
    "label rates": lambda: label_rates([Counts(n, 100, 20, 5) for n in SPLITS]),
    "invariance": lambda: invariance_curves(aligned()),
    "ranks": lambda: ranked(FEW),
    "ranks of many": lambda: ranked(MANY),
    "maps": lambda: embedding_maps(maps(9, 8)),
    "maps with a scale": lambda: embedding_maps(maps(4, 30)),
    "one map": lambda: embedding_maps(maps(8, 3)[:1]),
    "maps apart": lambda: id_and_ood_maps(maps(9, 8)),
    "differences": lambda: differences(beside()),
    "forest": lambda: forest(lines()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_text_is_large_enough_inside_and_apart(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = KINDS[kind]().figure
    assert figure.get_figwidth() in (COLUMN, PAGE)
    drawn: dict[Text, Bbox] = {}
    draw = Text.draw

    def noted(text: Text, renderer: Any, *rest: Any) -> None:
        # A tick that is out of sight is an object of the figure too, but it is not drawn.
        if text.get_visible() and text.get_text().strip():
            drawn[text] = text.get_window_extent(renderer)
        draw(text, renderer, *rest)

    monkeypatch.setattr(Text, "draw", noted)
    with matplotlib.rc_context(style("readable")):
        figure.draw_without_rendering()
    assert len(drawn) > 5
    whole = figure.bbox
    for text, place in drawn.items():
        assert text.get_fontsize() >= 8.0, text
        assert min(place.x0, place.y0, whole.x1 - place.x1, whole.y1 - place.y1) > -1, text
    for (one, a), (other, b) in combinations(drawn.items(), 2):
        across, along = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
        # The box of a text is taller than its letters: 2 points of white at its edge may be shared.
        assert min(across, along) < 2 * figure.dpi / 72, (one, other)
