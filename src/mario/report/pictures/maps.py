"""Maps of embeddings, method beside method: by class and by domain (the paper's Figure 8), and ID and OOD apart.

A map has two coordinates per node, from t-SNE for example. The paper colors the classes that have the most nodes and
leaves out the others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mario.errors import MarioError
from mario.report import maps as run_maps
from mario.report.pictures.palette import COLORS, MARKERS, ORDERED
from mario.report.pictures.picture import COLUMN, PAGE, Drawing, sheet
from mario.report.pictures.registry import Sketch, register_picture
from mario.report.pictures.scores import where

if TYPE_CHECKING:
    from mario.lab.studies.collect import Collected, CollectedCase
    from mario.lab.studies.plan import Plan

LARGEST, LARGEST_APART = 8, 7
"""How many classes the paper shows: in Figure 8, and in its appendix with ID and OOD apart."""

_COLUMNS = 4
_RASTER_ABOVE = 500  # with more dots, a panel is an image


@dataclass(frozen=True, eq=False)
class Map:
    """The map of one run: for each node its place, class and domain, and whether it is out of distribution."""

    label: str
    xy: np.ndarray
    y: np.ndarray
    domain: np.ndarray
    ood: np.ndarray

    def __post_init__(self) -> None:
        lengths = [len(self.xy), len(self.y), len(self.domain), len(self.ood)]
        if len(set(lengths)) > 1 or np.ndim(self.xy) != 2 or not lengths[0]:
            raise MarioError(f"xy, y, domain and ood must have one row per node, got {', '.join(map(str, lengths))}")


def embedding_maps(maps: Sequence[Map], *, title: str = "") -> Drawing:
    """Two rows of panels, the same maps by class (the eight largest) and by domain; up to four maps side by side.

    Up to eight domains have a color each; more are ordered values, such as degrees, and run from blue to vermillion in
    equal shares of the nodes.

    Example:
        >>> xy, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3
        >>> embedding_maps([Map("grace", xy, y, np.arange(20) % 2, np.arange(20) > 9)]).description
        'grace: 20 nodes, 10 of them out of distribution, 3 classes, 2 domains.'
    """
    classes = _largest(maps, LARGEST)
    domains = np.unique(np.concatenate([m.domain for m in maps]))
    few = len(domains) <= len(COLORS)
    with sheet(*_size(maps, 0.75)) as figure:
        pairs = _panels(figure, maps, ("by class", "by domain"))
        for m, (by_class, by_domain) in zip(maps, pairs, strict=True):
            _scatter(by_class, m, [(m.y == label, f"class {label}") for label in classes])
            if few:
                _scatter(by_domain, m, [(m.domain == value, f"domain {value}") for value in domains])
            else:
                by_domain.scatter(*m.xy.T, c=_quantiles(m.domain), cmap=_ordered(), vmin=0, vmax=1, **_dots(m))
        _legend(figure, [by_class for by_class, _ in pairs], "outside upper center")
        below = [by_domain for _, by_domain in pairs]
        if few:
            _legend(figure, below, "outside lower center")
        else:
            scale = figure.colorbar(
                below[0].collections[0], ax=below, location="bottom", aspect=50, shrink=0.6, pad=0.02
            )
            scale.set_ticks([0, 1], labels=[f"domain {domains[0]}", f"domain {domains[-1]}"])
            scale.outline.set_visible(False)
    return Drawing(figure, title or "Maps of the embeddings, by class and by domain", _in_words(maps, classes))


def id_and_ood_maps(maps: Sequence[Map], *, title: str = "") -> Drawing:
    """Two rows of panels, the nodes in distribution above and those out of it below, by class (the seven largest).

    Both panels of a map have one scale, so that a place above is the same place below.

    Example:
        >>> xy, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 3
        >>> id_and_ood_maps([Map("grace", xy, y, y, np.arange(20) > 9)]).title
        'Maps of the embeddings, ID and OOD apart'
    """
    classes = _largest(maps, LARGEST_APART)
    with sheet(*_size(maps, 0.4)) as figure:
        pairs = _panels(figure, maps, ("ID nodes", "OOD nodes"))
        for m, panels in zip(maps, pairs, strict=True):
            for axis, nodes in zip(panels, (~m.ood, m.ood), strict=True):
                _scatter(axis, m, [(nodes & (m.y == label), f"class {label}") for label in classes])
        _legend(figure, [axis for panels in pairs for axis in panels], "outside lower center")
    return Drawing(figure, title or "Maps of the embeddings, ID and OOD apart", _in_words(maps, classes))


def largest_classes(y: np.ndarray, most: int) -> np.ndarray:
    """The classes with the most nodes, in order of their number; where two are equal, the first."""
    classes, sizes = np.unique(y, return_counts=True)
    return np.sort(classes[np.argsort(-sizes, kind="stable")][:most])


def _quantiles(values: np.ndarray) -> np.ndarray:
    """The share of nodes below each value, half of its equals counted."""
    order = np.sort(values)
    return (np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right")) / (2 * len(order))


def _ordered() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("ordered", list(ORDERED))


def _largest(maps: Sequence[Map], most: int) -> np.ndarray:
    if not maps:
        raise MarioError("maps must hold at least one map, got none")
    return largest_classes(np.concatenate([m.y for m in maps]), most)


def _size(maps: Sequence[Map], legends: float) -> tuple[float, float]:
    # One or two maps are no larger than three would be.
    width = COLUMN if len(maps) == 1 else PAGE
    side = (width - 0.3) / max(min(_COLUMNS, len(maps)), 1 if width == COLUMN else 3)
    side = min(side, 2.2)
    return width, 2 * -(-len(maps) // _COLUMNS) * (side + 0.15) + legends


def _panels(figure: Any, maps: Sequence[Map], names: tuple[str, str]) -> list[tuple[Any, Any]]:
    """Two panels per map, one above the other, both with the scale of the whole map."""
    columns = min(_COLUMNS, len(maps))
    blocks = -(-len(maps) // columns)
    axes = figure.subplots(2 * blocks, columns, squeeze=False)
    pairs = []
    for place in range(blocks * columns):
        block, column = divmod(place, columns)
        pair = axes[2 * block, column], axes[2 * block + 1, column]
        if place >= len(maps):
            for axis in pair:
                axis.set_axis_off()
            continue
        xy = maps[place].xy
        # A collapsed encoder has every node on one spot.
        reach = np.maximum(0.53 * np.ptp(xy, axis=0), 1e-3)
        middle = (xy.max(0) + xy.min(0)) / 2
        for axis, name in zip(pair, names, strict=True):
            axis.set_xlim(middle[0] - reach[0], middle[0] + reach[0])
            axis.set_ylim(middle[1] - reach[1], middle[1] + reach[1])
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_visible(True)
                spine.set_alpha(0.25)
            axis.set_box_aspect(1)
            axis.set_ylabel(name if column == 0 else "")
        pair[0].set_title(maps[place].label)
        pairs.append(pair)
    return pairs


def _dots(m: Map) -> dict[str, Any]:
    size = float(np.clip(4000 / len(m.xy), 2.0, 9.0))
    return {"s": size, "alpha": 0.9, "linewidths": 0, "rasterized": len(m.xy) > _RASTER_ABOVE}


def _scatter(axis: Any, m: Map, parts: Sequence[tuple[np.ndarray, str]]) -> None:
    # Color and shape both show the part, so that either is enough.
    for (nodes, label), color, marker in zip(parts, COLORS, MARKERS, strict=False):
        axis.scatter(*m.xy[nodes].T, c=color, marker=marker, label=label, **_dots(m))


def _legend(figure: Any, axes: Sequence[Any], loc: str) -> None:
    from matplotlib.lines import Line2D

    labels = list(dict.fromkeys(label for axis in axes for label in axis.get_legend_handles_labels()[1]))
    # Dots of a legend are larger than those of the map, so that their shape can be seen.
    handles = [
        Line2D([], [], color=color, marker=marker, linestyle="", markersize=5)
        for _, color, marker in zip(labels, COLORS, MARKERS, strict=False)
    ]
    wide = figure.get_figwidth() > COLUMN
    figure.legend(
        handles, labels, loc=loc, ncols=min(len(labels), 8 if wide else 4), handletextpad=0.1, columnspacing=1.0
    )


def _in_words(maps: Sequence[Map], classes: np.ndarray) -> str:
    sentences = []
    for m in maps:
        there = len(np.unique(m.y))
        shown = f"the {len(classes)} largest of {there} classes" if there > len(classes) else f"{there} classes"
        sentences.append(
            f"{m.label}: {len(m.xy)} nodes, {int(m.ood.sum())} of them out of distribution, {shown}, "
            f"{len(np.unique(m.domain))} domains."
        )
    return " ".join(sentences)


@register_picture("map")
def sketches(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    yield from _sketches(study, root, embedding_maps, "Embeddings")


@register_picture("map-id-ood")
def sketches_apart(study: "Collected", root: Path | None) -> Iterator[Sketch]:
    yield from _sketches(study, root, id_and_ood_maps, "Embeddings, ID and OOD apart")


def _sketches(study: "Collected", root: Path | None, draw: Callable[..., Drawing], title: str) -> Iterator[Sketch]:
    for case in study.cases:
        if len(case.runs):
            made = partial(_of_case, study.plan, case, root, draw, f"{title}, {where(case.case)}")
            yield Sketch(made, case.name)


def _of_case(
    plan: "Plan", case: "CollectedCase", root: Path | None, draw: Callable[..., Drawing], title: str
) -> Drawing:
    drawn = []
    for row, folder in run_maps.mapped_runs(plan, case).items():
        found = run_maps.map_of(folder, root)
        drawn.append(Map(row, found.xy, found.y, found.domain, found.ood))
    return draw(drawn, title=title)
