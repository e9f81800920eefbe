"""Message passing, forward and backward: ours against PyG's gather and scatter, and against reading the rows at random.

    python -m benchmarks.messages [--quick]

Ã X with X of the width given, Ã of GCN ready in both. Making Ã is timed apart: a training step makes it anew for
every view. The limit is the gather rate: every edge reads a row of X and, in the backward, of the gradient.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from benchmarks.inputs import random_graph
from benchmarks.limits import gather_rate
from benchmarks.measuring import in_turns, medians, parser, save
from mario.encoders import Propagation, propagation_matrix

GRAPHS = {"as GOOD-CBAS": (700, 6, 300), "as coauthor-cs": (18_333, 9, 300), "large": (100_000, 10, 128)}


def gather_and_scatter(conv: GCNConv, edges: Tensor, weight: Tensor, x: Tensor) -> Tensor:
    return conv.propagate(edges, x=x, edge_weight=weight)


def main() -> None:
    given = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    graphs = {"as GOOD-CBAS": (700, 6, 300), "small": (2_000, 10, 64)} if given.quick else GRAPHS
    rows = []
    for title, (nodes, degree, width) in graphs.items():
        data = random_graph(nodes, features=width, degree=degree)
        x, out = data.x.requires_grad_(), torch.ones(nodes, width)
        ready = Propagation.of(data.edge_index, nodes)
        matrix = propagation_matrix(data.edge_index, nodes)
        edges, weight = gcn_norm(data.edge_index, None, nodes)
        conv = GCNConv(width, width)

        def both_ways(multiply: Callable[[Tensor], Tensor], x: Tensor = x, out: Tensor = out) -> Callable[[], None]:
            def run() -> None:
                x.grad = None
                multiply(x).backward(out)

            return run

        with torch.no_grad():
            apart = float((ready(x) - gather_and_scatter(conv, edges, weight, x)).abs().max())
        if apart > 1e-4:
            raise SystemExit(f"{title}: the products differ by {apart}")
        work: dict[str, Callable[[], object]] = {
            "ours": both_ways(ready),
            "pyg": both_ways(partial(gather_and_scatter, conv, edges, weight)),
            "torch sparse": both_ways(partial(torch.mm, matrix)),
            "ours, making": partial(Propagation.of, data.edge_index, nodes),
            "pyg, making": partial(gcn_norm, data.edge_index, None, nodes),
        }
        times = in_turns(work, 2 if given.quick else 7, at_least=0.05 if given.quick else 0.3)
        rate = gather_rate(width, 32 if given.quick else 256)
        moved = 2 * 2 * 4.0 * width * edges.size(1)  # forward and backward; a gather reads and writes
        cpu = medians(times)
        rows.append(
            {
                "graph": title,
                "nodes": nodes,
                "edges": data.edge_index.size(1),
                "width": width,
                "cpu": cpu,
                "gather_bytes": rate,
                "gather_seconds": moved / rate,
            }
        )
        print(title, {name: f"{1e3 * took:.2f} ms" for name, took in cpu.items()}, flush=True)
    save(given, "messages", {"rows": rows})


if __name__ == "__main__":
    main()
