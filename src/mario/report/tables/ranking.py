"""Average ranks of a study's rows by one of their scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mario.lab.statistics.ranking import Ranking, average_ranks
from mario.report.tables.pooled import once

if TYPE_CHECKING:
    from pandas import DataFrame


def ranking_of(
    runs: "DataFrame",
    *,
    methods: Sequence[str] = (),
    by: str = "case",
    score: str = "ood_test",
    alpha: float = 0.05,
) -> Ranking:
    """Rank the rows of a study's frame, or of several frames joined, with Friedman's test and the critical difference.

    ``by="case"`` ranks the mean scores of each case over the splits and seeds that all rows of it have. ``by="pair"``
    ranks each run among those of the same split and seed, which gives more blocks than there are independent ones.
    ``methods`` are labels; the default is all labels of the case that has most, so that a row that failed everywhere
    does not leave nothing to rank. Cases that lack one of them do not count, and are in ``left_out``.

    Example:
        >>> import pandas as pd
        >>> runs = pd.DataFrame({"label": ["grace", "mario"], "ood_test": [0.88, 0.91]})
        >>> runs = runs.assign(study="mine", case="good-cbas-concept", split_seed=0, seed=0)
        >>> ranking = ranking_of(runs)
        >>> ranking.methods, ranking.average
        (('mario', 'grace'), (1.0, 2.0))
    """
    known = once(runs).dropna(subset=[score])
    block = known["case"]
    if by == "pair":
        block = block + " " + known["split_seed"].astype(str) + "/" + known["seed"].astype(str)
    tables = {
        str(name): here.pivot(index=["split_seed", "seed"], columns="label", values=score)[
            list(dict.fromkeys(here["label"]))
        ]
        for name, here in known.groupby(block, sort=False)
    }
    most = max((len(table.columns) for table in tables.values()), default=0)
    compared = methods or next((tuple(t.columns) for t in tables.values() if len(t.columns) == most), ())
    scores = {}
    for name, table in tables.items():
        # Over what all rows have: another split moves a score more than another method does.
        shared = table[[label for label in table.columns if label in compared]].dropna()
        scores[name] = {str(label): float(value) for label, value in shared.mean().items()} if len(shared) else {}
    return average_ranks(scores, methods=compared, alpha=alpha)
