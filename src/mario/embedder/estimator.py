"""`mario.Embedder`: a fit in scikit-learn's manners, of graphs, tables and arrays."""

import copy
import dataclasses
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch_geometric.data import Data

from mario.arguments import check_count
from mario.embedder.arrays import RowGraph
from mario.embedder.embedding import Embeddings, embed_by
from mario.embedder.fitting import fit_graph
from mario.embedder.folder import ABOUT, CARD, PLAN, About, ModelFolder
from mario.embedder.frames import Frame, table_of
from mario.embedder.reading import make_ready
from mario.embedder.sources import Source, read_source, with_masks
from mario.embedder.updating import STEPS, update
from mario.embedder.writing import Result, conclude, write_model, write_update
from mario.errors import MarioError
from mario.evaluation import BlockClassifier
from mario.files import check_path, write_json, write_tensors, write_whole
from mario.methods import WithSteady
from mario.untrusted import read_json, read_safetensors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.utils import Tags

Given: TypeAlias = Any
"""A graph or its name, an array, or a table."""

_STATE, _ROWS, _PLAN = "estimator.json", "rows.safetensors", "rows.json"
_FORMAT = 1
_CLASSES = ("binary", "multiclass")


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
    - an array, or a ``DataFrame``. One of numbers is an array; of others the columns are found and made features of as
      ``mario graph build`` does it, with labels and domains. Rows have no graph of their own, so each gets edges from
      the ``n_neighbors`` nearest rows of the training (``graph="none"``: no edges). What a row becomes does not depend
      on the other rows that are transformed with it.

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

    model_: WithSteady
    about_: About
    head_: BlockClassifier | None

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

    def fit(self, X: Given, y: Any = None) -> Self:
        """Fit on a graph, an array or a ``DataFrame``.

        Args:
            X: What to embed.
            y: The label of each row; by default the labels of the graph.
        """
        check_count("n_neighbors", self.n_neighbors)
        rows, frame = None, None
        if _is_graph(X):
            source = _labeled(X, y, self.domain, self.seed)
            self.n_features_in_ = int(source.data.x.size(1))
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            table = table_of(X)
            if table is None:
                checked = _float32(validate_data(self, X, dtype="numeric", ensure_min_samples=2))
                rows = RowGraph(checked, self.graph, self.n_neighbors)
            else:
                validate_data(self, X, skip_check_array=True)
                frame = Frame.fit(table, self.seed)
                rows = RowGraph(frame.features(table), self.graph, self.n_neighbors, frame.domains(table))
                y = frame.labels(table) if y is None else y
            data = rows.training()
            data.name = "rows"
            source = _labeled(data, y, None, self.seed)
        fitted = fit_graph(source.data, given=self._given(), budget=self.budget, seed=self.seed, device=self.device)
        result = conclude(fitted, source, seed=self.seed)
        self._rows, self._frame = rows, frame
        self._model: _Model = _Concluded(result)
        self._know(fitted.model, result.about, result.head, source.data.get("classes"))
        return self

    def partial_fit(self, X: Given, y: Any = None) -> Self:
        """Go on training with other rows, as ``mario update`` does it: what is known stays where it is.

        The first call is :meth:`fit`. Rows of an array are added to those that others get edges from. The classifier is
        fitted again only if that is better on labels of the new rows.

        Args:
            X: The new graph, array or table, of the same kind as before.
            y: The label of each of its rows.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        rows = None
        if self._rows is None:
            self._check_kind(X)
            graph = X if y is None else _labeled(X, y, self.domain, self.seed)
        else:
            features, domains = self._features(X)
            if y is None and self._frame is not None:
                y = self._frame.labels(table_of(X))
            rows = self._rows.joined(features, domains)
            graph = rows.training()
            if y is not None:
                unknown = [None] * len(self._rows.rows)
                graph = _with_labels(graph, np.array([*unknown, *column_or_1d(y)], object))
        with tempfile.TemporaryDirectory() as home:
            before = self._model.write(Path(home) / "before")
            steps = STEPS if self.steps is None else self.steps
            updated = update(before, graph, steps=steps, seed=self.seed, device=self.device)
            after = write_update(updated, before, Path(home) / "after")
            self._model = _Content(
                {there.name: there.read_bytes() for there in after.path.iterdir() if there.is_file()}
            )
        self._rows = rows
        self._know(updated.model, updated.about, updated.head, self._known)
        return self

    def fit_transform(self, X: Given, y: Any = None, **_: Any) -> "NDArray[np.float32]":
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

    def _know(self, model: WithSteady, about: About, head: BlockClassifier | None, known: list[Any] | None) -> None:
        """Keep what was fitted; ``known`` are the classes as they were in ``y``."""
        self.model_, self.about_, self.head_ = model, about, head
        self._known = known
        if hasattr(self, "classes_"):
            del self.classes_
        if head is not None:
            own = {str(label): label for label in known or ()}
            codes = head.classes_.dtype.kind not in "OU"
            names = about.class_names if codes else [str(label) for label in head.classes_]
            self.classes_: NDArray[Any] = np.asarray([own.get(name, name) for name in names])

    # Use --------------------------------------------------------------------------------------------------------------

    def transform(self, X: Given) -> "NDArray[np.float32]":
        """The embedding of each row, float32."""
        found, start = self._embed(X)
        dense: NDArray[np.float32] = found.dense()[start:].numpy()
        return dense

    @available_if(_has_head)  # type: ignore[untyped-decorator]
    def predict(self, X: Given) -> "NDArray[Any]":
        """The label of each row."""
        likeliest = self.predict_proba(X).argmax(1)
        found: NDArray[Any] = self.classes_[likeliest]
        return found

    @available_if(_has_head)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Given) -> "NDArray[np.float64]":
        """The calibrated probability of each label, in the order of ``classes_``."""
        found, start = self._embed(X)
        assert self.head_ is not None
        rows = found.blocks.rows(torch.arange(start, len(found)))
        probabilities: NDArray[np.float64] = self.head_.predict_proba(rows)
        return probabilities

    @available_if(_has_head)  # type: ignore[untyped-decorator]
    def score(self, X: Given, y: Any) -> float:
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

    def _embed(self, X: Given) -> tuple[Embeddings, int]:
        """Embeddings, and the first row of them that was asked for."""
        check_is_fitted(self)
        self._check_kind(X)
        if self._rows is None:
            with self._model.plan() as plan:
                return embed_by(self.model_, self.about_, make_ready(self.about_, X, plan=plan)), 0
        graph = self._rows.beside(*self._features(X))
        return embed_by(self.model_, self.about_, make_ready(self.about_, graph)), len(self._rows.rows)

    def _check_kind(self, X: Given) -> None:
        if self._rows is None and not _is_graph(X):
            raise MarioError(f"this Embedder was fitted on a graph; X must be one too, got {type(X).__name__}")
        if self._rows is not None and _is_graph(X):
            raise MarioError("this Embedder was fitted on an array; X must be one too, got a graph")

    def _features(self, X: Given) -> "tuple[NDArray[np.float32], list[str | None] | None]":
        """The features of rows, and their domains."""
        self._check_kind(X)
        if self._frame is None:
            return _float32(validate_data(self, X, dtype="numeric", reset=False)), None
        table = table_of(X)
        if table is None:
            raise MarioError(f"this Embedder was fitted on a table; X must be one too, got {type(X).__name__}")
        return self._frame.features(table), self._frame.domains(table)

    # Files ------------------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write a model folder, which ``mario embed`` and ``mario predict`` read if it was fitted on a graph."""
        check_is_fitted(self)
        home = check_path("folder", folder).expanduser()
        content = {
            "format": _FORMAT,
            "params": self.get_params(deep=False),
            "classes": self._known,
            "feature_names": _listed(getattr(self, "feature_names_in_", None)),
            "features": self.n_features_in_,
            "rows": self._rows is not None,
            "domains": None if self._rows is None else self._rows.domains,
            "frame": None if self._frame is None else {"label": self._frame.label, "domain": self._frame.domain},
        }
        try:
            json.dumps(content)
        except (TypeError, ValueError) as error:
            raise MarioError(f"settings and labels must be plain values to be saved ({error})") from None
        write_json(home / _STATE, content)
        if self._rows is not None:
            write_tensors(home / _ROWS, {"rows": torch.from_numpy(self._rows.rows)}, {"mario_rows": "1"})
        if self._frame is not None:
            self._frame.plan.save(home / _PLAN)
        self._model.write(home)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Embedder":
        """The Embedder in a folder of :meth:`save` or of ``mario fit``, which must stay until it is saved again."""
        found = ModelFolder.read(check_path("folder", folder))
        state = found.path / _STATE
        written: Any = read_json(state) if state.exists() else {"format": _FORMAT, "params": {}, "rows": False}
        try:
            if written["format"] != _FORMAT:
                raise ValueError(f"it has format {written['format']}")
            made = cls(**written["params"])
            made.n_features_in_ = int(written.get("features", found.about.graph.features))
            if written.get("feature_names") is not None:
                made.feature_names_in_ = np.asarray([str(name) for name in written["feature_names"]], dtype=object)
            made._rows, made._frame, made._model = None, None, _Saved(found)
            if written.get("frame") is not None:
                from mario.graphs.tables.features import FeaturePlan  # needs pyarrow

                frame = written["frame"]
                made._frame = Frame(FeaturePlan.load(found.path / _PLAN), str(frame["label"]), str(frame["domain"]))
            if written["rows"]:
                _, tensors = read_safetensors(found.path / _ROWS, "mario_rows")
                made._rows = RowGraph(
                    np.asarray(tensors["rows"].numpy(), np.float32),
                    made.graph,
                    check_count("n_neighbors", made.n_neighbors),
                    written["domains"],
                )
            made._know(found.model(), found.about, found.head(), written.get("classes"))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise MarioError(f"{state} is damaged, or of another version of mario ({error})") from None
        return made

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


