"""Bad arrays and numbers at every loss, encoder, readout, metric and head."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kinds.graphs import EDGES, INF, NAN, NODES, features, fitted, model, ring, sound
from kinds.kind import Kind, finite_or_refused, is_finite, not_finite_or_refused, refused, same
from mario.contrast import (
    Discriminator,
    ProjectedDot,
    Prototypes,
    alignment,
    alignment_uniformity,
    bootstrap,
    conditional_mi,
    donsker_varadhan,
    edge_reconstruction,
    estimate,
    full_reconstruction,
    graph_emd,
    info_nce,
    jensen_shannon,
    node_summary_loss,
    nt_xent,
    register_estimator,
    scaled_cosine_error,
    sinkhorn,
    sketch,
    summarize,
    sums_within,
    swapped_prediction,
    transport_nce,
    transport_plan,
    uniformity,
    worst_case_alignment,
)
from mario.encoders import ENCODERS, Projector, propagation_matrix, readout
from mario.evaluation import (
    LinearProbe,
    LogisticProbe,
    evaluate,
    evaluate_many,
    invariance,
    logistic_optimum,
    report,
    score,
    select_checkpoint,
)

ROWS, WIDTH = 6, 4
Call = Callable[[Any], object]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def rows(seed: int = 0) -> Tensor:
    return drawn(ROWS, WIDTH, seed=seed)


CLUSTERS = torch.arange(ROWS) % 2
PAIRS = torch.tensor([[0, 1, 2], [1, 2, 3]])
SETS = torch.tensor([[0, 1, 2], [3, 4, 5]])
EVEN = torch.full((ROWS,), 1 / ROWS)


def _prototypes() -> Prototypes:
    return Prototypes(3, WIDTH, torch.Generator().manual_seed(0))


def _descend(u: Any, v: Any, **changes: Any) -> object:
    made = _prototypes()
    facts = {"optimizer": torch.optim.SGD(made.parameters(), lr=0.1), "steps": 1, **changes}
    return made.descend(u, v, **facts)


# What takes a matrix of embeddings: the loss, and the argument that is bad.
MATRICES: dict[str, Call] = {
    "info_nce(u)": lambda z: info_nce(z, rows()),
    "info_nce(v)": lambda z: info_nce(rows(), z),
    "sums_within(v)": sums_within,
    "conditional_mi(u)": lambda z: conditional_mi(z, rows(), CLUSTERS, CLUSTERS),
    "conditional_mi(v)": lambda z: conditional_mi(rows(), z, CLUSTERS, CLUSTERS),
    "nt_xent(u)": lambda z: nt_xent(z, rows()),
    "nt_xent(v)": lambda z: nt_xent(rows(), z),
    "bootstrap(prediction)": lambda z: bootstrap(z, rows()),
    "bootstrap(target)": lambda z: bootstrap(rows(), z),
    "alignment(view)": lambda z: alignment([rows(), z]),
    "worst_case_alignment(view)": lambda z: worst_case_alignment([rows(), rows(1), z]),
    "uniformity(z)": uniformity,
    "alignment_uniformity(u)": lambda z: alignment_uniformity(z, rows()),
    "alignment_uniformity(v)": lambda z: alignment_uniformity(rows(), z),
    "scaled_cosine_error(x)": lambda z: scaled_cosine_error(z, rows()),
    "scaled_cosine_error(y)": lambda z: scaled_cosine_error(rows(), z),
    "donsker_varadhan(u)": lambda z: donsker_varadhan(z, rows()),
    "jensen_shannon(v)": lambda z: jensen_shannon(rows(), z),
    "estimate(u)": lambda z: estimate(z, rows()),
    "summarize(h)": summarize,
    "Discriminator(h)": lambda z: Discriminator(WIDTH)(z, torch.ones(WIDTH)),
    "ProjectedDot(h)": lambda z: ProjectedDot(WIDTH)(z, torch.ones(WIDTH)),
    "sinkhorn(scores)": sinkhorn,
    "swapped_prediction(scores_u)": lambda z: swapped_prediction(z, rows(), rows().softmax(1), rows().softmax(1)),
    "swapped_prediction(q_v)": lambda z: swapped_prediction(rows(), rows(), rows().softmax(1), z),
    "Prototypes(z)": lambda z: _prototypes()(z),
    "Prototypes.assign(z)": lambda z: _prototypes().assign(z),
    "Prototypes.loss(u)": lambda z: _prototypes().loss(z, rows()),
    "Prototypes.descend(u)": lambda z: _descend(z, rows()),
    "Prototypes.descend(v)": lambda z: _descend(rows(), z),
    "sketch(x)": lambda z: sketch(z, 3, generator=torch.Generator().manual_seed(0)),
    "edge_reconstruction(z)": lambda z: edge_reconstruction(z, PAIRS, PAIRS.flip(0)),
    "full_reconstruction(z)": lambda z: full_reconstruction(z, PAIRS),
    "graph_emd(u)": lambda z: graph_emd(z, SETS, rows(), SETS, torch.tensor([[0], [1]])),
    "graph_emd(v)": lambda z: graph_emd(rows(), SETS, z, SETS, torch.tensor([[0], [1]])),
    "transport_nce(u)": lambda z: transport_nce(z, SETS, rows(), SETS),
    "transport_nce(v)": lambda z: transport_nce(rows(), SETS, z, SETS),
    "readout(h)": lambda z: readout(z, CLUSTERS.sort().values),
    "Projector(h)": lambda z: Projector(WIDTH)(z),
}

# No matrix of real numbers.
BAD_MATRICES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a list": lambda: [[1.0] * WIDTH] * ROWS,
    "an array": lambda: np.ones((ROWS, WIDTH)),
    "a number": lambda: 1.0,
    "whole numbers": lambda: torch.ones(ROWS, WIDTH).long(),
    "bools": lambda: torch.ones(ROWS, WIDTH).bool(),
    "complex numbers": lambda: torch.ones(ROWS, WIDTH).to(torch.complex64),
    "a vector": lambda: torch.ones(ROWS),
    "three dimensions": lambda: torch.ones(ROWS, WIDTH, 1),
    "no rows": lambda: torch.ones(0, WIDTH),
    "no columns": lambda: torch.ones(ROWS, 0),
    "sparse": lambda: rows().to_sparse_csr(),
    "COO": lambda: rows().to_sparse(),
    "on meta": lambda: torch.empty(ROWS, WIDTH, device="meta"),
}
ALONE = ("sums_within(v)", "uniformity(z)", "summarize(h)", "sinkhorn(scores)", "sketch(x)")
OTHER_ROWS = ("Discriminator(h)", "ProjectedDot(h)", "Prototypes(z)", "Prototypes.assign(z)", "Projector(h)")
OTHER_TYPES = ("edge_reconstruction(z)", "full_reconstruction(z)", "readout(h)", "graph_emd", "transport_nce")
# What it is of: integers, so that NaN has no place in it.
DECIDES = ("Prototypes.assign(z)",)
# Smooth at a row of zeros, or of no meaning there.
SCALES = {"1e19": 1e19, "1e25": 1e25, "1e-25": 1e-25}
# The rows are scaled to unit length: the loss of rows 1e19 as long is the same.
SCALED = [
    *("info_nce(u)", "info_nce(v)", "sums_within(v)", "conditional_mi(u)", "conditional_mi(v)"),
    *("donsker_varadhan(u)", "jensen_shannon(v)", "estimate(u)", "Prototypes.descend(u)", "Prototypes.descend(v)"),
]

NUMBERS = {
    "0": 0,
    "-1": -1,
    "NaN": NAN,
    "infinity": INF,
    "a text": "0.5",
    "None": None,
    "a list": [0.5],
    "a bool": True,
}


def kinds() -> list[Kind]:
    return [
        *_matrices(),
        *_numbers(),
        *_indices(),
        *_encoders(),
        *_metrics(),
        *_probes(),
        *_selection(),
        *_evaluation(),
    ]


def _matrices() -> Iterator[Kind]:
    for entry, call in MATRICES.items():
        for fault, made in BAD_MATRICES.items():
            if (fault, entry) == ("no rows", "Projector(h)"):
                yield Kind(
                    f"{fault} in {entry}", lambda made=made, call=call: call(made()), lambda z: z.shape == (0, 4)
                )
                continue
            yield refused(f"{fault} in {entry}", lambda made=made, call=call: call(made()))
        if entry not in ALONE:
            wide = torch.ones(ROWS, WIDTH + 1)
            yield (
                refused(f"more columns in {entry}", lambda call=call, wide=wide: call(wide))
                if not entry.startswith(("edge", "full", "readout"))
                else same(
                    f"more columns in {entry}", lambda call=call, w=wide: call(w), lambda call=call, w=wide: call(w)
                )
            )
        if entry not in (*ALONE, *OTHER_ROWS) and not entry.startswith(("edge", "full")):
            yield refused(f"fewer rows in {entry}", lambda call=call: call(drawn(ROWS - 1, WIDTH)))
        for fault, value in (("NaN", NAN), ("infinity", INF)):
            bad = rows().index_fill(0, torch.tensor([1]), value)
            expected = refused if entry in DECIDES else not_finite_or_refused
            if (fault, entry) == ("infinity", "summarize(h)"):
                expected = finite_or_refused  # the sigmoid of infinity is 1
            yield expected(f"{fault} in {entry}", lambda call=call, bad=bad: call(bad))
        yield finite_or_refused(
            f"a row of zeros in {entry}", lambda call=call: call(rows().index_fill(0, torch.tensor([1]), 0))
        )
        yield finite_or_refused(f"only zeros in {entry}", lambda call=call: call(torch.zeros(ROWS, WIDTH)))
        yield Kind(f"rows by columns in {entry}", lambda call=call: call(rows(2).t().contiguous().t()), is_finite)
    for entry in SCALED:
        for size, scale in SCALES.items():
            call = MATRICES[entry]
            yield same(
                f"rows of {size} in {entry}",
                lambda call=call, scale=scale: call(rows(3) * scale),
                lambda call=call: call(rows(3)),
                1e-4,
            )


def _numbers() -> Iterator[Kind]:
    losses: dict[str, Call] = {
        "info_nce(tau)": lambda t: info_nce(rows(), rows(1), t),
        "sums_within(tau)": lambda t: sums_within(rows(), t),
        "conditional_mi(tau)": lambda t: conditional_mi(rows(), rows(1), CLUSTERS, CLUSTERS, t),
        "nt_xent(tau)": lambda t: nt_xent(rows(), rows(1), t),
        "uniformity(t)": lambda t: uniformity(rows(), t),
        "alignment_uniformity(t)": lambda t: alignment_uniformity(rows(), rows(1), t),
        "donsker_varadhan(tau)": lambda t: donsker_varadhan(rows(), rows(1), t),
        "jensen_shannon(tau)": lambda t: jensen_shannon(rows(), rows(1), t),
        "estimate(tau)": lambda t: estimate(rows(), rows(1), t),
        "sinkhorn(temperature)": lambda t: sinkhorn(rows(), temperature=t),
        "swapped_prediction(tau)": lambda t: swapped_prediction(
            rows(), rows(), rows().softmax(1), rows().softmax(1), t
        ),
        "Prototypes.loss(tau)": lambda t: _prototypes().loss(rows(), rows(1), t),
        "Prototypes.descend(tau)": lambda t: _descend(rows(), rows(1), tau=t),
        "transport_nce(tau)": lambda t: transport_nce(rows(), SETS, rows(1), SETS, t),
        "transport_nce(hop_scale)": lambda t: transport_nce(
            rows(), SETS, rows(1), SETS, hops=torch.zeros(2, 3, 3).long(), hop_scale=t
        ),
        "transport_plan(sharpness)": lambda t: transport_plan(torch.ones(ROWS, ROWS), EVEN, EVEN, sharpness=t),
        "scaled_cosine_error(exponent)": lambda t: scaled_cosine_error(rows(), rows(1), t),
    }
    for entry, call in losses.items():
        for fault, value in NUMBERS.items():
            yield refused(f"{fault} for {entry}", lambda call=call, value=value: call(value))
    counts: dict[str, Call] = {
        "info_nce(anchors)": lambda n: info_nce(rows(), rows(1), anchors=n),
        "sinkhorn(iterations)": lambda n: sinkhorn(rows(), iterations=n),
        "transport_plan(iterations)": lambda n: transport_plan(torch.ones(ROWS, ROWS), EVEN, EVEN, iterations=n),
        "sketch(rows)": lambda n: sketch(rows(), n),
        "Discriminator(width)": Discriminator,
        "ProjectedDot(width)": ProjectedDot,
        "Prototypes(clusters)": lambda n: Prototypes(n, WIDTH),
        "Prototypes(dim)": lambda n: Prototypes(3, n),
        "Prototypes.descend(steps)": lambda n: _descend(rows(), rows(1), steps=n),
        "Projector(in_channels)": Projector,
        "Projector(hidden_channels)": lambda n: Projector(4, hidden_channels=n),
        **{f"{name}(in_channels)": cls for name, cls in ENCODERS.items()},
        **{f"{name}(hidden_channels)": lambda n, cls=cls: cls(4, hidden_channels=n) for name, cls in ENCODERS.items()},
        **{f"{name}(num_layers)": lambda n, cls=cls: cls(4, num_layers=n) for name, cls in ENCODERS.items()},
        "GAT(edge_dim)": lambda n: ENCODERS["gat"](4, edge_dim=n),
        "propagation_matrix(num_nodes)": lambda n: propagation_matrix(ring(), n),
    }
    no_counts = {"0": 0, "-1": -1, "a fraction": 2.5, "NaN": NAN, "a text": "3", "a list": [3], "a bool": True}
    for entry, call in counts.items():
        for fault, value in no_counts.items():
            yield refused(f"{fault} for {entry}", lambda call=call, value=value: call(value))
    for name, value in {"a huge width": 10**9, "a width of 10**30": 10**30}.items():
        for entry in ("Discriminator(width)", "ProjectedDot(width)", "Projector(in_channels)"):
            yield refused(f"{name} for {entry}", lambda call=counts[entry], value=value: call(value))
        for encoder in ENCODERS:
            yield refused(f"{name} for {encoder}", lambda e=encoder, value=value: ENCODERS[e](4, hidden_channels=value))
    for encoder, cls in ENCODERS.items():
        for fault, value in {**NUMBERS, "1": 1.0, "1.5": 1.5}.items():
            if fault != "0":
                yield refused(f"{fault} for {encoder}(dropout)", lambda cls=cls, value=value: cls(4, dropout=value))
        for fault, value in {"a typo": "rleu", "None": None, "a function": torch.relu}.items():
            yield refused(f"{fault} for {encoder}(activation)", lambda cls=cls, value=value: cls(4, activation=value))
    names: dict[str, Call] = {
        "conditional_mi(estimator)": lambda n: conditional_mi(rows(), rows(1), CLUSTERS, CLUSTERS, estimator=n),
        "conditional_mi(negatives)": lambda n: conditional_mi(rows(), rows(1), CLUSTERS, CLUSTERS, negatives=n),
        "estimate(estimator)": lambda n: estimate(rows(), rows(1), 0.5, n),
        "Prototypes(gradient)": lambda n: Prototypes(3, WIDTH, gradient=n),
        "readout(kind)": lambda n: readout(rows(), None, n),
        "propagation_matrix(normalization)": lambda n: propagation_matrix(ring(), NODES, n),
        "score(metric)": lambda n: score(rows(), torch.arange(ROWS) % 2, n),
    }
    for entry, call in names.items():
        for fault, value in {"a typo": "infonce", "empty": "", "None": None, "a number": 3, "a list": ["mean"]}.items():
            yield refused(f"{fault} for {entry}", lambda call=call, value=value: call(value))
    for fault, value in NUMBERS.items():
        if fault != "a bool":
            yield refused(f"{fault} for sketch(density)", lambda value=value: sketch(rows(), 3, density=value))
    yield refused("2 for sketch(density)", lambda: sketch(rows(), 3, density=2.0))
    yield refused("one node for donsker_varadhan", lambda: donsker_varadhan(rows()[:1], rows()[:1]))
    yield refused("one node for uniformity", lambda: uniformity(rows()[:1]))
    yield refused("one graph for nt_xent", lambda: nt_xent(rows()[:1], rows()[:1]))
    yield refused("one view for alignment", lambda: alignment([rows()]))
    yield refused("a tensor for alignment", lambda: alignment(drawn(3, ROWS, WIDTH)))
    yield refused("None for alignment", lambda: alignment(None))
    yield refused("views of other sizes for alignment", lambda: alignment([rows(), drawn(3, WIDTH)]))
    yield refused("anchors and within_v for info_nce", lambda: info_nce(rows(), rows(), anchors=2, within_v=EVEN))
    yield refused("a tau too small for within_v", lambda: sums_within(rows(), 1e-3))
    yield refused("within_v of other rows", lambda: info_nce(rows(), rows(), within_v=torch.ones(2)))
    yield refused("within_v that is a list", lambda: info_nce(rows(), rows(), within_v=[1.0] * ROWS))
    yield refused("types that differ in info_nce", lambda: info_nce(rows(), rows().double()))
    yield refused("types that differ in nt_xent", lambda: nt_xent(rows().double(), rows()))
    yield refused("a seed for a generator of sketch", lambda: sketch(rows(), 3, generator=0))
    yield refused("a seed for a generator of info_nce", lambda: info_nce(rows(), rows(), anchors=2, generator=0))
    yield refused("a name that is no text for an estimator", lambda: register_estimator(3)(lambda pairs: pairs.own))
    yield same(
        "more anchors than nodes", lambda: info_nce(rows(), rows(1), anchors=99), lambda: info_nce(rows(), rows(1))
    )
    yield same("one node for info_nce", lambda: info_nce(rows()[:1], rows()[:1]), lambda: torch.tensor(0.0), 1e-6)
    yield finite_or_refused("a tiny tau for info_nce", lambda: info_nce(rows(), rows(1), 1e-8))
    yield finite_or_refused("a huge tau for info_nce", lambda: info_nce(rows(), rows(1), 1e30))
    yield finite_or_refused(
        "a tiny tau for conditional_mi", lambda: conditional_mi(rows(), rows(1), CLUSTERS, CLUSTERS, 1e-8)
    )
    yield finite_or_refused("a tiny temperature for sinkhorn", lambda: sinkhorn(rows(), temperature=1e-30))
    yield finite_or_refused(
        "a huge sharpness for transport_plan", lambda: transport_plan(drawn(6, 6).abs(), EVEN, EVEN, sharpness=1e30)
    )


def _indices() -> Iterator[Kind]:
    """Labels, clusters, edges and sets that point at rows."""
    clusters: dict[str, Callable[[], Any]] = {
        "floats": lambda: CLUSTERS.float(),
        "a list": lambda: CLUSTERS.tolist(),
        "None": lambda: None,
        "too few": lambda: CLUSTERS[:-1],
        "a matrix": lambda: CLUSTERS.unsqueeze(1),
        "complex numbers": lambda: CLUSTERS.to(torch.complex64),
    }
    for fault, made in clusters.items():
        yield refused(f"{fault} as clusters_u", lambda made=made: conditional_mi(rows(), rows(1), made(), CLUSTERS))
        yield refused(f"{fault} as clusters_v", lambda made=made: conditional_mi(rows(), rows(1), CLUSTERS, made()))
    for fault, add in {"negative": -5, "huge": 2**40}.items():
        yield same(
            f"{fault} clusters",
            lambda add=add: conditional_mi(rows(), rows(1), CLUSTERS + add, CLUSTERS + add),
            lambda: conditional_mi(rows(), rows(1), CLUSTERS, CLUSTERS),
            1e-6,
        )
    pairs: dict[str, Callable[[], Any]] = {
        "a node beyond": lambda: torch.tensor([[0], [ROWS]]),
        "a node far beyond": lambda: torch.tensor([[0], [2**40]]),
        "a negative node": lambda: torch.tensor([[0], [-1]]),
        "float pairs": lambda: PAIRS.float(),
        "int32 pairs": lambda: PAIRS.int(),
        "a list of pairs": lambda: PAIRS.tolist(),
        "None": lambda: None,
        "pairs [E, 2]": lambda: PAIRS.t(),
        "one row of pairs": lambda: PAIRS[0],
    }
    entries: dict[str, Call] = {
        "edge_reconstruction(edges)": lambda e: edge_reconstruction(rows(), e, PAIRS),
        "edge_reconstruction(non_edges)": lambda e: edge_reconstruction(rows(), PAIRS, e),
        "full_reconstruction(edge_index)": lambda e: full_reconstruction(rows(), e),
        "propagation_matrix(edge_index)": lambda e: propagation_matrix(e, ROWS),
        **{
            f"{name}(edge_index)": lambda e, cls=cls: cls(WIDTH, hidden_channels=2)(rows(), e)
            for name, cls in ENCODERS.items()
        },
    }
    for entry, call in entries.items():
        for fault, made in pairs.items():
            if fault == "int32 pairs" and "reconstruction" not in entry and not entry.startswith("gat"):
                continue
            yield refused(f"{fault} in {entry}", lambda made=made, call=call: call(made()))
    yield same(
        "int32 pairs in propagation_matrix",
        lambda: propagation_matrix(PAIRS.int(), ROWS),
        lambda: propagation_matrix(PAIRS, ROWS),
    )
    for name, cls in ENCODERS.items():
        if name != "gat":
            made = cls(WIDTH, hidden_channels=2).eval()
            yield same(f"int32 pairs in {name}", lambda m=made: m(rows(), PAIRS.int()), lambda m=made: m(rows(), PAIRS))
    yield refused("no pairs at all", lambda: edge_reconstruction(rows(), PAIRS[:, :0], PAIRS[:, :0]))
    sets: dict[str, Callable[[], Any]] = {
        "a row beyond": lambda: torch.tensor([[0, 1, ROWS], [3, 4, 5]]),
        "a row far beyond": lambda: torch.tensor([[0, 1, 2**40], [3, 4, 5]]),
        "a row of -2": lambda: torch.tensor([[0, 1, -2], [3, 4, 5]]),
        "float sets": lambda: SETS.float(),
        "a list": lambda: SETS.tolist(),
        "a vector": lambda: SETS[0],
        "an empty set": lambda: torch.full((2, 3), -1),
        "no sets": lambda: SETS[:0],
    }
    for fault, made in sets.items():
        yield refused(f"{fault} as u_sets", lambda made=made: transport_nce(rows(), made(), rows(1), SETS))
        yield refused(f"{fault} as v_sets", lambda made=made: transport_nce(rows(), SETS, rows(1), made()))
    partners: dict[str, Callable[[], Any]] = {
        "a set beyond": lambda: torch.tensor([[0], [2]]),
        "a set far beyond": lambda: torch.tensor([[0], [2**40]]),
        "a negative set": lambda: torch.tensor([[0], [-1]]),
        "floats": lambda: torch.zeros(2, 1),
        "a vector": lambda: torch.tensor([0, 1]),
        "a list": lambda: [[0], [1]],
        "a row too few": lambda: torch.tensor([[0]]),
    }
    for fault, made in partners.items():
        yield refused(f"{fault} as partners", lambda made=made: graph_emd(rows(), SETS, rows(1), SETS, made()))
    plans: dict[str, tuple[Any, Any, Any]] = {
        "weights too few": (torch.ones(ROWS, ROWS), EVEN[:-1], EVEN),
        "a list of weights": (torch.ones(ROWS, ROWS), EVEN.tolist(), EVEN),
        "a cost that is a list": ([[1.0]], EVEN, EVEN),
        "a cost that is a vector": (EVEN, EVEN, EVEN),
        "negative weights": (torch.ones(ROWS, ROWS), -EVEN, EVEN),
        "weights that are NaN": (torch.ones(ROWS, ROWS), EVEN * NAN, EVEN),
        "a cost that is NaN": (torch.full((ROWS, ROWS), NAN), EVEN, EVEN),
        "an infinite cost": (torch.full((ROWS, ROWS), INF), EVEN, EVEN),
    }
    for fault, given in plans.items():
        expected = not_finite_or_refused if "NaN" in fault or "infinite" in fault or "negative" in fault else refused
        yield expected(f"{fault} in transport_plan", lambda given=given: transport_plan(*given))
    summaries: dict[str, Callable[[], Any]] = {
        "a list": lambda: [1.0],
        "None": lambda: None,
        "empty": lambda: torch.ones(0),
        "whole numbers": lambda: torch.ones(3).long(),
    }
    for fault, made in summaries.items():
        yield refused(f"{fault} as real logits", lambda made=made: node_summary_loss(made(), torch.ones(3)))
        yield refused(f"{fault} as corrupted logits", lambda made=made: node_summary_loss(torch.ones(3), made()))
        yield refused(f"{fault} as a summary", lambda made=made: Discriminator(WIDTH)(rows(), made()))
        yield refused(f"{fault} as a summary of ProjectedDot", lambda made=made: ProjectedDot(WIDTH)(rows(), made()))
    batches: dict[str, Callable[[], Any]] = {
        "a negative graph": lambda: torch.tensor([-1, 0, 0, 0, 0, 0]),
        "a huge graph": lambda: torch.full((ROWS,), 2**50),
        "too few": lambda: torch.zeros(ROWS - 1).long(),
        "too many": lambda: torch.zeros(ROWS + 1).long(),
        "floats": lambda: torch.zeros(ROWS),
        "a list": lambda: [0] * ROWS,
        "a matrix": lambda: torch.zeros(ROWS, 1).long(),
    }
    for fault, made in batches.items():
        for kind in ("mean", "sum", "max"):
            yield refused(
                f"{fault} as the batch of readout {kind}", lambda made=made, kind=kind: readout(rows(), made(), kind)
            )


def _encoders() -> Iterator[Kind]:
    inputs: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "a list": lambda: rows().tolist(),
        "an array": lambda: rows().numpy(),
        "a vector": lambda: rows()[0],
        "three dimensions": lambda: rows().unsqueeze(0),
        "more columns": lambda: torch.ones(ROWS, WIDTH + 1),
        "fewer columns": lambda: torch.ones(ROWS, WIDTH - 1),
        "whole numbers": lambda: torch.ones(ROWS, WIDTH).long(),
        "COO": lambda: rows().to_sparse(),
        "on meta": lambda: torch.empty(ROWS, WIDTH, device="meta"),
        "float64": lambda: rows().double(),
    }
    weights: dict[str, Callable[[], Any]] = {
        "too few": lambda: torch.ones(2),
        "a column": lambda: torch.ones(3, 1),
        "a list": lambda: [1.0] * 3,
        "that require gradients": lambda: torch.ones(3, requires_grad=True),
    }
    for name, cls in ENCODERS.items():
        for fault, made in inputs.items():
            yield refused(
                f"{fault} in {name}(x)", lambda made=made, cls=cls: cls(WIDTH, hidden_channels=2)(made(), PAIRS)
            )
        for fault, made in weights.items():
            yield refused(
                f"{fault} as edge weights of {name}",
                lambda made=made, cls=cls: cls(WIDTH, hidden_channels=2)(rows(), PAIRS, made()),
            )
        if name != "gat":
            yield refused(
                f"edge attributes of {name}", lambda cls=cls: cls(WIDTH)(rows(), PAIRS, None, torch.ones(3, 1))
            )
            yield refused(f"edge_dim of {name}", lambda cls=cls: cls(WIDTH, edge_dim=2))
    gat = ENCODERS["gat"]
    for fault, attributes in {
        "too few": torch.ones(2, 2),
        "too wide": torch.ones(3, 5),
        "a vector": torch.ones(3),
    }.items():
        yield refused(
            f"edge attributes of gat: {fault}",
            lambda a=attributes: gat(WIDTH, hidden_channels=2, edge_dim=2)(rows(), PAIRS, None, a),
        )

    made = gat(WIDTH, hidden_channels=2, edge_dim=2).eval()
    yield same(
        "edge attributes of gat: whole numbers",
        lambda: made(rows(), PAIRS, None, torch.ones(3, 2).long()),
        lambda: made(rows(), PAIRS, None, torch.ones(3, 2)),
    )


def _metrics() -> Iterator[Kind]:
    truth = torch.tensor([0, 1, 0, 1, 0, 1])
    two = drawn(ROWS, 2)
    logits: dict[str, Callable[[], Any]] = {
        "NaN": lambda: two * NAN,
        "one NaN": lambda: two.index_put((torch.tensor(0), torch.tensor(0)), torch.tensor(NAN)),
        "a list": lambda: two.tolist(),
        "an array": lambda: two.numpy(),
        "None": lambda: None,
        "a vector": lambda: two[:, 0],
        "too few rows": lambda: two[:-1],
        "no classes": lambda: two[:, :0],
        "no rows": lambda: two[:0],
        "complex": lambda: two.to(torch.complex64),
        "on meta": lambda: torch.empty(ROWS, 2, device="meta"),
        "sparse": lambda: two.to_sparse_csr(),
    }
    labels: dict[str, Callable[[], Any]] = {
        "none": lambda: truth[:0],
        "floats": lambda: truth.float(),
        "a list": lambda: truth.tolist(),
        "None": lambda: None,
        "a column": lambda: truth.unsqueeze(1),
        "one-hot": lambda: torch.eye(2).long()[truth],
        "too few": lambda: truth[:-1],
        "negative": lambda: truth - 1,
        "bools": lambda: truth.bool(),
    }
    for metric in ("accuracy", "roc_auc", "f1"):
        for fault, made in logits.items():
            yield refused(f"{fault} as logits of {metric}", lambda made=made, m=metric: score(made(), truth, m))
        for fault, made in labels.items():
            yield refused(f"{fault} as labels of {metric}", lambda made=made, m=metric: score(two, made(), m))
        yield finite_or_refused(f"infinite logits in {metric}", lambda m=metric: score(two.sign() * INF, truth, m))
        yield same(
            f"huge logits in {metric}",
            lambda m=metric: score(two * 1e30, truth, m),
            lambda m=metric: score(two, truth, m),
        )
    yield refused("a third class in F1 of two", lambda: score(two, truth + 1, "f1"))
    yield refused("a third class in ROC-AUC of two", lambda: score(two, truth + 1, "roc_auc"))
    yield refused("one class in ROC-AUC", lambda: score(two, truth * 0, "roc_auc"))
    yield same("a class that was not learned in accuracy", lambda: score(two, truth + 5), lambda: 0.0)


def _probes() -> Iterator[Kind]:
    z, y = drawn(ROWS, WIDTH), torch.tensor([0, 1, 0, 1, 0, 1])
    fields: dict[str, tuple[type, dict[str, Any]]] = {
        "epochs": (
            LinearProbe,
            {"-1": -1, "a fraction": 1.5, "a text": "10", "None": None, "NaN": NAN, "a bool": True},
        ),
        "lr": (LinearProbe, {"0": 0, "-1": -1, "NaN": NAN, "infinity": INF, "a text": "0.1", "None": None}),
        "solver": (LinearProbe, {"a typo": "adma", "None": None, "a number": 3, "a list": ["adam"]}),
        "l2": (LinearProbe, {"0": 0, "-1": -1, "NaN": NAN, "infinity": INF, "a text": "0.1", "None": None}),
        "grid": (
            LogisticProbe,
            {"empty": (), "0": (0.0,), "a number": 1.0, "NaN": (NAN,), "infinity": (INF,), "a text": "1"},
        ),
        "held_out": (LogisticProbe, {"1": 1, "-1": -1, "NaN": NAN, "a text": "0.2", "None": None, "a bool": True}),
    }
    for field, (cls, values) in fields.items():
        for fault, value in values.items():
            yield refused(f"{fault} for {cls.__name__}({field})", lambda c=cls, f=field, v=value: c(**{f: v}))
    probes = {
        "LinearProbe": LinearProbe(epochs=2),
        "the optimum": LinearProbe(solver="optimum"),
        "LogisticProbe": LogisticProbe(grid=(1.0,)),
    }
    arguments: dict[str, dict[str, Any]] = {
        "z a list": {"z": z.tolist()},
        "z None": {"z": None},
        "z an array": {"z": z.numpy()},
        "z a vector": {"z": z[:, 0]},
        "z sparse": {"z": z.to_sparse_csr()},
        "z whole": {"z": torch.ones(ROWS, WIDTH).long()},
        "z with fewer rows than labels": {"z": z[:-1]},
        "z that is NaN": {"z": z * NAN},
        "z that is infinite": {"z": z * INF},
        "z without columns": {"z": z[:, :0], "z_all": z[:, :0]},
        "no training rows": {"z": z[:0], "y": y[:0]},
        "y floats": {"y": y.float()},
        "y a list": {"y": y.tolist()},
        "y a column": {"y": y.unsqueeze(1)},
        "y negative": {"y": y - 1},
        "y beyond the classes": {"y": y + 1},
        "y on meta": {"y": torch.empty(ROWS, dtype=torch.int64, device="meta")},
        "classes 0": {"classes": 0},
        "classes -1": {"classes": -1},
        "classes a text": {"classes": "2"},
        "classes a fraction": {"classes": 2.5},
        "classes None": {"classes": None},
        "a huge number of classes": {"classes": 10**12},
        "a seed of -1": {"seed": -1},
        "a seed that is a bool": {"seed": True},
        "a seed that is a text": {"seed": "0"},
        "a seed of 2**70": {"seed": 2**70},
        "a fraction as a seed": {"seed": 0.5},
        "z_all of another width": {"z_all": torch.ones(3, WIDTH + 1)},
        "z_all a list": {"z_all": z.tolist()},
        "z_all that is NaN": {"z_all": z * NAN},
        "z_all a vector": {"z_all": z[0]},
    }
    for name, probe in probes.items():
        for fault, change in arguments.items():
            facts = {"z": z, "y": y, "z_all": z, "classes": 2, "seed": 0} | change
            yield refused(f"{fault} in {name}", lambda p=probe, f=facts: p.fit_predict(**f))
        yield finite_or_refused(f"huge embeddings in {name}", lambda p=probe: p.fit_predict(z * 1e30, y, z * 1e30, 2))
        yield finite_or_refused(
            f"a constant embedding in {name}", lambda p=probe: p.fit_predict(z * 0 + 1, y, z * 0 + 1, 2)
        )
    many: dict[str, dict[str, Any]] = {
        "no seeds": {"seeds": []},
        "two seeds for three embeddings": {"zs": [z] * 3, "zs_all": [z] * 3, "seeds": [0, 1]},
        "embeddings of two widths": {"zs": [z, z[:, :2]], "zs_all": [z, z[:, :2]], "seeds": [0, 1]},
        "no embeddings": {"zs": [], "zs_all": []},
        "a tensor of embeddings to predict": {"zs_all": [z, z]},
    }
    for name, probe in probes.items():
        for fault, change in many.items():
            facts = {"zs": [z], "y": y, "zs_all": [z], "classes": 2, "seeds": [0]} | change
            yield refused(f"{fault} for many of {name}", lambda p=probe, f=facts: p.fit_predict_many(**f))
    optima: dict[str, dict[str, Any]] = {
        "one class": {"y": y * 0},
        "l2 of 0": {"l2": 0.0},
        "l2 of NaN": {"l2": NAN},
        "l2 a text": {"l2": "1"},
        "z NaN": {"z": z * NAN},
        "z a list": {"z": z.tolist()},
        "fewer labels than rows": {"y": y[:-1]},
        "labels beyond the classes": {"y": y + 7},
        "negative labels": {"y": y - 1},
        "float labels": {"y": y.float()},
        "a start of another width": {"start": (torch.zeros(2, 9), torch.zeros(2))},
        "a start that is NaN": {"start": (torch.full((2, WIDTH), NAN), torch.zeros(2))},
    }
    for fault, change in optima.items():
        facts = {"z": z, "y": y, "classes": 2, "l2": 0.1} | change
        yield refused(f"{fault} in logistic_optimum", lambda f=facts: logistic_optimum(**f))


def _selection() -> Iterator[Kind]:
    curve = [{"id_val": 0.5, "ood_val": 0.4, "ood_test": 0.3, "id_test": 0.2}]
    cases: dict[str, Callable[[], object]] = {
        "an unknown rule": lambda: select_checkpoint("best", curve),
        "a rule that is None": lambda: select_checkpoint(None, curve),
        "a rule that is a list": lambda: select_checkpoint(["id_val"], curve),
        "no checkpoints": lambda: select_checkpoint("last", []),
        "checkpoints that are None": lambda: select_checkpoint("id_val", None),
        "a checkpoint without the score": lambda: select_checkpoint("id_val", [{"id_val": 0.1}, {}]),
        "a score that is NaN": lambda: select_checkpoint("id_val", [{"id_val": NAN}, {"id_val": 0.5}]),
        "a score that is a text": lambda: select_checkpoint("id_val", [{"id_val": "0.9"}, {"id_val": 0.5}]),
        "a score that is None": lambda: select_checkpoint("id_val", [{"id_val": None}, {"id_val": 0.5}]),
        "no curve": lambda: report([]),
        "a curve of numbers": lambda: report([0.5]),
        "a curve with NaN": lambda: report([{**curve[0], "ood_val": NAN}, *curve]),
    }
    for fault, given in cases.items():
        yield refused(f"{fault} in a selection", given)
    yield same("a group that was never scored", lambda: report(curve, groups=["T9"])["groups"], dict)
    yield same("scores that are equal", lambda: select_checkpoint("id_val", [{"id_val": 0.5}] * 3), lambda: 0)


def _evaluation() -> Iterator[Kind]:
    seeds = {"-1": -1, "True": True, "2**70": 2**70, "a text": "0", "None": None, "a fraction": 0.5, "NaN": NAN}
    for fault, seed in seeds.items():
        yield refused(f"a seed of {fault} in evaluate", lambda s=seed: evaluate(fitted(), sound(), seed=s))
        yield refused(f"a seed of {fault} in invariance", lambda s=seed: invariance(fitted(), sound(), seed=s))
        yield refused(
            f"a seed of {fault} in evaluate_many",
            lambda s=seed: evaluate_many([torch.ones(NODES, 2)], sound(), seeds=[s]),
        )
    models: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "a class": lambda: type(fitted()),
        "a module": lambda: torch.nn.Linear(3, 2),
        "a path": lambda: "model.safetensors",
        "a model that is not fitted": model,
    }
    for fault, made in models.items():
        yield refused(f"{fault} as the model of evaluate", lambda made=made: evaluate(made(), sound()))
        yield refused(f"{fault} as the model of invariance", lambda made=made: invariance(made(), sound()))
    for fault, probe in {"a text": "linear", "a class": LinearProbe, "a number": 3}.items():
        yield refused(f"{fault} as a probe", lambda p=probe: evaluate(fitted(), sound(), probe=p))
    embeddings: dict[str, Any] = {
        "a tensor": torch.ones(NODES, 2),
        "None": None,
        "a list of lists": [[1.0] * 2] * NODES,
        "NaN": [torch.full((NODES, 2), NAN)],
        "too few rows": [torch.ones(NODES - 1, 2)],
        "a vector": [torch.ones(NODES)],
        "no embedding": [],
        "sparse": [torch.eye(NODES).to_sparse_csr()],
        "whole numbers": [torch.ones(NODES, 2).long()],
        "an array": [np.ones((NODES, 2))],
    }
    for fault, given in embeddings.items():
        yield refused(f"{fault} in evaluate_many", lambda g=given: evaluate_many(g, sound()))
    for fault, metric in {"a typo": "acuracy", "a number": 3, "a list": ["f1"]}.items():
        yield refused(f"{fault} as the metric of a graph", lambda m=metric: evaluate(fitted(), sound(metric=m)))
    numbers = {"pairs": {"0": 0, "-1": -1, "a fraction": 1.5, "a text": "8", "None": None}}
    numbers["epsilon"] = {"-1": -1.0, "NaN": NAN, "infinity": INF, "a text": "0.1", "None": None}
    numbers["steps"] = {"0": 0, "-1": -1, "a fraction": 1.5, "a text": "3", "None": None}
    for name, values in numbers.items():
        for fault, value in values.items():
            yield refused(
                f"{fault} for invariance({name})", lambda n=name, v=value: invariance(fitted(), sound(), **{n: v})
            )
    third = {"y": torch.tensor([0, 1, 0, 1, 0, 2, 2, 1]), "num_classes": None}
    yield refused("a third class in the F1 of a graph", lambda: evaluate(fitted(), sound(metric="f1", **third)))
    yield refused(
        "a third class in the ROC-AUC of a graph", lambda: evaluate(fitted(), sound(metric="roc_auc", **third))
    )
    yield refused(
        "groups without test nodes", lambda: evaluate(fitted(), sound(group_id=torch.full((NODES,), -1), groups=["T"]))
    )
    yield Kind("edge weights of a model without them", _with_weights, is_finite)


def _with_weights() -> object:
    return evaluate(fitted(), sound(edge_weight=torch.rand(EDGES), x=features()))
