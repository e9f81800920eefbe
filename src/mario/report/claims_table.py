"""The claims as a table, and in words."""

from collections.abc import Iterable, Sequence

from mario.report.claims import VERDICTS, Claim, Comparison
from mario.report.numbers import counted, interval, p_equals, points
from mario.report.tables.table import Cell, Line, Table, TableColumn

_SCORES = {"ood_test": "OOD", "id_test": "ID", "gap": "gap between ID and OOD"}
_MOST = 8  # cases that a line names
HOW = (
    "Held: every comparison has the claimed sign and p < 0.05, and every run that the claim needs and has data for is "
    "done. The test is Wilcoxon’s signed-rank test over runs of the same split and seed, Holm-corrected for the "
    "comparisons of the claim (a table corrects for all of its rows, so its p differs). Contradicted: one comparison "
    "has the other sign and p < 0.05. Not shown: anything else, which is no evidence that the claim is false. Every "
    "pair counts as independent, which pairs on two forms of one dataset (good-webkb and webkb) are not quite. "
    "Differences are in points; the paper has no tests."
)


def claims_table(claims: Iterable[Claim]) -> Table:
    """A line for each claim: the verdict, the paper's words, and the numbers.

    Example:
        >>> from mario.report import claims, claims_table, to_markdown
        >>> print(to_markdown(claims_table(claims([])[:1])).splitlines()[4][:62])
        | not run | MARIO is above GRACE out of distribution, over all
    """
    return Table(
        name="claims",
        title="The paper’s claims, and what the runs say",
        columns=(
            TableColumn(head="verdict", text=True),
            TableColumn(head="claim", names=True),
            TableColumn(head="what the runs say", text=True),
        ),
        lines=tuple(
            Line(
                cells=(
                    Cell(
                        text=claim.verdict,
                        sort=str(VERDICTS.index(claim.verdict)),
                        emphasis="strong" if claim.verdict in ("held", "contradicted") else "",
                        kind="verdict",
                    ),
                    Cell(text=f"{claim.claim}.", detail=f"“{claim.said}” ({claim.where})"),
                    Cell(items=tuple(numbers(claim)), sort=str(place)),
                ),
                label=claim.name,
                kind=claim.verdict.replace(" ", "-"),
            )
            for place, claim in enumerate(claims)
        ),
        notes=(HOW,),
        style="claims",
    )


def numbers(claim: Claim) -> list[str]:
    """The comparisons of a claim, a line each, and what limits them."""
    if not claim.comparisons or claim.verdict == "not run":
        return ["No runs to compare yet."]
    run = [comparison for comparison in claim.comparisons if comparison.pooled]
    lines = [_line(comparison, claim.score) for comparison in run]
    named = {*claim.lacking, *claim.absent}
    lacking = [
        f"{c.label} and {c.against}{f' on {c.case}' if c.case else ''}"
        for c in claim.comparisons
        if c.pooled is None and c.case not in named
    ]
    if lacking:
        lines.append(f"No runs of both: {', '.join(lacking)}.")
    if claim.lacking:
        lines.append(f"Not all runs are done, so the claim is not held: {_named(claim.lacking)}.")
    if claim.absent:
        lines.append(f"Without data: {_named(claim.absent)}.")
    for row, cases in claim.rising.items():
        lines.append(f"{row} was still improving at the end of its schedule: {_named(cases)}.")
    for (row, host), names in claim.apart.items():
        lines.append(f"Not only the recipe differs: {row} and {host} each have their own {', '.join(names)}.")
    if not claim.possible:
        lines.append("With so few pairs, no difference could be significant.")
    elif claim.possible < len(run):
        lines.append(f"{len(run) - claim.possible} of {len(run)} have too few pairs to be significant.")
    if claim.quick:
        lines.append("From the quick form, from which nothing follows.")
    return lines


def tally(claims: Sequence[Claim]) -> str:
    """How many claims were held, not shown, contradicted and not run, in one sentence.

    Example:
        >>> tally([])
        'Of 0 claims, 0 held, 0 were not shown, 0 were contradicted and 0 were not run.'
    """
    held, unshown, contradicted, unrun = (sum(claim.verdict == verdict for claim in claims) for verdict in VERDICTS)
    return (
        f"Of {counted(len(claims), 'claim')}, {held} held, {unshown} were not shown, {contradicted} were contradicted "
        f"and {unrun} were not run."
    )


def _named(cases: Sequence[str]) -> str:
    return ", ".join(cases[:_MOST]) + (f" and {len(cases) - _MOST} more" if len(cases) > _MOST else "")


def _line(comparison: Comparison, score: str) -> str:
    pooled = comparison.pooled
    if pooled is None:
        return ""
    test = pooled.test
    parts = [] if test.ci_low is None else [f"95 % interval {interval(test)}"]
    parts.append(counted(test.n, "pair"))
    if comparison.case is None and len(pooled.cases) > 1:
        parts.append(f"above in {pooled.above} of {len(pooled.cases)} cases")
    else:
        parts.append(f"{test.wins} won, {test.ties} tied, {test.losses} lost")
    if comparison.groups:
        there, all_of_them = comparison.groups
        parts.append(f"median {'below' if comparison.less else 'above'} in {there} of {all_of_them} groups")
    parts.append(p_equals(comparison.p_holm))
    if comparison.paper is not None:
        parts.append(f"the paper has {points(comparison.paper / 100)}")
    where = f" on {comparison.case}" if comparison.case else ""
    name = f"{_SCORES.get(score, score)}, {comparison.label} − {comparison.against}"
    return f"{name}{where}: {points(test.mean_difference)} ({'; '.join(parts)})"
