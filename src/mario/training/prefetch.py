"""The batches of the next steps, drawn in the background while a step is at work."""

import queue
import threading
from collections.abc import Callable, Generator
from typing import TypeVar

T = TypeVar("T")


def prefetched(draw: Callable[[int], T], steps: range, ahead: int = 2) -> Generator[T, None, None]:
    """``draw(step)`` for each of ``steps``, in order, at most ``ahead`` of them drawn and not yet taken.

    One thread does all the drawing, so ``draw`` may use what is for one thread alone. What it raises is raised where
    the batch would have been taken. The thread ends with the steps, or when the iterator is closed.

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

    # A daemon: an iterator that nobody closes must not keep the process from ending.
    thread = threading.Thread(target=work, name="mario-prefetch", daemon=True)
    thread.start()
    try:
        for _ in steps:
            batch, error = drawn.get()
            if error is not None:
                raise error
            room.release()
            yield batch  # type: ignore[misc]
            del batch  # else this batch would be held while the next is awaited
    finally:
        closed.set()
        room.release()
        thread.join()
