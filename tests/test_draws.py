"""Random numbers of code that takes no generator come from one, and the default generator is restored."""

import contextlib

import torch

from mario.draws import drawing_from


def test_without_a_generator_nothing_is_seeded() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(3)
        expected = torch.rand(2)
        torch.default_generator.manual_seed(3)
        with drawing_from(None):
            assert torch.equal(torch.rand(2), expected)


def test_an_error_within_restores_the_default_generator() -> None:
    before = torch.get_rng_state()
    with contextlib.suppress(KeyError), drawing_from(torch.Generator().manual_seed(0)):
        torch.rand(1)
        raise KeyError
    assert torch.equal(torch.get_rng_state(), before)
