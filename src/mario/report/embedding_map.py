"""t-SNE maps of embeddings (van der Maaten & Hinton, 2008), coloured by class and by distribution, after Figure 8."""

from typing import Any

import numpy as np

from mario.errors import MarioError
from mario.report.pictures.maps import LARGEST, largest_classes
from mario.report.pictures.palette import BLUE, COLOURS, GREY, MARKERS, VERMILLION
from mario.report.svg import style, to_svg

_RASTER_ABOVE = 3000


def tsne(z: Any, *, random_state: int = 0) -> np.ndarray:
    """Two coordinates a row: sklearn's t-SNE from a PCA start, perplexity 30 or what few rows allow.

    Example:
        >>> import numpy as np
        >>> from mario.report.embedding_map import tsne
        >>> tsne(np.random.default_rng(0).normal(size=(20, 5))).shape
        (20, 2)
    """
    from sklearn.manifold import TSNE

    rows = np.asarray(z, dtype=np.float32)
    if rows.ndim != 2 or len(rows) < 4:
        raise MarioError(f"z must be a matrix of at least 4 embeddings, one a row, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise MarioError("z must be finite, got NaN or infinity")
    if np.ptp(rows, axis=0).max() == 0:
        # A collapsed encoder: every node on one spot is what there is to see, and PCA has no direction to start from.
        return np.zeros((len(rows), 2), dtype=np.float32)
    # PCA gives min(rows, columns) directions; a constant column makes a second one out of a single dimension.
    rows = np.column_stack([rows, np.zeros(len(rows), dtype=np.float32)]) if rows.shape[1] == 1 else rows
    perplexity = min(30.0, (len(rows) - 1) / 3)
    # 500 iterations: the map of a few thousand points no longer changes to the eye after that.
    model = TSNE(init="pca", perplexity=perplexity, max_iter=500, random_state=random_state)
    return np.asarray(model.fit_transform(rows))


def plot_embeddings(
    z: Any,
    y: Any,
    ood: Any,
    *,
    method: str = "",
    max_nodes: int = 5000,
    random_state: int = 0,
    name: str = "embedding-map",
) -> str:
    """An SVG with two panels: the same map coloured by class ``y`` and by whether a node is out of distribution.

    More than ``max_nodes`` nodes are thinned out at random (by ``random_state``); of more than eight classes the eight
    largest are coloured, as in the paper.

    Example:
        >>> import numpy as np
        >>> from mario.report import plot_embeddings
        >>> z = np.random.default_rng(0).normal(size=(20, 5))
        >>> plot_embeddings(z, [0, 1] * 10, [False] * 10 + [True] * 10, method="grace")[:4]
        '<svg'
    """
    import matplotlib
    from matplotlib.figure import Figure

    z, y, ood = np.asarray(z), np.asarray(y), np.asarray(ood, dtype=bool)
    if not len(z) == len(y) == len(ood):
        raise MarioError(f"z, y and ood must have one row a node, got {len(z)}, {len(y)} and {len(ood)}")
    total = len(z)
    if total > max_nodes:
        kept = np.sort(np.random.default_rng(random_state).choice(total, max_nodes, replace=False))
        z, y, ood = z[kept], y[kept], ood[kept]
    xy = tsne(z, random_state=random_state)
    classes, largest = np.unique(y), largest_classes(y, LARGEST)
    rasterise = len(xy) > _RASTER_ABOVE
    size = float(np.clip(9000 / len(xy), 3.0, 14.0))

    with matplotlib.rc_context(style(name)):
        figure = Figure(figsize=(5.2, 3.2), layout="constrained", dpi=150)
        by_class, by_shift = figure.subplots(1, 2)
        rest = ~np.isin(y, largest)
        if rest.any():
            _scatter(by_class, xy[rest], GREY, ".", "others", size, rasterise)
        # Colour and shape both say the class, so that neither has to be seen.
        for label, colour, marker in zip(largest, COLOURS, MARKERS, strict=False):
            _scatter(by_class, xy[y == label], colour, marker, f"class {label}", size, rasterise)
        _scatter(by_shift, xy[~ood], BLUE, "o", "in distribution (ID)", size, rasterise)
        _scatter(by_shift, xy[ood], VERMILLION, "^", "out of distribution (OOD)", size, rasterise)
        for axis, title in ((by_class, "by class"), (by_shift, "by distribution")):
            axis.set_title(f"{method}, {title}" if method else title, loc="left")
            axis.set_xticks([])
            axis.set_yticks([])
            for spine in axis.spines.values():
                spine.set_visible(True)
                spine.set_alpha(0.25)
            axis.set_box_aspect(1)
            axis.legend(
                loc="upper center",
                bbox_to_anchor=(0.5, -0.02),
                ncols=1 if axis is by_shift else 2 if len(classes) <= 4 else 3,
                fontsize=8.5,
                markerscale=1.4,
                handletextpad=0.1,
                columnspacing=0.8,
                borderaxespad=0.0,
            )
        part = f"{len(xy)} of {total} nodes" if total > len(xy) else f"{total} nodes"
        return to_svg(
            figure,
            name=name,
            title=f"t-SNE of the embeddings of {method}" if method else "t-SNE of the embeddings",
            description=f"{part}, {int(ood.sum())} of them out of distribution, {len(classes)} classes.",
        )


def _scatter(axis: Any, xy: np.ndarray, colour: str, marker: str, label: str, size: float, rasterise: bool) -> None:
    axis.scatter(
        xy[:, 0], xy[:, 1], s=size, c=colour, marker=marker, label=label, alpha=0.75, linewidths=0, rasterized=rasterise
    )
