"""Whether probabilities mean what they say: one temperature, fitted on validation rows, and what is then left."""

import torch
from torch import Tensor

from mario.errors import MarioError

BINS = 15
"""Number of bins of the confidence, as in Guo et al., On Calibration of Modern Neural Networks, ICML 2017."""
LIMITS = (1e-3, 1e3)
"""The smallest and the largest temperature."""


def fit_temperature(logits: Tensor, y: Tensor) -> float:
    """The T that minimizes the cross-entropy of softmax(logits / T) (Guo et al., ICML 2017).

    A share 1/(n + 1) of each label is spread over all classes, as Platt does for two. Without it, T would be 0 for a
    few rows that are all classified correctly. Rows whose class has a logit of minus infinity are left out.

    Args:
        logits: Of validation rows ``[n, classes]``.
        y: Their labels ``[n]``.

    Example:
        >>> logits = torch.tensor([[4.0, 0.0]]).expand(100, 2)  # 98 % sure
        >>> y = (torch.arange(100) < 20).long()  # 80 % are of the first class
        >>> round(float((logits[0] / fit_temperature(logits, y)).softmax(0)[0]), 2)
        0.8
    """
    logits, y = logits.double(), y.to(logits.device)
    known = torch.isfinite(logits).any(0)
    kept = (y < logits.size(1)) & known[y.clamp(max=logits.size(1) - 1)]
    if not bool(kept.any()):
        return 1.0
    logits, y = logits[kept][:, known], (known.cumsum(0) - 1)[y[kept]]
    n = len(y)
    # The loss is convex in b = 1 / T; its slope is the expected mean logit minus the one that is found.
    target = logits.gather(1, y[:, None])[:, 0].sub(logits.mean(1)).mul(n / (n + 1)).add(logits.mean(1)).mean()
    low, high, b = 1 / LIMITS[1], 1 / LIMITS[0], 1.0
    for _ in range(100):
        p = (b * logits).softmax(1)
        mean = (p * logits).sum(1)
        slope = float(mean.mean() - target)
        curvature = float((p * logits.square()).sum(1).sub(mean.square()).mean())
        low, high = (low, b) if slope > 0 else (b, high)
        step = b - slope / curvature if curvature > 0 else b
        if abs(step - b) <= 1e-10 * b or high - low <= 1e-10 * b:
            break
        b = step if low < step < high else (low * high) ** 0.5
    return 1 / b


def calibration_error(probabilities: Tensor, y: Tensor, bins: int = BINS) -> float:
    """The expected calibration error: how far confidence and accuracy are apart, over bins of the confidence.

    It is Σ_b n_b/n |accuracy_b − confidence_b| over ``bins`` equal bins of the largest probability of a row.

    Example:
        >>> p = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]])  # right, wrong, right
        >>> round(calibration_error(p, torch.tensor([0, 1, 1])), 4)  # 2/3 |1/2 - 0.9| + 1/3 |1 - 0.6|
        0.4
    """
    if len(y) == 0 or len(y) != len(probabilities):
        raise MarioError(
            f"a calibration error needs a label per row, got {len(probabilities)} rows and {len(y)} labels"
        )
    confidence, found = probabilities.double().max(1)
    surplus = (found == y).double() - confidence
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1
    return float(surplus.new_zeros(bins).index_add_(0, bin_of, surplus).abs().sum() / len(y))
