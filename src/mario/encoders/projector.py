"""The map from embeddings to the space in which they are contrasted."""

from torch import Tensor, nn

from mario.encoders.norm import BatchNorm
from mario.encoders.precision import Reducible
from mario.errors import MarioError


class Projector(Reducible):
    """Linear, batch norm, activation, linear; thrown away after training.

    Example:
        >>> import torch
        >>> Projector(8, hidden=16, out=4)(torch.randn(3, 8)).shape
        torch.Size([3, 4])
    """

    def __init__(
        self, in_channels: int, *, hidden: int | None = None, out: int | None = None, batch_norm: bool = True
    ) -> None:
        super().__init__()
        hidden = in_channels if hidden is None else hidden
        out = in_channels if out is None else out
        if min(in_channels, hidden, out) < 1:
            raise MarioError(
                f"a projector needs in_channels, hidden and out of at least 1, got {in_channels}, {hidden}, {out}"
            )
        self.layers = nn.Sequential(
            nn.Linear(in_channels, hidden),
            BatchNorm(hidden) if batch_norm else nn.Identity(),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, out),
        )

    def forward(self, h: Tensor) -> Tensor:
        return self.layers(h)
