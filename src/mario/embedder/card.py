"""The README.md of a model: what it is, what to expect of it, and where it ends."""

from mario.embedder.folder import About
from mario.percent import percent

_SHOWN = 12


def model_card(about: About) -> str:
    """Markdown with the front matter that Hugging Face reads."""
    graph = about.graph
    parts = [
        "---",
        "library_name: mario-gcl",
        "tags:",
        "- graph-embeddings",
        "- self-supervised",
        "- distribution-shift",
        *(["pipeline_tag: graph-ml"]),
        "---",
        "",
        f"# Embeddings of {graph.name}",
        "",
        f"**{verdict(about)}**",
        "",
        "## Data",
        "",
        f"{graph.nodes:,} nodes, {graph.edges:,} edges (an undirected one counts twice), {graph.features:,} features.",
        f"Fingerprint of the graph: `{graph.fingerprint}`.",
        *_domains(about),
        "",
        "## What was picked",
        "",
        "| setting | value | reason |",
        "|---|---|---|",
        *(f"| {pick.setting} | {_cell(pick.value)} | {_cell(pick.reason)} |" for pick in about.picks),
        "",
        "## Scores",
        "",
        *_scores(about),
        "",
        *_history(about),
        "## Limits",
        "",
        *(f"- {line}" for line in limits(about)),
        "",
        "## Use",
        "",
        "```",
        "mario embed MODEL newgraph -o z.parquet",
        *(["mario predict MODEL newgraph -o p.parquet"] if about.class_names else []),
        "```",
        "",
        f"Written by mario {about.versions.get('mario', '')}, seed {about.seed}.",
        "",
    ]
    return "\n".join(parts)


def verdict(about: About) -> str:
    """What was chosen and what to expect, in a sentence or two."""
    what = {
        "raw-features": "The features alone are used, without the graph",
        "hops": "The features and the means over neighbors are used; nothing is trained",
        "random-init": "An encoder that was never trained is used",
    }.get(about.method, f"Embeddings by {about.chosen}")
    if about.method in ("raw-features", "hops", "random-init") and about.score is not None:
        scored = any(not one.control for one in about.candidates)
        what = f"{what}: {'no trained candidate scored higher' if scored else 'the budget left no time to train'}"
    if about.center != "never" and any("centered by domain" in line for line in about.decisions):
        what = f"{what}, centered by domain"
    if about.score is None or about.interval is None:
        return f"{what}. There are no labels to tell how well they hold on other domains."
    expected = f"{percent(about.score)} ({percent(about.interval[0])} to {percent(about.interval[1])})"
    metric = about.metric.replace("_", " ")
    if about.rule == "id_val":
        return f"{what}. Expect {expected} {metric} on nodes like these; no promise about other domains can be made."
    return f"{what}. Expect {expected} {metric} on another domain."


def limits(about: About) -> list[str]:
    """What a user should not expect."""
    found = list(about.warnings)
    if about.rule == "ood_val":
        found.append(
            "The score is that of the best of several candidates on validation nodes, so it is a little too high."
        )
    if about.rule == "leave_domain_out":
        found.append("The interval is for another domain like those that were left out, one at a time.")
    if about.calibration is not None:
        found.append(
            f"Probabilities are off by {100 * about.calibration:.1f} points on average (expected calibration error)."
        )
    if about.graph.domains:
        found.append("A domain that is not listed above is centered by its own nodes, so several of them are needed.")
    return found or ["None is known."]


def _history(about: About) -> list[str]:
    """The updates after the fit."""
    if not about.history:
        return []
    lines = ["## Updated", "", "Scores above are those of the first fit.", ""]
    for entry in about.history:
        graph, moved = entry["graph"], entry["moved"]
        lines.append(
            f"- with {graph['name']} ({graph['nodes']:,} nodes), {entry['steps']} steps, known nodes kept by "
            f"{entry['kept_by']}; mean cosine before and after {moved['mean']:.4f} ({moved['of']}); classifier "
            f"{entry['head']}"
        )
    return [*lines, ""]


def _domains(about: About) -> list[str]:
    names = about.graph.domains
    if not names:
        return ["No domains are known."]
    shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
    return [f"Domains by {about.graph.domain or 'domain_id'}: {shown}."]


def _scores(about: About) -> list[str]:
    if about.score is None:
        lines = ["| candidate | domain readable | effective rank |", "|---|---:|---:|"]
        return lines + [
            f"| {one.name} | {_number(one.readability)} | {_number(one.rank, 1)} |" for one in about.candidates
        ]
    lines = [
        f"By `{about.rule}`: {about.rule_why}. A constant prediction has {percent(about.baseline)}.",
        "",
        f"| candidate | {about.metric.replace('_', ' ')} | 95 % interval | domain readable |",
        "|---|---:|---:|---:|",
    ]
    for one in about.candidates:
        name = f"**{one.name}**" if one.name == about.chosen else one.name
        interval = f"{percent(one.low)} to {percent(one.high)}"
        lines.append(f"| {name} | {percent(one.score)} | {interval} | {_number(one.readability)} |")
    return lines


def _number(value: float | None, digits: int = 2) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
