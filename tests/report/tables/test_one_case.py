"""Tables of tiny literal results, the expected text written out."""

from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from mario.errors import MarioError
from mario.report.numbers import points
from mario.report.tables import tabulate, tabulate_all, to_html, to_markdown, to_rich, verdict


def run(method: str, seed: int, id_test: float, ood_test: float | None, **other: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "dataset": "good-cbas",
        "domain": "color",
        "shift": "concept",
        "setting": "transductive",
        "split_seed": 0,
        "method": method,
        "seed": seed,
        "encoder": "gcn",
        "metric": "accuracy",
        "steps": 300,
        "checkpoints": 10,
        "scores": {
            "id_test": id_test,
            "ood_test": ood_test,
            "ood_test_by_id_val": None if ood_test is None else ood_test - 0.01,
            "last": {"id_test": 0.1111, "ood_test": 0.2222},
            "oracle": {"id_test": 0.3333, "ood_test": 0.9999, "allowed_for_claims": False},
        },
    }
    return result | other


RESULTS = [
    run("mario", 0, 0.94, 0.92),
    run("mario", 1, 0.96, 0.94, split_seed=1),
    run("grace", 0, 0.92, 0.88),
    run("grace", 1, 0.94, 0.92, split_seed=1),
    run("random-init", 0, 0.80, 0.76, steps=0, checkpoints=1),
]


def test_rows_hold_the_summaries() -> None:
    table = tabulate(RESULTS)
    assert [row.label for row in table.rows] == ["random-init", "grace", "mario"]
    mario = table.row("mario")
    assert mario is not None
    assert mario.id is not None
    assert mario.ood is not None
    assert mario.ood_by_id_val is not None
    assert mario.gap is not None
    assert (mario.n, mario.id.mean, mario.ood.mean) == (2, pytest.approx(0.95), pytest.approx(0.93))
    assert mario.ood_by_id_val.mean == pytest.approx(0.92)
    assert (mario.gap.mean, mario.gap.sd) == (pytest.approx(0.02), pytest.approx(0.0))
    assert mario.test is not None
    assert (mario.test.n, mario.test.mean_difference, mario.test.wins) == (2, pytest.approx(0.03), 2)
    assert mario.test.by_split is not None
    assert mario.test.by_split.n_splits == 2
    grace = table.row("grace")
    assert grace is not None
    assert grace.test is None


def test_markdown_written_out() -> None:
    lines = to_markdown(tabulate(RESULTS)).splitlines()
    assert lines[0] == "**good-cbas, color domain, concept shift, transductive**"
    assert lines[2].startswith(
        "| method | n | ID accuracy % (chosen on id_val) | OOD accuracy % (chosen on ood_val) "
        "| OOD accuracy % (chosen on id_val) | gap ID − OOD | paper ID | ours − paper | paper OOD | ours − paper "
        "| OOD − grace |"
    )
    assert lines[3].count("|") == lines[2].count("|")
    assert lines[4] == "| random-init | 1 | 80.00 | 76.00 | 75.00 | 4.00 | – | – | – | – | −12.00 | – | – |"
    assert lines[5] == (
        "| grace | 2 | 93.00 ± 1.41 | 90.00 ± 2.83 | 89.00 ± 2.83 | 3.00 ± 1.41 "
        "| 92.00 ± 1.39 | +1.00 | 88.64 ± 0.67 | +1.36 ‡ | reference | – | – |"
    )
    assert lines[6] == (
        "| mario | 2 | 95.00 ± 1.41 | 93.00 ± 1.41 | 92.00 ± 1.41 | 2.00 ± 0.00 "
        "| 94.36 ± 1.21 | +0.64 | 91.28 ± 1.10 | +1.72 | +3.00 | 0.500 | 0.500 |"
    )


def test_terminal_shows_the_same_figures() -> None:
    console = Console(width=80, record=True, file=StringIO())
    console.print(to_rich(tabulate(RESULTS)))
    text = console.export_text()
    assert "by ood_val" in text
    row = next(line for line in text.splitlines() if "mario" in line)
    assert " ".join(row.split()) == ("mario 2 95.00 ± 1.41 93.00 ± 1.41 +2.00 94.36 91.28 +3.00")


