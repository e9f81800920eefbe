"""Does the encoder wait for the sampler? Time to draw a batch beside the time to train on it.

A graph of a million nodes and ten million edges (both directions of five million pairs, most between near nodes, ids
and edges shuffled) is sampled by every sampler. Each batch then goes forward and backward through a GCN. "Plain" cuts
the same nodes out with PyG's `subgraph`, which looks at every edge of the graph. Samplers take turns in every round;
times are CPU time of this process on one thread, medians over the rounds.

    python benchmarks/sampling.py [--nodes 1000000] [--edges 10000000] [--rounds 10] [--metis] [--out table.md]
"""

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import TypeVar

import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from mario.encoders import GCN
from mario.graphs.samplers import Clusters, Neighbours, RandomWalk, Sampler

T = TypeVar("T")


def main() -> None:
    arguments = parse()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(arguments.seed)
    data = draw_graph(arguments.nodes, arguments.edges, arguments.features, generator)
    size = arguments.batch
    many = max(arguments.nodes * 10 // size, 10)
    makers: dict[str, Callable[[], Sampler]] = {
        "RandomWalk": lambda: RandomWalk(data, roots=size // 4, length=3),
        "RandomWalk, normalised": lambda: RandomWalk(
            data, roots=size // 4, length=3, normalise=True, pre_samples=20, generator=generator
        ),
        "Neighbours [10, 5]": lambda: Neighbours(data, seeds=max(size // 50, 1), fanouts=[10, 5]),
        "Clusters, bfs": lambda: Clusters(data, clusters=many, per_batch=10, method="bfs"),
    }
    if arguments.metis:
        makers["Clusters, metis"] = lambda: Clusters(data, clusters=many, per_batch=10, method="metis")
    setups, samplers = {}, {}
    for name, make in makers.items():
        setups[name], samplers[name] = timed(make)

    encoder = GCN(arguments.features, hidden=arguments.hidden, layers=2)
    drawing, training, plain, sizes = ({name: [] for name in samplers} for _ in range(4))
    for round_ in range(arguments.rounds + 1):
        for name, sampler in samplers.items():
            seconds, batch = timed(lambda sampler=sampler: sampler.sample(generator))
            if round_:  # the first round only warms up
                drawing[name].append(seconds)
                training[name].append(timed(lambda batch=batch: train(encoder, batch))[0])
                sizes[name].append((batch.num_nodes, batch.num_edges))
            if 0 < round_ <= 3:
                plain[name].append(timed(lambda batch=batch: cut_plainly(data, batch.n_id))[0])

    def row(name: str) -> str:
        sample, train_ = (statistics.median(times[name]) for times in (drawing, training))
        nodes, edges = (round(statistics.mean(column)) for column in zip(*sizes[name], strict=True))
        return (
            f"| {name} | {setups[name]:.1f} | {nodes:,} | {edges:,} | {1e3 * sample:.1f} "
            f"| {1e3 * max(drawing[name]):.1f} | {1e3 * train_:.1f} | {sample / train_:.2f} "
            f"| {1e3 * statistics.median(plain[name]):.0f} |"
        )

    lines = [
        f"{data.num_nodes:,} nodes, {data.num_edges:,} edges, {arguments.features} features; GCN of 2 layers, "
        f"{arguments.hidden} wide; one thread, {arguments.rounds} rounds, torch {torch.__version__}.",
        "",
        "| sampler | set-up, s | nodes | edges | sample, ms | slowest, ms | train, ms | sample / train | plain, ms |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(row(name) for name in samplers),
    ]
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw_graph(nodes: int, edges: int, features: int, generator: torch.Generator) -> Data:
    pairs = edges // 2
    source = torch.randint(nodes, (pairs,), generator=generator)
    near = source + torch.randint(1, 50, (pairs,), generator=generator)
    far = torch.randint(nodes, (pairs,), generator=generator)
    target = torch.where(torch.rand(pairs, generator=generator) < 0.8, near % nodes, far)
    relabel = torch.randperm(nodes, generator=generator)
    edge_index = relabel[torch.stack([torch.cat([source, target]), torch.cat([target, source])])]
    # Pairs come in random order already; the two directions of one lie half the list apart.
    return Data(x=torch.rand((nodes, features), generator=generator), edge_index=edge_index)


def train(encoder: GCN, batch: Data) -> None:
    encoder.zero_grad()
    encoder(batch.x, batch.edge_index).square().mean().backward()


def cut_plainly(data: Data, nodes: torch.Tensor) -> Data:
    edge_index, _ = subgraph(nodes, data.edge_index, relabel_nodes=True, num_nodes=data.num_nodes)
    return Data(x=data.x[nodes], edge_index=edge_index)


def timed(work: Callable[[], T]) -> tuple[float, T]:
    start = process_time()
    result = work()
    return process_time() - start, result


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--batch", type=int, default=10_000, help="about how many nodes a batch holds")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--metis", action="store_true", help="partition with METIS too (minutes at full size)")
    parser.add_argument("--out", type=Path, help="write the table to this file as well")
    return parser.parse_args()


if __name__ == "__main__":
    main()
