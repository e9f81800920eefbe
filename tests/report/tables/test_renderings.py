"""Markdown, LaTeX, HTML, CSV and terminal of one made-up study, all with the same figures."""

import csv
import re
import shutil
import subprocess
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from made_up import changed, collected
from mario.report import (
    entries,
    long_table,
    study_table,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    to_rich,
)
from mario.report.tables.columns import LONG_COLUMNS, LongColumn
from mario.report.tables.latex import escape_latex

UP = [0.001 * i for i in range(9)]
STUDY = collected(
    {
        "good-cbas-concept": {
            "erm": [0.8] * 9, "raw-features": [0.6] * 9, "grace": [0.88] * 9, "mario": [0.9 + d for d in UP]
        },
        "good-webkb-concept": {"erm": [0.2], "grace": [0.3], "mario": [None]},
    },
    title="Shifts & <b>100 %</b>",
    failed={("good-webkb-concept", "mario"): "Memory_Error: a|b"},
)  # fmt: skip
TABLE = study_table(STUDY)


def test_markdown() -> None:
    text = to_markdown(TABLE)
    lines = text.splitlines()
    assert lines[0] == "**Shifts & &lt;b>100 %&lt;/b> (Table 2 of the paper)**"
    assert lines[2] == (
        "| method | good-cbas, color<br>ID accuracy % | good-cbas, color<br>OOD accuracy % | good-webkb, university<br>"
        "ID accuracy % | good-webkb, university<br>OOD accuracy % | all cases<br>OOD − grace |"
    )
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")}) == 1
    assert lines[7].startswith(
        "| mario | **95.40 ± 0.27** (9)<br>*94.36 ± 1.21, +0.9 sd* | **90.40 ± 0.27** (9) ↑<br>*91.28 ± 1.10, −0.8 sd* "
        "| failed<br>*65.67 ± 2.81* | failed<br>*37.15 ± 2.37* | +2.40 ↑<br>9 pairs, 1 of 1 cases above, p = 0.008 |"
    )
    assert "<u>88.00 ± 0.00</u> (9)" in lines[6]
    assert "Memory_Error: a\\|b" in text


def test_latex_is_ascii_balanced_and_even() -> None:
    text = to_latex(TABLE)
    assert text.isascii()
    assert (
        r"\caption{Shifts \& \textless{}b\textgreater{}100 \%\textless{}/b\textgreater{} (Table 2 of the paper)}"
        in text
    )
    assert r"\textbf{90.40 $\pm$ 0.27} (9)$\uparrow$" in text
    assert r"\underline{88.00 $\pm$ 0.00} (9)" in text
    assert r"{\footnotesize 91.28 $\pm$ 1.10, $-$0.8 sd}" in text
    assert r"Memory\_Error: a\textbar{}b" in text
    plain = re.sub(r"\\[{}&%$#_]", "", text)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    assert re.findall(r"\\begin\{(\S+?)\}", text) == re.findall(r"\\end\{(\S+?)\}", text)[::-1]
    body = [
        line for line in plain[plain.index("midrule") : plain.index("bottomrule")].splitlines() if line.endswith(r"\\")
    ]
    assert {line.count("&") for line in body} == {5}  # a label, four columns, all cases


def test_latex_of_many_cases_is_told_in_blocks() -> None:
    names = ("good-cbas", "good-webkb", "webkb")
    rows = {"grace": [0.8, 0.9], "mario": [0.8, 0.9]}
    text = to_latex(study_table(collected({f"{n}-{shift}": rows for n in names for shift in ("concept", "covariate")})))
    first, second = text.split(r"\end{tabular}")[:2]
    assert (first.count(r"\multicolumn{2}"), second.count(r"\multicolumn{2}")) == (3, 3)
    assert "webkb, university, covariate" in second
    assert ("all cases" in first, "all cases" in second) == (False, True)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path: Path) -> None:
    document = (
        r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}" + to_latex(TABLE) + r"\end{document}"
    )
    (tmp_path / "table.tex").write_text(document)
    subprocess.run(["pdflatex", "-halt-on-error", "table.tex"], cwd=tmp_path, check=True, capture_output=True)


def test_latex_escapes_what_it_knows_and_drops_what_it_cannot_print() -> None:
    assert escape_latex("a_b\\c ↑ γ 中") == r"a\_b\textbackslash{}c $\uparrow$ $\gamma$ "


class Tags(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    ("html", "columns"), [(to_html(TABLE), 6), (to_html(long_table(entries(STUDY), title="all")), 43)]
)
def test_html_can_be_sorted_and_read_aloud(html: str, columns: int) -> None:
    page = Tags(html)
    heads = [a for tag, a in page.tags if tag == "th"]
    assert all(a.get("scope") in ("col", "colgroup", "row") for a in heads)
    assert [a["data-column"] for a in heads if "data-column" in a] == [str(i) for i in range(columns)]
    assert [tag for tag, _ in page.tags].count("caption") == 1
    rows = [row.split("</tr>")[0] for row in html.split("<tbody>")[1].split("<tr ")[1:]]
    for row in rows:
        cells = re.findall(r"<td [^>]*data-sort=\"([^\"]*)\"", row)
        assert len(cells) == columns - 1, "the head of a row is sorted by name"
    assert "<b>100" not in html