def test_names_in_brackets_are_not_terminal_markup() -> None:
    console = Console(width=140, record=True, file=StringIO())
    console.print(to_rich(tabulate([run("[red]x[/red]", 0, 0.9, 0.9)])))
    assert "[red]x[/red]" in console.export_text()


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_html_headers_have_a_scope_and_rows_are_even() -> None:
    parser = Tags()
    html = to_html(tabulate(RESULTS))
    parser.feed(html)
    heads = [attributes for tag, attributes in parser.tags if tag == "th"]
    assert heads
    assert all(head.get("scope") in ("col", "colgroup", "row") for head in heads)
    assert "93.00\xa0±\xa01.41" in parser.text
    assert "91.28\xa0±\xa01.10" in parser.text
    assert "chosen on ood_val" in parser.text
    main, tests = html.split("</table>")[:2]
    assert [line.count("<td>") for line in main.splitlines() if line.startswith("<tr class")] == [9, 9, 9]
    assert [line.count("<td>") for line in tests.splitlines() if line.startswith("<tr class")] == [7, 7]


@pytest.mark.parametrize("render", [to_html, to_markdown, lambda table: verdict(table)])
def test_neither_oracle_nor_last_is_ever_shown(render: Any) -> None:
    text = render(tabulate(RESULTS))
    for forbidden in ("oracle", "99.99", "33.33", "22.22", "11.11"):
        assert forbidden not in text


def test_names_are_escaped() -> None:
    table = tabulate([run("<script>alert(1)</script>", 0, 0.9, 0.9), run("a|b", 0, 0.9, 0.9)])
    assert "<script" not in to_html(table)
    assert "<script" not in to_markdown(table)
    assert "a\\|b" in to_markdown(table)


def test_notes_say_faults_missing_runs_and_unequal_schedules() -> None:
    fault = "Cornell's rows are Texas's."
    results = [run("grace", s, 0.9, 0.9, faults=[fault]) for s in range(3)]
    results += [run("mario", 0, 0.9, 0.9, faults=[fault], steps=600), run("mario", 7, 0.9, None, faults=[fault])]
    notes = tabulate(results, asked=3).notes
    assert notes == (
        f"Known fault of the data: {fault}",
        "3 runs a method were asked for; mario has 2.",
        "mario: 1 of 2 runs have no OOD score and are left out of that mean.",
        "Not the same number of steps everywhere (300, 600): not a fair comparison.",
    )
    for text in (to_markdown(tabulate(results)), to_html(tabulate(results)).replace("&#x27;", "'")):
        assert fault in text


def test_fewer_pairs_than_runs_is_said() -> None:
    results = [run("grace", 0, 0.9, 0.9), run("mario", 0, 0.9, 0.9), run("mario", 1, 0.9, 0.9)]
    assert "mario is compared with grace on the 1 runs that both have." in tabulate(results).notes


def test_complete_equal_runs_have_no_notes() -> None:
    assert tabulate([run("grace", 0, 0.9, 0.9), run("mario", 0, 0.9, 0.9)], asked=1).notes == ()


def test_encoders_are_rows_of_their_own_against_their_own_reference() -> None:
    scores = {("grace", "gcn"): 0.5, ("mario", "gcn"): 0.6, ("grace", "sage"): 0.7, ("mario", "sage"): 0.9}
    results = [run(method, 0, 0.9, ood, encoder=encoder) for (method, encoder), ood in scores.items()]
    table = tabulate(results)
    assert [row.label for row in table.rows] == ["grace (gcn)", "grace (sage)", "mario (gcn)", "mario (sage)"]
    differences = [row.test.mean_difference for row in table.rows if row.test]
    assert differences == [pytest.approx(0.1), pytest.approx(0.2)]
    sage = table.rows[3].paper_ood
    assert sage is not None
    assert (sage.mean, sage.table) == (76.29, "Table 5")


def test_without_the_reference_there_is_no_comparison() -> None:
    table = tabulate([run("mario", 0, 0.9, 0.9)])
    assert table.reference is None
    assert "OOD −" not in to_markdown(table)
    assert verdict(table).startswith("No paired test")


def test_out_of_memory_in_the_paper_is_shown_as_such() -> None:
    table = tabulate([run("mvgrl", 0, 0.9, 0.9, dataset="good-twitch", domain="language", metric="roc_auc")])
    assert "| OOM | OOM |" in to_markdown(table)
    assert "ROC-AUC" in to_markdown(table)


