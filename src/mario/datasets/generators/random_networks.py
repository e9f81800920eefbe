"""Random networks that draw labels and environment-dependent features, as in EERM (Wu et al., ICLR 2022)."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import add_remaining_self_loops

from mario.graphs.sparse import csr

ENVIRONMENTS = 10
CLASSES = 10
_CUES = 10  # columns of X2
_HIDDEN = 10


@dataclass(frozen=True)
class RandomNetworks:
    """The weights that EERM draws: two GCNs of two layers without biases, and a linear map of the environment.

    PyG initializes a `GCNConv` with Glorot weights and zero bias, torch a `Linear` with both uniform.

    Attributes:
        cues: Y to X2, [10, 10] and [10, 10].
        labels: X1 to ten logits, [features, 10] and [10, 10].
        shift, bias: the linear map of the one-hot environment that is added to X2, [10, 10] and [10].
    """

    cues: tuple[Tensor, Tensor]
    labels: tuple[Tensor, Tensor]
    shift: Tensor
    bias: Tensor

    @classmethod
    def draw(cls, features: int, generator: torch.Generator | None = None) -> "RandomNetworks":
        """Draw them in the order of EERM's script."""
        cues = _glorot(CLASSES, _HIDDEN, generator), _glorot(_HIDDEN, _CUES, generator)
        labels = _glorot(features, _HIDDEN, generator), _glorot(_HIDDEN, CLASSES, generator)
        bound = ENVIRONMENTS**-0.5
        shift = torch.empty(_CUES, ENVIRONMENTS).uniform_(-bound, bound, generator=generator)
        return cls(cues, labels, shift, torch.empty(_CUES).uniform_(-bound, bound, generator=generator))


def labels_and_cues(x: Tensor, edge_index: Tensor, networks: RandomNetworks) -> tuple[Tensor, Tensor]:
    """Y = argmax GCN(X1), [nodes], and X2 = GCN(one-hot Y) + linear(environment), [environments, nodes, 10].

    Computed in float64, so that a label depends neither on the number of threads nor on the order of a sum.
    """
    propagation = _propagation(edge_index, x.size(0))
    y = _gcn(x.double(), propagation, networks.labels).argmax(dim=1)
    cues = _gcn(F.one_hot(y, CLASSES).double(), propagation, networks.cues)
    offsets = networks.shift.t().double() + networks.bias.double()
    return y, (cues + offsets[:, None, :]).to(x.dtype)


def _gcn(x: Tensor, propagation: Tensor, weights: tuple[Tensor, Tensor]) -> Tensor:
    first, second = (weight.double() for weight in weights)
    return propagation @ ((propagation @ (x @ first)).relu() @ second)


def _propagation(edge_index: Tensor, nodes: int) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 (Kipf & Welling, ICLR 2017), messages from source to target."""
    source, target = add_remaining_self_loops(edge_index, num_nodes=nodes)[0]
    order = torch.argsort(target * nodes + source)
    source, target = source[order], target[order]
    degree = torch.bincount(target, minlength=nodes)
    scale = degree.double().rsqrt()
    return csr(F.pad(degree.cumsum(0), (1, 0)), source, scale[source] * scale[target], (nodes, nodes))


def _glorot(fan_in: int, fan_out: int, generator: torch.Generator | None) -> Tensor:
    bound = (6 / (fan_in + fan_out)) ** 0.5
    return torch.empty(fan_in, fan_out).uniform_(-bound, bound, generator=generator)
