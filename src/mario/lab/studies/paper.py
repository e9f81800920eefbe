"""The numbers in the paper's tables, to compare with ours.

``paper.toml`` has them as printed. Results that the paper shows only as a plot (the inductive setting, Amazon-Photo,
Elliptic) are missing.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from mario.errors import MarioError
from mario.lab.case import Case


@dataclass(frozen=True)
class Figure:
    """The number in one cell of the paper's tables, in percent as printed.

    ``mean`` and ``sd`` are ``None`` where the paper prints OOM: the authors' 24 GB of memory were not enough.
    """

    mean: float | None
    sd: float | None
    n: int
    table: str

    def __str__(self) -> str:
        return "OOM" if self.mean is None else f"{self.mean:.2f} ± {self.sd:.2f}"


@dataclass(frozen=True)
class PrintedCell:
    """A number in the paper and the runs that it summarizes. ``shift`` and ``setting`` are None in Table 7."""

    dataset: str
    domain: str
    shift: str | None
    setting: str | None
    encoder: str
    method: str
    column: str
    figure: Figure


@cache
def cells() -> tuple[PrintedCell, ...]:
    """Every cell of Tables 2, 3, 4, 5, 7 and 8 of the paper, in order.

    Example:
        >>> sorted({cell.figure.table for cell in cells()})
        ['Table 2', 'Table 3', 'Table 4', 'Table 5', 'Table 7', 'Table 8']
    """
    text = resources.files("mario.lab").joinpath("paper.toml").read_text(encoding="utf-8")
    found = []
    for table in tomllib.loads(text)["table"]:
        for method, printed in table["rows"].items():
            for place, value in zip(table["columns"], printed, strict=True):
                dataset, domain, column = place.split("/")
                found.append(
                    PrintedCell(
                        dataset=dataset,
                        domain=domain,
                        shift=table.get("shift"),
                        setting=table.get("setting"),
                        encoder=table["encoder"],
                        method=method,
                        column=column,
                        figure=_figure(value, table),
                    )
                )
    return tuple(found)


def figure(case: Case, method: str, column: str, *, encoder: str = "gcn", table: str = "") -> Figure | None:
    """The paper's number for one method in one column (``"id"`` or ``"ood"``), or None if no table has it.

    Some cells are printed in several tables; ``table`` (``"Table 4"``) chooses one of them, otherwise it is the first.
    Table 7 is the same for every shift and setting.

    Example:
        >>> figure(Case.find("good-cbas"), "mario", "ood")
        Figure(mean=91.28, sd=1.1, n=10, table='Table 2')
        >>> print(figure(Case.find("good-twitch", shift="covariate"), "mvgrl", "id"))
        OOM
        >>> figure(Case.find("good-cbas", shift="no_shift"), "mario", "ood") is None
        True
    """
    if column not in ("id", "ood"):
        raise MarioError(f"column must be 'id' or 'ood', got {column!r}")
    matches = [
        cell
        for cell in cells()
        if (cell.dataset, cell.domain, cell.encoder) == (case.dataset, case.domain, encoder)
        and (cell.method, cell.column) == (method, column)
        and cell.shift in (None, case.shift)
        and cell.setting in (None, case.setting)
    ]
    return min(matches, key=lambda cell: cell.figure.table != table).figure if matches else None


def _figure(printed: str, table: dict[str, Any]) -> Figure:
    if printed == "OOM":
        return Figure(mean=None, sd=None, n=table["n"], table=table["name"])
    mean, sd = printed.split("±")
    return Figure(mean=float(mean), sd=float(sd), n=table["n"], table=table["name"])
