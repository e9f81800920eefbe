"""Networks whose products may be made in less than full precision."""

from typing import Any

import torch
from torch import nn


class Reducible(nn.Module):
    """A network that multiplies in ``products`` while it trains, where that is set; results keep their type."""

    products: torch.dtype | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self.products is None or not self.training:
            return super().__call__(*arguments, **named)
        weight = next(self.parameters())
        with torch.autocast(weight.device.type, self.products):
            return super().__call__(*arguments, **named).to(weight.dtype)
