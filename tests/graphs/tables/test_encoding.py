"""Each kind of column as features, by hand and beside skrub."""

import datetime
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
import skrub
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.pipeline import make_pipeline

from graphs.tables.test_features import fitted
from mario.errors import MarioError

ANIMALS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "owl", "pig", "rat", "yak"]


def several(count: int) -> list[str]:
    """Different categories with letters in common."""
    return [f"{ANIMALS[i % 12]}-{ANIMALS[i // 12 % 12]}-{i // 144}" for i in range(count)]


@pytest.mark.parametrize(
    "values", [[1.0, 2, 3, 4, 100, -7, 2.5], [0.0, 0, 0, 0, 0, 0, 5], [1e-3, 5e8, -4e9, 1, 2, 3, 4]]
)
def test_numbers_are_those_of_skrubs_squashing_scaler(values: list[float]) -> None:
    table = pa.table({"a": values})
    expected = skrub.SquashingScaler().fit_transform(np.array(values).reshape(-1, 1))
    np.testing.assert_allclose(fitted(table, a="numeric").transform(table), expected, rtol=1e-5, atol=1e-6)


def test_numbers_of_any_type_and_in_texts_are_the_same() -> None:
    plan = fitted(pa.table({"a": [1, 2, 3, 4, 5]}), a="numeric")
    expected = plan.transform(pa.table({"a": [2.0, 4.0]}))
    for other in (
        pa.array(["2", " +4.0 "]),
        pa.array(["2e0", ".4e1"]).dictionary_encode(),
        pa.array([2, 4], pa.uint8()),
        pa.array([2, 4], pa.float32()),
        pa.array([2, 4]).cast(pa.decimal128(21, 2)),
        pa.chunked_array([[2], [4]]),
    ):
        assert np.array_equal(plan.transform(pa.table({"a": other})), expected)


def test_what_is_no_number_is_counted() -> None:
    plan = fitted(pa.table({"a": [1.0, 2.0, None]}), a="numeric")
    made = plan.transform(pa.table({"a": ["1", "N/A", "twelve", "-inf", "1,5", "", "１"]}))
    report = plan.report.columns["a"]
    assert (report.rows, report.missing, report.unparsable, report.infinite) == (7, 2, 3, 1)
    assert report.examples == ["twelve", "1,5", "１"]
    assert made[:, 1].tolist() == [0, 1, 1, 0, 1, 1, 1]
    assert made[3, 0] == -3
    assert "a: 2 of 7 rows without a value, 3 values that cannot be read, 1 value that is infinite" in str(plan.report)


def test_the_largest_numbers_are_finite() -> None:
    values = [1.7e308, -1.7e308, 5e-324, 0.0, math.inf, -math.inf, 2.0**63]
    table = pa.table({"a": values, "b": [5e-324, 0.0] * 3 + [0.0], "c": [2**63 - 1, -(2**63)] * 3 + [0]})
    made = fitted(table, a="numeric", b="numeric", c="numeric").transform(table)
    assert np.isfinite(made).all()
    assert made[4, 0] == 3
    assert made[5, 0] == -3


def test_columns_without_features_are_named_with_a_reason() -> None:
    table = pa.table(
        {
            "same": [1, 1, 1],
            "word": ["x", "x", "x"],
            "none": pa.nulls(3),
            "nan": [math.nan] * 3,
            "yes": [True, True, True],
            "day": [datetime.date(2020, 1, 1)] * 3,
            "signs": ["! !", "? ?", ". ."],
        }
    )
    forms = ["numeric", "categorical", "numeric", "numeric", "boolean", "date", "text"]
    kinds = dict(zip(table.column_names, forms, strict=True))
    plan = fitted(table, **kinds)
    assert plan.dropped == {
        "same": "constant",
        "word": "constant",
        "none": "empty",
        "nan": "empty",
        "yes": "constant",
        "day": "constant",
        "signs": "no words",
    }
    assert plan.transform(table).shape == (3, 0)
    assert plan.widths == dict.fromkeys(table.column_names, 0)


def test_a_category_is_the_same_in_any_type() -> None:
    plan = fitted(pa.table({"a": [1, 2, None]}), a="categorical")
    assert plan.names == ["a=1", "a=2", "a is missing"]
    for other in (
        pa.array(["1", " 2", ""]),
        pa.array([1.0, 2.0, math.nan]),
        pa.array(["1", "2", None]).dictionary_encode(),
    ):
        assert np.array_equal(plan.transform(pa.table({"a": other})), np.eye(3, dtype=np.float32))
    assert fitted(pa.table({"a": ["é", "NA"]}), a="categorical").transform(pa.table({"a": ["e\u0301"]})).sum() == 1


def test_many_categories_are_near_those_with_the_same_letters() -> None:
    values = several(300)
    table = pa.table({"a": [*values, *values, None]})
    plan = fitted(table, a="categorical")
    assert plan.names[:2] == ["a[0]", "a[1]"]
    assert plan.names[-1] == "a is missing"
    assert plan.width == 31
    z = plan.transform(pa.table({"a": ["ant-bee-1", "ant-bee-7", "owl-yak-0", None]}))
    assert plan.report.columns["a"].unseen == 1
    assert plan.report.columns["a"].examples == ["ant-bee-7"]
    assert z[0] @ z[1] > 3 * abs(z[0] @ z[2])
    assert z[3].tolist() == [0] * 30 + [1]


