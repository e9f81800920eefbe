"""The map from embeddings to the space of the contrast."""

import torch
from torch import Tensor, nn

from mario.arguments import check_count
from mario.encoders.input import check_input
from mario.encoders.norm import BatchNorm
from mario.encoders.precision import Reducible
from mario.encoders.size import check_size


class Projector(Reducible):
    """Linear, batch norm, ReLU, linear; used in training only.

    Example:
        >>> import torch
        >>> Projector(8, hidden_channels=16, out_channels=4)(torch.randn(3, 8)).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        in_channels: int,
        *,
        hidden_channels: int | None = None,
        out_channels: int | None = None,
        batch_norm: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        hidden_channels = in_channels if hidden_channels is None else hidden_channels
        out_channels = in_channels if out_channels is None else out_channels
        for name, width in (
            ("in_channels", in_channels),
            ("hidden_channels", hidden_channels),
            ("out_channels", out_channels),
        ):
            check_count(name, width)
        check_size("a projector", [in_channels, hidden_channels, out_channels])
        self.layers = nn.Sequential(
            nn.Linear(in_channels, hidden_channels),
            BatchNorm(hidden_channels) if batch_norm else nn.Identity(),
            nn.ReLU(inplace=True),
            nn.Linear(hidden_channels, out_channels),
        )

    def forward(self, h: Tensor) -> Tensor:
        if not torch.compiler.is_compiling():
            check_input("h", h, self.in_channels, dense=True)
        out: Tensor = self.layers(h)
        return out