def test_one_case_a_table() -> None:
    mixed = [run("mario", 0, 0.9, 0.9), run("mario", 0, 0.9, 0.9, shift="covariate")]
    with pytest.raises(MarioError, match="tabulate_all"):
        tabulate(mixed)
    assert [table.shift for table in tabulate_all(mixed)] == ["concept", "covariate"]
    with pytest.raises(MarioError, match="at least one run"):
        tabulate([])
    with pytest.raises(MarioError, match="'scores'"):
        tabulate([{"dataset": "webkb", "method": "erm"}])


def paired_results(differences: list[float]) -> list[dict[str, Any]]:
    grace = [run("grace", seed, 0.9, 0.8) for seed in range(len(differences))]
    return grace + [run("mario", seed, 0.9, 0.8 + d) for seed, d in enumerate(differences)]


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ([0.01, 0.02, 0.03, 0.04, 0.05, 0.06], "mario stands above grace at the 5 % level"),
        ([-0.01, -0.02, -0.03, -0.04, -0.05, -0.06], "mario stands below grace at the 5 % level"),
        ([0.01, -0.02, 0.03, -0.04, 0.05, -0.06], "no evidence of a difference"),
        ([0.0, 0.0], "no evidence of a difference"),
        ([0.01] * 11 + [-0.5], "no evidence of a difference"),  # ranks and mean point to different sides
        ([0.05], "single pair, from which nothing follows"),
    ],
)
def test_verdict_whichever_way_it_falls(differences: list[float], said: str) -> None:
    assert said in verdict(tabulate(paired_results(differences)))


def test_shared_splits_are_held_against_the_p_value() -> None:
    shared = tabulate(paired_results([0.01, 0.02, 0.03, 0.04, 0.05, 0.06]))
    assert "every pair counted as independent" in verdict(shared)
    assert "Seeds within a split are not independent" in to_markdown(shared)
    apart = tabulate([r | {"split_seed": r["seed"]} for r in paired_results([0.01, 0.02, 0.03, 0.04, 0.05, 0.06])])
    assert "counted as independent" not in verdict(apart)
    assert "not independent" not in to_markdown(apart)


def test_verdict_names_counts_splits_and_the_paper() -> None:
    assert verdict(tabulate(RESULTS)) == (
        "OOD accuracy of mario less that of grace, same split and same seed: +3.00 points (n = 2 pairs; Wilcoxon "
        "signed-rank p = 0.500; 2 won, 0 tied, 0 lost). On these runs neither stands "
        "above the other at the 5 % level: this is no evidence of a difference. Averaged within each split first: "
        "+3.00 ± 1.41 over 2 splits. The paper has +2.64 (91.28 and 88.64, Table 2), without a test."
    )


def test_points_have_a_real_minus_and_no_signed_zero() -> None:
    assert [points(v) for v in (0.0264, -0.01, 0.0, -0.00001)] == ["+2.64", "−1.00", "0.00", "0.00"]


def test_without_a_validation_set_the_last_checkpoint_counts_and_empty_columns_are_left_out() -> None:
    result = {"dataset": "proteins-25", "domain": "size", "shift": "covariate", "setting": "transductive", "seed": 0}
    result |= {"encoder": "gcn", "scores": {"ood_test": 0.7, "chosen_on": {"ood_test": "last"}}}
    text = to_markdown(tabulate([result | {"method": "erm"}, result | {"method": "graphcl"}]))
    assert "| method | n | OOD accuracy % (last checkpoint) | paper OOD | ours − paper |" in text
    assert "| erm | 1 | 70.00 | 77.24 ± 0.95 | −7.24 ‡ |" in text
    assert "no validation set" in text
    assert "chosen on" not in text


def test_a_host_with_the_recipe_stands_under_its_host_and_a_new_method_before_mario() -> None:
    names = ["mario", "newcomer", "swav", "costa+mario", "costa", "erm"]
    table = tabulate([run(name, 0, 0.9, 0.9) for name in names])
    assert [row.method for row in table.rows] == ["erm", "costa", "costa+mario", "swav", "newcomer", "mario"]
