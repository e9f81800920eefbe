"""The place of an embedding map on the page, and the map in numbers for whoever does not see it."""

from collections.abc import Mapping
from html import escape

from mario.evaluation import SETS
from mario.lab.studies.plan import CollectedCase
from mario.report.maps import MapData
from mario.report.page.markup import file_name, table_html
from mario.report.pictures.curves import SERIES

_SET_NAMES = {series.key: series.label for series in SERIES}


def map_block(place: int, case: CollectedCase, maps: Mapping[str, MapData], pictures: str = "") -> str:
    """Where the script builds the map numbered ``place``, and the same in numbers for whoever does not see it.

    ``pictures`` are figures of the same maps.
    """
    first = next(iter(maps.values()))
    unit = first.unit
    part = f"{len(first.node):,} of " if first.total > len(first.node) else ""
    words = (
        f"{part}{first.total:,} {unit}s, the first run of each method, its last checkpoint. t-SNE keeps near "
        "neighbors near; the sizes of clusters and the distances between them mean nothing."
    )
    name = escape(case.name)
    drawn = f"<details><summary>The map of {name} as a picture</summary>{pictures}</details>" if pictures else ""
    return (
        f'<section class="map" data-case="{name}">'
        f"<h4>{name}</h4><p>{escape(words)}</p>"
        f'<div class="embedding scripted-only" data-map-of="{place}"></div>'
        f"<details><summary>The map of {name} in numbers</summary>{_map_table(case, maps)}{_class_table(case, first)}"
        f"</details>{drawn}"
        f'<p class="save"><button type="button" data-save="map" data-map="{place}" '
        f'data-name="{escape(file_name(case.name))}-map.csv">Coordinates of {name}, CSV</button></p></section>'
    )


def _map_table(case: CollectedCase, maps: Mapping[str, MapData]) -> str:
    first = next(iter(maps.values()))
    there = [i for i in range(len(SETS)) if first.counts[i].sum()]
    heads = "".join(
        f'<th scope="col">{_SET_NAMES[SETS[i]]} <small>{int(first.counts[i].sum()):,} {first.unit}s</small></th>'
        for i in there
    )
    rows = []
    for label, found in maps.items():
        cells = "".join(f"<td>{100 * found.correct[i].sum() / max(1, found.counts[i].sum()):.2f}</td>" for i in there)
        rows.append(f'<tr data-label="{escape(label)}"><th scope="row">{escape(label)}</th>{cells}</tr>')
    caption = f"{case.name}: {first.unit}s whose class the prediction has right, percent of all in the set"
    return table_html(caption, f'<tr><th scope="col">Method</th>{heads}</tr>', rows)


def _class_table(case: CollectedCase, found: MapData) -> str:
    there = [i for i in range(len(SETS)) if found.counts[i].sum()]
    heads = "".join(f'<th scope="col">{_SET_NAMES[SETS[i]]}</th>' for i in there)
    rows = []
    for label in range(found.counts.shape[1]):
        cells = "".join(f"<td>{int(found.counts[i, label]):,}</td>" for i in there)
        rows.append(f'<tr><th scope="row">class {label}</th>{cells}</tr>')
    caption = f"{case.name}: {found.unit}s of each class in each set"
    return table_html(caption, f'<tr><th scope="col">Class</th>{heads}</tr>', rows, kind="")
