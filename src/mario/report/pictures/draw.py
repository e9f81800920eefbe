"""All pictures that a study asks for, from what its runs have come to."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from mario.datasets import load_dataset
from mario.errors import MarioError
from mario.evaluation import SETS
from mario.lab.studies.plan import Collected, CollectedCase
from mario.report import maps
from mario.report.pictures.bars import bars
from mario.report.pictures.boxes import SIDE_BY_SIDE, boxes
from mario.report.pictures.curves import curves, rows_with_curves
from mario.report.pictures.differences import differences
from mario.report.pictures.grid import grid
from mario.report.pictures.invariance import invariance_curves, rows_with_invariance
from mario.report.pictures.label_rates import Counts, label_counts, label_rates
from mario.report.pictures.maps import Map, embedding_maps, id_and_ood_maps
from mario.report.pictures.picture import Drawing, Picture, save_picture
from mario.report.pictures.ranks import ranks
from mario.report.pictures.rows import groups_of, row_labels
from mario.report.svg import to_svg
from mario.report.tables.ranks import ranking_of
from mario.report.tables.rows import long_rows

# A picture that is made: its kind, its case (none if it is of the whole study), what sets it apart, and how.
Made = tuple[str, str, str, Callable[[], Drawing]]
_PHOTO = ("erm", "eerm", "grace", "mario")  # of the paper's Figure 3


def draw(
    collected: Collected,
    folder: Path,
    *,
    root: Path | None = None,
    complain: Callable[[str], None] | None = None,
) -> list[Picture]:
    """Draw what the plan's ``show`` asks for, as files in ``folder`` and as SVG for a page.

    A case without a finished run has no picture. ``table`` is drawn as our scores beside the paper's, where it prints
    any. ``root`` is the folder of datasets: maps that are not in the cache and label rates need the graph. What cannot
    be drawn is left out, and ``complain`` is told.

    Example:
        >>> import tempfile
        >>> from mario.lab.studies.plan import Collected, CollectedCase, make_plan
        >>> from mario.lab.studies.read import find_study
        >>> from mario.report.pictures import draw
        >>> plan = make_plan(find_study("inductive-concept"), datasets=["good-cbas"], seeds=1)
        >>> place = {"name": "good-cbas-concept-inductive", "dataset": "good-cbas", "domain": "color"}
        >>> result = {"label": "mario", "method": "mario", "scores": {"id_test": 0.9, "ood_test": 0.8}}
        >>> case = CollectedCase(**place, shift="concept", setting="inductive", asked=1, missing=None, results=[result])
        >>> [picture.name for picture in draw(Collected(plan, [case]), Path(tempfile.mkdtemp()))]
        ['inductive-concept-bars']
    """
    pictures = []
    for kind, case, apart, make in _asked_for(collected, root):
        name = "-".join(part for part in (collected.plan.study, kind, case, apart) if part)
        try:
            drawing = make()
        except Exception as error:  # hours of runs are behind it: one picture must not cost the page
            known = isinstance(error, MarioError)
            if not known and complain is None:
                raise
            if complain:
                complain(f"no picture {name}: {error if known else f'a fault of mario, {error!r}'}")
            continue
        pictures.append(
            Picture(
                name=name,
                kind=kind,
                case=case,
                title=drawing.title,
                description=drawing.description,
                svg=to_svg(drawing.figure, name=name, title=drawing.title, description=drawing.description),
                paths=tuple(save_picture(drawing.figure, folder / name, title=drawing.title)),
            )
        )
    return pictures


def _asked_for(collected: Collected, root: Path | None) -> Iterator[Made]:
    for kind in collected.plan.show:
        if kind == "ranks":
            yield from _ranks(collected)
        elif kind == "bars":
            yield from _bars(collected)
        elif kind == "table":
            yield from _differences(collected)
        else:
            for case in collected.cases:
                yield from _of_case(kind, collected, case, root)


def _of_case(kind: str, collected: Collected, case: CollectedCase, root: Path | None) -> Iterator[Made]:
    results, where = case.results, _where(case)
    shown = _rows(collected, case)
    if kind == "label-rates" and not case.missing:
        yield kind, case.name, "", lambda: label_rates(_counts(case, root), title=f"Label rates of {case.dataset}")
    elif kind == "curves" and (rows := [row for row in shown if row in rows_with_curves(results)]):
        yield kind, case.name, "", lambda: curves(results, rows=rows, title=f"Scores while training, {where}")
    elif kind == "invariance" and (rows := [row for row in shown if row in rows_with_invariance(results)]):
        title = f"Average and worst-case alignment, {where}"
        yield kind, case.name, "", lambda: invariance_curves(results, rows=rows, title=title)
    elif kind == "boxes" and groups_of(results):
        paper = [row for row in _PHOTO if row in shown]
        if len(shown) > SIDE_BY_SIDE and len(paper) > 1:
            title = f"Scores by test group, the paper’s rows, {where}"
            yield kind, case.name, "paper", lambda: boxes(results, rows=paper, title=title)
        yield kind, case.name, "", lambda: boxes(results, rows=shown, title=f"Scores by test group, {where}")
    elif kind == "grid":
        methods = list(dict.fromkeys(result["method"] for result in results))
        for method in methods:
            yield kind, case.name, method if len(methods) > 1 else "", partial(_grid, collected, case, method)
    elif kind == "map" and results:
        yield kind, case.name, "", lambda: embedding_maps(_maps(collected, case, root), title=f"Embeddings, {where}")
    elif kind == "map-id-ood" and results:
        title = f"Embeddings, ID and OOD apart, {where}"
        yield kind, case.name, "", lambda: id_and_ood_maps(_maps(collected, case, root), title=title)


def _grid(collected: Collected, case: CollectedCase, method: str) -> Drawing:
    """Over the two settings in which the rows of ``method`` differ."""
    planned = next((planned.runs for planned in collected.plan.cases if planned.name == case.name), ())
    given = [run.job.given for run in planned if run.job.method == method]
    varied = [key for key in (given[0] if given else ()) if any(one.get(key) != given[0][key] for one in given)]
    if len(varied) != 2:
        raise MarioError(f"a grid takes two settings that vary, {method} has {', '.join(varied) or 'none'}")
    runs = [result for result in case.results if result["method"] == method]
    title = f"Scores of {method} over a grid of settings, {_where(case)}"
    return grid(runs, down=varied[0], across=varied[1], title=title)


def _differences(collected: Collected) -> Iterator[Made]:
    rows = long_rows(collected)
    for case in collected.cases:
        beside = [row for row in rows if row.case == case.name]
        if any(row.off_id is not None or row.off_ood is not None for row in beside):
            title = f"Ours beside the paper’s, {_where(case)}"
            yield "differences", case.name, "", partial(differences, beside, title=title)


def _ranks(collected: Collected) -> Iterator[Made]:
    """Over cases; where there is one only, over its runs."""
    there = sum(bool(case.results) for case in collected.cases)
    if there:
        subject, by, over = collected.plan.subject, *(("case", "case") if there > 1 else ("pair", "run"))
        yield "ranks", "", "", lambda: ranks(ranking_of(collected, by=by), subject=subject, over=over)


def _bars(collected: Collected) -> Iterator[Made]:
    """A picture for each case with test groups, and one of all the others."""
    plain: list[CollectedCase] = []
    for case in collected.cases:
        shown = _rows(collected, case)
        if groups_of(case.results):
            title = f"Scores by test group, {_where(case)}"
            yield "bars", case.name, "", partial(bars, {case.dataset: case.results}, rows=shown, title=title)
        elif case.results:
            plain.append(case)
    if plain:
        shown = _in_order(collected, row_labels(r for case in plain for r in case.results))
        under = {_where(case, dataset=False) for case in plain}
        title = f"ID and OOD scores, {under.pop()}" if len(under) == 1 else "ID and OOD scores"
        datasets = {case.dataset for case in plain}
        alone = len(datasets) == len(plain)
        results = {case.dataset if alone else case.name: case.results for case in plain}
        yield "bars", "", "", lambda: bars(results, rows=shown, title=title)


def _rows(collected: Collected, case: CollectedCase) -> list[str]:
    """The rows of a case that have a result, in the order of the plan."""
    return _in_order(collected, row_labels(case.results))


def _in_order(collected: Collected, there: list[str]) -> list[str]:
    return [row for row in dict.fromkeys([*collected.plan.rows, *there]) if row in there]


def _where(case: CollectedCase, *, dataset: bool = True) -> str:
    shift = "no shift" if case.shift == "no_shift" else f"{case.shift} shift"
    return ", ".join([f"{case.dataset}, {case.domain} domain"] * dataset + [shift, case.setting])


def _maps(collected: Collected, case: CollectedCase, root: Path | None) -> list[Map]:
    drawn = []
    for row, first in maps.mapped_runs(collected, case).items():
        found = maps.map_of(Path(first["folder"]), root)
        ood = np.isin(found.split, [place for place, name in enumerate(SETS) if name.startswith("ood")])
        drawn.append(Map(row, found.xy, found.y, found.domain, ood))
    return drawn


def _counts(case: CollectedCase, root: Path | None) -> list[Counts]:
    return label_counts(
        load_dataset(
            case.dataset, domain=case.domain, shift=case.shift, setting=case.setting, root=root, download=False
        )
    )
