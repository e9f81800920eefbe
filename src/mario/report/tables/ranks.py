"""Average ranks of a study's rows by their OOD scores."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mario.lab.statistics.paired import summarize
from mario.lab.statistics.ranking import Ranking, average_ranks
from mario.lab.studies.plan import Collected


def ranking_of(
    collected: Collected | Iterable[Collected],
    *,
    methods: Sequence[str] = (),
    by: str = "case",
    score: str = "ood_test",
    alpha: float = 0.05,
) -> Ranking:
    """Rank the rows of one study, or of several together, with Friedman's test and the critical difference.

    ``by="case"`` ranks the mean scores of each case over the splits and seeds that all rows of it have, ``by="pair"``
    each run among those of the same split and seed,
    which are more blocks than there are independent ones. ``methods`` are labels; without them, all of the case that
    has most, so that a row that failed everywhere does not leave nothing to rank. Cases that lack one of them do not
    count, and are in ``left_out``.

    Example:
        >>> from mario.lab.studies.plan import Collected, CollectedCase, Plan
        >>> from mario.report import ranking_of
        >>> place = {"dataset": "good-cbas", "domain": "color", "shift": "concept", "setting": "transductive"}
        >>> runs = [{"label": m, "scores": {"ood_test": s}} for m, s in (("grace", 0.88), ("mario", 0.91))]
        >>> case = CollectedCase(name="good-cbas-concept", **place, asked=1, missing=None, results=runs)
        >>> ranking = ranking_of(Collected(Plan(study="mine", title="Mine"), [case]))
        >>> ranking.methods, ranking.average
        (('mario', 'grace'), (1.0, 2.0))
    """
    several = [collected] if isinstance(collected, Collected) else collected
    scores: dict[str, dict[str, dict[tuple[Any, ...], float]]] = {}
    for case in (case for one in several for case in one.cases):
        known = {label for block, rows in scores.items() if block.split(" ")[0] == case.name for label in rows}
        for run in case.results:
            value = run["scores"].get(score)
            if value is None or run["label"] in known:
                continue
            block = case.name if by == "case" else f"{case.name} {run['split_seed']}/{run['seed']}"
            same = run.get("split_seed"), run.get("seed")
            scores.setdefault(block, {}).setdefault(run["label"], {})[same] = value
    most = max((len(rows) for rows in scores.values()), default=0)
    compared = methods or next((tuple(rows) for rows in scores.values() if len(rows) == most), ())
    return average_ranks(
        {block: _means({label: rows[label] for label in rows if label in compared}) for block, rows in scores.items()},
        methods=compared,
        alpha=alpha,
    )


def _means(rows: Mapping[str, Mapping[tuple[Any, ...], float]]) -> dict[str, float]:
    """The mean of each row over what all have: another split moves a score more than another method does."""
    shared = set.intersection(*(set(runs) for runs in rows.values())) if rows else set()
    return {label: summarize([runs[same] for same in shared]).mean for label, runs in rows.items() if shared}
