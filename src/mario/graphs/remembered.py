"""Results that are kept for as long as the tensor they were computed from."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

T = TypeVar("T")

# For each tensor its version and the objects made from it. None of them may refer to the tensor and keep it alive.
_known: Any = WeakTensorKeyDictionary()
_lock = threading.Lock()


def remembered(tensor: Tensor, key: object, make: Callable[[], T], beside: Tensor | None = None) -> T:
    """The result of ``make``, cached for as long as ``tensor`` lives and is not changed in place.

    With ``beside``, the result depends on both tensors and lives as long as both do.
    """
    if beside is None:
        return _remembered(_known, tensor, key, make)
    inner = _remembered(_known, tensor, "beside", WeakTensorKeyDictionary)
    return _remembered(inner, beside, key, make)


def _remembered(memory: Any, tensor: Tensor, key: object, make: Callable[[], T]) -> T:
    if tensor.is_inference():  # has no version that would show a change
        return make()
    version = tensor._version
    with _lock:
        known = memory.get(tensor)
        if known is None or known[0] != version:
            known = memory[tensor] = (version, {})
    # Made outside the lock; if two threads make it at once, the first result stays.
    found: dict[object, T] = known[1]
    return found[key] if key in found else found.setdefault(key, make())


def forget(tensor: Tensor) -> None:
    """Drop everything that is :func:`remembered` for ``tensor``."""
    with _lock:
        _known.pop(tensor, None)
