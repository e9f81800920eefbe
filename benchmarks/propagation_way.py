"""Which product of a sparse matrix and features is quickest: the measurement behind `mario.encoders.propagation`.

    python -m benchmarks.propagation_way [--quick]

``csr`` is torch's product of a CSR matrix (MKL's on a CPU), ``bag`` is `embedding_bag`, ``gather`` is one row per edge.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.inputs import random_graph
from benchmarks.measuring import in_turns, parser, save
from mario.encoders import propagation_matrix

NODES, DEGREES, WIDTHS = (700, 4_000, 20_000, 100_000), (6, 30), (1, 4, 16, 64, 300)


def csr(crow: Tensor, col: Tensor, value: Tensor, x: Tensor) -> Tensor:
    matrix = torch.sparse_csr_tensor(crow, col, value, (crow.numel() - 1, x.size(0)), check_invariants=False)
    out = x.new_empty(matrix.size(0), x.size(1))
    return torch.addmm(out, matrix, x, beta=0, out=out)


def bag(crow: Tensor, col: Tensor, value: Tensor, x: Tensor) -> Tensor:
    return F.embedding_bag(col, x, crow, mode="sum", per_sample_weights=value, include_last_offset=True)


def gather(crow: Tensor, col: Tensor, value: Tensor, x: Tensor) -> Tensor:
    owner = torch.arange(crow.numel() - 1).repeat_interleave(crow.diff())
    return x.new_zeros(crow.numel() - 1, x.size(1)).index_add_(0, owner, x.index_select(0, col) * value.unsqueeze(1))


def main() -> None:
    given = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    nodes, widths = ((700,), (16,)) if given.quick else (NODES, WIDTHS)
    rows = []
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        ways = {"csr": csr, "bag": bag, "gather": gather}
        if dtype == torch.bfloat16:
            del ways["csr"]  # torch has none on a CPU
        for n in nodes:
            for degree in DEGREES:
                matrix = propagation_matrix(random_graph(n, features=1, degree=degree).edge_index, n)
                parts = matrix.crow_indices().int(), matrix.col_indices().int(), matrix.values().to(dtype)
                for width in widths:
                    x = torch.randn(n, width, generator=torch.Generator().manual_seed(0)).to(dtype)
                    work = {name: partial(way, *parts, x) for name, way in ways.items()}
                    times = in_turns(work, 3 if given.quick else 5, at_least=0.02)
                    least = {name: min(values) for name, values in times.items()}
                    rows.append({"dtype": str(dtype), "nodes": n, "degree": degree, "width": width, "cpu": least})
                    figures = ", ".join(f"{name} {1e3 * took:.3f}" for name, took in least.items())
                    print(f"{dtype}, {n} nodes, degree {degree}, {width} wide: {figures} ms", flush=True)
    save(given, "propagation_way", {"rows": rows})


if __name__ == "__main__":
    main()
