"""`mario.Embedder`: a fit in scikit-learn's manners, of graphs, tables and arrays."""

import copy
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch_geometric.data import Data

from mario.arguments import check_count
from mario.embedder.arrays import RowGraph
from mario.embedder.embedding import Embeddings, embed_by
from mario.embedder.fitting import fit_graph
from mario.embedder.folder import About, ModelFolder
from mario.embedder.reading import make_ready
from mario.embedder.sources import Source, read_source
from mario.embedder.writing import Result, conclude, write_model
from mario.errors import MarioError
from mario.evaluation import BlockClassifier
from mario.files import check_path, write_json, write_tensors
from mario.methods import WithSteady
from mario.untrusted import read_json, read_safetensors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Tags

    Given = str | os.PathLike[str] | Data | Any

_STATE, _ROWS = "estimator.json", "rows.safetensors"
_FORMAT = 1


def _has_head(embedder: "Embedder") -> bool:
    """Whether labels can be predicted; before the fit that is not known, and the methods are there."""
    if hasattr(embedder, "model_") and embedder.head_ is None:
        raise AttributeError("this Embedder was fitted without labels of two classes, so it predicts none")
    return True


class Embedder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Embeddings that hold out of distribution, with the methods of a scikit-learn transformer and classifier.

    What is trained is picked from the graph, compared with controls, and chosen as ``mario fit`` does it.

    ``X`` is one of

    - a graph: a PyG ``Data``, the folder of a graph of your own, or the name of a dataset. Rows are its nodes. Labels
      are its ``y`` or the argument ``y``.
    - an array or a ``DataFrame`` of numbers. Rows have no graph of their own, so each gets edges from the
      ``n_neighbors`` nearest rows of the training (``graph="none"``: no edges). What a row becomes does not depend on
      the other rows that are transformed with it.

    In ``y``, -1 and ``None`` mean no label. Continuous values are no labels and are ignored.

    Args:
        method: What to train, one or several names with commas; ``None`` picks.
        channels: ``x``, ``graph`` or ``x,graph``; ``None`` lets labels decide.
        center: ``auto``, ``always`` or ``never``: whether to center by domain.
        steps: Optimizer steps.
        settings: Other settings of the method by name, such as ``{"hidden_channels": 64}``.
        rule: What chooses: see :func:`mario.select`.
        domain: The attribute of a graph that says the domain of a node.
        budget: Seconds for the fit.
        graph: For arrays, ``knn`` or ``none``.
        n_neighbors: For arrays, the edges of each row.
        seed: Of all draws.
        device: ``auto``, ``cpu`` or ``cuda``.

    Attributes:
        model_: The fitted method.
        about_: All of the fit: what was picked and why, the scores of all candidates, warnings.
        head_: The classifier of the labels, or ``None``.
        classes_: The labels; only with a classifier.
        n_features_in_: The number of features.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="covariate")
        >>> embedder = mario.Embedder(method="grace", steps=1, settings={"hidden_channels": 8})
        >>> embedder.fit_transform(data).shape[0], embedder.predict_proba(data).shape
        (700, (700, 4))
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> X, y = load_iris(return_X_y=True)
        >>> embedder = mario.Embedder(method="grace", steps=1, settings={"hidden_channels": 8})
        >>> make_pipeline(StandardScaler(), embedder).fit(X, y).predict(X).shape
        (150,)
    """

    def __init__(
        self,
        *,
        method: str | None = None,
        channels: str | None = None,
        center: str | None = None,
        steps: int | None = None,
        settings: Mapping[str, Any] | None = None,
        rule: str | None = None,
        domain: str | None = None,
        budget: float | None = None,
        graph: str = "knn",
        n_neighbors: int = 10,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.method = method
        self.channels = channels
        self.center = center
        self.steps = steps
        self.settings = settings
        self.rule = rule
        self.domain = domain
        self.budget = budget
        self.graph = graph
        self.n_neighbors = n_neighbors
        self.seed = seed
        self.device = device

    # Fit --------------------------------------------------------------------------------------------------------------

    def fit(self, X: "Given", y: Any = None) -> Self:
        """Fit on a graph, an array or a ``DataFrame``.

        Args:
            X: What to embed.
            y: The label of each row; by default the labels of the graph.
        """
        check_count("n_neighbors", self.n_neighbors)
        if _is_graph(X):
            rows, source = None, read_source(X, domain=self.domain, seed=self.seed)
            self.n_features_in_ = int(source.data.x.size(1))
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if y is not None:
                source = _with_labels(source, y, self.seed)
        else:
            checked = _float32(validate_data(self, X, dtype="numeric", ensure_min_samples=2))
            rows = RowGraph(checked, self.graph, self.n_neighbors)
            data = rows.training()
            data.name = "rows"
            source = read_source(data, seed=self.seed)
            if y is not None:
                source = _with_labels(source, y, self.seed)
        fitted = fit_graph(
            source.data, given=self._given(), budget=self.budget, seed=self.seed, device=self.device
        )
        self._keep(conclude(fitted, source, seed=self.seed), rows)
        return self

    def fit_transform(self, X: "Given", y: Any = None, **_: Any) -> "NDArray[np.float32]":
        """``fit(X, y).transform(X)``."""
        return self.fit(X, y).transform(X)

    def _given(self) -> dict[str, Any]:
        own = {"method": self.method, "channels": self.channels, "center": self.center, "steps": self.steps}
        given = {name: value for name, value in {**own, "rule": self.rule}.items() if value is not None}
        if self.settings is None:
            return given
        if not isinstance(self.settings, Mapping):
            raise MarioError(f"settings must be a dict of values by name, got {self.settings!r}")
        if twice := sorted(given.keys() & self.settings.keys()):
            raise MarioError(f"{twice[0]} is given as an argument and in settings; give it once")
        return {**given, **self.settings}

    def _keep(self, result: Result, rows: RowGraph | None) -> None:
        self.model_: WithSteady = result.fitted.model
        self.about_: About = result.about
        self.head_: BlockClassifier | None = result.head
        self._result: Result | None = result
        self._rows, self._saved = rows, None
        classes = result.source.data.get("classes")
        self._set_classes(None if classes is None else np.asarray(classes))

    def _set_classes(self, known: "NDArray[Any] | None") -> None:
        if hasattr(self, "classes_"):
            del self.classes_
        if self.head_ is None:
            return
        names = np.asarray(self.about_.class_names)
        self.classes_ = names if known is None else known[np.asarray(self.head_.classes_, np.int64)]

    # Use --------------------------------------------------------------------------------------------------------------

    def transform(self, X: "Given") -> "NDArray[np.float32]":
        """The embedding of each row, float32."""
        found, start = self._embed(X)
        dense: NDArray[np.float32] = found.dense()[start:].numpy()
        return dense

    @available_if(_has_head)
    def predict(self, X: "Given") -> "NDArray[Any]":
        """The label of each row."""
        likeliest: NDArray[Any] = self.predict_proba(X).argmax(1)
        return self.classes_[likeliest]

    @available_if(_has_head)
    def predict_proba(self, X: "Given") -> "NDArray[np.float64]":
        """The calibrated probability of each label, in the order of ``classes_``."""
        found, start = self._embed(X)
        assert self.head_ is not None
        rows = found.blocks.rows(torch.arange(start, len(found)))
        probabilities: NDArray[np.float64] = self.head_.predict_proba(rows)
        return probabilities

    @available_if(_has_head)
    def score(self, X: "Given", y: Any) -> float:
        """The accuracy of :meth:`predict`, on rows with a label."""
        found, wanted = self.predict(X), column_or_1d(y)
        if len(found) != len(wanted):
            raise MarioError(f"y has {len(wanted)} labels for {len(found)} rows")
        return float(np.mean(found == wanted))

    def get_feature_names_out(self, input_features: Any = None) -> "NDArray[Any]":
        """The name of each column of :meth:`transform`, such as ``graph_0``."""
        check_is_fitted(self)
        if input_features is not None and len(input_features) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), got "
                f"{len(input_features)}"
            )
        return np.asarray(self.about_.columns, dtype=object)

    def _embed(self, X: "Given") -> tuple[Embeddings, int]:
        """Embeddings, and the first row of them that was asked for."""
        check_is_fitted(self)
        if self._rows is None:
            if not _is_graph(X):
                raise MarioError(f"this Embedder was fitted on a graph; X must be one too, got {type(X).__name__}")
            return embed_by(self.model_, self.about_, make_ready(self.about_, X)), 0
        if _is_graph(X):
            raise MarioError("this Embedder was fitted on an array; X must be one too, got a graph")
        checked = _float32(validate_data(self, X, dtype="numeric", reset=False))
        graph = self._rows.beside(checked)
        return embed_by(self.model_, self.about_, make_ready(self.about_, graph)), len(self._rows.rows)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a model folder, which ``mario embed`` and ``mario predict`` read if it was fitted on a graph."""
        check_is_fitted(self)
        home = check_path("folder", folder).expanduser()
        assert self._result is not None
        write_model(self._result, home)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Embedder":
        """The Embedder in a folder of :meth:`save` or of ``mario fit``."""
        raise NotImplementedError

    # scikit-learn -----------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> "Tags":
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _is_graph(given: Any) -> bool:
    return isinstance(given, Data | str | os.PathLike | Source)


def _float32(rows: Any) -> "NDArray[np.float32]":
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray(rows, np.float32)
    return check_array(found, input_name="X")  # type: ignore[no-any-return]


def _with_labels(source: Source, y: Any, seed: int) -> Source:
    """The source with other labels; as it is if they are no classes."""
    labels = column_or_1d(y, warn=True)
    count = int(source.data.x.size(0))
    if len(labels) != count:
        raise MarioError(f"y has {len(labels)} labels for {count} rows")
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels], bool)
    elif labels.dtype.kind == "f":
        missing = np.isnan(labels) | (labels == -1)
    else:
        missing = labels == -1 if labels.dtype.kind in "iu" else np.zeros(count, bool)
    if missing.all() or type_of_target(labels[~missing]) not in ("binary", "multiclass"):
        return source
    classes, codes = np.unique(labels[~missing], return_inverse=True)
    data = copy.copy(source.data)
    data.y = torch.full((count,), -1)
    data.y[torch.from_numpy(~missing)] = torch.from_numpy(codes.astype(np.int64))
    data.num_classes, data.class_names = len(classes), [str(name) for name in classes]
    data.classes = classes.tolist()
    return read_source(data, seed=seed)
