"""The linear probe on frozen embeddings: run again with its encoder, by autograd, by ours, and the optimum at once.

    python -m benchmarks.probe [--quick]

``encoder each step`` is the reference, PyG's encoder run again in every step as in the released code; its time for
the larger problem is that of a few steps, in proportion. ``autograd`` embeds once. ``ours`` is the same Adam in
closed form, ``ten at once`` a tenth of ten probes on ten embeddings, ``optimum`` the minimum itself. Losses are those
of the training nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.inputs import random_graph
from benchmarks.measuring import in_turns, medians, parser, save
from benchmarks.reference import Encoder, Settings, linear_head
from mario.evaluation import LinearProbe


@dataclass(frozen=True)
class Problem:
    title: str
    nodes: int
    train: int
    classes: int
    steps: int
    lr: float
    encoder_steps: int
    """Steps with the encoder in them that are really run; the rest is proportion."""


PROBLEMS = (
    Problem("GOOD-CBAS: 140 of 700 nodes, 4 classes, 100 steps", 700, 140, 4, 100, 1e-2, 100),
    Problem("5,000 of 18,333 nodes, 15 classes, 200 steps", 18_333, 5_000, 15, 200, 1e-2, 3),
)
QUICK = (Problem("quick: 60 of 300 nodes, 3 classes, 20 steps", 300, 60, 3, 20, 1e-2, 5),)


def main() -> None:
    given = parser(__doc__).parse_args()
    torch.set_num_threads(1)
    rows = [measure(problem, 2 if given.quick else 5) for problem in (QUICK if given.quick else PROBLEMS)]
    save(given, "probe", {"rows": rows})


def measure(problem: Problem, rounds: int) -> dict[str, object]:
    torch.manual_seed(0)
    data = random_graph(problem.nodes, features=64)
    encoder = Encoder(64, Settings(batch_norm=False)).eval()
    with torch.no_grad():
        z = encoder(data.x, data.edge_index)
        z = z / z.std()
        # Labels that a linear map nearly knows: neither separable nor without a signal.
        scores = z @ torch.randn(z.size(1), problem.classes)
        y = (scores / scores.std() + torch.randn(scores.shape)).argmax(1)
    train = torch.zeros(problem.nodes, dtype=torch.bool)
    train[torch.randperm(problem.nodes)[: problem.train]] = True
    z_train, y_train = z[train], y[train]
    probe = LinearProbe(epochs=problem.steps, lr=problem.lr)
    optimum = LinearProbe(solver="optimum")

    def head(embed: Callable[[], Tensor], steps: int) -> Tensor:
        return linear_head(embed, y, train, problem.classes, epochs=steps, lr=problem.lr)

    def one(which: LinearProbe) -> Tensor:
        return which.fit_predict(z_train, y_train, z, problem.classes)

    def ten() -> None:
        probe.fit_predict_many([z_train] * 10, y_train, [z] * 10, problem.classes, list(range(10)))

    work: dict[str, Callable[[], object]] = {
        "encoder each step": lambda: head(lambda: encoder(data.x, data.edge_index), problem.encoder_steps),
        "autograd": lambda: head(lambda: z, problem.steps),
        "ours": lambda: one(probe),
        "ten at once": ten,
        "optimum": lambda: one(optimum),
    }
    cpu = medians(in_turns(work, rounds))
    cpu["encoder each step"] *= problem.steps / problem.encoder_steps
    cpu["ten at once"] /= 10
    losses = {
        name: float(F.cross_entropy(logits[train], y_train))
        for name, logits in (
            ("autograd", head(lambda: z, problem.steps)),
            ("ours", one(probe)),
            ("optimum", one(optimum)),
        )
    }
    print(problem.title, {name: f"{1e3 * took:.1f} ms" for name, took in cpu.items()}, losses, flush=True)
    # Two products of [train, width] and [width, classes] per step, a multiply-add is 2.
    flops = 4.0 * problem.train * z.size(1) * problem.classes * problem.steps
    return {"problem": problem.title, "steps": problem.steps, "cpu": cpu, "loss": losses, "flops": flops}


if __name__ == "__main__":
    main()
