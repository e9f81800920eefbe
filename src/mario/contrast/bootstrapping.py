"""Bootstrapping: a prediction against a target without gradient, no negatives."""

from torch import Tensor

from mario.contrast.rows import check_pair, directions


def bootstrap(prediction: Tensor, target: Tensor) -> Tensor:
    r"""One direction of BGRL's loss (`Thakoor et al., ICLR 2022 <https://arxiv.org/abs/2102.06514>`_), in [0, 2].

    1 − (1/N) Σ_i cos(prediction_i, target_i). The paper has −(2/N) Σ_i cos, with the same minimizers. The target
    gets no gradient. A zero row has cosine 0 with everything.

    Args:
        prediction: the predictor's output for the online embeddings of one view, [N, d].
        target: the target network's embeddings of the same nodes in the other view.

    Example:
        >>> import torch
        >>> from mario.contrast import bootstrap
        >>> bootstrap(torch.tensor([[2.0, 0.0], [0.0, 3.0]]), torch.tensor([[1.0, 0.0], [4.0, 0.0]]))
        tensor(0.5000)
    """
    check_pair(prediction, target)
    return 1 - (directions(prediction) * directions(target.detach())).sum(1).mean()
