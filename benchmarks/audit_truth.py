"""False alarms and finds of the audit on graphs of which the truth is known.

    python -m benchmarks.audit_truth --draws 200 -o audit_truth.json

Each draw makes a graph without a shift in one of six ways, and the same graph with one shift planted. A false alarm is
any column or classifier that is called a shift where there is none; a find is a planted column that is called one, and
it is named if no other column differs more.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from mario.audit import against_new, between_domains
from mario.embedder import read_source

NULLS = ("dealt", "dealt, three", "regions", "communities", "graphs", "new graph")
PLANTED = ("mean", "spread", "category", "rare category", "degree", "label rate", "missing label", "homophily")


def graph(draws: np.random.Generator, nodes: int, communities: int | None = None, smooth: int = 2) -> Data:
    """Communities with links among their own; classes and features that neighbors and communities share.

    Columns: four of numbers (two of them smooth over the graph), a skewed one, a binary one and a category of four.
    """
    communities = communities or round(nodes / 30)
    community = draws.integers(communities, size=nodes)
    y = np.where(draws.random(nodes) < 0.75, community % 3, draws.integers(3, size=nodes))
    order = np.argsort(community, kind="stable")
    starts = np.searchsorted(community[order], np.arange(communities + 1))
    source = draws.integers(nodes, size=3 * nodes)
    inside = draws.random(3 * nodes) < 0.85
    own = community[source]
    near = order[(starts[own] + draws.random(3 * nodes) * (starts[own + 1] - starts[own])).astype(int)]
    target = np.where(inside, near, draws.integers(nodes, size=3 * nodes))
    edges = torch.tensor(np.stack([np.r_[source, target], np.r_[target, source]]))
    noise = draws.normal(size=(nodes, 4))
    for _ in range(smooth):
        total = noise.copy()
        count = np.ones(nodes)
        np.add.at(total, target, noise[source])
        np.add.at(count, target, 1)
        noise[:, :2] = (total / np.sqrt(count)[:, None])[:, :2]
    noise[:, :3] += 0.5 * y[:, None]
    skewed = np.exp(draws.normal(size=nodes))
    flag = draws.random(nodes) < 0.3
    category = draws.choice(4, size=nodes, p=[0.5, 0.3, 0.15, 0.05])
    x = np.column_stack([noise, skewed, flag, np.eye(4)[category]])
    names = [
        "smooth_a",
        "smooth_b",
        "income",
        "height",
        "amount",
        "member",
        "color=red",
        "color=blue",
        "color=green",
        "color=gray",
    ]
    found = Data(x=torch.tensor(x, dtype=torch.float32), edge_index=edges, y=torch.tensor(y))
    found.feature_names = names
    found.community = torch.tensor(community)
    return found


def joined(parts: list[Data]) -> Data:
    starts = np.cumsum([0, *(int(part.x.size(0)) for part in parts)])
    found = Data(
        x=torch.cat([part.x for part in parts]),
        y=torch.cat([part.y for part in parts]),
        edge_index=torch.cat([part.edge_index + int(start) for part, start in zip(parts, starts, strict=False)], 1),
    )
    found.feature_names = parts[0].feature_names
    found.place = torch.cat([torch.full((part.x.size(0),), i) for i, part in enumerate(parts)])
    return found


def null(kind: str, draws: np.random.Generator) -> tuple[Data, Data | None]:
    """A graph whose domains do not shift, and a new graph if there is one."""
    nodes = int(draws.integers(400, 1000))
    if kind == "graphs":
        data = joined([graph(draws, int(draws.integers(250, 500))) for _ in range(3)])
        data.place_of = data.place
    elif kind == "new graph":
        data = graph(draws, nodes)
        data.place_of = torch.zeros(nodes, dtype=torch.long)
        return data, graph(draws, int(draws.integers(250, 600)))
    else:
        data = graph(draws, nodes)
        if kind == "dealt":
            place = draws.random(nodes) < 0.4
        elif kind == "dealt, three":
            place = draws.choice(3, size=nodes, p=[0.6, 0.3, 0.1])
        elif kind == "communities":
            place = draws.permutation(int(data.community.max()) + 1)[data.community.numpy()] % 2
        else:  # a smooth field of its own, cut in two
            field = draws.normal(size=nodes)
            source, target = data.edge_index.numpy()
            for _ in range(4):
                total, count = field.copy(), np.ones(nodes)
                np.add.at(total, target, field[source])
                np.add.at(count, target, 1)
                field = total / count
            place = field > np.quantile(field, 0.4)
        data.place_of = torch.tensor(place).long()
    return data, None


def plant(kind: str, data: Data, new: Data | None, draws: np.random.Generator) -> str:
    """Shift one column of one domain, or of the new graph; its name."""
    last = int(data.place_of.max())
    target, rows = (data, data.place_of == last) if new is None else (new, torch.ones(new.x.size(0), dtype=torch.bool))
    x, count = target.x, int(rows.sum())
    if kind == "mean":
        x[rows, 2] += 0.8 * float(data.x[:, 2].std())
        return "income"
    if kind == "spread":
        x[rows, 3] *= 2
        return "height"
    if kind == "category":
        changed = rows & torch.from_numpy(draws.random(len(rows)) < 0.35)
        x[changed, 6:] = torch.tensor([0.0, 0.0, 1.0, 0.0])
        return "color=green"
    if kind == "rare category":
        changed = rows & torch.from_numpy(draws.random(len(rows)) < 0.2)
        x[changed, 6:] = torch.tensor([0.0, 0.0, 0.0, 1.0])
        return "color=gray"
    if kind == "degree":
        inside = rows.nonzero().view(-1)
        ends = inside[torch.from_numpy(draws.integers(count, size=(2, 2 * count)))]
        target.edge_index = torch.cat([target.edge_index, ends, ends.flip(0)], 1)
        return "degree"
    if kind == "label rate":
        changed = rows & torch.from_numpy(draws.random(len(rows)) < 0.4)
        data.y[changed] = 0
        return "label"
    if kind == "missing label":
        changed = rows & torch.from_numpy(draws.random(len(rows)) < 0.5)
        data.y[changed] = -1
        return "has a label"
    mixed = rows.nonzero().view(-1)
    data.y[mixed] = data.y[mixed[torch.from_numpy(draws.permutation(count))]]
    return "homophily"


def audit(data: Data, new: Data | None, seed: int) -> object:
    data = data.clone()
    if new is None:
        data.domain_id = data.place_of
        found = between_domains(read_source(data), seed=seed)
    else:
        found = against_new(read_source(data), new, seed=seed)
    assert found is not None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--only", nargs="*", default=[*NULLS])
    parser.add_argument("--no-planted", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path)
    asked = parser.parse_args()
    rows, began = [], time.monotonic()
    for draw in range(asked.first, asked.first + asked.draws):
        kind = asked.only[draw % len(asked.only)]
        draws = np.random.default_rng([2026, draw])
        data, new = null(kind, draws)
        found = audit(data, new, draw)
        least = min([one.p for one in found.columns] + [one.p for one in found.readings])
        who = [one.column for one in found.shifts] + [one.what for one in found.readings if one.found]
        row = {
            "draw": draw,
            "null": kind,
            "alarm": found.found,
            "p": least,
            "who": who,
            "scheme": found.scheme,
            "units": found.units,
        }
        if not asked.no_planted:
            possible = PLANTED[:5] if new is not None else PLANTED
            planted = possible[draw // len(asked.only) % len(possible)]
            column = plant(planted, data, new, draws)
            after = audit(data, new, draw)
            named = [one.column for one in after.shifts]
            first = max(after.columns, key=lambda one: one.z)
            row |= {
                "planted": planted,
                "found": column in named,
                "first": first.column == column,
                "named": named,
                "any": after.found,
                "p planted": min(one.p for one in after.columns if one.column == column),
            }
        rows.append(row)
        print(json.dumps(row), flush=True)
        if asked.out:
            asked.out.write_text(json.dumps(rows, indent=1))
    alarms = sum(row["alarm"] for row in rows)
    print(f"{alarms} false alarms in {len(rows)} draws, {time.monotonic() - began:.0f} s")
    for kind in asked.only:
        of = [row for row in rows if row["null"] == kind]
        print(
            f"  {kind}: {sum(row['alarm'] for row in of)} of {len(of)}; p < 0.05: {sum(row['p'] <= 0.05 for row in of)}"
        )
    for kind in PLANTED:
        of = [row for row in rows if row.get("planted") == kind]
        if of:
            print(
                f"  planted {kind}: found {sum(row['found'] for row in of)}, "
                f"first {sum(row['first'] for row in of)} of {len(of)}"
            )


if __name__ == "__main__":
    main()
