"""Does `mario update` help on nodes that arrive later, and do known nodes stay where they are? Time-ordered graphs.

Protocol, written before the first of its runs. Settings of `mario update` (steps, lr, keep) were chosen on the users of
Taiwan (TW), which are in no case below, and on ``drift``, with seeds 100 and 101.

Cases. ``PTBR`` and ``RU``: users of Twitch (MUSAE; ``tables/twitch`` of the data folder) in order of the age of
their accounts, the label is whether they use mature language. ``drift``: 2,400 generated nodes of four classes that
arrive in order; most of the words that tell a class are replaced by words that were not in use before. The graph of
the first fit has the oldest half of the nodes, that of the update the oldest three quarters and all edges among them.
The newest quarter is in neither.

Labels. Of the old nodes 60 % train, 20 % validate and 20 % test. The update is given no label. The classifier is that
of the first fit, and is kept.

Arms. ``none``: the model as it is. ``forget``: training goes on with nothing kept (keep = 0, the old graph absent).
``shared``: known nodes are recognized by their ids and kept. ``replay``: the old graph is there.

Measures, with seeds 0 to 4, each the mean over seeds of a paired difference to ``none``, with a 95 % interval (t, 4
degrees of freedom). (1) Primary: the accuracy on the nodes that arrived with the update, ``shared`` minus ``none``. (2)
The same on the newest quarter, embedded in the whole graph. (3) The accuracy on old test nodes, in the graph of the
update. (4) The mean cosine of the vectors of old nodes in the old graph, before and after.

What is claimed: an update helps in a case if the interval of (1) is above zero, and harms if it is below. Old nodes are
said to stay if the mean of (4) is at least 0.98 and the interval of (3) does not lie below -1 point.

    python -m benchmarks.update --out update.json            # all cases, all seeds; resumes
    python -m benchmarks.update --out pilot.json --cases TW --seeds 100 101 --keep 1 10 100 --steps 50
"""

import argparse
import csv
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from torch_geometric.data import Data

from mario.datasets import save_dataset
from mario.embedder import ModelFolder, conclude, embed, fit_graph, predict, read_source, write_model
from mario.embedder.updating import KEEP, LR, STEPS, update
from mario.embedder.writing import write_update
from mario.graphs.sparse import csr
from mario.graphs.subgraph import subgraph

