"""Linear classifiers on frozen embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from mario.arguments import check_count, check_positive, check_seed
from mario.errors import MarioError
from mario.evaluation.adam import TRANSPOSED, adam_layers
from mario.evaluation.optimum import logistic_optimum
from mario.evaluation.penalty import check_blocks, choose_on_held_out, choose_penalty
from mario.graphs import BlockMatrix

_LARGEST = 1e30  # liblinear refuses larger numbers

SOLVERS = ("adam", "optimum")

BYTES = 2**28
"""Memory of the probes that are trained together, unless a single one needs more."""

_CLASSES = 2**20

ROWS = 2**16
"""Predictions are computed in blocks of this many rows."""
_LARGEST = 1e18  # Adam squares gradients, which are as large as the embeddings


@dataclass(frozen=True, kw_only=True)
class LinearProbe:
    """One linear layer trained on the training nodes: by Adam, the paper's protocol, or to its optimum.

    With ``solver="adam"`` the mean cross-entropy of all training nodes takes ``epochs`` steps, and the last one counts;
    the default is that of MARIO's released code, 100 passes over ten subgraphs. A tenth of them leaves the layer far
    from its optimum if embeddings are small.
    With ``solver="optimum"`` it is brought to its minimum, with a penalty of l2/2 ‖W‖², by a second-order method;
    ``epochs``, ``lr`` and the seed then have no effect.

    Example:
        >>> z = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
        >>> LinearProbe(epochs=50, lr=0.1).fit_predict(z, torch.tensor([0, 0, 1, 1]), z, 2).argmax(1)
        tensor([0, 0, 1, 1])
        >>> LinearProbe(solver="optimum").fit_predict(z, torch.tensor([0, 0, 1, 1]), z, 2).argmax(1)
        tensor([0, 0, 1, 1])
    """

    epochs: int = 1000
    lr: float = 1e-2
    solver: str = "adam"
    l2: float = 1e-4

    def __post_init__(self) -> None:
        if self.solver not in SOLVERS:
            raise MarioError(f"solver must be one of {', '.join(SOLVERS)}, got '{self.solver}'")
        check_positive("l2", self.l2)  # separable classes have no optimum without it
        check_positive("lr", self.lr)
        check_count("epochs", self.epochs, low=0)

    def fit_predict(self, z: Tensor, y: Tensor, z_all: Tensor, classes: int, seed: int = 0) -> Tensor:
        """Logits of ``z_all`` by a layer trained on ``z`` and ``y``; ``seed`` draws its first weights."""
        return self.fit_predict_many([z], y, [z_all], classes, [seed])[0]

    def fit_predict_many(
        self, zs: Sequence[Tensor], y: Tensor, zs_all: Sequence[Tensor], classes: int, seeds: Sequence[int]
    ) -> list[Tensor]:
        """What :meth:`fit_predict` gives for each seed, but for rounding, with the work shared.

        Args:
            zs: Training rows, of an embedding for each seed, or of one for all seeds.
            y: Labels of the training rows, the same for all.
            zs_all: The rows to predict, of the same embeddings.
            classes: Number of classes.
            seeds: For the probes. With ``solver="optimum"`` a probe starts from the result of the one before it.
        """
        check_many(zs, y, zs_all, classes, seeds)
        with torch.autocast(zs[0].device.type, enabled=False):
            return self._train(zs, y, zs_all, classes, seeds)

    def _train(
        self, zs: Sequence[Tensor], y: Tensor, zs_all: Sequence[Tensor], classes: int, seeds: Sequence[int]
    ) -> list[Tensor]:
        dtype = torch.float64 if zs[0].dtype == torch.float64 else torch.float32
        if self.solver == "optimum":
            return self._optimum(zs, y, zs_all, classes, len(seeds), dtype)
        n, d = zs[0].shape
        numbers = 2 * n * (classes + (d if len(zs) > 1 else 0))
        together = max(1, BYTES // (numbers * dtype.itemsize))
        if len(zs) > 1 and n * d > TRANSPOSED:  # what one step reads is gone from the cache before the next
            together = 1
        logits: list[Tensor] = []
        for first in range(0, len(seeds), together):
            some = slice(first, first + together)
            if len(zs) == 1:
                layers = adam_layers(zs[0][None].to(dtype), y, classes, [seeds[some]], epochs=self.epochs, lr=self.lr)
                embeddings: Sequence[Tensor] = zs_all
            else:
                stacked = torch.stack([z.to(dtype) for z in zs[some]])
                each = [[seed] for seed in seeds[some]]
                layers = adam_layers(stacked, y, classes, each, epochs=self.epochs, lr=self.lr)
                embeddings = zs_all[some]
            for z_all, weight, bias in zip(embeddings, *layers, strict=True):
                logits += _predict(z_all, weight, bias)
        return logits

    def _optimum(
        self, zs: Sequence[Tensor], y: Tensor, zs_all: Sequence[Tensor], classes: int, count: int, dtype: torch.dtype
    ) -> list[Tensor]:
        logits: list[Tensor] = []
        layer = None
        for z, z_all in zip(zs, zs_all, strict=True):
            layer = logistic_optimum(z, y, classes, l2=self.l2, start=layer)
            logits += _predict(z_all, *(part[None].to(dtype) for part in layer))
        return logits + [logits[0].clone() for _ in range(count - len(zs))]


@dataclass(frozen=True, kw_only=True)
class LiblinearProbe:
    """ℓ2-regularized logistic regression, C chosen on held-out training rows; the paper's for whole graphs.

    liblinear for two classes; it has no multinomial loss, so lbfgs for more.

    Example:
        >>> z = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
        >>> LiblinearProbe(grid=(1.0,)).fit_predict(z, torch.tensor([0, 0, 1, 1]), z, 2).argmax(1)
        tensor([0, 0, 1, 1])
    """

    grid: tuple[float, ...] = tuple(2.0**k for k in range(-10, 11))
    held_out: float = 0.2

    def __post_init__(self) -> None:
        if not isinstance(self.grid, list | tuple) or not self.grid:
            raise MarioError(f"grid must hold values of C above 0, got {self.grid!r}")
        for c in self.grid:
            check_positive("grid must hold values of C above 0; one of them", c)
        number = isinstance(self.held_out, int | float) and not isinstance(self.held_out, bool)
        if not number or not 0 <= self.held_out < 1:
            raise MarioError(f"held_out must be a share of the rows from 0 to below 1, got {self.held_out}")

    def fit_predict(self, z: Tensor, y: Tensor, z_all: Tensor, classes: int, seed: int = 0) -> Tensor:
        """Logits of ``z_all``; C is the smallest of ``grid`` with the best accuracy on the held-out rows."""
        check_many([z], y, [z_all], classes, [seed])
        _check_finite(z_all)
        order = np.random.default_rng(seed).permutation(len(y))
        cut = max(1, int(len(y) * (1 - self.held_out)))
        fitted, held = order[:cut], order[cut:]
        if float(z.abs().max()) >= _LARGEST:
            raise MarioError(f"logistic regression needs embeddings below {_LARGEST:g}; scale them")
        x, truth = z.numpy(), y.numpy()
        if len(np.unique(truth)) < 2:
            raise MarioError(f"logistic regression needs training nodes of two classes, all are of class {truth[0]}")
        if len(held) == 0 or len(np.unique(truth[fitted])) < 2:
            fitted = held = order

        def model(c: float, rows: np.ndarray) -> LogisticRegression:
            solver = "liblinear" if classes == 2 else "lbfgs"
            return LogisticRegression(C=c, solver=solver, max_iter=1000, random_state=seed % 2**32).fit(
                x[rows], truth[rows]
            )

        accuracies = [model(c, fitted).score(x[held], truth[held]) for c in self.grid]
        best = model(self.grid[int(np.argmax(accuracies))], order)
        logits = torch.full((len(z_all), classes), -torch.inf)
        found = torch.from_numpy(best.decision_function(z_all.numpy())).float().view(len(z_all), -1)
        if found.size(1) == 1:  # of two classes scikit-learn gives the log-odds of the second
            found = F.pad(found, (1, 0))
        logits[:, torch.from_numpy(best.classes_)] = found
        return logits

    def fit_predict_many(
        self, zs: Sequence[Tensor], y: Tensor, zs_all: Sequence[Tensor], classes: int, seeds: Sequence[int]
    ) -> list[Tensor]:
        """What :meth:`fit_predict` gives for each seed and its embedding, or the one embedding that all share."""
        check_many(zs, y, zs_all, classes, seeds)
        pairs = zip(zs, zs_all, strict=True) if len(zs) > 1 else [(zs[0], zs_all[0])] * len(seeds)
        return [self.fit_predict(z, y, z_all, classes, seed) for (z, z_all), seed in zip(pairs, seeds, strict=True)]


@dataclass(frozen=True)
class Chosen:
    """Logits ``[n, classes]`` of a probe whose penalty a validation set chose, and the temperature fitted on that."""

    logits: Tensor
    temperature: float


@dataclass(frozen=True, kw_only=True)
class LogisticProbe:
    """ℓ2-regularized logistic regression on blocks of columns as they are, C chosen on validation sets.

    It is the head of :class:`~mario.evaluation.BlockClassifier`. :func:`~mario.evaluation.evaluate` gives it the
    validation sets of the graph: ID scores are of the C best on ``id_val``, OOD scores of the C best on ``ood_val``. If
    one is missing, C is chosen on held-out training rows. The seed has no effect except on which rows are held out.

    Args:
        grid: Values of C as scikit-learn's; by default 4⁻³ to 4⁵ divided by the mean square norm of a centered row.
        held_out: Share of the training rows that C is chosen on where there is no validation set.

    Example:
        >>> z = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
        >>> LogisticProbe().fit_predict(z, torch.tensor([0, 0, 1, 1]), z, 2).argmax(1)
        tensor([0, 0, 1, 1])
    """

    grid: tuple[float, ...] | None = None
    held_out: float = 0.2

    def __post_init__(self) -> None:
        if self.grid is not None:
            if not isinstance(self.grid, list | tuple) or not self.grid:
                raise MarioError(f"grid must hold values of C above 0, got {self.grid!r}")
            for c in self.grid:
                check_positive("grid, a value of C,", c)
        check_positive("held_out", self.held_out)
        if self.held_out >= 1:
            raise MarioError(f"held_out must be a share of the rows between 0 and 1, got {self.held_out}")

    def fit_predict(self, z: Tensor, y: Tensor, z_all: Tensor, classes: int, seed: int = 0) -> Tensor:
        """Logits of ``z_all``, with C chosen on held-out training rows."""
        check_many([z], y, [z_all], classes, [seed])
        _check_finite(z_all)
        found = choose_on_held_out(
            BlockMatrix.of(z), y, classes, grid=self.grid, held_out=self.held_out, seed=seed
        ).logits(BlockMatrix.of(z_all))
        return found.to(torch.float64 if z.dtype == torch.float64 else torch.float32)

    def fit_predict_many(
        self, zs: Sequence[Tensor], y: Tensor, zs_all: Sequence[Tensor], classes: int, seeds: Sequence[int]
    ) -> list[Tensor]:
        """What :meth:`fit_predict` gives for each seed and its embedding, or the one embedding that all share."""
        check_many(zs, y, zs_all, classes, seeds)
        pairs = zip(zs, zs_all, strict=True) if len(zs) > 1 else [(zs[0], zs_all[0])] * len(seeds)
        return [self.fit_predict(z, y, z_all, classes, seed) for (z, z_all), seed in zip(pairs, seeds, strict=True)]

    def fit_choose(
        self,
        z: BlockMatrix,
        train: tuple[Tensor, Tensor],
        validations: Sequence[tuple[Tensor, Tensor] | None],
        classes: int,
        *,
        metric: str = "accuracy",
        seed: int = 0,
    ) -> list[Chosen]:
        """Logits of all rows of ``z`` for each validation set, by the C that is best on it.

        Args:
            z: Embeddings in blocks.
            train: Ids or mask of the training rows, and their labels.
            validations: Ids and labels of each validation set; ``None`` for held-out training rows in its place.
            classes: Number of classes.
            metric: What C is chosen by.
            seed: For the rows that are held out.
        """
        check_blocks(z)
        rows, y = z.rows(train[0]), train[1]
        known = y.unique()
        usable = [one if one is not None and bool(torch.isin(one[1], known).any()) else None for one in validations]
        given = [(z.rows(one[0]), one[1]) for one in usable if one is not None]
        found = iter(choose_penalty(rows, y, classes, given, metric=metric, grid=self.grid) if given else [])
        other = None
        if None in usable:
            other = choose_on_held_out(
                rows, y, classes, metric=metric, grid=self.grid, held_out=self.held_out, seed=seed
            )
        chosen = [other if one is None else next(found) for one in usable]
        logits = {one.C: one.logits(z).float() for one in chosen if one is not None}
        return [Chosen(logits[one.C], one.temperature) for one in chosen if one is not None]


Probe = LinearProbe | LiblinearProbe | LogisticProbe


def check_many(zs: Sequence[Tensor], y: Tensor, zs_all: Sequence[Tensor], classes: int, seeds: Sequence[int]) -> None:
    """Raise a :class:`MarioError` unless embeddings, labels and seeds fit together."""
    for parts in (zs, zs_all):
        if not isinstance(parts, list | tuple) or not all(map(_is_matrix, parts)):
            raise MarioError("a probe needs embeddings that are dense [nodes, width] matrices of real numbers, a list")
    for seed in seeds:
        check_seed("seed", seed, below=2**63)
    check_count("classes", classes, high=_CLASSES)
    if len(zs) != len(zs_all) or len(zs) not in (1, len(seeds)) or len(seeds) == 0:
        raise MarioError(
            f"probes need an embedding for each seed, or one for all: got {len(zs)} for training and {len(zs_all)} to "
            f"predict, for {len(seeds)} seeds"
        )
    if len({z.shape for z in zs}) > 1:
        raise MarioError(f"probes trained together need embeddings of one shape, got {[tuple(z.shape) for z in zs]}")
    if any(z.size(1) != z_all.size(1) for z, z_all in zip(zs, zs_all, strict=True)):
        given = [(tuple(z.shape), tuple(z_all.shape)) for z, z_all in zip(zs, zs_all, strict=True)]
        raise MarioError(f"a probe predicts rows as wide as those it is trained on, got {given[0]}")
    if not isinstance(y, Tensor) or y.dtype != torch.int64 or y.dim() != 1 or y.is_meta:
        kind = f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, Tensor) else type(y).__name__
        raise MarioError(f"y must hold one int64 class for each training row, got {kind}")
    if any(len(z) != len(y) for z in zs):
        raise MarioError(f"a probe needs a label for each training row: got {len(y)} for {len(zs[0])} rows")
    if len(y) == 0:
        raise MarioError("a probe needs labeled training nodes, there are none")
    if int(y.min()) < 0 or int(y.max()) >= classes:
        raise MarioError(f"labels must lie in 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}")
    for z in zs:
        _check_finite(z)
        size = max(float(rows.abs().max()) for rows in z.split(ROWS)) if z.numel() else 0.0
        if size > _LARGEST:
            raise MarioError(f"the embeddings have entries as large as {size:.0e}, whose squares overflow: scale them")


def _is_matrix(z: object) -> bool:
    if not isinstance(z, Tensor) or z.layout != torch.strided or z.is_meta or z.dim() != 2:
        return False
    return z.is_floating_point() and z.size(1) > 0


def _check_finite(z: Tensor) -> None:
    if not all(torch.isfinite(rows).all() for rows in z.split(ROWS)):
        raise MarioError("the embeddings hold NaN or infinity: training diverged, try a lower lr")


def _predict(z: Tensor, weight: Tensor, bias: Tensor) -> list[Tensor]:
    """Logits of ``z`` by each of the layers ``weight`` ``[s, classes, d]`` and ``bias``; ``z`` is read once."""
    count, classes, _ = weight.shape
    across, shift = weight.flatten(0, 1).T, bias.flatten()
    logits = weight.new_empty(count, len(z), classes)
    for rows, found in zip(z.split(ROWS), logits.split(ROWS, 1), strict=True):
        found.copy_(torch.addmm(shift, rows.to(weight.dtype), across).view(-1, count, classes).transpose(0, 1))
    # An embedding that is not finite shows in the logits; another look at all of it is seldom needed.
    if not torch.isfinite(logits).all():
        _check_finite(z)
    return list(logits.unbind())
