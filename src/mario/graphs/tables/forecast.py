"""What a graph will need after it is built: memory and time to train and to embed, from its size and a short probe."""

import time
from dataclasses import dataclass

import numpy as np

WIDTH = 128
"""Width of embeddings that `mario fit` picks."""
STEPS = 200
BATCH = 2_000
"""Steps of its trainings together, and nodes of a batch, about."""
FILES = 2**31
"""Bytes of matrices beyond which embedding goes through temporary files."""
_BASE = 0.6 * 2**30  # of Python with torch
_ROWS, _GATHERED = 4_096, 100_000
_PASSES = 12.0  # multiplications of a training step, in those of one pass over its batch; measured
_FORMS = 6.0  # encodings of the whole graph in a fit: controls and candidates


@dataclass(frozen=True)
class Forecast:
    """Bytes and seconds that training and embedding will take on an idle machine, roughly."""

    fit_bytes: float
    fit_seconds: float
    embed_bytes: float
    embed_seconds: float

    def __str__(self) -> str:
        return (
            f"`mario fit` will take about {_seconds(self.fit_seconds)} and {self.fit_bytes / 1e9:.1f} GB, "
            f"`mario embed` {_seconds(self.embed_seconds)} and {self.embed_bytes / 1e9:.1f} GB on this machine"
        )


def forecast(nodes: int, edges: int, entries: int, features: int) -> Forecast:
    """The forecast for a graph.

    Args:
        nodes, edges, features: Its size.
        entries: Of its features: nodes × features if they are dense.
    """
    multiply, gather = _probe()
    embed = _encoding(nodes, edges, entries, multiply, gather)
    batch = min(nodes, BATCH)
    share = batch / max(nodes, 1)
    step = _PASSES * _encoding(batch, edges * share, entries * share, multiply, gather)
    step += 4 * 2 * batch**2 * WIDTH * multiply  # the similarities of all pairs, and their gradients
    matrices = 4.0 * nodes * (min(features, 4 * WIDTH) + 3 * WIDTH) + 16.0 * edges
    return Forecast(
        fit_bytes=_BASE + min(matrices, FILES) + 40.0 * batch**2,
        fit_seconds=STEPS * step + _FORMS * embed + 10,
        embed_bytes=_BASE + min(matrices, FILES),
        embed_seconds=embed + 5,
    )


def _encoding(nodes: float, edges: float, entries: float, multiply: float, gather: float) -> float:
    """Seconds of two layers."""
    return 2 * (entries * WIDTH + nodes * WIDTH * WIDTH) * multiply + 2 * edges * WIDTH * gather


def _probe() -> tuple[float, float]:
    """Seconds per multiplication and addition of matrices, and per number that is gathered and added."""
    generator = np.random.default_rng(0)
    left = generator.standard_normal((_ROWS, WIDTH), dtype=np.float32)
    right = generator.standard_normal((WIDTH, WIDTH), dtype=np.float32)
    rows = generator.integers(0, _ROWS, _GATHERED)
    starts = np.arange(0, _GATHERED, 10)
    best = [float("inf"), float("inf")]
    for _ in range(3):
        begun = time.thread_time()
        left @ right
        middle = time.thread_time()
        np.add.reduceat(left[rows], starts, axis=0)
        best = [min(best[0], middle - begun), min(best[1], time.thread_time() - middle)]
    return best[0] / (2 * _ROWS * WIDTH * WIDTH), best[1] / (_GATHERED * WIDTH)


def _seconds(seconds: float) -> str:
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
