"""How well the domain of a node can be read from its embedding."""

import warnings

import numpy as np
import torch
from torch import Tensor

from mario.graphs import Block
from mario.training.streams import READABILITY, stream

SAMPLE = 5000
"""Nodes that take part, drawn from the seed: half to learn from, half to score."""
MOST, BINS = 10, 8
"""More domains than ``MOST`` are put into ``BINS`` groups of neighboring ids, with about as many nodes each."""
PENALTY = 10.0
"""C of the regression on rows whose mean squared length is 1."""


def readability(block: Block, domain: Tensor, *, seed: int = 0) -> float | None:
    """(accuracy - chance) / (1 - chance) of a logistic domain classifier; ``None`` if there is one domain only.

    It is fitted on half of the nodes and scored on the other half. Chance is the share of the largest domain. 1 means
    that the domain of every node can be read from its row, 0 that nothing of it can; below 0 is reported as 0.

    Args:
        block: One row per node.
        domain: The domain of each node, whole numbers; nodes with -1 take no part.
        seed: Of the draw of nodes and halves.

    Example:
        >>> domain = torch.arange(200) % 2
        >>> readability(Block(domain.float().unsqueeze(1)), domain)
        1.0
        >>> readability(Block(torch.ones(200, 1)), domain)
        0.0
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    known = (domain >= 0).nonzero().view(-1)
    # A stream of its own: the permutation of the plain seed may be the one that the graph was split by.
    order = known[torch.randperm(len(known), generator=stream(seed, 0, 0, READABILITY))[:SAMPLE]]
    labels = binned(domain[order]).numpy()
    half = len(order) // 2
    learned, scored = labels[:half], labels[half:]
    if len(np.unique(learned)) < 2 or len(np.unique(scored)) < 2:
        return None
    rows = block.rows(order).numpy()
    if isinstance(rows, np.ndarray):
        rows -= rows.mean(0)
    size = float(np.sqrt((rows**2 if isinstance(rows, np.ndarray) else rows.power(2)).sum() / len(order)))
    if size == 0:
        return 0.0
    # The products are small: on a busy machine, further threads of scikit-learn's BLAS would wait for each other.
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the accuracy has settled long before
        model = LogisticRegression(C=PENALTY, max_iter=200).fit(rows[:half] / size, learned)
    accuracy = float((model.predict(rows[half:] / size) == scored).mean())
    chance = float(np.unique(scored, return_counts=True)[1].max() / len(scored))
    return max(0.0, (accuracy - chance) / (1 - chance))


def binned(domain: Tensor) -> Tensor:
    """Groups of nodes, counted from 0: the domains, or if these are more than ``MOST``, ``BINS`` of neighboring ids.

    Example:
        >>> binned(torch.tensor([1999, 2005, 1999]))
        tensor([0, 1, 0])
    """
    index: Tensor
    found, index, counts = domain.unique(return_inverse=True, return_counts=True)
    if len(found) > MOST:
        index = ((counts.cumsum(0) - counts) * BINS // len(domain))[index]
    return index
