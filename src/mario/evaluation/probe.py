"""Linear classifiers on frozen embeddings."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from mario.errors import MarioError


@dataclass(frozen=True, kw_only=True)
class LinearProbe:
    """One linear layer trained by Adam on the training nodes, the paper's protocol; the last epoch counts.

    Example:
        >>> z = torch.tensor([[-1.0], [-2.0], [1.0], [2.0]])
        >>> LinearProbe(epochs=50, lr=0.1).fit_predict(z, torch.tensor([0, 0, 1, 1]), z, 2).argmax(1)
        tensor([0, 0, 1, 1])
    """

    epochs: int = 100
    lr: float = 1e-2

    def fit_predict(self, z: Tensor, y: Tensor, z_all: Tensor, classes: int, seed: int = 0) -> Tensor:
        """Logits of ``z_all`` by a layer trained on ``z`` and ``y``; ``seed`` draws its first weights."""
        _check(z, y, z_all, classes)
        generator = torch.Generator().manual_seed(seed)
        bound = z.size(1) ** -0.5
        weight = torch.empty(classes, z.size(1)).uniform_(-bound, bound, generator=generator).requires_grad_()
        bias = torch.empty(classes).uniform_(-bound, bound, generator=generator).requires_grad_()
        optimiser = torch.optim.Adam([weight, bias], lr=self.lr)
        for _ in range(self.epochs):
            optimiser.zero_grad(set_to_none=True)
            F.cross_entropy(F.linear(z, weight, bias), y).backward()
            optimiser.step()
        return F.linear(z_all, weight.detach(), bias.detach())


@dataclass(frozen=True, kw_only=True)
class LogisticProbe:
    """ℓ2-regularised logistic regression, C chosen on held-out training rows; the paper's for whole graphs.

    liblinear for two classes; it has no multinomial loss, so lbfgs for more.
    """

    grid: tuple[float, ...] = tuple(2.0**k for k in range(-10, 11))
    held_out: float = 0.2

    def fit_predict(self, z: Tensor, y: Tensor, z_all: Tensor, classes: int, seed: int = 0) -> Tensor:
        """Logits of ``z_all``; C is the smallest of ``grid`` with the best accuracy on the held-out rows."""
        _check(z, y, z_all, classes)
        order = np.random.default_rng(seed).permutation(len(y))
        cut = max(1, int(len(y) * (1 - self.held_out)))
        fitted, held = order[:cut], order[cut:]
        x, truth = z.numpy(), y.numpy()
        if len(np.unique(truth)) < 2:
            raise MarioError(f"logistic regression needs training nodes of two classes, all are of class {truth[0]}")
        if len(held) == 0 or len(np.unique(truth[fitted])) < 2:
            fitted = held = order

        def model(c: float, rows: np.ndarray) -> LogisticRegression:
            solver = "liblinear" if classes == 2 else "lbfgs"
            return LogisticRegression(C=c, solver=solver, max_iter=1000, random_state=seed).fit(x[rows], truth[rows])

        accuracies = [model(c, fitted).score(x[held], truth[held]) for c in self.grid]
        best = model(self.grid[int(np.argmax(accuracies))], order)
        logits = torch.full((len(z_all), classes), -torch.inf)
        found = torch.from_numpy(best.decision_function(z_all.numpy())).float().view(len(z_all), -1)
        if found.size(1) == 1:  # of two classes scikit-learn gives the log-odds of the second
            found = F.pad(found, (1, 0))
        logits[:, torch.from_numpy(best.classes_)] = found
        return logits


Probe = LinearProbe | LogisticProbe


def _check(z: Tensor, y: Tensor, z_all: Tensor, classes: int) -> None:
    if len(y) == 0:
        raise MarioError("a probe needs labelled training nodes, there are none")
    if not (torch.isfinite(z).all() and torch.isfinite(z_all).all()):
        raise MarioError("the embeddings hold NaN or infinity: training diverged, try a lower lr")
    if int(y.min()) < 0 or int(y.max()) >= classes:
        raise MarioError(f"labels must lie in 0 to {classes - 1}, got {int(y.min())} to {int(y.max())}")
