"""Kinds that other changes mend: to be merged after them."""

from collections.abc import Iterator
from pathlib import Path

from kinds.arrays import MATRICES, SCALED, rows
from kinds.graphs import fitted, sound
from kinds.kind import Kind, command, refused, same
from lab import results
from mario.graphs import load_mapped, save_mapped

# Losses that scale rows to unit length with F.normalize, whose squares overflow from 1e19 on.
NORMALIZED = [
    *("nt_xent(u)", "nt_xent(v)", "bootstrap(prediction)", "bootstrap(target)", "alignment(view)"),
    *("worst_case_alignment(view)", "alignment_uniformity(u)", "scaled_cosine_error(x)", "Prototypes(z)"),
    *("Prototypes.loss(u)", "Prototypes.assign(z)"),
]
assert not set(NORMALIZED) & set(SCALED)


def kinds() -> list[Kind]:
    return [*_large_rows(), *_truncated(), *_plans()]


def _large_rows() -> Iterator[Kind]:
    for entry in NORMALIZED:
        call = MATRICES[entry]
        yield same(
            f"rows of 1e19 in {entry}",
            lambda call=call: call(rows(3) * 1e19),
            lambda call=call: call(rows(3)),
            1e-4,
        )


def _truncated() -> Iterator[Kind]:
    for name in ("x", "edge_index"):

        def given(name: str = name) -> object:
            save_mapped(sound(), "mapped")
            data = load_mapped("mapped")
            path = Path("mapped") / f"{name}.npy"
            path.write_bytes(path.read_bytes()[:10])
            return fitted().transform(data)

        yield refused(f"{name} of a mapped graph, truncated while in use", given)


def _plans() -> Iterator[Kind]:
    for fault, content in {
        "empty": "",
        "a list": "[]",
        "cut": '{"study": ',
        "an older one": '{"study": "ablation"}',
    }.items():

        def given(content: str = content) -> object:
            results.write(Path("runs"), results.result(results.spec(0), 0.5))
            Path("runs/plans").mkdir()
            Path("runs/plans/ablation.00000000.json").write_text(content)
            command("report", "runs")
            return Path("report.html").read_text(encoding="utf-8")

        yield Kind(f"a report beside a plan that is {fault}", given, lambda page: "50.00" in page)
