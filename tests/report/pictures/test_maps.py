"""Maps: which nodes and classes are drawn where, one scale a map, images where there are many dots."""

import numpy as np
import pytest

from mario.errors import MarioError
from mario.report.pictures import Map, embedding_maps, id_and_ood_maps
from mario.report.pictures.maps import largest_classes
from mario.report.svg import to_svg
from report.pictures.made_up import texts


def made(label: str, n: int = 60, classes: int = 3, domains: int = 2) -> Map:
    node = np.arange(n)
    xy = np.random.default_rng(0).normal(size=(n, 2)) * 20
    return Map(label, xy, node % classes, node % domains, node % 4 == 0)


def dots(axis: object) -> dict[str, int]:
    return {part.get_label(): len(part.get_offsets()) for part in axis.collections}  # type: ignore[attr-defined]


def test_classes_above_and_domains_below() -> None:
    drawing = embedding_maps([made("grace"), made("mario")])
    by_class, _, by_domain, _ = drawing.figure.axes
    assert dots(by_class) == {"class 0": 20, "class 1": 20, "class 2": 20}
    assert dots(by_domain) == {"domain 0": 30, "domain 1": 30}
    assert {"grace", "mario", "by class", "by domain", "class 2", "domain 1"} <= texts(drawing.figure)
    assert "mario: 60 nodes, 15 of them out of distribution, 3 classes, 2 domains." in drawing.description


def test_id_above_and_ood_below_on_the_same_scale() -> None:
    drawing = id_and_ood_maps([made("grace")])
    above, below = drawing.figure.axes
    assert sum(dots(above).values()) == 45
    assert sum(dots(below).values()) == 15
    assert above.get_xlim() == below.get_xlim()
    assert above.get_ylim() == below.get_ylim()
    assert {"ID nodes", "OOD nodes"} <= texts(drawing.figure)


def test_the_largest_classes_alone_are_drawn_and_it_is_said() -> None:
    assert largest_classes(np.array([5, 5, 1, 2, 2, 9]), 3).tolist() == [1, 2, 5]
    many = made("grace", n=200, classes=11)
    assert len(dots(embedding_maps([many]).figure.axes[0])) == 8
    apart = id_and_ood_maps([many])
    assert list(dots(apart.figure.axes[0])) == [f"class {c}" for c in range(7)]
    assert "the 7 largest of 11 classes" in apart.description


def test_many_domains_are_a_scale_in_equal_shares() -> None:
    drawing = embedding_maps([made("grace", n=100, domains=20)])
    assert {"domain 0", "domain 19"} <= texts(drawing.figure)
    (dots,) = drawing.figure.axes[1].collections
    # Every domain has five nodes of a hundred: half of those of its own count as below.
    assert list(dots.get_array()) == pytest.approx([0.025 + 0.05 * (i % 20) for i in range(100)])


def test_many_dots_are_an_image_in_the_page() -> None:
    few, many = (embedding_maps([made("grace", n=n)]).figure for n in (60, 600))
    assert "<image" not in to_svg(few, name="few", title="t", description="d")
    assert to_svg(many, name="many", title="t", description="d").count("<image") >= 2


def test_five_maps_begin_a_second_block_and_a_collapsed_one_is_drawn() -> None:
    spot = Map("spot", np.zeros((9, 2)), np.arange(9), np.zeros(9, dtype=int), np.zeros(9, dtype=bool))
    figure = id_and_ood_maps([*(made(f"row {i}", n=12) for i in range(4)), spot]).figure
    assert [axis.get_title() for axis in figure.axes if axis.get_title()] == [*(f"row {i}" for i in range(4)), "spot"]


def test_wrong_input_is_named() -> None:
    with pytest.raises(MarioError, match="one row per node, got 3, 2, 3, 3"):
        Map("m", np.zeros((3, 2)), np.zeros(2), np.zeros(3), np.zeros(3))
    with pytest.raises(MarioError, match="got none"):
        embedding_maps([])
