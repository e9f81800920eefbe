"""t-SNE: the same each time, near neighbors near, and what it cannot take is named."""

import numpy as np
import pytest

from mario.errors import MarioError
from mario.report.embedding_map import tsne


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    return rng.normal(size=(3, 8))[y] * 6 + rng.normal(size=(n, 8)), y


def test_separate_blobs_stay_separate_and_the_map_repeats() -> None:
    z, y = blobs(60)
    xy = tsne(z)
    assert np.array_equal(xy, tsne(z))
    centers = np.stack([xy[y == c].mean(0) for c in range(3)])
    nearest = ((xy[:, None] - centers) ** 2).sum(-1).argmin(1)
    assert (nearest == y).all()


def test_collapsed_and_one_dimensional_embeddings_can_be_shown() -> None:
    assert not tsne(np.ones((10, 4))).any()
    assert np.isfinite(tsne(np.arange(10.0)[:, None])).all()


def test_wrong_input_is_named() -> None:
    z, _ = blobs(20)
    with pytest.raises(MarioError, match="at least 4"):
        tsne(z[:3])
    with pytest.raises(MarioError, match="finite"):
        tsne(np.full((10, 2), np.nan))