COUNTRIES = ("PTBR", "RU")
CASES = (*COUNTRIES, "drift")
SEEDS = (0, 1, 2, 3, 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--keep", nargs="+", type=float, default=[KEEP])
    parser.add_argument("--steps", nargs="+", type=int, default=[STEPS])
    parser.add_argument("--lr", nargs="+", type=float, default=[LR])
    given = parser.parse_args()
    done = json.loads(given.out.read_text()) if given.out.exists() else []
    settings = [(keep, steps, lr) for keep in given.keep for steps in given.steps for lr in given.lr]
    for case in given.cases:
        for seed in given.seeds:
            if any((row["case"], row["seed"]) == (case, seed) for row in done):
                continue
            for row in run(case, seed, settings):
                done.append({"case": case, "seed": seed, **row})
                print(done[-1], flush=True)
            part = given.out.with_suffix(".part")
            part.write_text(json.dumps(done, indent=1))
            os.replace(part, given.out)
    summary(done)


def run(case: str, seed: int, settings: list[tuple[float, int, float]]) -> Iterator[dict[str, object]]:
    """All arms of one case and seed."""
    torch.set_num_threads(1)
    data = drift(seed) if case == "drift" else twitch(case)
    nodes = data.x.size(0)
    age = torch.arange(nodes)  # nodes are in order of their arrival
    old, seen = age < nodes // 2, age < 3 * nodes // 4
    draws = torch.rand(nodes, generator=torch.Generator().manual_seed(seed))
    with tempfile.TemporaryDirectory() as home:
        graphs = {}
        for name, mask in (("old", old), ("seen", seen), ("whole", age >= 0)):
            graphs[name] = _saved(data, mask, Path(home) / name, draws if name == "old" else None)
        source = read_source(graphs["old"])
        fitted = fit_graph(source.data, given={"method": "grace", "rule": "gate"}, seed=seed)
        folder = write_model(conclude(fitted, source, seed=seed), Path(home) / "model")
        truth = data.y
        test = old & (draws >= 0.8)
        base = _scores(folder, graphs, truth, test, old, seen)
        yield {"arm": "none", **base}
        z = embed(folder, graphs["old"]).dense()
        for keep, steps, lr in settings:
            for arm in ("forget", "shared", "replay"):
                if arm == "forget" and keep != settings[0][0]:
                    continue
                updated = update(
                    folder,
                    graphs["seen"],
                    replay=graphs["old"] if arm == "replay" else None,
                    keep=0.0 if arm == "forget" else keep,
                    steps=steps,
                    lr=lr,
                    seed=seed,
                )
                after = write_update(updated, folder, Path(home) / f"{arm}-{keep}-{steps}-{lr}")
                found = _scores(after, graphs, truth, test, old, seen)
                moved = embed(after, graphs["old"]).dense()
                cosine = torch.nn.functional.cosine_similarity(z, moved)
                graph = z.size(1) - folder.about.blocks["graph"]
                own = torch.nn.functional.cosine_similarity(z[:, graph:], moved[:, graph:])
                yield {
                    "arm": arm,
                    "keep": keep,
                    "steps": steps,
                    "lr": lr,
                    **found,
                    "cosine": float(cosine.mean()),
                    "cosine_low": float(cosine.quantile(0.05)),
                    "cosine_graph": float(own.mean()),
                    "said": updated.entry["moved"],
                }


def _scores(
    folder: ModelFolder,
    graphs: dict[str, Path],
    truth: torch.Tensor,
    test: torch.Tensor,
    old: torch.Tensor,
    seen: torch.Tensor,
) -> dict[str, float]:
    """Accuracy on the nodes of the update, on the newest nodes and on old test nodes, in percent."""
    now, later = (_right(folder, graphs[name], truth) for name in ("seen", "whole"))
    inside = int(seen.sum())
    return {
        "new": 100 * float(now[(~old)[:inside]].mean()),
        "newest": 100 * float(later[~seen].mean()),
        "old": 100 * float(now[test[:inside]].mean()),
    }


def _right(folder: ModelFolder, graph: Path, truth: torch.Tensor) -> torch.Tensor:
    found = predict(folder, graph)
    labels = torch.tensor([int(name) for name in found.class_names])
    return (labels[found.probabilities(0, len(found)).argmax(1)] == truth[: len(found)]).float()


def _saved(data: Data, mask: torch.Tensor, home: Path, draws: torch.Tensor | None) -> Path:
    """The graph induced by the first nodes, with ids; labels and masks only in the old one."""
    import pyarrow
    import pyarrow.ipc

    part = subgraph(Data(x=data.x, edge_index=data.edge_index), mask.nonzero().view(-1))
    if draws is None:
        part.y, domains = torch.full((int(mask.sum()),), -1), ("degree",)
    else:
        part.y, domains = data.y[mask], None
        own = draws[mask]
        part.train_mask, part.id_val_mask, part.id_test_mask = own < 0.6, (own >= 0.6) & (own < 0.8), own >= 0.8
    part.num_classes = int(data.y.max()) + 1
    save_dataset(part, home, domains=domains)
    column = pyarrow.array([f"user {i}" for i in range(int(mask.sum()))])
    with pyarrow.ipc.new_file(str(home / "ids.arrow"), pyarrow.schema([("id", column.type)])) as file:
        file.write_table(pyarrow.table({"id": column}))
    card = home / "graph.toml"
    card.write_text('ids = "ids.arrow"\n' + card.read_text())
    return home


# Graphs ---------------------------------------------------------------------------------------------------------------


def twitch(country: str) -> Data:
    """The users of a country, oldest accounts first."""
    home = Path(os.environ["MARIO_DATA"]) / "tables" / "twitch" / country
    with open(home / f"musae_{country}_target.csv", newline="") as file:
        rows = {int(row["new_id"]): row for row in csv.DictReader(file)}
    order = sorted(rows, key=lambda node: (-int(rows[node]["days"]), node))
    place = {node: number for number, node in enumerate(order)}
    with open(home / f"musae_{country}_edges.csv", newline="") as file:
        ends = [(place[int(row["from"])], place[int(row["to"])]) for row in csv.DictReader(file)]
    words = json.loads((home / f"musae_{country}_features.json").read_text())
    pairs = np.array([(place[int(node)], word) for node, found in words.items() for word in set(found)])
    x = sparse.csr_matrix((np.ones(len(pairs), np.float32), (pairs[:, 0], pairs[:, 1])), (len(order), 3170))
    edges = torch.tensor(sorted({(a, b) for a, b in ends if a != b} | {(b, a) for a, b in ends if a != b})).T
    y = torch.tensor([int(rows[node]["mature"] == "True") for node in order])
    return Data(x=_tensor(x), edge_index=edges.contiguous(), y=y)


def drift(seed: int, nodes: int = 2400, classes: int = 4, words: int = 400) -> Data:
    """Nodes in order of arrival; half of the words of each class are replaced by others, gradually."""
    draws = np.random.default_rng(1000 + seed)
    y = draws.integers(classes, size=nodes)
    when = np.arange(nodes) / nodes
    own = 20  # words of a class: 10 that stay, and 10 that give way to 10 others
    rows, columns = [], []
    for node in range(nodes):
        late = draws.random(3) < np.clip(1.5 * when[node] - 0.25, 0, 1)
        first = int(y[node]) * 3 * own
        found = [first + draws.integers(10)]
        found += [first + (20 if is_late else 10) + draws.integers(10) for is_late in late]
        found += list(draws.integers(classes * 3 * own, words, size=12))
        found += [int(draws.integers(classes)) * 3 * own + draws.integers(30) for _ in range(3)]
        rows += [node] * len(found)
        columns += found
    x = sparse.csr_matrix((np.ones(len(rows), np.float32), (rows, columns)), (nodes, words))
    x.data[:] = 1
    ends = set()
    for node in range(1, nodes):
        for _ in range(3):
            other = int(draws.integers(node))
            if y[other] == y[node] or draws.random() < 0.45:
                ends |= {(node, other), (other, node)}
    edges = torch.tensor(sorted(ends)).T.contiguous()
    return Data(x=_tensor(x), edge_index=edges, y=torch.from_numpy(y))


def _tensor(x: sparse.csr_matrix) -> torch.Tensor:
    x.sum_duplicates()
    x.sort_indices()
    parts = (torch.from_numpy(part.astype(np.int64)) for part in (x.indptr, x.indices))
    return csr(*parts, torch.from_numpy(np.minimum(x.data, 1).astype(np.float32)), x.shape)


# The table ------------------------------------------------------------------------------------------------------------


def summary(rows: list[dict[str, object]]) -> None:
    """Means over seeds of differences to ``none``, with 95 % intervals."""
    from scipy.stats import t

    arms = list(dict.fromkeys((row["arm"], row.get("keep"), row.get("steps"), row.get("lr")) for row in rows))
    for case in dict.fromkeys(row["case"] for row in rows):
        print(f"\n{case}")
        base = {row["seed"]: row for row in rows if (row["case"], row["arm"]) == (case, "none")}
        print(
            "  none",
            {key: round(float(np.mean([row[key] for row in base.values()])), 1) for key in ("new", "newest", "old")},
        )
        for arm in arms[1:]:
            own = [
                row
                for row in rows
                if (row["case"], row["arm"], row.get("keep"), row.get("steps"), row.get("lr")) == (case, *arm)
            ]
            told = []
            for key in ("new", "newest", "old"):
                found = np.array([row[key] - base[row["seed"]][key] for row in own])
                half = (
                    t.ppf(0.975, len(found) - 1) * found.std(ddof=1) / len(found) ** 0.5 if len(found) > 1 else np.nan
                )
                told.append(f"{key} {found.mean():+.2f} ({found.mean() - half:+.2f} to {found.mean() + half:+.2f})")
            cosine = [np.mean([row[key] for row in own]) for key in ("cosine", "cosine_low", "cosine_graph")]
            print(
                f"  {arm}: {', '.join(told)}, cosine {cosine[0]:.4f}, 5 % below {cosine[1]:.4f}, graph {cosine[2]:.4f}"
            )


if __name__ == "__main__":
    main()
