"""Is the reference the same mathematics? Steps of both from the same weights and the same draws; fails loudly.

    python -m benchmarks.check

On a small random graph, dense and sparse features, with and without batch norm, for each part that prototype steps may
run again: the loss, every gradient, the prototypes and, in float64, all weights after a step of Adam; where they run
nothing again, as ours, also the running statistics of batch norm. Three steps, each begun from our weights. In float32
the weights after Adam are not compared: a bias before batch norm has no gradient but rounding, and Adam scales that to
a whole step. As wide as in the paper it is float64 only: there are so many units that rounding turns one of them on or
off, and its gradient with it. The linear heads are compared as well.
"""

import sys
from collections.abc import Mapping

import torch
from torch import Tensor
from torch_geometric.data import Data

import mario
from benchmarks.inputs import random_graph
from benchmarks.reference import PlainMARIO, Settings, linear_head
from mario.evaluation import LinearProbe
from mario.graphs.features import Features, Perturbed

# A gradient far below Adam's 1e-8 moves its weight by lr · gradient / 1e-8: what rounding leaves of 1e-13 becomes 1e-7.
TIGHT = {"loss": 1e-12, "gradients": 1e-12, "prototypes": 1e-11, "weights": 1e-7, "statistics": 1e-12}
SINGLE = {"loss": 1e-5, "gradients": 1e-4, "prototypes": 1e-2, "statistics": 1e-5}


def main() -> None:
    torch.set_num_threads(1)
    failed = 0
    plain_head = {"batch_norm": False, "last_activation": True}
    for title, given, sparse, dtype, tolerances in (
        ("dense", {}, False, torch.float64, TIGHT),
        ("sparse", {}, True, torch.float64, TIGHT),
        ("no batch norm, activation last", plain_head, False, torch.float64, TIGHT),
        ("300 wide, 100 clusters", {"hidden_channels": 300, "clusters": 100}, False, torch.float64, TIGHT),
        ("float32", {}, False, torch.float32, SINGLE),
    ):
        for again in ("projector", "encoder", "nothing"):
            apart = compare(given, sparse, dtype, again)
            bad = [name for name, gap in apart.items() if not gap <= tolerances[name]]
            failed += bool(bad)
            shown = ", ".join(f"{name} {gap:.1e}" for name, gap in apart.items())
            verdict = f"DIFFERENT in {', '.join(bad)}" if bad else "same"
            print(f"{title}; prototype steps run {again} again: {verdict} ({shown})", flush=True)
    apart_heads = compare_heads()
    failed += not apart_heads <= 1e-8
    print(f"linear head: {'same' if apart_heads <= 1e-8 else 'DIFFERENT'} ({apart_heads:.1e})")
    if failed:
        sys.exit(f"{failed} of the checks failed: reference and ours are not the same mathematics")


def compare(
    given: Mapping[str, object], sparse: bool, dtype: torch.dtype, again: str, steps: int = 3
) -> dict[str, float]:
    """How far apart losses, gradients and next weights are at the most, relative to the largest entry."""
    # ε is larger than the paper's, or the adversary would not show.
    settings = {
        "hidden_channels": 24,
        "clusters": 7,
        "tau": 0.2,
        "epsilon": 0.05,
        "gamma": 0.3,
        "prototype_lr": 1e-2,
        **given,
    }
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        data = random_graph(200, features=30)
        data.x = data.x * (torch.rand(data.x.shape, generator=torch.Generator().manual_seed(3)) < 0.2)
        ours = mario.MARIO(**settings, sampling="full")  # type: ignore[arg-type]
        ours.place(30, 0, seed=1)
        plain = PlainMARIO(30, Settings.of(ours.get_params()), again)
        batch = Data(x=data.x.to_sparse_csr() if sparse else data.x, edge_index=data.edge_index, num_nodes=200)
        optimizers = ours.optimizer(), plain.optimizer()
        ours.train()
        plain.train()
        apart = dict.fromkeys(TIGHT, 0.0)
        for step in range(steps):
            plain.load_state_dict(ours.state_dict())
            for optimizer in optimizers:
                optimizer.zero_grad(set_to_none=True)
            loss = ours.step(batch, torch.Generator().manual_seed(step))["loss"]
            other = plain.step(
                data.x, data.edge_index, torch.Generator().manual_seed(step), in_blocks if sparse else None
            )
            apart["loss"] = max(apart["loss"], abs(loss - other) / abs(other))
            apart["gradients"] = max(apart["gradients"], _gap(_gradients(ours), _gradients(plain)))
            for optimizer in optimizers:
                optimizer.step()
            own, theirs = dict(ours.named_parameters()), dict(plain.named_parameters())
            together = [torch.cat([part[name].detach().flatten() for name in own]) for part in (own, theirs)]
            prototypes = _gap(own["prototypes_.weight"], theirs["prototypes_.weight"])
            apart["prototypes"] = max(apart["prototypes"], prototypes)
            apart["weights"] = max(apart["weights"], _gap(*together))
            apart["statistics"] = max(apart["statistics"], _gap(_statistics(ours), _statistics(plain)))
        if dtype == torch.float32:
            del apart["weights"]
        if again != "nothing":  # what passes more often counts more often
            del apart["statistics"]
        return apart
    finally:
        torch.set_default_dtype(default)


def in_blocks(x: Tensor, epsilon: float, generator: torch.Generator) -> Tensor:
    """δ₀ as ours draws it where X is sparse: in blocks, from a seed of its own."""
    return Perturbed(Features(torch.zeros_like(x).to_sparse_csr()), epsilon, generator).matrix()


def _gradients(model: torch.nn.Module) -> Tensor:
    named = sorted((name, p.grad) for name, p in model.named_parameters() if p.grad is not None)
    assert any(name.startswith("encoder_") for name, _ in named)
    return torch.cat([gradient.flatten() for _, gradient in named])


def _statistics(model: torch.nn.Module) -> Tensor:
    """Of batch norm, which the projector has in any case."""
    return torch.cat([part.flatten() for part in model.buffers() if part.is_floating_point()])


@torch.no_grad()
def _gap(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max().clamp(min=1e-12))


def compare_heads() -> float:
    """Our probe on embeddings made once, against the head that embeds in every step."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        data = random_graph(120, features=9)
        generator = torch.Generator().manual_seed(5)
        y = torch.randint(3, (120,), generator=generator)
        train = torch.rand(120, generator=generator) < 0.5
        plain = PlainMARIO(9, Settings(hidden_channels=16, num_layers=2, clusters=3)).eval()
        with torch.no_grad():
            z = plain.encoder_(data.x, data.edge_index)
        ours = LinearProbe(epochs=80, lr=1e-2).fit_predict(z[train], y[train], z, 3, seed=4)
        other = linear_head(lambda: plain.encoder_(data.x, data.edge_index), y, train, 3, epochs=80, lr=1e-2, seed=4)
        return _gap(ours, other)
    finally:
        torch.set_default_dtype(default)


if __name__ == "__main__":
    main()
