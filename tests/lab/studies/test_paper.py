"""The paper's figures, spot by spot as printed, and the tables against each other."""

import pytest

from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.studies import paper
from mario.lab.studies.paper import Figure

CBAS = Case.find("good-cbas", shift="concept")


@pytest.mark.parametrize(
    ("where", "printed", "table"),
    [
        (("good-cbas", "color", "concept", "mario", "ood"), "91.28 ± 1.10", "Table 2"),
        (("good-cbas", "color", "concept", "mario", "id"), "94.36 ± 1.21", "Table 2"),
        (("good-cbas", "color", "concept", "grace", "ood"), "88.64 ± 0.67", "Table 2"),
        (("good-cbas", "color", "concept", "erm", "ood"), "83.43 ± 1.19", "Table 2"),
        (("good-cora", "word", "concept", "graphmae", "ood"), "64.87 ± 0.30", "Table 2"),
        (("good-cora", "degree", "concept", "eerm", "ood"), "56.58 ± 0.25", "Table 2"),
        (("good-twitch", "language", "concept", "swav", "id"), "83.32 ± 0.15", "Table 2"),
        (("good-twitch", "language", "concept", "eerm", "ood"), "OOM", "Table 2"),
        (("good-webkb", "university", "concept", "costa", "ood"), "32.39 ± 2.13", "Table 2"),
        (("good-webkb", "university", "covariate", "mario", "ood"), "35.24 ± 4.98", "Table 3"),
        (("good-cbas", "color", "covariate", "rosa", "ood"), "79.14 ± 3.51", "Table 3"),
        (("good-cora", "word", "covariate", "mvgrl", "id"), "OOM", "Table 3"),
        (("good-twitch", "language", "covariate", "mario", "ood"), "57.37 ± 1.37", "Table 3"),
        (("good-cbas", "color", "concept", "mario w/o ad", "ood"), "90.29 ± 0.91", "Table 4"),
        (("good-cbas", "color", "concept", "mario w/o cmi", "ood"), "90.57 ± 1.96", "Table 4"),
        (("good-webkb", "university", "concept", "mario w/o cmi, ad", "ood"), "34.13 ± 2.38", "Table 4"),
        (("good-cbas", "color", "concept", "costa+mario", "ood"), "94.36 ± 1.51", "Table 8"),
        (("dd-300", "size", None, "graphcl+mario", "ood"), "69.13 ± 1.23", "Table 7"),
        (("proteins-25", None, None, "erm", "ood"), "77.24 ± 0.95", "Table 7"),
    ],
)
def test_spot_values(where: tuple[str, str | None, str | None, str, str], printed: str, table: str) -> None:
    dataset, domain, shift, method, column = where
    found = paper.figure(Case.find(dataset, domain=domain, shift=shift), method, column)
    assert found is not None
    assert (str(found), found.table, found.n) == (printed, table, 10)


def test_other_encoders_are_of_table_5() -> None:
    found = paper.figure(Case.find("good-webkb", shift="concept"), "grace", "ood", encoder="sage")
    assert found == Figure(mean=49.54, sd=3.83, n=10, table="Table 5")
    found = paper.figure(CBAS, "erm", "id", encoder="gat")
    assert found == Figure(mean=78.64, sd=3.63, n=10, table="Table 5")


def test_the_table_asked_for_comes_before_the_first() -> None:
    tables = [paper.figure(CBAS, "mario", "ood", table=table) for table in ("", "Table 4", "Table 5", "Table 7")]
    assert [found.table for found in tables if found] == ["Table 2", "Table 4", "Table 5", "Table 2"]


def test_out_of_memory_has_no_number() -> None:
    found = paper.figure(Case.find("good-twitch", shift="concept"), "mvgrl", "ood")
    assert found is not None
    assert str(found) == "OOM"
    assert found.mean is None
    assert found.sd is None


@pytest.mark.parametrize(
    ("case", "method", "encoder"),
    [
        (Case.find("good-cbas", shift="no_shift"), "mario", "gcn"),
        (Case.find("good-cbas", setting="inductive"), "mario", "gcn"),
        (Case.find("webkb", shift="concept"), "mario", "gcn"),
        (CBAS, "random-init", "gcn"),
        (CBAS, "mario", "gin"),
    ],
)
def test_what_the_paper_does_not_print_is_none(case: Case, method: str, encoder: str) -> None:
    assert paper.figure(CBAS, "mario", "ood") is not None
    assert paper.figure(case, method, "ood", encoder=encoder) is None


def test_a_wrong_column_is_an_error() -> None:
    with pytest.raises(MarioError, match="column must be 'id' or 'ood', got 'ood_test'"):
        paper.figure(CBAS, "mario", "ood_test")


def test_the_tables_are_whole() -> None:
    size = {"Table 2": 14 * 10, "Table 3": 14 * 10, "Table 4": 4 * 10, "Table 5": 9 * 4, "Table 7": 9, "Table 8": 16}
    count = dict.fromkeys(size, 0)
    for cell in paper.cells():
        count[cell.figure.table] += 1
        if cell.figure.mean is not None and cell.figure.sd is not None:
            assert 10 < cell.figure.mean < 100
            assert 0 < cell.figure.sd < 10
    assert count == size


def test_cells_printed_twice_agree() -> None:
    # MARIO stands in Tables 2, 4, 5 and 8, GRACE and ERM in three: a slip of the pen in one of them would show.
    printed: dict[tuple[str | None, ...], set[str]] = {}
    for cell in paper.cells():
        method = "mario" if cell.method == "grace+mario" else cell.method
        key = (cell.dataset, cell.domain, cell.shift, cell.setting, cell.encoder, method, cell.column)
        printed.setdefault(key, set()).add(str(cell.figure))
    assert all(len(values) == 1 for values in printed.values())