def test_texts_are_those_of_scikit_learn() -> None:
    generator = np.random.default_rng(0)
    words = [f"word{i}" for i in range(200)]
    rows = 2 * [" ".join(generator.choice(words, 12)) for _ in range(150)]
    plan = fitted(pa.table({"a": rows}), a="text")
    counts = HashingVectorizer(n_features=2**20, alternate_sign=False, norm=None).transform(rows)
    counts = counts[:, np.unique(counts.indices)]  # a decomposition of a million columns takes a minute
    theirs = make_pipeline(TfidfTransformer(), TruncatedSVD(64, random_state=0)).fit_transform(counts)
    theirs /= np.linalg.norm(theirs.std(axis=0))
    np.testing.assert_allclose(plan.transform(pa.table({"a": rows})), theirs, rtol=1e-4, atol=1e-5)
    assert plan.transform(pa.table({"a": ["nothing known", None]})).tolist() == [[0] * 64] * 2


def test_texts_without_spaces_have_words() -> None:
    table = pa.table({"a": ["図書館で本を読む", "犬が好き", "本が好き"] * 10})
    z = fitted(table, a="text").transform(table)
    assert z[1] @ z[2] > abs(z[0] @ z[1])


def test_dates_have_a_scale_and_circles() -> None:
    days = pd.date_range("2020-01-01", periods=366)
    table = pa.table({"a": days.to_numpy()})
    plan = fitted(table, a="date")
    assert plan.names == ["a", "a month sine", "a month cosine", "a weekday sine", "a weekday cosine"]
    z = plan.transform(table)
    assert z[0, 0] < z[1, 0] < z[365, 0]
    np.testing.assert_allclose(z[:, 1], np.sin(2 * np.pi * (days.month - 1) / 12), atol=1e-6)
    np.testing.assert_allclose(z[:, 4], np.cos(2 * np.pi * days.day_of_week / 7), atol=1e-6)
    hours = fitted(pa.table({"a": ["2020-01-01 03:00", "2020-01-01T21:30:00+02:00"]}), a="date")
    assert hours.names == ["a", "a hour sine", "a hour cosine"]


def test_a_form_of_dates_is_kept() -> None:
    plan = fitted(pa.table({"a": ["30.06.2017", "02.01.2018", None]}), a="date")
    same = plan.transform(pa.table({"a": ["01.02.2017", "2017-02-01"]}))
    assert plan.report.columns["a"].unparsable == 1
    typed = plan.transform(pa.table({"a": [datetime.date(2017, 2, 1)]}))
    assert np.array_equal(typed[0], same[0])


def test_booleans_in_words() -> None:
    plan = fitted(pa.table({"a": ["yes", "No", "yes", ""]}), a="boolean")
    made = plan.transform(pa.table({"a": ["TRUE", "f", "0", "perhaps", None]}))
    assert made.tolist() == [[1, 0], [0, 0], [0, 0], [1, 1], [1, 1]]
    assert plan.report.columns["a"].unparsable == 1
    assert plan.transform(pa.table({"a": [True, False]})).tolist() == [[1, 0], [0, 0]]


def test_lists_of_items() -> None:
    plan = fitted(pa.table({"a": [[3, 7], [7], [], None]}), a="list")
    assert plan.names == ["a=3", "a=7", "a is missing"]
    made = plan.transform(pa.table({"a": [[7, 3, 3], [9], None]}))
    assert made.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert plan.report.columns["a"].unseen == 1
    for texts in (["3|7", "7", None], ["[3, 7]", "[7]", None], ["3;7", "7", ""]):
        plan = fitted(pa.table({"a": texts}), a="list")
        assert plan.names == ["a=3", "a=7", "a is missing"]
        assert plan.transform(pa.table({"a": texts})).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]


def test_lists_of_many_items_are_sparse() -> None:
    rows = [[f"w{i}", f"w{i + 1}"] for i in range(400)]
    table = pa.table({"a": rows, "b": range(400)})
    plan = fitted(table, a="list", b="numeric")
    made = plan.transform(table)
    assert plan.sparse
    assert sp.issparse(made)
    assert made.dtype == np.float32
    assert made.shape == (400, 402)
    assert made[:, :-1].sum() == 800


def test_lists_of_numbers_are_vectors() -> None:
    generator = np.random.default_rng(0)
    z = generator.standard_normal((50, 3))
    z[:, 2] = 1
    table = pa.table({"a": [None, *z.tolist()]})
    plan = fitted(table, a="list")
    assert plan.names == ["a[0]", "a[1]", "a[2]", "a is missing"]
    single = fitted(pa.table({"a": z[:, 0]}), a="numeric")
    assert np.array_equal(plan.transform(table)[1:, :1], single.transform(pa.table({"a": z[:, 0]})))
    written = pa.table({"a": [None, *(str(row) for row in z.tolist())]})
    assert np.array_equal(plan.transform(table), fitted(written, a="list").transform(written))
    odd = plan.transform(pa.table({"a": [[1.0, 2.0], [math.inf, math.nan, 0.0]]}))
    assert odd.tolist() == [[0, 0, 0, 1], [3, 0, 0, 0]]
    assert (plan.report.columns["a"].unparsable, plan.report.columns["a"].infinite) == (1, 1)


def test_a_type_that_cannot_be_read_is_told() -> None:
    plan = fitted(pa.table({"a": [1, 2], "b": ["x", "y"]}), a="numeric", b="categorical")
    good = {"a": pa.array([1]), "b": pa.array(["x"])}
    for name in good:
        for odd in (pa.array([b"\xff"]), pa.array([{"k": 1}]), pa.array([[1]])):
            with pytest.raises(MarioError, match=f"column '{name}' "):
                plan.transform(pa.table(good | {name: odd}))
    with pytest.raises(MarioError, match="column 'a' holds timestamp"):
        plan.transform(pa.table(good | {"a": pa.array([datetime.datetime(2020, 1, 1)])}))
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    for name in good:
        with pytest.raises(MarioError, match=f"column '{name}' "):
            plan.transform(pa.table(good | {name: broken}))
