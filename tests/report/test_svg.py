"""SVG fit for a page: no clashing ids, no date, the page's own ink."""

import re
import xml.etree.ElementTree as ET

import matplotlib
from matplotlib.figure import Figure

from mario.report.pictures.palette import BLUE
from mario.report.svg import INK, style, to_image, to_svg


def drawing(name: str) -> str:
    with matplotlib.rc_context(style(name)):
        figure = Figure(figsize=(2, 2))
        axis = figure.subplots()
        axis.plot([0, 1], [0, 1], color=BLUE, marker="o", clip_on=True)
        axis.set_title("a < b & c")
        return to_svg(figure, name=name, title="<title>", description="x & y")


def test_well_formed_labeled_and_scalable() -> None:
    text = drawing("one")
    root = ET.fromstring(text)
    assert root.tag.endswith("svg")
    assert root.get("role") == "img"
    assert root.get("viewBox")
    assert root.get("width") is None
    assert root.get("height") is None
    labels = {element.get("id"): element.text for element in root if element.get("id")}
    assert [labels[name] for name in (root.get("aria-labelledby") or "").split()] == ["<title>", "x & y"]


def test_ids_of_two_drawings_do_not_clash_and_references_hold() -> None:
    one, two = drawing("one"), drawing("two")
    ids_one, ids_two = (re.findall(r'\bid="([^"]+)"', text) for text in (one, two))
    assert len(ids_one) == len(set(ids_one))
    assert not set(ids_one) & set(ids_two)
    used = re.findall(r'href="#([^"]+)"', one) + re.findall(r"url\(#([^)]+)\)", one)
    assert used
    assert set(used) <= set(ids_one)


def test_same_bytes_no_date_and_no_color_of_its_own_for_text() -> None:
    text = drawing("one")
    assert text == drawing("one")
    assert "<metadata" not in text
    assert "dc:date" not in text
    assert INK not in text
    assert "currentColor" in text
    assert BLUE.lower() in text.lower()


def test_an_image_has_its_own_ground_and_ink_in_both_schemes() -> None:
    with matplotlib.rc_context(style("image")):
        figure = Figure(figsize=(2, 2))
        figure.subplots().plot([0, 1], [0, 1], color=INK)
        text = to_image(figure, name="image", title="A line", description="It rises.")
    ET.fromstring(text)
    light, dark = re.findall(r"svg\{background:(#\w+);color:(#\w+)\}", text)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    assert "prefers-color-scheme:dark" in text
    assert "#000" not in text.replace(light[1], "").replace(dark[1], "")
