"""Randomness as a function of the step: no state to save, and batches can be drawn in any order."""

import hashlib

import torch

BATCH, STEP, DIAGNOSTICS, PRE_SAMPLES, READABILITY, SELECTION = range(6)


def stream(seed: int, step: int, rank: int, purpose: int) -> torch.Generator:
    """A generator for one ``purpose`` of one step on one rank: the batch, the step's own draws, or diagnostics.

    The four numbers are hashed, because torch's generator uses only the lowest 32 bits of its seed.

    Example:
        >>> torch.randint(1000, (3,), generator=stream(0, 7, 0, BATCH)).tolist()
        [403, 590, 290]
    """
    mixed = hashlib.blake2b(f"{seed} {step} {rank} {purpose}".encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(mixed, "little"))
