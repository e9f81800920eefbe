"""Networks that can train in reduced precision."""

from typing import Any

import torch
from torch import nn


class Reducible(nn.Module):
    """A network whose products have the dtype ``products`` during training, if set; its results keep their dtype."""

    products: torch.dtype | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.products is None or not self.training:
            return super().__call__(*arguments, **named)
        weight = next(self.parameters())
        with torch.autocast(weight.device.type, self.products):
            return super().__call__(*arguments, **named).to(weight.dtype)
