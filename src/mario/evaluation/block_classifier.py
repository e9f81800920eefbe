"""A scikit-learn classifier of embeddings in blocks, to be used downstream."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import Tensor
from torch.nn.functional import pad

from mario.arguments import check_seed
from mario.errors import MarioError
from mario.evaluation.calibration import calibration_error, fit_temperature
from mario.evaluation.metrics import find_metric
from mario.evaluation.penalty import Regression, check_blocks, choose_penalty, fit_regression, split_rows
from mario.files import write_tensors
from mario.graphs import Block, BlockMatrix
from mario.graphs.paging import count_not_finite
from mario.graphs.sparse import csr
from mario.untrusted import read_safetensors

Array = np.ndarray[Any, Any]
FUSIONS = ("concatenate", "late")
_ALONE = "z"
"""The name of the block that a matrix becomes."""


class NotFittedYetError(MarioError, NotFittedError):  # type: ignore[misc]
    """A classifier that was not fitted; scikit-learn's own error, too."""


class WrongTypeError(MarioError, TypeError):
    """Entries that are no numbers; a TypeError, too, as scikit-learn's checks require."""


class BlockClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """ℓ2-regularized logistic regression on named blocks of columns, C and calibration from validation rows.

    Blocks are used as they are: not whitened, not standardized. Sparse and wide blocks are only multiplied with and
    never written out. C is scikit-learn's: the optimum is that of ``sklearn.linear_model.LogisticRegression``.

    With ``fusion="concatenate"`` there is one regression on all columns. With ``fusion="late"`` each block has a
    regression of its own, with its own C and temperature, and their calibrated log-probabilities are averaged. Either
    is linear in the columns.

    Args:
        fusion: ``"concatenate"`` or ``"late"``.
        C: Inverse of the strength of the penalty; ``None`` to choose it.
        grid: The values of C to choose from; by default 4⁻³ to 4⁵, divided by the mean square norm of a centered row.
            Larger ones are left out once the score has been below its best three times in a row. The smallest of
            several best ones is taken.
        metric: What C is chosen by, a name in :data:`mario.evaluation.METRICS`.
        held_out: Share of the rows to choose C and the temperature on if :meth:`fit` is given no validation rows.
        seed: For the rows that are held out.

    Attributes:
        classes_: The labels, sorted.
        C_: The C used; for late fusion a dict with that of each block.
        coef_: Weights ``[classes, columns]``, or ``[1, columns]`` for two classes, as in scikit-learn; a dict of these,
            by the name of the block, if ``Z`` had names.
        intercept_: Biases ``[classes]``, or ``[1]``.
        temperature_: What :meth:`decision_function` is divided by for probabilities.
        n_features_in_: Number of columns of all blocks.

    Example:
        >>> import mario
        >>> from mario.evaluation import BlockClassifier
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> model = mario.RandomInit(hidden_channels=16, epochs=1).fit(data)
        >>> z = {"x": data.x, "graph": model.transform(data)}
        >>> train, val = ({k: v[m] for k, v in z.items()} for m in (data.train_mask, data.id_val_mask))
        >>> head = BlockClassifier(fusion="late")
        >>> head = head.fit(train, data.y[data.train_mask], validation=(val, data.y[data.id_val_mask]))
        >>> sorted(head.coef_), head.predict(val).shape
        (['graph', 'x'], (140,))
    """

    def __init__(
        self,
        *,
        fusion: str = "concatenate",
        C: float | None = None,
        grid: Sequence[float] | None = None,
        metric: str = "accuracy",
        held_out: float = 0.2,
        seed: int = 0,
    ) -> None:
        self.fusion = fusion
        self.C = C
        self.grid = grid
        self.metric = metric
        self.held_out = held_out
        self.seed = seed

    def fit(self, Z: Any, y: Any, validation: tuple[Any, Any] | None = None) -> "BlockClassifier":
        """Fit to the rows of ``Z`` with labels ``y``.

        Args:
            Z: A :class:`mario.graphs.BlockMatrix` such as ``method.blocks(data)``, a matrix (array, tensor, data frame
                or sparse matrix), or a dict of matrices.
            y: A label per row: numbers or texts.
            validation: Rows like ``Z`` and their labels, to choose C and the temperature on. Without them, the same
                share of each class is held out for that, and the regression is fitted again to all rows.
        """
        self._check_settings()
        z, named = self._blocks(Z, fitting=True)
        labels = _labels(y, z.shape[0])
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise MarioError(f"y holds one class, {self.classes_[0]}: a classifier needs rows of two classes or more")
        self._widths = {name: block.shape[1] for name, block in z.items()}
        self._named, self.n_features_in_ = named, z.shape[1]
        target, count = torch.from_numpy(codes.astype(np.int64)), len(self.classes_)
        rows, fitted, held = z, target, None
        if validation is not None:
            held, truth = self._labeled(*_pair(validation), "validation")
        else:
            some, others = split_rows(target, self.held_out, self.seed)
            rows, fitted, held, truth = z.rows(some), target[some], z.rows(others), target[others]
        parts = [list(z)] if self.fusion == "concatenate" else [[name] for name in z]
        found = {}
        for names in parts:
            one = self._fit_part(_only(rows, names), fitted, count, _only(held, names), truth)
            if validation is None:
                again = fit_regression(_only(z, names), target, count, one.C, start=one)
                one = replace(again, temperature=one.temperature)
            found[tuple(names)] = one
        self._set(found)
        self.temperature_ = fit_temperature(self._logits(held), truth)
        return self

    def _fit_part(self, z: BlockMatrix, y: Tensor, classes: int, held: BlockMatrix, truth: Tensor) -> Regression:
        if self.C is None:
            return choose_penalty(z, y, classes, [(held, truth)], metric=self.metric, grid=self.grid)[0]
        found = fit_regression(z, y, classes, float(self.C))
        return replace(found, temperature=fit_temperature(found.logits(held), truth))

    def _set(self, found: Mapping[tuple[str, ...], Regression]) -> None:
        """Keep the mean of calibrated logits, which is linear; of a single regression, its own logits."""
        late = self.fusion == "late"
        coef: dict[str, Array] = {}
        intercept = np.zeros(1)
        for names, one in found.items():
            scale = 1 / (one.temperature * len(found)) if late else 1.0
            weight, bias = one.weight * scale, one.bias * scale
            if len(self.classes_) == 2:
                weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
            for name, columns in zip(names, weight.split([self._widths[name] for name in names], 1), strict=True):
                coef[name] = columns.contiguous().numpy()
            intercept = intercept + bias.numpy()
        self.coef_ = coef if self._named else coef[_ALONE]
        self.intercept_ = intercept
        chosen = {names[0]: one.C for names, one in found.items()}
        self.C_ = chosen if late and self._named else next(iter(chosen.values()))

    def decision_function(self, Z: Any) -> Array:
        """Logits ``[rows, classes]`` before calibration; of two classes, the log-odds ``[rows]`` of the second."""
        logits = self._logits(self._checked(Z))
        return (logits[:, 1] if len(self.classes_) == 2 else logits).numpy()

    def predict_proba(self, Z: Any) -> Array:
        """Calibrated probabilities ``[rows, classes]``."""
        return self._probabilities(self._checked(Z)).numpy()

    def predict(self, Z: Any) -> Array:
        """The most probable label of each row."""
        logits = self._logits(self._checked(Z))
        return np.asarray(self.classes_[logits.argmax(1).numpy()])

    def calibration(self, Z: Any, y: Any) -> dict[str, float]:
        """How far the calibrated probabilities are off on these rows.

        ``expected_calibration_error`` is the mean distance of confidence and accuracy over 15 bins of the confidence.
        ``log_loss`` is the mean of −log p of the true label. A label that was not seen in training has p = 0, which
        counts as the smallest number above zero that a double can be one off by.
        """
        z = self._checked(Z)
        _, truth = self._labeled(z, y, "y")
        p = self._probabilities(z)
        seen = truth < len(self.classes_)
        own = torch.zeros(len(truth), dtype=torch.float64)
        own[seen] = p[seen].gather(1, truth[seen][:, None])[:, 0]
        loss = -own.clamp_(min=torch.finfo(torch.float64).eps).log().mean()
        return {"expected_calibration_error": calibration_error(p, truth), "log_loss": float(loss)}

    def save(self, path: Path | str) -> None:
        """Write the fitted classifier to one safetensors file, for :meth:`load`."""
        self._check_fitted()
        kind = "text" if self.classes_.dtype.kind in "OU" else self.classes_.dtype.name
        header = {
            "params": {**self.get_params(), "grid": None if self.grid is None else [float(C) for C in self.grid]},
            "classes": [str(label) if kind == "text" else label.item() for label in self.classes_],
            "dtype": kind,
            "C": self.C_,
            "temperature": self.temperature_,
            "blocks": list(self._widths),
            "named": self._named,
            "columns": list(map(str, getattr(self, "feature_names_in_", []))),
        }
        tensors = {f"coef {i}": torch.from_numpy(part) for i, part in enumerate(self._coef().values())}
        tensors["intercept"] = torch.from_numpy(self.intercept_)
        write_tensors(Path(path), tensors, {"mario_block_classifier": json.dumps(header)})

    @classmethod
    def load(cls, path: Path | str) -> "BlockClassifier":
        """The classifier that :meth:`save` wrote to ``path``. Reading it runs no code from the file."""
        header, tensors = read_safetensors(path, "mario_block_classifier")
        try:
            model = cls(**header["params"])
            model.grid = None if model.grid is None else tuple(model.grid)
            model._check_settings()
            model._restore(header, tensors)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = str(error).splitlines()[-1] if str(error) else type(error).__name__
            raise MarioError(f"{path} was written by another version of mario, or it is damaged ({reason})") from None
        return model

    def _restore(self, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        """Set what :meth:`fit` sets; a ValueError or TypeError if it does not fit together."""
        names, classes, kind = list(header["blocks"]), list(header["classes"]), header["dtype"]
        if kind not in ("text", "bool") and np.dtype(kind).kind not in "iuf":
            raise TypeError(f"labels are of the type {kind}")
        if kind == "text" and not all(isinstance(label, str) for label in classes):
            raise TypeError("labels must be texts")
        self.classes_ = np.array(classes, dtype=None if kind == "text" else kind)
        coef = {name: tensors[f"coef {i}"] for i, name in enumerate(names)}
        intercept, rows = tensors["intercept"], 1 if len(classes) == 2 else len(classes)
        if len(classes) < 2 or len(np.unique(self.classes_)) != len(classes) or not names or len(coef) != len(names):
            raise ValueError("labels and blocks must be distinct")
        for part in (*coef.values(), intercept[None]):
            if part.dtype != torch.float64 or part.dim() != 2 or not torch.isfinite(part).all():
                raise ValueError("weights must be matrices of finite double-precision numbers")
        if any(len(part) != rows for part in coef.values()) or intercept.shape != (rows,):
            raise ValueError(f"weights must have {rows} rows")
        self.temperature_ = float(header["temperature"])
        if not 0 < self.temperature_ < np.inf:
            raise ValueError(f"temperature is {self.temperature_}")
        self._named, self._widths = bool(header["named"]), {name: part.size(1) for name, part in coef.items()}
        if not all(isinstance(name, str) for name in names) or (not self._named and names != [_ALONE]):
            raise ValueError("names of blocks must be texts")
        self.n_features_in_ = sum(self._widths.values())
        arrays = {name: part.numpy() for name, part in coef.items()}
        self.coef_ = arrays if self._named else arrays[_ALONE]
        self.intercept_, self.C_ = intercept.numpy(), header["C"]
        if header["columns"]:
            self.feature_names_in_ = np.array(header["columns"], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "temperature_")

    def _check_settings(self) -> None:
        if self.fusion not in FUSIONS:
            raise MarioError(f"fusion must be one of {', '.join(FUSIONS)}, got {self.fusion!r}")
        given = [] if self.C is None else [self.C]
        given += [] if self.grid is None else list(self.grid)
        if not all(isinstance(C, (int, float, np.number)) and 0 < C < np.inf for C in given) or self.grid in ((), []):
            raise MarioError(f"C must be a number above 0, and grid numbers above 0; got {self.C!r} and {self.grid!r}")
        find_metric(self.metric)
        if not isinstance(self.held_out, float) or not 0 < self.held_out < 1:
            raise MarioError(f"held_out must be a share of the rows between 0 and 1, got {self.held_out!r}")
        check_seed("seed", self.seed)

    def _check_fitted(self) -> None:
        if not hasattr(self, "temperature_"):
            raise NotFittedYetError("this BlockClassifier is not fitted yet: call fit(Z, y) first")

    def _checked(self, Z: Any) -> BlockMatrix:
        """``Z`` in blocks; they must be those that the classifier was fitted to."""
        self._check_fitted()
        z, named = self._blocks(Z, fitting=False)
        widths = {name: block.shape[1] for name, block in z.items()}
        if named != self._named or widths != self._widths:
            shown = widths if named else f"a matrix of {z.shape[1]} columns"
            due = self._widths if self._named else f"a matrix of {self.n_features_in_} columns"
            raise MarioError(f"this BlockClassifier was fitted to {due}, got {shown}")
        return BlockMatrix({name: z[name] for name in self._widths})

    def _labeled(self, Z: Any, y: Any, what: str) -> tuple[BlockMatrix, Tensor]:
        """Rows, and the place of their labels in ``classes_``; behind the last for one that is not there."""
        z, named = (Z, self._named) if isinstance(Z, BlockMatrix) else self._blocks(Z, fitting=False)
        widths = {name: block.shape[1] for name, block in z.items()}
        if named != self._named or widths != self._widths:
            raise MarioError(f"the rows of {what} must have the columns of Z, {self._widths}; got {widths}")
        labels = _labels(y, z.shape[0])
        place = {label: i for i, label in enumerate(self.classes_.tolist())}
        codes = [place.get(label, len(place)) for label in labels.tolist()]
        return BlockMatrix({name: z[name] for name in self._widths}), torch.tensor(codes)

    def _blocks(self, Z: Any, *, fitting: bool) -> tuple[BlockMatrix, bool]:
        """``Z`` in blocks, and whether they have names of the caller."""
        if isinstance(Z, BlockMatrix):
            check_blocks(Z)
            return Z, True
        if isinstance(Z, Mapping) and not sparse.issparse(Z):  # scipy's matrices by key are dicts
            if not Z or not all(isinstance(name, str) for name in Z):
                raise MarioError(f"Z must have blocks with names, got {list(Z)}")
            return BlockMatrix({name: Block(_matrix(part, f"block '{name}'")) for name, part in Z.items()}), True
        if isinstance(Z, Tensor):
            return BlockMatrix({_ALONE: Block(_matrix(Z, "Z"))}), False
        try:
            found = validate_data(self, Z, accept_sparse="csr", dtype=[np.float64, np.float32], reset=fitting)
        except TypeError as error:
            raise WrongTypeError(str(error)) from None
        except ValueError as error:
            raise MarioError(str(error)) from None
        return BlockMatrix({_ALONE: Block(_matrix(found, "Z"))}), False

    def _coef(self) -> dict[str, Array]:
        return self.coef_ if isinstance(self.coef_, dict) else {_ALONE: self.coef_}

    def _logits(self, z: BlockMatrix) -> Tensor:
        parts = [z[name].matmul(torch.from_numpy(weight).T.contiguous()) for name, weight in self._coef().items()]
        found = sum(parts[1:], parts[0]) + torch.from_numpy(self.intercept_)
        return pad(found, (1, 0)) if len(self.classes_) == 2 else found

    def _probabilities(self, z: BlockMatrix) -> Tensor:
        return (self._logits(z) / self.temperature_).softmax(1)


def _only(z: BlockMatrix, names: Sequence[str]) -> BlockMatrix:
    return BlockMatrix({name: z[name] for name in names})


def _pair(validation: Any) -> tuple[Any, Any]:
    if not isinstance(validation, (tuple, list)) or len(validation) != 2:
        raise MarioError(f"validation must be a pair of rows and labels, got {type(validation).__name__}")
    return validation[0], validation[1]


def _labels(y: Any, rows: int) -> Array:
    if y is None:
        raise MarioError("BlockClassifier requires y to be passed, but the target y is None")
    try:
        labels = column_or_1d(y.detach().cpu().numpy() if isinstance(y, Tensor) else y, warn=True)
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y holds NaN or infinity")
        check_classification_targets(labels)
    except (ValueError, TypeError) as error:
        raise MarioError(str(error)) from None
    if len(labels) != rows:
        raise MarioError(f"y must have a label per row: got {len(labels)} labels for {rows} rows (inconsistent length)")
    return np.asarray(labels)


def _matrix(part: Any, what: str) -> Tensor:
    """A finite dense or sparse CSR matrix of floating-point numbers."""
    if sparse.issparse(part):
        part = part.tocsr()
        if not part.has_sorted_indices or not part.has_canonical_format:
            part = part.copy()
            part.sum_duplicates()
        crow, col = (torch.from_numpy(a.astype(np.int64)) for a in (part.indptr, part.indices))
        values = part.data if part.data.dtype.kind == "f" else part.data.astype(np.float64)
        found = csr(crow, col, torch.from_numpy(np.array(values)), part.shape)
    elif isinstance(part, Tensor):
        found = part.detach().cpu()
        if found.layout not in (torch.strided, torch.sparse_csr):
            raise MarioError(f"{what} must be dense or sparse CSR, got {found.layout}; use to_sparse_csr()")
    else:
        try:
            array = np.asarray(part)
            array = array if array.dtype.kind == "f" and array.dtype.itemsize in (4, 8) else array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise MarioError(f"{what} must be a matrix of numbers ({error})") from None
        found = torch.from_numpy(array if array.flags.writeable and array.flags.c_contiguous else array.copy())
    if not found.is_floating_point():
        found = found.double()
    if found.dim() != 2 or found.size(0) == 0 or found.size(1) == 0:
        raise MarioError(f"{what} must be a matrix with rows and columns, got the shape {tuple(found.shape)}")
    if bad := count_not_finite(found.values() if found.layout == torch.sparse_csr else found):
        raise MarioError(f"{what} holds {bad} NaN or infinite entries")
    return found
