"""Colors apart for every eye and on both grounds, and the same method in the same color everywhere."""

from itertools import combinations

import numpy as np
import pytest

from mario.report.pictures.palette import COLORS, DASHES, HATCHES, LOOKS, MARKERS, ORANGE, SKY, looks

# Machado, Oliveira & Fernandes (2009), full severity, on linear RGB.
EYES = {
    "all three": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(color: str) -> np.ndarray:
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    x, y, z = np.array(to_xyz) @ np.clip(rgb, 0, 1) / (0.95047, 1.0, 1.08883)
    fx, fy, fz = (np.cbrt(v) if v > 216 / 24389 else (24389 / 27 * v + 16) / 116 for v in (x, y, z))
    return np.array([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)])


def contrast(one: str, other: str) -> float:
    a, b = sorted(float(linear(c) @ (0.2126, 0.7152, 0.0722)) for c in (one, other))
    return (b + 0.05) / (a + 0.05)


def test_the_simulation_confuses_what_dichromats_confuse() -> None:
    # A red and a green that only the third cone tells apart: far for three, near for two.
    red, green = linear("#B45A3C"), linear("#808040")
    seen = {eye: np.linalg.norm(lab(m @ red) - lab(m @ green)) for eye, m in EYES.items()}
    assert seen["deuteranopia"] < 0.3 * seen["all three"]


@pytest.mark.parametrize("eye", EYES)
def test_all_eight_colors_stay_apart(eye: str) -> None:
    seen = {color: lab(np.array(EYES[eye]) @ linear(color)) for color in COLORS}
    for one, other in combinations(COLORS, 2):
        # Steps of 1 are just seen side by side; 12 are another color at a glance.
        assert np.linalg.norm(seen[one] - seen[other]) > 12, (one, other)


@pytest.mark.parametrize("color", COLORS)
def test_colors_are_seen_on_paper_and_on_a_dark_page(color: str) -> None:
    # 3:1 is what WCAG asks of graphics. Okabe and Ito's orange and sky blue are paler: what is filled with them has an
    # edge in ink, and no method of the paper's main figures is drawn in them.
    assert contrast(color, "#FFFFFF") > (2.2 if color in (ORANGE, SKY) else 3.0)
    assert contrast(color, "#14171A") > 3.0
    assert not {LOOKS[method].color for method in ("mario", "grace", "erm", "eerm")} & {ORANGE, SKY}


def test_eight_rows_differ_in_every_way() -> None:
    for ways in (COLORS, MARKERS, DASHES, HATCHES):
        assert len(set(ways)) == 8
    every = looks(LOOKS)
    assert every == LOOKS
    for way in ("color", "marker", "dash", "hatch"):
        assert len({getattr(look, way) for look in every.values()}) == 8


def test_a_method_has_its_look_wherever_it_stands() -> None:
    for others in ([], ["grace"], ["costa", "bgrl", "swav", "dgi"]):
        assert looks([*others, "mario"])["mario"] == LOOKS["mario"]


def test_a_row_without_a_look_has_a_free_one() -> None:
    found = looks(["mario", "mario w/o ad", "mario w/o cmi", "mario w/o cmi, ad"])
    assert list(found) == ["mario", "mario w/o ad", "mario w/o cmi", "mario w/o cmi, ad"]
    assert len({look.color for look in found.values()}) == 4


def test_many_rows_are_all_different() -> None:
    assert len(set(looks([f"row {i}" for i in range(64)]).values())) == 64
    assert len(looks([f"row {i}" for i in range(80)])) == 80
