"""Sinkhorn's assignment is the entropic optimal-transport plan with even marginals, as POT computes it."""

import numpy as np
import ot
import pytest
import torch

from mario.contrast import sinkhorn


@pytest.mark.parametrize("temperature", [0.5, 0.1, 0.02])
def test_plan_and_marginals(generator: torch.Generator, temperature: float) -> None:
    scores = torch.rand(24, 4, generator=generator, dtype=torch.float64)
    nodes, prototypes = np.full(24, 1 / 24), np.full(4, 1 / 4)
    plan = ot.sinkhorn(nodes, prototypes, -scores.numpy(), temperature, method="sinkhorn_log", numItermax=20000)
    q = sinkhorn(scores, iterations=5000, temperature=temperature)
    torch.testing.assert_close(q / 24, torch.from_numpy(plan), rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(q.sum(1), torch.ones(24, dtype=torch.float64))
    torch.testing.assert_close(q.sum(0), torch.full((4,), 6.0, dtype=torch.float64), rtol=1e-5, atol=1e-5)


def test_low_temperature_gives_the_even_partition_of_highest_score(generator: torch.Generator) -> None:
    scores = torch.rand(12, 3, generator=generator, dtype=torch.float64)
    exact = ot.emd(np.full(12, 1 / 12), np.full(3, 1 / 3), -scores.numpy())
    q = sinkhorn(scores, iterations=5000, temperature=0.002)
    assert q.argmax(1).tolist() == exact.argmax(1).tolist()
    assert q.argmax(1).bincount().tolist() == [4, 4, 4]
