"""graph.toml: written, read, edited by hand, and refused with the line and the key of what is wrong."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from mario.errors import MarioError
from mario.graphs.card import CardColumn, CardSource, GraphCard, read_card, replace_split, write_card
from mario.graphs.declared import DeclaredSplit
from mario.graphs.rules import SplitRule

FACTS: dict[str, Any] = {
    "name": "pages",
    "file": "graph",
    "metric": "accuracy",
    "setting": "transductive",
    "nodes": 6,
    "edges": 4,
    "features": 3,
    "classes": 2,
}
BUILT: dict[str, Any] = FACTS | {
    "what": 'pages of "four" universities\nand their links',
    "labeled": 5,
    "class_names": ["faculty", "Étudiant"],
    "ids": "ids.arrow",
    "plan": "features.json",
    "like": "",
    "notes": ["a note"],
    "columns": {
        "university": {"role": "domain", "kind": "categorical", "values": ["cornell", "texas"], "features": 0},
        "words a.b": {"role": "feature", "kind": "text", "missing": 2, "features": 3},
        "date (edges)": {"name": "date", "role": "time", "kind": "date", "table": "edges"},
    },
    "sources": [
        {"file": "nodes.csv", "sha256": "ab" * 32, "bytes": 120, "rows": 6},
        {"file": "edges.csv", "sha256": "cd" * 32, "bytes": 80, "rows": 4, "table": "edges"},
    ],
    "split": {"by": "university", "train": ["cornell"], "test": "rest"},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "graph").mkdir()
    for name in ("ids.arrow", "features.json"):
        (tmp_path / name).touch()
    return tmp_path


def test_what_is_written_is_read(home: Path) -> None:
    write_card(home, BUILT)
    card = read_card(home)
    assert card == GraphCard(
        **FACTS,
        folder=home.resolve(),
        what='pages of "four" universities\nand their links',
        labeled=5,
        class_names=("faculty", "Étudiant"),
        ids="ids.arrow",
        plan="features.json",
        notes=("a note",),
        columns={
            "university": CardColumn(
                name="university", role="domain", kind="categorical", values=("cornell", "texas"), features=0
            ),
            "words a.b": CardColumn(name="words a.b", role="feature", kind="text", missing=2, features=3),
            "date (edges)": CardColumn(name="date", role="time", kind="date", table="edges"),
        },
        sources=(
            CardSource(file="nodes.csv", sha256="ab" * 32, bytes=120, rows=6),
            CardSource(file="edges.csv", sha256="cd" * 32, bytes=80, rows=4, table="edges"),
        ),
        split=DeclaredSplit(by="university", train=("cornell",), test="rest"),
    )
    assert card.path == home.resolve() / "graph"
    assert card.domain_columns() == {"university": ("cornell", "texas")}
    assert card.column("time") is None
    assert card.column("time", "edges") == card.columns["date (edges)"]
    text = (home / "graph.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text) == BUILT
    assert '[columns."words a.b"]\nrole = "feature"\n' in text
    assert '\n[split]\nby = "university"\ntrain = ["cornell"]\ntest = "rest"\n' in text


def test_the_least_card(home: Path) -> None:
    write_card(home, FACTS | {"labeled": None})
    card = read_card(home)
    assert (card.split, card.labeled, card.columns, card.sources, card.domains) == (None, None, {}, (), ())


def test_the_old_form_of_a_split(home: Path) -> None:
    write_card(home, FACTS | {"domains": ["year"], "shifts": ["concept"], "split": {"descending": False}})
    assert read_card(home).split == SplitRule(descending=False)


def test_comments_and_dates_of_a_person(home: Path) -> None:
    write_card(home, FACTS)
    with (home / "graph.toml").open("a") as file:
        file.write('# months are enough\n[split] # by hand\nby = "time"\ntrain_until = 2017-06-30\ngap="2 weeks"\n')
    split = read_card(home).split
    assert split == DeclaredSplit(by="time", train_until="2017-06-30", gap="2 weeks")


def test_ten_thousand_columns(home: Path) -> None:
    columns = {f"column {number}": {"role": "feature", "kind": "numeric", "missing": 12} for number in range(10_000)}
    write_card(home, FACTS | {"columns": columns})
    assert len(read_card(home).columns) == 10_000


def test_another_split_leaves_the_rest_as_it_was(home: Path) -> None:
    write_card(home, BUILT)
    text = (home / "graph.toml").read_text(encoding="utf-8")
    text = text.replace("nodes = 6", "nodes = 6 # counted").replace("\n[columns.univ", "\n# columns\n[columns.univ")
    split, rest = text.split("\n[split]\n")[1], text.split("\n[split]\n")[0]
    moved = rest.replace("# columns\n", f"[split]\n# mine\n{split}\n# columns\n", 1)
    (home / "graph.toml").write_text(moved, encoding="utf-8")
    assert replace_split(home, {"by": "time", "train_until": 3}).split == DeclaredSplit(by="time", train_until=3)
    assert (home / "graph.toml").read_text(encoding="utf-8") == f'{rest}\n[split]\nby = "time"\ntrain_until = 3\n'
    assert replace_split(home, None).split is None
    assert (home / "graph.toml").read_text(encoding="utf-8") == f"{rest}"
    with pytest.raises(MarioError, match="by must name what the graph is split by"):
        replace_split(home, {"by": ""})
    assert (home / "graph.toml").read_text(encoding="utf-8") == f"{rest}"
    inline = rest.replace("nodes = 6", 'split = {by = "time", train_until = 3}\nnodes = 6')
    (home / "graph.toml").write_text(inline, encoding="utf-8")
    with pytest.raises(MarioError, match="has a split in a form that cannot be replaced; remove it by hand"):
        replace_split(home, {"by": "degree"})


BAD = [
    ({"naem": '"x"'}, "line 1: unknown key 'naem'; use one of .*did you mean 'name'"),
    ({"labeled": "7"}, "labeled = 7, but there are 6 to have a label"),
    ({"labeled": "true"}, "labeled must be a whole number, got True"),
    ({"class_names": '["a"]'}, "class_names has 1 names, but classes = 2"),
    ({"ids": '"../ids"'}, "ids must be in the folder of graph.toml, got '../ids'"),
    ({"plan": '"absent.json"'}, "plan = 'absent.json', but the folder has no such file"),
    ({"columns": "3"}, "columns must be a table, got 3"),
    ({"columns": "{a = 3}"}, "columns.a must be a table, got 3"),
    ({"columns": '{a = {role = "feature"}}'}, "columns.a has no kind; it needs role, kind"),
    ({"columns": '{a = {role = "feture", kind = "text"}}'}, "unknown role of columns.a 'feture'; .*'feature'"),
    ({"columns": '{a = {role = "drop", kind = "text", missing = -1}}'}, "missing of columns.a must be a whole number"),
    ({"columns": '{a = {role = "drop", kind = "text", mising = 1}}'}, "mising is no key of columns.a; .*'missing'"),
    ({"sources": "[1]"}, "sources must be a list of tables"),
    ({"sources": '[{file = "a"}]'}, r"sources \(number 1\) has no sha256"),
    ({"classes": "1_000_000_000_000_000_000_000"}, "a whole number of more than 64 bits"),
    ({"split": '{train = ["a"]}'}, r"unknown key of \[split\] 'train'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD)
def test_a_bad_card_is_one_error(home: Path, change: dict[str, str], message: str) -> None:
    write_card(home, FACTS)
    text = (home / "graph.toml").read_text()
    lines = {line.split(" = ")[0]: line for line in text.splitlines()}
    for key, value in change.items():
        lines.pop(key, None)
        lines = {key: f"{key} = {value}", **lines}
    (home / "graph.toml").write_text("\n".join(lines.values()))
    with pytest.raises(MarioError, match=message) as caught:
        read_card(home)
    assert str(caught.value).startswith(str(home.resolve() / "graph.toml"))
    assert "\n" not in str(caught.value)


def test_the_line_of_a_mistake_is_named(home: Path) -> None:
    write_card(home, BUILT)
    text = (home / "graph.toml").read_text(encoding="utf-8")
    number = text.splitlines().index('test = "rest"') + 1
    (home / "graph.toml").write_text(text.replace('test = "rest"', 'test = "texas"'), encoding="utf-8")
    with pytest.raises(MarioError, match=rf'toml, line {number}: test must be a list of domains such as \["texas"\]'):
        read_card(home)
    (home / "graph.toml").write_text(text.replace("missing = 2", "missing = -2"), encoding="utf-8")
    number = text.splitlines().index("missing = 2") + 1
    with pytest.raises(MarioError, match=rf"toml, line {number}: missing of columns.words a.b must be a whole number"):
        read_card(home)


def test_nothing_is_written_that_cannot_be_read(home: Path) -> None:
    for change, message in (({"nodes": -1}, "nodes must be a whole number"), ({"name": None}, "missing name")):
        with pytest.raises(MarioError, match=message):
            write_card(home, {**FACTS, **change})
    assert not (home / "graph.toml").exists()