def _labeled(given: Given, y: Any, domain: str | None, seed: int) -> Source:
    """A graph with the labels ``y`` in place of its own; with its own if ``y`` is ``None`` or has no classes."""
    if isinstance(given, Data):
        return read_source(_with_labels(given, y), domain=domain, seed=seed)
    source = given if isinstance(given, Source) else read_source(given, domain=domain, seed=seed)
    data = _with_labels(source.data, y)
    if data is source.data:
        return source
    return dataclasses.replace(source, data=with_masks(data, seed), class_names=tuple(data.class_names))


def _with_labels(data: Data, y: Any) -> Data:
    if y is None:
        return data
    labels = column_or_1d(np.asarray(y, object) if isinstance(y, list) and None in y else y, warn=True)
    count = int(data.x.size(0))
    if len(labels) != count:
        raise MarioError(f"y has {len(labels)} labels for {count} rows")
    if labels.dtype.kind == "O":
        missing = np.array([label is None or label != label for label in labels], bool)
    else:
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(count, bool)
    if labels.dtype.kind in "iuf":
        missing |= labels == -1
    there = labels[~missing]
    if missing.all() or type_of_target(list(there) if there.dtype.kind == "O" else there) not in _CLASSES:
        return data
    classes, codes = np.unique(there.astype(str) if there.dtype.kind == "O" else there, return_inverse=True)
    data = copy.copy(data)
    data.y = torch.full((count,), -1)
    data.y[torch.from_numpy(~missing)] = torch.from_numpy(codes.astype(np.int64))
    data.num_classes, data.class_names, data.classes = len(classes), [str(name) for name in classes], classes.tolist()
    return data


