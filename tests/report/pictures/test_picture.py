"""Files of a picture: three formats, the same bytes each time, nothing half written, nothing too small to read."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from mario.errors import RunFailedError
from mario.lab.frame import frame
from mario.report.pictures import boxes, save_picture
from mario.report.pictures.picture import PAGE, Drawing, sheet
from report.pictures.made_up import run

RUNS = frame(run(m, s, v + 0.01 * s, groups=2) for m, v in (("erm", 0.6), ("mario", 0.7)) for s in range(3))


def drawing() -> Drawing:
    return boxes(RUNS, title="Scores of α < β")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    paths = save_picture(drawing().figure, tmp_path_factory.mktemp("one") / "boxes", title="Scores of α < β")
    return {path.suffix: path.read_bytes() for path in paths}


def test_three_formats_beside_each_other(tmp_path: Path, saved: dict[str, bytes]) -> None:
    assert list(saved) == [".png", ".svg", ".pdf"]
    assert saved[".png"].startswith(b"\x89PNG")
    assert saved[".pdf"].startswith(b"%PDF")
    assert ET.fromstring(saved[".svg"]).tag.endswith("svg")


def test_same_input_same_bytes(tmp_path: Path, saved: dict[str, bytes]) -> None:
    figure = drawing().figure
    for _ in range(2):  # a second time, from the same figure
        again = {p.suffix: p.read_bytes() for p in save_picture(figure, tmp_path / "boxes", title="Scores of α < β")}
        assert again == saved
    assert sorted(path.name for path in tmp_path.iterdir()) == ["boxes.pdf", "boxes.png", "boxes.svg"]


def test_no_date_no_version_no_font_to_install(saved: dict[str, bytes]) -> None:
    for data in saved.values():
        assert not re.search(rb"CreationDate|dc:date|matplotlib v|Matplotlib version", data)
    assert b"<text" not in saved[".svg"]
    assert b"/Type3" not in saved[".pdf"]
    fonts = set(re.findall(rb"/BaseFont /(?:[A-Z]{6}\+)?([A-Za-z-]+)", saved[".pdf"]))
    assert fonts <= {b"DejaVuSans", b"DejaVuSans-Bold"}
    assert fonts


def test_width_in_print(saved: dict[str, bytes]) -> None:
    assert int.from_bytes(saved[".png"][16:20], "big") == 200 * PAGE
    assert f'width="{72 * PAGE:g}pt"'.encode() in saved[".svg"]


def test_the_layout_is_settled_when_the_sheet_is_left() -> None:
    with sheet(3.0, 2.0) as figure:
        axis = figure.subplots()
        axis.set_ylabel("a name")
    before = axis.get_position().bounds
    figure.draw_without_rendering()
    assert axis.get_position().bounds == before
    assert before[0] > 0.1


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boxes.png").write_bytes(b"old")

    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(RunFailedError, match="No space left"):
        save_picture(drawing().figure, tmp_path / "boxes")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("boxes.png", b"old")]
