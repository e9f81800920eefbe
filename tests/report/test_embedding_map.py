"""t-SNE maps: deterministic, rasterised when large, honest about what is left out."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from mario.errors import MarioError
from mario.report import embedding_map
from mario.report.embedding_map import plot_embeddings, tsne


def blobs(n: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % classes
    return rng.normal(size=(classes, 8))[y] * 6 + rng.normal(size=(n, 8)), y, np.arange(n) % 4 == 0


def test_separate_blobs_stay_separate_and_the_map_repeats() -> None:
    z, y, _ = blobs(60)
    xy = tsne(z)
    assert np.array_equal(xy, tsne(z))
    centres = np.stack([xy[y == c].mean(0) for c in range(3)])
    nearest = ((xy[:, None] - centres) ** 2).sum(-1).argmin(1)
    assert (nearest == y).all()


def test_two_panels_with_their_legends() -> None:
    text = plot_embeddings(*blobs(40), method="grace")
    ET.fromstring(text)
    for label in ("grace, by class", "grace, by distribution", "class 0", "class 2", "in distribution (ID)"):
        assert f">{label}<" in text
    assert "40 nodes, 10 of them out of distribution, 3 classes." in text
    assert "<image" not in text


def test_many_points_are_one_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_map, "_RASTER_ABOVE", 30)
    text = plot_embeddings(*blobs(40))
    assert 'href="data:image/png;base64' in text


def test_thinned_out_and_said() -> None:
    assert "20 of 40 nodes" in plot_embeddings(*blobs(40), max_nodes=20)


def test_the_eight_largest_classes_have_a_colour_and_the_rest_are_others() -> None:
    z, _, ood = blobs(60)
    y = np.concatenate([np.repeat(np.arange(1, 9), 7), [0, 0, 9, 9]])
    text = plot_embeddings(z, y, ood)
    assert ">others<" in text
    assert ">class 8<" in text
    assert ">class 0<" not in text
    assert ">class 9<" not in text


def test_collapsed_and_one_dimensional_embeddings_can_be_shown() -> None:
    assert not tsne(np.ones((10, 4))).any()
    assert np.isfinite(tsne(np.arange(10.0)[:, None])).all()


def test_wrong_input_is_named() -> None:
    z, y, ood = blobs(20)
    with pytest.raises(MarioError, match="one row a node, got 20, 19 and 20"):
        plot_embeddings(z, y[:-1], ood)
    with pytest.raises(MarioError, match="at least 4"):
        tsne(z[:3])
    with pytest.raises(MarioError, match="finite"):
        tsne(np.full((10, 2), np.nan))
