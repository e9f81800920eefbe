"""The claims in words: Markdown for a document, HTML for the page."""

from collections.abc import Iterable, Sequence
from html import escape

from mario.report.claims import Claim, Comparison
from mario.report.numbers import interval, p_value, points, to_md

_SCORES = {"ood_test": "OOD", "id_test": "ID", "gap": "gap between ID and OOD"}
_MOST = 8  # cases that a line names
HOW = (
    "Held: the claimed sign and p < 0.05 in every comparison, with every run done that the claim asks for and has the "
    "data of, by Wilcoxon’s signed-rank test over runs of the same split and seed, Holm-corrected for the comparisons "
    "of the claim (of a table, for all of its rows: another family, and another p). Contradicted: the other sign and "
    "p < 0.05 in one. Not shown: anything else, which is no evidence that the claim is false. Every pair counts as "
    "independent, which those on two forms of one dataset (good-webkb and webkb) are not quite. Differences are in "
    "points; the paper has no tests."
)


def claims_to_markdown(claims: Iterable[Claim]) -> str:
    """A table with a row for each claim: the verdict, the paper's words, and the numbers.

    Example:
        >>> from mario.report import claims, claims_to_markdown
        >>> print(claims_to_markdown(claims([])[:1]).splitlines()[2][:62])
        | not run | MARIO is above GRACE out of distribution, over all
    """
    lines = ["| verdict | claim | what the runs say |", "|:---|:---|:---|"]
    for claim in claims:
        said = f"{to_md(claim.claim)}.<br>*“{to_md(claim.said)}”* ({to_md(claim.where)})"
        verdict = f"**{claim.verdict}**" if claim.verdict in ("held", "contradicted") else claim.verdict
        lines.append(f"| {verdict} | {said} | {'<br>'.join(to_md(line) for line in numbers(claim))} |")
    return "\n".join([*lines, "", to_md(HOW), ""])


def claims_to_html(claims: Iterable[Claim]) -> str:
    """The same as an HTML fragment: a table of class ``claims``, with ``data-sort`` on its cells as in other tables.

    Rows are of class ``held``, ``not-shown``, ``contradicted`` or ``not-run``; in them stand ``verdict`` and ``said``.

    Example:
        >>> from mario.report import claims, claims_to_html
        >>> claims_to_html(claims([])).count('<tr class="not-run"') == len(claims([]))
        True
    """
    rows = []
    order = ("held", "not shown", "contradicted", "not run")
    for place, claim in enumerate(claims):
        lines = "".join(f"<li>{escape(line)}</li>" for line in numbers(claim))
        rows.append(
            f'<tr class="{claim.verdict.replace(" ", "-")}" data-label="{escape(claim.name)}">'
            f'<td data-sort="{order.index(claim.verdict)}"><span class="verdict">{claim.verdict}</span></td>'
            f'<th scope="row">{escape(claim.claim)}.'
            f'<span class="said"><q>{escape(claim.said)}</q> {escape(claim.where)}</span></th>'
            f'<td data-sort="{place}"><ul>{lines}</ul></td></tr>'
        )
    caption = "The paper’s claims, and what the runs say"
    heads = "".join(
        f'<th scope="col" data-column="{i}">{head}</th>'
        for i, head in enumerate(("Verdict", "Claim", "What the runs say"))
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table class="claims">\n'
        f"<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
        + "\n".join(rows)
        + "\n</tbody></table>"
        f'</div>\n<ul class="notes"><li>{escape(HOW)}</li></ul>'
    )


def numbers(claim: Claim) -> list[str]:
    """The comparisons of a claim, a line each, and a line on what they could have shown."""
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
        lines.append(f"Not all runs are done, so that nothing is held: {_named(claim.lacking)}.")
    if claim.absent:
        lines.append(f"Without data: {_named(claim.absent)}.")
    for row, cases in claim.rising.items():
        lines.append(f"{row} was still rising at the end of its schedule: {_named(cases)}.")
    for (row, host), names in claim.apart.items():
        lines.append(f"Not only the recipe differs: {row} and {host} each have their own {', '.join(names)}.")
    if not claim.possible:
        lines.append("So few pairs that no scores could have been significant.")
    elif claim.possible < len(run):
        lines.append(
            f"{len(run) - claim.possible} of {len(run)} have too few pairs to be significant whatever the scores."
        )
    if claim.quick:
        lines.append("From the quick form, from which nothing follows.")
    return lines


def _named(cases: Sequence[str]) -> str:
    return ", ".join(cases[:_MOST]) + (f" and {len(cases) - _MOST} more" if len(cases) > _MOST else "")


def _line(comparison: Comparison, score: str) -> str:
    pooled = comparison.pooled
    if pooled is None:
        return ""
    test = pooled.test
    name = f"{_SCORES.get(score, score)}, {comparison.label} − {comparison.against}"
    parts = [] if test.ci_low is None else [f"95 % interval {interval(test)}"]
    parts.append(f"{test.n} pairs" if test.n > 1 else "1 pair")
    if comparison.case is None and len(pooled.cases) > 1:
        parts.append(f"above in {pooled.above} of {len(pooled.cases)} cases")
    else:
        parts.append(f"{test.wins} won, {test.ties} tied, {test.losses} lost")
    if comparison.groups:
        there, all_of_them = comparison.groups
        parts.append(f"median {'below' if comparison.less else 'above'} in {there} of {all_of_them} groups")
    parts.append("no test" if comparison.p_holm is None else f"p = {p_value(comparison.p_holm)}".replace("= <", "<"))
    if comparison.paper is not None:
        parts.append(f"the paper has {points(comparison.paper / 100)}")
    where = f" on {comparison.case}" if comparison.case else ""
    return f"{name}{where}: {points(test.mean_difference)} ({'; '.join(parts)})"


def tally(claims: Sequence[Claim]) -> str:
    """How many claims held, were not shown, were contradicted and were not run, in one sentence.

    Example:
        >>> from mario.report.claims_text import tally
        >>> tally([])
        'Of 0 claims 0 held, 0 were not shown, 0 were contradicted and 0 were not run.'
    """
    held, unshown, contradicted, unrun = (
        sum(claim.verdict == verdict for claim in claims)
        for verdict in ("held", "not shown", "contradicted", "not run")
    )
    return (
        f"Of {len(claims)} claims {held} held, {unshown} were not shown, {contradicted} were contradicted and {unrun} "
        "were not run."
    )
