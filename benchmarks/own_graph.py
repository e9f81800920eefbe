"""Build graphs from large CSV files in processes of their own: time per row and peak memory at two sizes or more.

    python -m benchmarks.own_graph --nodes 1000000 10000000 --edges-per-node 10 --folder /tmp/own-graph

Files have string or whole-number ids, a numeric, a categorical, a label and a domain column; edges are drawn uniformly.
They are made once and kept in the folder.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

BLOCK = 1_000_000
BUILD = """
import json, resource, sys, time
from mario.graphs.tables.build import Wishes, build_graph
from mario.graphs.tables.opening import open_tables
import mario.graphs.mapped  # torch is imported before the clock starts
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
begun = last = time.perf_counter()
stages, name = {}, None
def watch(progress):
    global last, name
    now = time.perf_counter()
    if name is not None:
        stages[name] = stages.get(name, 0) + now - last
    last, name = now, progress.stage
built = build_graph(open_tables([sys.argv[1]], [sys.argv[2]]), sys.argv[3], Wishes(), watch=watch)
stages["rest"] = time.perf_counter() - last
print(json.dumps({
    "seconds": time.perf_counter() - begun, "stages": {key: round(value, 1) for key, value in stages.items()},
    "idle": idle / 2**20, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    "nodes": built.card.nodes, "edges": built.card.edges,
}))
"""


def write_tables(folder: Path, nodes: int, edges: int, *, texts: bool) -> tuple[Path, Path]:
    """Write ``nodes.csv`` and ``edges.csv``, unless they are there."""
    paths = folder / f"nodes-{nodes}-{texts}.csv", folder / f"edges-{nodes}-{edges}-{texts}.csv"
    generator = np.random.default_rng(0)

    def names(rows: np.ndarray) -> list[str]:
        return (
            [f"user-{row * 7919 % 10**10:010d}" for row in rows.tolist()]
            if texts
            else [str(row * 3 + 5) for row in rows.tolist()]
        )

    if not paths[0].exists():
        with paths[0].open("w") as file:
            file.write("id,age,color,label,region\n")
            for first in range(0, nodes, BLOCK):
                ids = names(np.arange(first, min(first + BLOCK, nodes)))
                age = np.round(generator.normal(40, 12, len(ids)), 1).tolist()
                codes = generator.integers(0, [20, 5, 8], (len(ids), 3)).tolist()
                file.writelines(f"{i},{a},c{c},l{k},r{r}\n" for i, a, (c, k, r) in zip(ids, age, codes, strict=True))
    if not paths[1].exists():
        with paths[1].open("w") as file:
            file.write("source,target\n")
            for first in range(0, edges, BLOCK):
                ends = generator.integers(0, nodes, (2, min(BLOCK, edges - first)))
                file.writelines(f"{s},{t}\n" for s, t in zip(names(ends[0]), names(ends[1]), strict=True))
    return paths


def measure(folder: Path, nodes: int, edges: int, *, texts: bool) -> dict[str, object]:
    """Build a graph in a new process."""
    paths = write_tables(folder, nodes, edges, texts=texts)
    out = folder / f"graph-{nodes}-{edges}-{texts}"
    if out.exists():
        subprocess.run(["rm", "-r", str(out)], check=True)
    begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = subprocess.run(
        [sys.executable, "-c", BUILD, *map(str, paths), str(out)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ,
    )
    facts = json.loads(found.stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = sum(path.stat().st_size for path in paths)
    rows = nodes + edges
    return {
        "rows": rows,
        "texts": texts,
        "MB read": round(size / 1e6),
        "microseconds per row": round(1e6 * facts["seconds"] / rows, 3),
        "peak GiB": round(facts["peak"], 2),
        "idle GiB": round(facts["idle"], 2),
        "process seconds": round(time.perf_counter() - begun, 1),
        **{key: facts[key] for key in ("seconds", "stages", "nodes", "edges")},
        "CPU seconds": round(cpu, 1),
        "CPU microseconds per row": round(1e6 * cpu / rows, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--edges-per-node", type=int, default=10)
    parser.add_argument("--texts", action="store_true", help="ids are texts such as user-0000000042")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/own-graph"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for nodes in given.nodes:
        print(json.dumps(measure(given.folder, nodes, nodes * given.edges_per_node, texts=given.texts)), flush=True)


if __name__ == "__main__":
    main()