class _Concluded:
    """A model of a fit in this process."""

    def __init__(self, result: Result) -> None:
        self.result = result

    def write(self, home: Path) -> ModelFolder:
        return write_model(self.result, home)

    @contextmanager
    def plan(self) -> Iterator[Path | None]:
        """The file with the feature plan of the graph, if it has one."""
        home = self.result.source.folder
        yield home / PLAN if home is not None and (home / PLAN).is_file() else None


class _Saved:
    """A model in a folder."""

    def __init__(self, folder: ModelFolder) -> None:
        self.folder = folder

    def write(self, home: Path) -> ModelFolder:
        if home.resolve() != self.folder.path.resolve():
            for name in (*self.folder.about.files, CARD, ABOUT):  # what makes it a model last
                there = self.folder.path / name
                if not there.is_file():
                    raise MarioError(f"{there} is gone: the folder that an Embedder was loaded from must stay")
                write_whole(home / name, lambda target, there=there: shutil.copyfile(there, target))  # type: ignore[misc]
        return ModelFolder.read(home)

    @contextmanager
    def plan(self) -> Iterator[Path | None]:
        yield self.folder.plan


class _Content:
    """A model in memory, as the files of its folder."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def write(self, home: Path) -> ModelFolder:
        for name in sorted(self.files, key=lambda name: name == ABOUT):
            _write_bytes(home / name, self.files[name])
        return ModelFolder.read(home)

    @contextmanager
    def plan(self) -> Iterator[Path | None]:
        with tempfile.TemporaryDirectory() as home:
            if PLAN in self.files:
                _write_bytes(Path(home) / PLAN, self.files[PLAN])
            yield Path(home) / PLAN if PLAN in self.files else None


_Model = _Concluded | _Saved | _Content


def _write_bytes(path: Path, content: bytes) -> None:
    def write(target: str) -> None:
        Path(target).write_bytes(content)

    write_whole(path, write)


def _listed(names: Any) -> list[str] | None:
    return None if names is None else [str(name) for name in names]
