"""A table without edges as rows of numbers: its features, labels and domains, found as `mario graph build` does it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from mario.embedder.ids import needed
from mario.errors import MarioError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from mario.graphs.tables.columns import Column
    from mario.graphs.tables.features import FeaturePlan


class Frame:
    """How the columns of a table are read.

    Args:
        plan: Makes the features.
        label, domain: The columns with the label and the domain, or ``""``.
    """

    def __init__(self, plan: "FeaturePlan", label: str = "", domain: str = "") -> None:
        self.plan, self.label, self.domain = plan, label, domain

    @classmethod
    def fit(cls, table: "pa.Table", seed: int) -> "Frame":
        """Find the columns of a table, and fit its features."""
        from mario.graphs.tables.columns import infer_columns
        from mario.graphs.tables.features import FeaturePlan

        columns = infer_columns(table.schema, table)
        plan = FeaturePlan.fit(lambda: iter(table.to_batches()), columns, seed=seed)
        if not plan.width:
            reasons = ", ".join(f"{column.name} ({column.reason})" for column in columns)
            raise MarioError(f"the table has no column with features: {reasons}")
        return cls(plan, _named(columns, "label"), _named(columns, "domain"))

    def features(self, table: "pa.Table") -> "NDArray[np.float32]":
        """The features of all rows, dense."""
        found = self.plan.transform(table)
        return found if isinstance(found, np.ndarray) else found.toarray()

    def labels(self, table: "pa.Table") -> list[Any] | None:
        """The labels as texts, ``None`` in the list where there is none; ``None`` without a column of labels."""
        return self._texts(table, self.label)

    def domains(self, table: "pa.Table") -> list[str | None] | None:
        """The name of the domain of each row; ``None`` without a column of domains."""
        return self._texts(table, self.domain)

    def _texts(self, table: "pa.Table", name: str) -> list[Any] | None:
        from mario.graphs.tables.values import plain, texts

        if not name or name not in table.column_names:
            return None
        found: list[Any] = texts(plain(table.column(name), name), name).to_pylist()
        return found


def table_of(given: Any) -> "pa.Table | None":
    """A table of pyarrow, pandas or polars with other columns than numbers; ``None`` for all else."""
    if type(given).__name__ not in ("DataFrame", "Table", "RecordBatch") or isinstance(given, np.ndarray):
        return None
    if hasattr(given, "dtypes") and hasattr(given, "iloc"):
        if all(getattr(kind, "kind", "O") in "biuf" for kind in given.dtypes):
            return None
        arrow = needed("tables with other columns than numbers")
        try:
            return arrow.Table.from_pandas(given, preserve_index=False)
        except (arrow.ArrowException, TypeError, ValueError) as error:
            raise MarioError(f"the DataFrame has a column of mixed types: {str(error)[:300]}; convert it") from None
    if hasattr(given, "to_arrow"):
        return given.to_arrow()
    arrow = needed("tables of pyarrow")
    return given if isinstance(given, arrow.Table) else arrow.Table.from_batches([given])


def _named(columns: "list[Column]", role: str) -> str:
    return next((column.name for column in columns if column.role == role), "")
