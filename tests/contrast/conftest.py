"""A watch over the size of every tensor that a contrast makes."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class LargestTensor(TorchDispatchMode):
    """Remembers the most numbers that any result of an operation had, backward included."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, list | tuple) else [out]:
            if isinstance(tensor, Tensor):
                held = tensor.numel() if tensor.layout == torch.strided else tensor._nnz()
                self.numel = max(self.numel, held)
        return out


@pytest.fixture
def largest_tensor() -> LargestTensor:
    return LargestTensor()
