"""Columns become features by a plan that is fitted once and repeated bit for bit."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mario.errors import MarioError
from mario.graphs.tables.columns import Column
from mario.graphs.tables.features import FeaturePlan


def fitted(table: pa.Table, **kinds: str) -> FeaturePlan:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()

    return FeaturePlan.fit(batches, [Column(name, "feature", kind) for name, kind in kinds.items()])


def test_numbers_are_scaled_by_median_and_quartiles() -> None:
    table = pa.table({"a": [1.0, 2.0, 3.0, 4.0, 5.0, None]})
    plan = fitted(table, a="numeric")
    assert plan.names == ["a", "a is missing"]
    expected = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    expected = expected / np.sqrt(1 + (expected / 3) ** 2)
    np.testing.assert_allclose(plan.transform(table), np.c_[[*expected, 0], [0, 0, 0, 0, 0, 1]], rtol=1e-6)


def test_an_unseen_category_is_zero_and_counted() -> None:
    plan = fitted(pa.table({"a": ["x", "y", "x"]}), a="categorical")
    made = plan.transform(pa.table({"a": ["y", "new", None]}))
    assert made.tolist() == [[0, 1], [0, 0], [0, 0]]
    assert (plan.report.columns["a"].unseen, plan.report.columns["a"].missing) == (1, 1)
    assert plan.report.columns["a"].examples == ["new"]


def test_a_plan_is_read_as_it_was_saved(tmp_path: Path) -> None:
    plan = fitted(pa.table({"a": [0.1, 0.7, None], "b": ["x", "é", ""]}), a="numeric", b="categorical")
    plan.save(tmp_path / "features.json")
    again = FeaturePlan.load(tmp_path / "features.json")
    assert again == plan
    assert again.names == plan.names


def test_a_column_that_is_gone_is_named() -> None:
    plan = fitted(pa.table({"pages": [1, 2]}), pages="numeric")
    with pytest.raises(MarioError, match="no column 'pages', which the features are made of; did you mean 'page'"):
        plan.transform(pa.table({"page": [1]}))
