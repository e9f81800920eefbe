"""The sections of docs/performance.md that are written from figures."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import GIB, MIB
from benchmarks.wording import (
    Figures,
    Section,
    gap_of,
    needs,
    p_value,
    percent,
    rate,
    seconds,
    size,
    table,
    times,
)


def row_of(rows: Sequence[dict[str, Any]], nodes: int, wide: bool = False) -> dict[str, Any] | None:
    return next((row for row in rows if row["nodes"] == nodes and row.get("wide", False) == wide), None)


@needs("limits")
def machine(figures: Figures) -> str:
    limits = figures["limits"]
    about = limits["machine"]
    one, two = limits["threads"]["1"], limits["threads"]["2"]
    rows = [
        ("product of 2,048² float32 matrices", "matmul_flops", "flop"),
        ("b + s·c over arrays of 128 MiB", "triad_bytes", "B"),
        ("rows of 512 B in random order, read and written", "gather_512_bytes", "B"),
        ("rows of 1,200 B in random order, read and written", "gather_1200_bytes", "B"),
        ("exponentials in cache", "exp", ""),
    ]
    text = table(
        ["limit", "1 thread", "2 threads"],
        [[title, rate(one[key], unit), rate(two[key], unit)] for title, key, unit in rows]
        + [["smallest call into torch", seconds(one["call_seconds"]), seconds(two["call_seconds"])]],
    )
    dates = sorted({found["machine"]["date"] for found in figures.values()})
    commits = sorted({found["machine"]["commit"] for found in figures.values()})
    quick = " **Quick mode: sizes and rounds too small to quote.**" if limits["quick"] else ""
    return (
        f"{about['cpu']}, {about['cores']} cores, {size(about['memory'])}; Python {about['python']}, "
        f"torch {about['torch']}; measured {' and '.join(dates)} at {', '.join(commits)}.{quick}\n\n{text}"
    )


def demands(figures: Figures, where: Path) -> str:
    """What issue 4 asks for, and what was found."""
    rows: list[list[str]] = []

    def add(what: str, wanted: str, found: str, met: bool) -> None:
        rows.append([what, wanted, found, "yes" if met else "**no**"])

    step = row_of(figures["step"]["rows"], 8_000) if "step" in figures else None
    if step:
        quicker = step["plain"]["cpu"] / step["ours"]["cpu"]
        smaller = step["plain"]["bytes"] / step["ours"]["bytes"]
        add("a step at 8,000 nodes, CPU time", "5× less", f"{times(quicker)} less", quicker >= 5)
        add("a step at 8,000 nodes, peak memory over the inputs", "12× less", f"{times(smaller)} less", smaller >= 12)
    if "contrast" in figures:
        shares = {row["nodes"]: row["share"] for row in figures["contrast"]["rows"]}
        shown = ", ".join(f"{percent(share)} at {nodes:,}" for nodes, share in shares.items())
        add("`info_nce` of the matrix-multiply rate, N ≥ 4,000", "80 %", shown, min(shares.values()) >= 0.8)
        large = figures["contrast"].get("large")
        if large:
            found = f"{size(large['peak'])} at {large['nodes']:,}"
            add("full-batch InfoNCE of 100,000 nodes, whole process", "2 GiB", found, large["peak"] < 2 * GIB)
    if "cbas" in figures:
        cbas = figures["cbas"]
        ratio = cbas["shortened"]["plain"]["whole"] / cbas["shortened"]["ours"]["whole"]
        found = f"{times(ratio)} less, in proportion from shortened runs"
        add("a whole run on GOOD-CBAS, CPU time", "6× less", found, ratio >= 6)
        if "accuracy" in cbas:
            equal = cbas["accuracy"]["paired"]["ood_test"]
            shown = f"{gap_of(equal)}, n = {equal['n']}"
            # No number of runs shows that two things are equal, only how far apart they can be.
            verdict = "no difference shown" if equal["ci_low"] <= 0 <= equal["ci_high"] else "**no**"
            what = f"its OOD accuracy minus the reference's, runs of {cbas['accuracy']['epochs']} epochs"
            rows.append([what, "equal", shown, verdict])
    if "same_run" in figures:
        compared, apart = scores_apart(figures)
        count, steps = len(figures["same_run"]["runs"]), figures["same_run"]["steps"]
        what = f"its accuracies and the reference's in float64, {count} seeds of {steps} steps"
        add(what, "equal", f"{compared - len(apart)} of {compared} the same", not apart)
    if "million" in figures:
        by_method = {row["method"]: row for row in figures["million"]["rows"]}
        peak, above = by_method["mario"]["peak"], figures["million"]["paired"].get("mario, erm")
        add("MARIO on a million nodes, peak of the whole process", "8 GiB", size(peak), peak < 8 * GIB)
        if above:
            shown = f"{gap_of(above)}, {above['wins']} of {above['n']} seeds above"
            add("its OOD accuracy minus ERM's", "above", shown, (above["ci_low"] or 0.0) > 0)
    if "ranks" in figures:
        kinds = figures["ranks"]["kinds"]
        # Of the same round, as the machine is not equally quick in all of them.
        gains = [two / one for one, two in zip(kinds["1"]["by_round"], kinds["2"]["by_round"], strict=True)]
        gain = statistics.median(gains)
        found = f"{gain:.2f}× ({min(gains):.2f} to {max(gains):.2f} in {len(gains)} rounds)"
        add("two ranks against one on one core, throughput", "1.6×", found, gain >= 1.6)
    return table(["what", "asked", "found", "met"], rows, left=4) if rows else "Not measured yet."


def products(row: Mapping[str, Any]) -> float:
    """Operations of a step in dense products; that with X, which `work` counts, is a sparse one where X is wide."""
    return row["work"]["contrast"] if row["wide"] else sum(row["work"].values())


@needs("step")
def step(figures: Figures) -> str:
    rows = []
    for row in figures["step"]["rows"]:
        ours, plain = row["ours"], row.get("plain")
        share = products(row) / row["matmul_flops"] / (ours["cpu"] if row["threads"] == 1 else ours["wall"])
        rows.append(
            [
                f"{row['nodes']:,}" + (", 6,805 sparse words" if row["wide"] else ""),
                seconds(ours["cpu"]),
                seconds(plain["cpu"]) if plain else "",
                times(plain["cpu"] / ours["cpu"]) if plain else "",
                size(ours["bytes"]),
                size(plain["bytes"]) if plain else "",
                times(plain["bytes"] / ours["bytes"]) if plain else "",
                percent(share),
            ]
        )
    text = table(["nodes", "ours, CPU", "plain, CPU", "", "ours, peak", "plain, peak", "", "products"], rows)
    again = figures["step"]["again"]
    cpu = again["cpu"]
    ratios = {name: cpu[f"plain:{name}"] / cpu["ours"] for name in ("nothing", "projector", "encoder")}
    return (
        f"{text}\n\nWhat the prototype steps of the reference run again matters on small graphs. At {again['nodes']:,} "
        f"nodes it takes {times(ratios['encoder'])} the CPU time of ours when that is the whole network, as the "
        f"formula has it and in the table; {times(ratios['projector'])} when it is the projector, as in the released "
        f"code; {times(ratios['nothing'])} when it is nothing, as in ours."
    )


@needs("contrast")
def contrast(figures: Figures) -> str:
    rows = []
    for row in figures["contrast"]["rows"]:
        cpu, peak = row["cpu"], row["bytes"]
        for name in ("info_nce", "conditional_mi"):
            plain = f"{name} plain"
            rows.append(
                [
                    f"`{name}`",
                    f"{row['nodes']:,}",
                    seconds(cpu[name]),
                    seconds(cpu[plain]) if plain in cpu else "",
                    size(peak[name]),
                    size(peak[plain]) if plain in peak else "",
                    percent(row["share"]) if name == "info_nce" else "",
                ]
            )
    text = table(["loss", "nodes", "ours", "plain", "ours, peak", "plain, peak", "of the product rate"], rows)
    large = figures["contrast"].get("large")
    if large:
        text += (
            f"\n\n{large['nodes']:,} nodes on {large['threads']} threads: {seconds(large['wall'])} of wall time, "
            f"{percent(large['share'])} of the product rate; the whole process, torch and inputs included, peaked at "
            f"{size(large['peak'])}."
        )
    return text


@needs("cbas")
def cbas(figures: Figures) -> str:
    found = figures["cbas"]
    ours, plain = found["shortened"]["ours"], found["shortened"]["plain"]
    titles = {
        "epoch": f"an epoch of {found['steps_per_epoch']} steps",
        "pause": "a checkpoint: probe, scores, files",
        "whole": f"all: {found['epochs']} epochs, {found['checkpoints']} checkpoints",
    }
    rows = [
        [title, seconds(ours[k]), seconds(plain[k]), times(plain[k] / ours[k]) if ours[k] else ""]
        for k, title in titles.items()
    ]
    text = "In proportion from shortened runs:\n\n" + table(["CPU time of", "ours", "plain", ""], rows)
    done = found.get("accuracy")
    if not done:
        return text + "\n\nAccuracies have not been compared: `python -m benchmarks.cbas --seeds 5`."
    count = done["seeds"]
    text += f"\n\nAccuracies of runs of {done['epochs']} epochs, seeds 0 to {count - 1}:\n\n"
    rows = []
    for name, title in (("id_test", "ID accuracy"), ("ood_test", "OOD accuracy")):
        both = [f"{100 * sum(done['scores'][who][name]) / count:.1f} %" for who in ("ours", "plain")]
        pair = done["paired"][name]
        gap = f"{100 * pair['mean_difference']:+.1f} ({100 * pair['ci_low']:+.1f} to {100 * pair['ci_high']:+.1f})"
        rows.append([title, *both, gap, p_value(pair)])
    return text + table(["mean over seeds", "ours", "plain", "difference (95 %)", "p"], rows)


def scores_apart(figures: Figures) -> tuple[int, list[float]]:
    """How many scores of the runs in float64 were compared, and those differences that are not 0."""
    rows = [row for run in figures["same_run"]["runs"] for row in run["checkpoints"]]
    gaps = [abs(row["ours"][name] - row["plain"][name]) for row in rows for name in row["ours"]]
    return len(gaps), [gap for gap in gaps if gap]


@needs("same_run")
def same_run(figures: Figures) -> str:
    found = figures["same_run"]
    compared, apart = scores_apart(figures)
    header = ["seed", "losses", "weights", "embeddings", "nodes with another label", "OOD accuracy, ours and plain"]
    rows = []
    for run in found["runs"]:
        last = run["checkpoints"][-1]
        labels = sum(row["nodes apart"] for row in run["checkpoints"])
        scores = f"{100 * last['ours']['ood_test']:.1f} %, {100 * last['plain']['ood_test']:.1f} %"
        gaps = [f"{value:.0e}" for value in (run["loss"], last["weights"], last["embeddings"])]
        rows.append([str(run["seed"]), *gaps, str(labels), scores])
    others = f", others differ by up to {100 * max(apart):.1f} points" if apart else ""
    return f"{compared - len(apart)} of {compared} scores are the same{others}.\n\n" + table(header, rows)


@needs("messages")
def messages(figures: Figures) -> str:
    rows = []
    for row in figures["messages"]["rows"]:
        cpu = row["cpu"]
        rows.append(
            [
                row["graph"],
                f"{row['nodes']:,}",
                f"{row['edges']:,}",
                str(row["width"]),
                seconds(cpu["ours"]),
                seconds(cpu["pyg"]),
                times(cpu["pyg"] / cpu["ours"]),
                seconds(cpu["torch sparse"]),
                seconds(cpu["ours, making"]),
                seconds(cpu["pyg, making"]),
                seconds(row["gather_seconds"]),
            ]
        )
    head = ["graph", "nodes", "edges", "width", "ours", "PyG", "", "torch's CSR"]
    return table([*head, "ours, making Ã", "PyG, making Ã", "gathering alone"], rows)


@needs("probe", "limits")
def probe(figures: Figures) -> str:
    call = figures["limits"]["threads"]["1"]["call_seconds"]
    names = ("encoder each step", "autograd", "ours", "ten at once", "optimum")
    rows, notes = [], []
    for row in figures["probe"]["rows"]:
        rows.append([row["problem"], *(seconds(row["cpu"][name]) for name in names)])
        losses = ", ".join(f"{name} {value:.4f}" for name, value in row["loss"].items())
        step = row["cpu"]["ours"] / row["steps"]
        notes.append(
            f"{row['problem']}: training loss {losses}; a step of ours takes as long as {step / call:.0f} of the "
            "smallest calls into torch."
        )
    return table(["problem", *names], rows) + "\n\n" + "\n".join(f"- {note}" for note in notes)


@needs("sampling", "limits")
def sampling(figures: Figures) -> str:
    found = figures["sampling"]
    gather = figures["limits"]["threads"]["1"]["gather_512_bytes"]
    rows = [
        [
            row["sampler"],
            seconds(row["set_up"]),
            f"{row['nodes']:,}",
            f"{row['edges']:,}",
            seconds(row["sample"]),
            seconds(row["train"]),
            f"{row['sample'] / row['train']:.2f}",
            seconds(row["plain"]),
            percent(row["gathered"] / gather / row["sample"]),
        ]
        for row in found["rows"]
    ]
    head = ["sampler", "set-up", "nodes", "edges", "sample", "train", "sample / train", "plain", "reading rows"]
    return (
        f"{found['nodes']:,} nodes, {found['edges']:,} edges, {found['features']} features; a GCN of 2 layers, "
        f"{found['hidden_channels']} wide.\n\n{table(head, rows)}"
    )


@needs("startup")
def startup(figures: Figures) -> str:
    commands = figures["startup"]["commands"]
    rows = [[f"`{name}`", seconds(both["cpu"]), seconds(both["wall"])] for name, both in commands.items()]
    return table(["a fresh interpreter", "CPU", "wall"], rows)


@needs("batches")
def batches(figures: Figures) -> str:
    found = figures["batches"]["rows"]
    rows = [
        [
            f"{row['nodes']:,}",
            f"{row['batch']:,.0f}",
            seconds(row["wall"]),
            seconds(row["cpu"]),
            f"{row['batches']:,.0f}",
            seconds(row["epoch_wall"]),
            size(row["peak"]),
            seconds(row["making"]),
        ]
        for row in found
    ]
    head = [
        "nodes",
        "a batch",
        "wall a batch",
        "CPU a batch",
        "batches per epoch",
        "an epoch",
        "peak",
        "making the graph",
    ]
    first, last = found[0], found[-1]
    growth = last["epoch_wall"] / first["epoch_wall"]
    more = (last["peak"] - first["peak"]) / (last["nodes"] - first["nodes"])
    return (
        f"{table(head, rows, left=0)}\n\nFrom the first row to the last the nodes grow "
        f"{last['nodes'] / first['nodes']:.1f} times, the time of an epoch {growth:.1f} times; each further node adds "
        f"{more:.1f} bytes to the peak."
    )


@needs("full_batch")
def full_batch(figures: Figures) -> str:
    found = figures["full_batch"]
    rows = [[row["method"], f"{row['peak_gib']:.2f} GiB", seconds(row["wall"])] for row in found["rows"]]
    return table(["method", "peak of the whole process", "wall"], rows)


@needs("million")
def million(figures: Figures) -> str:
    found = figures["million"]
    rows = [
        [
            row["method"],
            *(f"{100 * row[name]['mean']:.1f} ± {100 * row[name]['sd']:.1f}" for name in ("id_test", "ood_test")),
            seconds(row["cpu"]),
            size(row["peak"]),
        ]
        for row in found["rows"]
    ]
    text = table(["method", "ID test, %", "OOD test, %", "CPU", "peak of the whole process"], rows)
    tests = [
        f"{pair.replace(', ', ' less ')}, OOD: {gap_of(test)}, {test['wins']} of {test['n']} above, "
        f"p = {p_value(test)} by Wilcoxon's test"
        for pair, test in found["paired"].items()
    ]
    seeds = ", ".join(map(str, found["seeds"]))
    return f"`{found['dataset']}`, splits and seeds {seeds}:\n\n{text}\n\n" + "\n".join(f"- {test}." for test in tests)


@needs("less_than_exact")
def less_than_exact(figures: Figures) -> str:
    rows = []
    for dataset, found in figures["less_than_exact"]["datasets"].items():
        for name, row in found["variants"].items():
            gap = ""
            if "difference" in row:
                gap = f"{100 * row['difference']:+.1f} ({100 * row['low']:+.1f} to {100 * row['high']:+.1f})"
            score = f"{100 * row['mean']:.1f} ± {100 * row['sd']:.1f} %"
            what = f"{dataset}, {found['steps']} steps"
            rows.append([what, name, str(row["pairs"]), score, gap, seconds(row["cpu"])])
    return table(["dataset", "variant", "n", "OOD accuracy", "minus the exact one's (95 %)", "CPU"], rows, left=2)


@needs("ranks")
def ranks(figures: Figures) -> str:
    found = figures["ranks"]
    alone = found["kinds"]["1"]["batches_per_second"]
    titles = {"1": "1 rank", "2": "2 ranks", "4": "4 ranks on 2 cores", "2 apart": "2 processes, unconnected"}
    rows = []
    for kind, title in titles.items():
        one = found["kinds"][kind]
        sent = one["messages"]
        rows.append(
            [
                title,
                f"{one['batches_per_second']:.2f}",
                times(one["batches_per_second"] / alone),
                f"{sent['calls']:.0f}",
                size(sent["bytes"]) if sent["bytes"] >= MIB else f"{sent['bytes'] / 1024:.0f} KiB",
                seconds(sent["seconds"]) if sent["calls"] else "",
            ]
        )
    head = ["", "batches per second", "", "messages per step", "their size", "in messages, per step"]
    return f"Batches of {found['batch_nodes']:,.0f} nodes.\n\n{table(head, rows)}"


def limits_of(figures: Figures, where: Path) -> str:
    """Which limit each part is at: the time that its work would take at the limit, as a share of what it took."""
    if "limits" not in figures:
        return "Not measured yet."
    one = figures["limits"]["threads"]["1"]
    rows: list[list[str]] = []

    def add(part: str, took: float, bound: float, limit: str) -> None:
        share = bound / took
        cached = share > 1.05 and limit.startswith("reading")
        said = f"{percent(share)}: rows come from cache" if cached else percent(share)
        rows.append([part, limit, seconds(took), seconds(bound), said])

    if "contrast" in figures:
        row = figures["contrast"]["rows"][-1]
        took = row["cpu"]["info_nce"]
        add(f"`info_nce`, {row['nodes']:,} nodes", took, took * row["share"], "matrix products")
    if "step" in figures:
        for row in figures["step"]["rows"]:
            if row["nodes"] in (1_000, 8_000) and row["threads"] == 1:
                title = f"a step, {row['nodes']:,} nodes" + (", sparse words" if row["wide"] else "")
                add(title, row["ours"]["cpu"], products(row) / row["matmul_flops"], "matrix products")
    if "messages" in figures:
        for row in figures["messages"]["rows"]:
            title = f"message passing, {row['nodes']:,} nodes"
            add(title, row["cpu"]["ours"], row["gather_seconds"] / 2, "reading a row for every edge")
    if "probe" in figures:
        for row in figures["probe"]["rows"]:
            flops, calls = row["flops"] / one["matmul_flops"], 11 * row["steps"] * one["call_seconds"]
            limit = "matrix products" if flops > calls else "eleven small calls per step"
            add(f"the probe, {row['problem']}", row["cpu"]["ours"], max(flops, calls), limit)
    if "sampling" in figures:
        for row in figures["sampling"]["rows"]:
            bound = row["gathered"] / one["gather_512_bytes"]
            add(f"sampling, {row['sampler']}", row["sample"], bound, "reading the batch's rows")
    if "startup" in figures:
        commands = figures["startup"]["commands"]
        add("`mario --help`", commands["mario --help"]["cpu"], commands["python alone"]["cpu"], "Python itself")
        imported = commands["import torch_geometric"]["cpu"]
        add("`mario.MARIO`", commands["mario.MARIO"]["cpu"], imported, "importing PyG and torch")
    if "ranks" in figures:
        kinds = figures["ranks"]["kinds"]
        two, apart = (1 / kinds[kind]["batches_per_second"] for kind in ("2", "2 apart"))
        add("two ranks, a batch", two, apart, "two cores without a message")
    return table(["part", "limit", "took", "at the limit", "share"], rows, left=2)


PERFORMANCE: dict[str, Section] = {
    "demands": demands,
    "machine": machine,
    "limits": limits_of,
    "step": step,
    "contrast": contrast,
    "cbas": cbas,
    "messages": messages,
    "probe": probe,
    "sampling": sampling,
    "startup": startup,
    "full_batch": full_batch,
    "batches": batches,
    "ranks": ranks,
    "million": million,
    "less_than_exact": less_than_exact,
    "same_run": same_run,
}
