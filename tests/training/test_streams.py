"""Streams: the same numbers for the same step, others for any other, and none that are alike by accident."""

import itertools

import torch

from mario.training.streams import BATCH, DIAGNOSTICS, STEP, stream


def draws(*key: int) -> list[float]:
    return torch.rand(4, generator=stream(*key)).tolist()


def test_a_stream_is_a_function_of_all_four() -> None:
    assert draws(3, 5, 1, STEP) == draws(3, 5, 1, STEP)
    keys = list(itertools.product((0, 1, 10, 2**32 - 1), (0, 1, 10, 101), (0, 1, 11), (BATCH, STEP, DIAGNOSTICS)))
    assert len({tuple(draws(*key)) for key in keys}) == len(keys)


def test_first_draws_of_successive_steps_are_uniform_and_unrelated() -> None:
    values = torch.tensor([draws(0, step, 0, BATCH)[0] for step in range(4000)])
    counts = values.mul(20).long().bincount(minlength=20).float()
    assert ((counts - 200).square() / 200).sum() < 50  # chi-squared with 19 degrees of freedom: p < 0.0002
    assert torch.corrcoef(torch.stack([values[:-1], values[1:]]))[0, 1].abs() < 0.06
    beside = torch.tensor([draws(0, step, 0, STEP)[0] for step in range(4000)])
    assert torch.corrcoef(torch.stack([values, beside]))[0, 1].abs() < 0.06


def test_torchs_default_generator_is_left_alone() -> None:
    state = torch.get_rng_state()
    draws(0, 0, 0, BATCH)
    assert torch.equal(torch.get_rng_state(), state)
