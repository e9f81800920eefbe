"""The tutorial as a new user goes through it: the built wheel in an empty environment, every command, every output."""

import csv
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2]
PAGE = HOME / "docs" / "tutorial.md"
LEFT_OUT = "..."

pytestmark = pytest.mark.timeout(1800)


class Newcomer:
    """A folder to work in and an environment that has the wheel and nothing else of ours."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",
        }

    def does(self, command: str) -> str:
        """What a command prints; it must end well."""
        done = subprocess.run(
            shlex.split(command), cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the commands of an environment into which the built wheel was installed."""
    home = tmp_path_factory.mktemp("wheel")
    pip = ["-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(home), str(HOME)]
    subprocess.run([sys.executable, *pip, *built], check=True)
    (wheel,) = home.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(home / "env")], check=True)
    python = home / "env" / "bin" / "python"
    wanted = ["install", "--constraint", str(HOME / "constraints.txt"), f"{wheel}[tables]"]
    subprocess.run([str(python), *pip, *wanted], check=True)
    return home / "env" / "bin"


def steps() -> list[tuple[str, list[list[str]]]]:
    """The commands of the page, and the lines shown below each: in pieces, where lines are left out between them."""
    found: list[tuple[str, list[list[str]]]] = []
    for block in re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], [[]]))
            elif line == LEFT_OUT:
                found[-1][1].append([])
            elif words := masked(line):
                found[-1][1][-1].append(words)
    return found


def masked(line: str) -> str:
    """A line without its numbers, which differ in the last digits or in time, and without the width of a table."""
    line = re.sub(r"─+", "─", re.sub(r"[-+]?\d[\d,.]*", "#", line))
    return " ".join(re.sub(r"# (s|min|h)\b", "# time", line).split())


def test_every_output_is_shown_as_it_comes(binaries: Path, tmp_path: Path) -> None:
    newcomer = Newcomer(tmp_path, binaries)
    tried = steps()
    assert len(tried) > 8
    for command, pieces in tried:
        printed = [words for line in newcomer.does(command).splitlines() if (words := masked(line))]
        place = 0
        for piece in pieces:
            text = "\n".join(piece)
            at = next((n for n in range(place, len(printed) + 1) if printed[n : n + len(piece)] == piece), None)
            assert at is not None, f"{command} did not print\n{text}\nbut\n" + "\n".join(printed[place:])
            place = at + len(piece)
    answers = {row["shop"]: row["kind"] for row in rows(tmp_path / "shops-csv" / "next" / "answers.csv")}
    guessed = {row["id"]: row["kind"] for row in rows(tmp_path / "predictions.csv")}
    right = sum(guessed[shop] == kind for shop, kind in answers.items()) / len(answers)
    assert right > 0.55  # a third of the shops are of the largest kind
    assert "<h1" in (tmp_path / "audit.html").read_text(encoding="utf-8")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_webkb(data: Path, folder: Path) -> None:
    """WebKB as a person might have it: URLs as ids, words as a text, a number, a category, 5 % of values missing.

    Texas is next month's university: only ``next_nodes.csv`` and ``next_edges.csv`` have it.
    """
    draw = random.Random(0)
    nodes, edges = [], []
    for place in sorted((data / "WebKB-LINQS").rglob("*.content")):
        for line in place.read_text(encoding="utf-8").splitlines():
            url, *words, label = line.split("\t")
            own = [f"word{number}" for number, there in enumerate(words) if there == "1"]
            cells = [" ".join(own), str(len(own)), url.split("/")[0].split(".")[-1]]
            cells = ["" if draw.random() < 0.05 else cell for cell in cells]
            nodes.append([url, place.stem, *cells, label])
    known = {row[0] for row in nodes}
    for place in sorted((data / "WebKB-LINQS").rglob("*.cites")):
        pairs = [line.split() for line in place.read_text(encoding="utf-8").splitlines()]
        edges += [(place.stem, pair) for pair in pairs if len(pair) == 2 and set(pair) <= known]
    header = ["url", "university", "text", "words", "server", "label"]
    for name, texas in (("", False), ("next_", True)):
        for kind, head, lines in (
            ("nodes", header, [row if not texas else [*row[:-1], ""] for row in nodes if (row[1] == "texas") == texas]),
            ("edges", ["source", "target"], [pair for where, pair in edges if (where == "texas") == texas]),
        ):
            with (folder / f"{name}{kind}.csv").open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([head, *lines])


def test_web_pages_of_a_new_university(binaries: Path, tmp_path: Path, mario_data: Path) -> None:
    write_webkb(mario_data, tmp_path)
    newcomer = Newcomer(tmp_path, binaries)
    newcomer.does("mario graph build --nodes nodes.csv --edges edges.csv -o web")
    newcomer.does("mario graph build --nodes next_nodes.csv --edges next_edges.csv --like web -o texas")
    newcomer.does("mario fit web -o model --budget 1m")
    newcomer.does("mario embed model texas -o z.tsv")
    newcomer.does("mario predict model texas -o predictions.csv")
    newcomer.does("mario audit web texas -o audit.html --only-shifts")
    urls = [row["url"] for row in rows(tmp_path / "next_nodes.csv")]
    predicted = rows(tmp_path / "predictions.csv")
    assert [row["id"] for row in predicted] == urls
    assert {row["label"] for row in predicted} <= {row["label"] for row in rows(tmp_path / "nodes.csv")}
    assert len((tmp_path / "z.tsv").read_text(encoding="utf-8").splitlines()) >= len(urls)
    assert "texas" in (tmp_path / "audit.html").read_text(encoding="utf-8")


def test_pages_of_facebook_from_tables_as_they_were_published(binaries: Path, tmp_path: Path, mario_data: Path) -> None:
    newcomer = Newcomer(tmp_path, binaries)
    tables = mario_data / "tables" / "facebook-pages"
    nodes = f"--nodes {tables / 'target.csv'} --nodes {tables / 'features.json'}"
    newcomer.does(f"mario graph build {nodes} --edges {tables / 'edges.csv'} --label page_type -o pages")
    newcomer.does("mario fit pages -o model --budget 30s")
    newcomer.does("mario predict model pages -o predictions.csv")
    assert [row["id"] for row in rows(tmp_path / "predictions.csv")] == [
        row["id"] for row in rows(tables / "target.csv")
    ]
