"""The page of an audit: one HTML file that answers first, loads nothing and needs no script."""

import dataclasses
import os
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mario.audit import Audit
from mario.audit.auditing import about_firmness
from mario.audit.scores import Promise, Scores
from mario.audit.shifts import LEVEL, Comparison, Shift
from mario.audit.stability import DROPPED, FIRM
from mario.audit.verdict import gain, percent, plus_minus, points, title, verdict_of
from mario.files import check_path, write_text
from mario.report.html import render

_SHOWN = 10  # columns before the rest is folded
_MOST = 200
_STEPS = (1, 2, 5, 10, 20, 25, 50)
_READERS = {
    "features": "the features of a node",
    "structure": "its edges",
    "neighbors": "the features of the node and of its neighbors",
}
_SCHEMES = {
    "nodes": "single nodes, as the domains are dealt to nodes without regard to their neighbors",
    "blocks": "communities of connected nodes, as neighbors are alike",
    "graphs": "whole graphs",
}


@dataclasses.dataclass(frozen=True)
class Line:
    """A candidate of the forest plot; places are percentages of the axis."""

    name: str
    kind: str
    chosen: bool
    score: str
    interval: str
    place: float | None
    low: float | None
    high: float | None
    ticks: tuple[tuple[float, str], ...]
    words: str


@dataclasses.dataclass(frozen=True)
class Bar:
    """A column that shifts: the shares of the domain and of the others, as percentages."""

    column: str
    kind: str
    domain: str
    event: str
    there: float
    rest: float
    words: str
    means: str
    p: str


def write_audit(found: Audit, path: str | os.PathLike[str]) -> Path:
    """Write the page of an audit and return its path.

    Example:
        >>> import tempfile
        >>> from mario.audit import audit_graph
        >>> from mario.embedder import read_source
        >>> found = audit_graph(read_source("good-cbas", shift="covariate"), training=False)
        >>> with tempfile.TemporaryDirectory() as home:
        ...     text = write_audit(found, f"{home}/audit.html").read_text(encoding="utf-8")
        >>> "What shifts" in text, "http" in text.split("</style>")[1]
        (True, False)
    """
    page = check_path("path", path)
    write_text(page, f"{audit_page(found)}\n")
    return page


def audit_page(found: Audit) -> Markup:
    """The page as text."""
    style = "".join(
        resources.files("mario.report.page").joinpath(name).read_text(encoding="utf-8")
        for name in ("page.css", "audit.css")
    )
    scores = found.scores
    lines = [] if scores is None else forest_lines(scores)
    comparisons = [one for one in (found.against, found.between) if one is not None]
    return render(
        "audit",
        title=f"Audit of {found.graph.name}" + (f" and {found.new.name}" if found.new is not None else ""),
        policy="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
        style=Markup(style),
        verdict=verdict_of(found),
        lines=lines,
        axis=_axis(_ends(scores)) if lines and scores is not None else [],
        promise=None if scores is None else scores.promise,
        promised="" if scores is None else _promised(scores.promise),
        scores=scores,
        metric="" if scores is None else title(scores.metric),
        gain="" if scores is None else gain(scores),
        comparisons=[_comparison(one) for one in comparisons],
        domains=_domains(found),
        unseen=found.unseen,
        firmness=_firmness(found),
        stability_kind="" if found.stability is None else found.stability.kind,
        models=0 if found.stability is None else found.stability.models,
        reading=None if found.reading is None else {**dataclasses.asdict(found.reading), "p": _p(found.reading.p)},
        readings_shown=percent,
        level=percent(LEVEL),
        dropped=percent(DROPPED),
        firm=percent(FIRM),
        facts=_provenance(found),
    )


