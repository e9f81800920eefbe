"""Does the encoder wait for the sampler? Time to draw a batch beside the time to train on it.

A graph of a million nodes and ten million edges (both directions of five million pairs, most between near nodes, ids
and edges shuffled) is sampled by every sampler. Each batch then goes forward and backward through a GCN. "Plain" cuts
the same nodes out with PyG's `subgraph`, which looks at every edge of the graph. Samplers take turns in every round;
times are CPU time of this process on one thread, medians over the rounds.

    python -m benchmarks.sampling [--quick] [--nodes 1000000] [--edges 10000000] [--rounds 10] [--metis]
"""

import argparse
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from time import process_time
from typing import TypeVar

import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from benchmarks.measuring import parser, save
from mario.encoders import GCN
from mario.graphs.samplers import Clusters, Neighbors, RandomWalk, Sampler

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
        "RandomWalk, normalized": lambda: RandomWalk(
            data, roots=size // 4, length=3, normalize=True, pre_samples=20, generator=generator
        ),
        "Neighbors [10, 5]": lambda: Neighbors(data, seeds=max(size // 50, 1), fanouts=[10, 5]),
        "Clusters, bfs": lambda: Clusters(data, clusters=many, per_batch=10, method="bfs"),
    }
    if arguments.metis:
        makers["Clusters, metis"] = lambda: Clusters(data, clusters=many, per_batch=10, method="metis")
    setups, samplers = {}, {}
    for name, make in makers.items():
        setups[name], samplers[name] = timed(make)

    encoder = GCN(arguments.features, hidden_channels=arguments.hidden_channels, num_layers=2)
    drawing, training, plain = (times_of(samplers) for _ in range(3))
    sizes: dict[str, list[tuple[int, int]]] = {name: [] for name in samplers}
    for round_ in range(arguments.rounds + 1):
        for name, sampler in samplers.items():
            seconds, batch = timed(partial(sampler.sample, generator))
            if round_:  # the first round only warms up
                drawing[name].append(seconds)
                training[name].append(timed(partial(train, encoder, batch))[0])
                sizes[name].append((int(batch.num_nodes or 0), batch.num_edges))
            if 0 < round_ <= 3:
                plain[name].append(timed(partial(cut_plainly, data, batch.n_id))[0])

    rows = []
    for name in samplers:
        sample, train_ = (statistics.median(times[name]) for times in (drawing, training))
        nodes, edges = (round(statistics.mean(column)) for column in zip(*sizes[name], strict=True))
        row = {"sampler": name, "set_up": setups[name], "nodes": nodes, "edges": edges, "sample": sample}
        row |= {"slowest": max(drawing[name]), "train": train_, "plain": statistics.median(plain[name])}
        # What a batch cannot do without: reading its rows, in random order, and writing them.
        row["gathered"] = 2 * 4 * nodes * arguments.features
        rows.append(row)
        print(name, {key: value if isinstance(value, str) else round(value, 4) for key, value in row.items()})
    figures = {key: getattr(arguments, key) for key in ("features", "hidden_channels", "rounds")}
    save(arguments, "sampling", {"nodes": data.num_nodes, "edges": data.num_edges, **figures, "rows": rows})


def times_of(samplers: Iterable[str]) -> dict[str, list[float]]:
    return {name: [] for name in samplers}


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
    options = parser(__doc__)
    options.add_argument("--nodes", type=int, help="1,000,000")
    options.add_argument("--edges", type=int, help="10,000,000")
    options.add_argument("--features", type=int, default=128)
    options.add_argument("--hidden", type=int, default=256)
    options.add_argument("--batch", type=int, help="about how many nodes a batch holds (10,000)")
    options.add_argument("--rounds", type=int, help="10")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--metis", action="store_true", help="partition with METIS too (minutes at full size)")
    given = options.parse_args()
    usual = {"nodes": 1_000_000, "edges": 10_000_000, "batch": 10_000, "rounds": 10}
    quick = {"nodes": 20_000, "edges": 200_000, "batch": 1_000, "rounds": 3}
    for name, value in (quick if given.quick else usual).items():
        if getattr(given, name) is None:
            setattr(given, name, value)
    return given


if __name__ == "__main__":
    main()
