"""t-SNE of embeddings (van der Maaten & Hinton, 2008): two coordinates for each, so that they can be drawn."""

from typing import Any

import numpy as np

from mario.errors import MarioError


def tsne(z: Any, *, random_state: int = 0) -> np.ndarray:
    """Two coordinates per row: scikit-learn's t-SNE with PCA initialization and perplexity 30, or less for few rows.

    Example:
        >>> tsne(np.random.default_rng(0).normal(size=(20, 5))).shape
        (20, 2)
    """
    from sklearn.manifold import TSNE

    rows = np.asarray(z, dtype=np.float32)
    if rows.ndim != 2 or len(rows) < 4:
        raise MarioError(f"z must be a matrix of at least 4 embeddings, one per row, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise MarioError("z must be finite, got NaN or infinity")
    if np.ptp(rows, axis=0).max() == 0:
        # A collapsed encoder puts every node on one spot, and PCA has no direction to start from.
        return np.zeros((len(rows), 2), dtype=np.float32)
    # PCA gives min(rows, columns) directions; a constant column adds a second one to a single dimension.
    rows = np.column_stack([rows, np.zeros(len(rows), dtype=np.float32)]) if rows.shape[1] == 1 else rows
    perplexity = min(30.0, (len(rows) - 1) / 3)
    # After 500 iterations the map of a few thousand points no longer changes visibly.
    model = TSNE(init="pca", perplexity=perplexity, max_iter=500, random_state=random_state)
    return np.asarray(model.fit_transform(rows))
