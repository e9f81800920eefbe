"""VGAE."""

import copy
import dataclasses

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.encoders.apply import encode, takes
from mario.methods.gae import GAE
from mario.methods.registry import register
from mario.methods.settings import setting

_LARGEST_LOG_STD = 10.0  # as in PyG: e^10 is far beyond any useful posterior, and its square is still finite


@register("vgae")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class VGAE(GAE):
    """Variational graph auto-encoder (Kipf & Welling, 2016).

    There are two last convolutions, for mean and log standard deviation of q(z_i | X, A), which share the other layers.
    If ``encoder`` is a module, two linear layers over its output take their place. The loss is the cross-entropy of
    edges at a sample of q plus KL(q ‖ N(0, I)) / N, averaged over nodes: the paper's bound divided by N². The embedding
    is the mean; ``last_activation`` has no effect on it.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> VGAE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    kl_weight: float = setting(1.0, low=0.0, search=(0.1, 0.5, 1.0), help="weight of KL / N: 1 (paper), 0.5 (PyG and MARIO's released code)")
    # fmt: on

    def build(self, in_channels: int, num_classes: int) -> None:
        if isinstance(self.encoder, nn.Module):
            super().build(in_channels, num_classes)
        elif self.num_layers > 1:
            self.encoder_ = self.make_encoder(in_channels, num_layers=self.num_layers - 1, last_activation=True)
        width = self.hidden_channels if self.num_layers > 1 else in_channels
        self.mean_, self.log_std_ = self._head(width), self._head(width)

    def _head(self, width: int) -> nn.Module:
        if isinstance(self.encoder, nn.Module):
            return nn.Linear(self.out_channels_, self.out_channels_)
        return self.make_encoder(width, num_layers=1, batch_norm=False, dropout=0.0, last_activation=False)

    def uses(self, name: str) -> bool:
        return super().uses(name) or takes(self.mean_, name)

    def posterior(self, data: Data, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation of q, one row per node."""
        shared = copy.copy(data)
        if hasattr(self, "encoder_"):
            shared.x = encode(self.encoder_, data, generator)
        if isinstance(self.mean_, nn.Linear):
            mean, log_std = self.mean_(shared.x), self.log_std_(shared.x)
        else:
            mean, log_std = encode(self.mean_, shared), encode(self.log_std_, shared)
        return mean, log_std.clamp(max=_LARGEST_LOG_STD)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        mean, log_std = self.posterior(batch, generator)
        noise = torch.randn(mean.shape, generator=generator).to(mean)
        reconstruction = self.reconstruct(mean + noise * log_std.exp(), batch, generator)
        if "seed_mask" in batch:
            mean, log_std = mean[batch.seed_mask], log_std[batch.seed_mask]
        divergence = kl_to_standard_normal(mean, log_std) / mean.size(0)
        loss = reconstruction + self.kl_weight * divergence
        loss.backward()
        return {"loss": loss.item(), "reconstruction": reconstruction.item(), "kl": divergence.item()}

    def embed(self, data: Data) -> Tensor:
        return self.posterior(data)[0]


def kl_to_standard_normal(mean: Tensor, log_std: Tensor) -> Tensor:
    """KL(N(μ, diag σ²) ‖ N(0, I)) in nats, averaged over rows.

    Example:
        >>> kl_to_standard_normal(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))  # ½ ‖μ‖²
        tensor(12.5000)
    """
    return -0.5 * (1 + 2 * log_std - mean.square() - (2 * log_std).exp()).sum(1).mean()