def test_html_sorts_by_number_and_leaves_what_is_missing_empty() -> None:
    html = to_html(TABLE)
    mario = html[html.index('data-label="mario"') :].split("</tr>")[0]
    assert re.findall(r"data-sort=\"([^\"]*)\"", mario) == ["95.4000", "90.4000", "", "", "2.4000"]
    assert 'class="ood best"' in mario
    assert 'class="ood empty" data-sort="" title="1 failed (Memory_Error: a|b)"' in mario
    assert "above grace, p = 0.012 after Holm’s correction" in mario
    assert re.findall(r"<tr class=\"(\w+)\"", html) == ["supervised", "control", "compared", "subject"]
    assert 'class="id short"' not in html


def test_html_has_the_spread_over_splits_where_seeds_share_one() -> None:
    study = collected({"good-cbas-concept": {"grace": [0.8, 0.8, 0.8, 0.8], "mario": [0.9, 0.7, 0.6, 0.6]}})
    study = changed(study, lambda job, _: {"split_seed": job.spec.seed // 2})
    # Means of the splits 0.8 and 0.6: sd 0.2 / √2.
    assert 'title="± 14.14 over the means of 2 splits"' in to_html(study_table(study))
    assert "splits" not in to_html(TABLE)


def test_terminal_fits_100_columns() -> None:
    console = Console(width=100, record=True, file=StringIO())
    console.print(to_rich(TABLE))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 100
    assert "90.40±0.27↑" in text
    assert "91.28 −0.8 sd" in text


def test_many_cases_are_told_in_parts_of_100_columns() -> None:
    names = ("good-cbas", "good-webkb", "webkb", "good-twitch")
    rows = {"grace": [0.8, 0.9], "mario w/o cmi, ad": [0.8, None]}
    cases = {f"{name}-{shift}": rows for name in names for shift in ("concept", "covariate")}
    console = Console(width=100, record=True, file=StringIO())
    console.print(to_rich(study_table(collected(cases))))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith(" mario w/o cmi, ad") for line in lines) == 2
    assert not any("…" in line for line in lines)
    assert sum(line.count("covariate") for line in lines if "·" not in line and "good-" not in line) >= 4


def test_long_form_as_csv() -> None:
    lines = list(csv.DictReader(StringIO(to_csv(entries(STUDY)))))
    assert [line["label"] for line in lines] == ["erm", "raw-features", "grace", "mario", "erm", "grace", "mario"]
    mario = next(line for line in lines if line["label"] == "mario")
    assert list(mario) == [column.name for column in LONG_COLUMNS]
    told = {"n": "9", "asked": "9", "ood_mean": "90.4", "ood_splits": "9", "gap_mean": "5.0", "paper": "Table 2"}
    told |= {"paper_ood_mean": "91.28", "ood_difference": "-0.88", "ood_difference_in_sd": "-0.8", "against": "grace"}
    told |= {"pairs": "9", "mean_difference": "2.4", "wins": "9", "ties": "0", "losses": "0", "p": "0.003906"}
    assert {name: mario[name] for name in told} == told
    assert (lines[-1]["n"], lines[-1]["ood_mean"], lines[-1]["why"]) == ("0", "", "1 failed (Memory_Error: a|b)")


def test_a_column_of_the_long_form_is_declared_in_one_place() -> None:
    column = LongColumn("share_done", lambda entry: 100 * entry.n / entry.asked)
    found = entries(STUDY)
    LONG_COLUMNS.append(column)
    try:
        text, table = to_csv(found), long_table(found, title="all")
    finally:
        LONG_COLUMNS.remove(column)
    assert [line["share_done"] for line in csv.DictReader(StringIO(text))][-2:] == ["100.0", "0.0"]
    assert (table.columns[-1].head, table.lines[0].cells[-1].text) == ("share done", "100.00")
    assert ">share done</th>" in to_html(table)


@pytest.mark.parametrize("render", [to_markdown, to_html])
def test_names_are_escaped(render: object) -> None:
    evil = "<script>alert(1)</script>"
    study = collected({"good-cbas-concept": {evil: [0.9], "a|b": [0.9]}}, title=evil, faults=[evil])
    for table in (study_table(study), long_table(entries(study), title=evil)):
        assert "<script" not in render(table)  # type: ignore[operator]
    assert "a\\|b" in to_markdown(study_table(study))


def test_names_in_brackets_are_not_terminal_markup() -> None:
    console = Console(width=140, record=True, file=StringIO())
    console.print(to_rich(study_table(collected({"good-cbas-concept": {"[red]x[/red]": [0.9]}}))))
    assert "[red]x[/red]" in console.export_text()


def test_one_case_in_the_terminal_has_all_of_it() -> None:
    scores = {"random-init": [0.76], "grace": [0.88, 0.92], "mario": [0.92, 0.94]}
    console = Console(width=80, record=True, file=StringIO())
    console.print(to_rich(study_table(collected({"good-cbas-concept": scores}), detail=True)))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    place = next(i for i, line in enumerate(lines) if line.strip().startswith("▸ mario"))
    assert lines[place].split() == ["▸", "mario", "98.00±1.41", "93.00±1.41", "5.00±0.00", "+3.00"]
    assert lines[place + 1].split()[:4] == ["94.36", "+3.0", "sd", "91.28"]


@pytest.mark.parametrize("render", [to_markdown, to_latex, to_html])
def test_neither_oracle_nor_last_is_ever_shown(render: object) -> None:
    text = render(TABLE)  # type: ignore[operator]
    for forbidden in ("oracle", "99.99", "33.33", "22.22", "11.11"):
        assert forbidden not in text