def forest_lines(scores: Scores) -> list[Line]:
    """The candidates from the best down, on an axis that has room for all their scores and intervals."""
    known = [one for one in scores.candidates if one.score is not None]
    if not known:
        return []
    first, last = _ends(scores)

    def place(value: float | None) -> float | None:
        return None if value is None else round(100 * (min(max(value, first), last) - first) / (last - first), 2)

    found = []
    for one in known:
        interval = "" if one.low is None else f"{points(one.low)} to {points(one.high)}"
        ticks = tuple((place(part.score) or 0.0, f"{part.domain}: {points(part.score)} %") for part in one.parts)
        said = ", ".join(f"{part.domain} {points(part.score)}" for part in one.parts)
        found.append(
            Line(
                name=one.name,
                kind={"control": "not trained", "trained": "trained", "steady": "steady"}[one.kind],
                chosen=one.name == scores.chosen,
                score=f"{100 * (one.score or 0.0):.1f}",
                interval=interval,
                place=place(one.score),
                low=place(one.low),
                high=place(one.high),
                ticks=ticks,
                words=f"{points(one.score)} %, 95 % interval {interval}" + (f"; {said}" if said else ""),
            )
        )
    return found


def _ends(found: Scores) -> tuple[float, float]:
    """Where the axis begins and ends: round numbers around all scores and what is promised."""
    scores = [one.score for one in found.candidates if one.score is not None]
    scores += [part.score for one in found.candidates for part in one.parts]
    scores += [end for end in (found.promise.low, found.promise.high) if end is not None]
    low, high = min(scores), max(scores)
    step = next((one for one in _STEPS if (high - low) * 100 <= 6 * one), 50)
    first = max(0, int(100 * low // step) * step)
    last = min(100, -int(-100 * high // step) * step)
    return min(first, last - step) / 100, last / 100


def _axis(ends: tuple[float, float]) -> list[tuple[float, str]]:
    """Marks of the axis: the place of each, and its text."""
    first, last = round(100 * ends[0]), round(100 * ends[1])
    step = next((one for one in _STEPS if last - first <= 5 * one), 50)
    marks = range(-int(-first // step) * step, last + 1, step)
    return [(round(100 * (value - first) / (last - first), 2), str(value)) for value in marks]


def _promised(promise: Promise) -> str:
    if promise.kind == "domain" and promise.domains > 1:
        return (
            f"{plus_minus(promise)} % is the mean, over {promise.domains} domains, of the score there of the candidate "
            "that is best on the others, with the range in which 95 % of further domains like these lie. It is below "
            "the score of the chosen candidate where choosing the best of many has helped that."
        )
    if promise.kind == "domain":
        return "The score is that on the validation domains of the split, with an interval over their nodes."
    if promise.kind == "same":
        return "Scores are of held-out nodes of the same domain. They promise nothing about another."
    return "Without labels nothing can be scored."


def _comparison(found: Comparison) -> dict[str, Any]:
    bars = [_bar(one) for one in found.shifts[:_MOST]]
    still = [one for one in found.columns if not one.found]
    names = [domain.name for domain in found.domains]
    return {
        "heading": "Between the graph and the new one" if found.what == "new graph" else "Between domains",
        "rest": names[0] if found.what == "new graph" else "elsewhere",
        "found": found.found,
        "bars": bars[:_SHOWN],
        "more": bars[_SHOWN:],
        "beyond": len(found.shifts) - len(bars),
        "compared": len(found.columns),
        "still": [_bar(one) for one in still[:_SHOWN]],
        "still_count": len(still),
        "readings": [
            {
                "what": _READERS.get(one.what, one.what),
                "accuracy": percent(one.accuracy),
                "chance": percent(1 / len(names)),
                "p": _p(one.p),
                "found": one.found,
            }
            for one in found.readings
        ],
        "units": found.units,
        "scheme": _SCHEMES[found.scheme],
        "draws": found.draws,
        "least": f"{1 / (found.draws + 1):.3g}",
        "left_out": found.left_out,
        "skipped": found.skipped,
        "unseen": [(name, percent(share)) for name, share in found.unseen[:_SHOWN]],
        "unseen_count": len(found.unseen),
    }


def _bar(one: Shift) -> Bar:
    means = ""
    if "≤" in one.event and one.mean is not None and one.rest_mean is not None and one.deviations is not None:
        means = f"mean {one.mean:.3g} against {one.rest_mean:.3g}, {signed(one.deviations)} standard deviations"
    return Bar(
        column=one.column,
        kind=one.kind,
        domain=one.domain,
        event=one.event,
        there=round(100 * one.share, 2),
        rest=round(100 * one.rest, 2),
        words=f"{percent(one.share)} against {percent(one.rest)}",
        means=means,
        p=_p(one.p),
    )


def signed(value: float) -> str:
    """A number with one decimal and its sign.

    Example:
        >>> signed(-0.82), signed(2)
        ('−0.8', '+2.0')
    """
    return f"{value:+.1f}".replace("-", "−")


def _p(value: float) -> str:
    return f"{value:.3f}"


def _domains(found: Audit) -> dict[str, Any]:
    """The table of domains: facts, and scores of the chosen candidate and of the best that is not trained."""
    rows = []
    scores = found.scores
    chosen = {} if scores is None else {part.domain: part for part in scores.candidate().parts}
    control = None if scores is None else scores.best("control")
    plain = {} if control is None else {part.domain: part for part in control.parts}
    known = list(found.between.domains) if found.between is not None else []
    known += list(found.against.domains[1:] if known else found.against.domains) if found.against is not None else []
    for one in known:
        rows.append(
            {
                "name": one.name,
                "nodes": f"{one.nodes:,}",
                "labeled": f"{one.labeled:,}",
                "degree": f"{one.degree:.1f}",
                "isolated": percent(one.isolated),
                "components": f"{one.components:,}",
                "homophily": "" if one.homophily is None else f"{one.homophily:.2f}",
                "beyond": "" if one.beyond is None else percent(one.beyond),
                "farther": "" if one.farther is None else f"{one.farther:.2f}",
                "score": f"{100 * chosen[one.name].score:.1f}" if one.name in chosen else "",
                "plain": f"{100 * plain[one.name].score:.1f}" if one.name in plain else "",
                "labels": [percent(share) for share in one.labels],
            }
        )
    classes = found.between.class_names if found.between is not None else ()
    return {
        "rows": rows,
        "scored": bool(chosen),
        "chosen": "" if scores is None else scores.chosen,
        "plain": "" if control is None or scores is None or control.name == scores.chosen else control.name,
        "classes": classes if len(classes) <= 12 else (),
    }


def _firmness(found: Audit) -> list[dict[str, Any]]:
    """How firm the nodes are: of the graph, and of the new one."""
    if found.stability is None:
        return []
    sides = [(found.graph.name, found.stability.nodes)]
    if found.new is not None and found.stability.new:
        sides.append((found.new.name, found.stability.new))
    shown = []
    for name, shares in sides:
        counts = [0] * 5
        for share in shares:
            counts[min(4, int(share * 5))] += 1
        about = about_firmness(shares)
        shown.append(
            {
                "name": name,
                "mean": f"{about['mean']:.2f}",
                "firm": percent(about["firm"]),
                "bins": [
                    {
                        "from": f"{place / 5:.1f}",
                        "to": f"{(place + 1) / 5:.1f}",
                        "share": percent(count / len(shares)),
                        "width": round(100 * count / len(shares), 2),
                    }
                    for place, count in enumerate(counts)
                ],
            }
        )
    return shown


def _provenance(found: Audit) -> dict[str, str]:
    facts = {}
    for name, graph in (("graph", found.graph), ("new graph", found.new)):
        if graph is not None:
            facts[name] = (
                f"{graph.source}: {graph.nodes:,} nodes, {graph.edges:,} edges (an undirected one counts twice), "
                f"{graph.features:,} features, {graph.labeled:,} labels; fingerprint {graph.fingerprint}"
            )
    if found.graph.domain:
        facts["domains"] = f"{found.graph.domains} by {found.graph.domain}"
    if found.scores is not None:
        steps = ", ".join(f"{name} ({count} steps)" for name, count in found.scores.trainings.items())
        facts["trained"] = steps or "nothing"
        facts["scored by"] = f"{found.scores.rule}: {found.scores.why}"
    facts["seed"] = str(found.seed)
    facts["time"] = f"{found.seconds:.0f} s"
    facts["made by"] = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    return facts
