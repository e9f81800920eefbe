"""The page of an audit."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from audit.worlds import world
from mario.audit import Audit, audit_graph
from mario.embedder import read_source
from mario.report.audit_page import audit_page, write_audit

QUICK = {"steps": 2, "hidden_channels": 8, "method": "grace"}


@pytest.fixture(scope="module")
def found() -> Audit:
    data, new = world(0, 480, 4), world(1, 300)
    data.feature_names = ["<script>alert(1)</script>", *data.feature_names[1:]]
    new.x[:, 0] += 3
    data.domain_names = ["<b>north</b>", "south", "east", "west"]
    return audit_graph(read_source(data), read_source(new), given=QUICK)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_is_one_file_that_loads_nothing(found: Audit, tmp_path: Path) -> None:
    text = write_audit(found, tmp_path / "audit.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    names = {tag for tag, _ in tags.seen}
    assert not names & {"script", "link", "img", "iframe", "b onload"}
    assert not any(key in ("src", "onload") for _, attributes in tags.seen for key in attributes)
    assert "default-src 'none'" in html.unescape(text)
    assert [path.name for path in tmp_path.iterdir()] == ["audit.html"]


def test_opens_with_three_sentences_and_the_forest(found: Audit) -> None:
    text = str(audit_page(found))
    answer = text.split('class="answer"')[1].split("</div>")[0]
    assert answer.count("<p>") <= 3
    order = [text.index(mark) for mark in ('class="answer"', 'class="forest"', 'id="shifts"', 'id="candidates"')]
    order += [text.index(mark) for mark in ('id="domains"', 'id="stability"', 'id="limits"', 'id="provenance"')]
    assert order == sorted(order)


def test_names_are_text(found: Audit) -> None:
    text = str(audit_page(found))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "&lt;b&gt;north&lt;/b&gt;" in text


def test_every_candidate_is_on_the_axis(found: Audit) -> None:
    text = str(audit_page(found))
    assert found.scores is not None
    forest = text.split('class="forest"')[1].split('class="key"')[0]
    for one in found.scores.candidates:
        assert one.name in forest
    places = [float(place) for place in re.findall(r"left: ([-0-9.]+)%", forest)]
    assert all(0 <= place <= 100 for place in places)


def test_an_audit_without_training_has_a_page() -> None:
    found = audit_graph(read_source(world(2, 240)), training=False)
    text = str(audit_page(found))
    assert "No shift found" in text
    assert 'class="forest"' not in text
