"""The map from embeddings to the space in which they are contrasted."""

from torch import Tensor, nn


class Projector(nn.Module):
    """Linear, batch norm, activation, linear; thrown away after training.

    Example:
        >>> import torch
        >>> Projector(8, hidden=16, out=4)(torch.randn(3, 8)).shape
        torch.Size([3, 4])
    """

    def __init__(self, in_channels: int, *, hidden: int | None = None, out: int | None = None, batch_norm: bool = True):
        super().__init__()
        hidden, out = hidden or in_channels, out or in_channels
        self.layers = nn.Sequential(
            nn.Linear(in_channels, hidden),
            nn.BatchNorm1d(hidden) if batch_norm else nn.Identity(),
            nn.ReLU(),
            nn.Linear(hidden, out),
        )

    def forward(self, h: Tensor) -> Tensor:
        return self.layers(h)
