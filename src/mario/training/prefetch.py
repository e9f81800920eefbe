"""Training batches, optionally drawn in the background while a step runs."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

import torch
from torch_geometric.data import Data

from mario import ranks
from mario.graphs.samplers import Sampler
from mario.training.streams import BATCH, stream

T = TypeVar("T")


class Batches(Iterator[Data]):
    """The batch of each of ``steps``, a function of seed, step and rank alone."""

    def __init__(self, sampler: Sampler, seed: int, steps: range, *, in_background: bool) -> None:
        self.sampler, self.seed, self.steps = sampler, seed, steps
        self._alone = threading.Lock()  # a sampler serves one thread at a time
        self._drawn = prefetched(self._draw, steps) if in_background else (self._draw(step) for step in steps)

    def __next__(self) -> Data:
        return next(self._drawn)

    def sample(self, generator: torch.Generator) -> Data:
        with self._alone:
            return self.sampler.sample(generator)

    def close(self) -> None:
        self._drawn.close()

    def _draw(self, step: int) -> Data:
        return self.sample(stream(self.seed, step, ranks.rank(), BATCH))


def prefetched(draw: Callable[[int], T], steps: range, ahead: int = 2) -> Generator[T, None, None]:
    """``draw(step)`` for each of ``steps``, in order; at most ``ahead`` are drawn and not yet taken.

    One thread does all the drawing, so ``draw`` need not be thread-safe. An exception in it is raised where the batch
    would have been taken. The thread ends with the steps, or when the iterator is closed.

    Example:
        >>> list(prefetched(lambda step: step * step, range(4)))
        [0, 1, 4, 9]
    """
    room = threading.Semaphore(ahead)
    drawn: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
    closed = threading.Event()

    def work() -> None:
        for step in steps:
            room.acquire()
            if closed.is_set():
                return
            try:
                drawn.put((draw(step), None))
            except BaseException as error:
                drawn.put((None, error))
                return

    # A daemon: an iterator that is never closed must not keep the process alive.
    thread = threading.Thread(target=work, name="mario-prefetch", daemon=True)
    thread.start()
    try:
        for _ in steps:
            batch, error = drawn.get()
            if error is not None:
                raise error
            room.release()
            yield batch  # type: ignore[misc]
            del batch  # do not hold this batch while waiting for the next
    finally:
        closed.set()
        room.release()
        thread.join()
