"""Amazon-Photo in ten environments, made as EERM does (Wu et al., ICLR 2022): random networks draw labels and cues.

Labels follow from the features that all environments share; ten more columns follow from the label and the environment
alike. A model that leans on those columns fails where the environment is another.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import add_remaining_self_loops

from mario.graphs.splits import seeded
from mario.graphs.subgraph import csr

ENVIRONMENTS = 10
CLASSES = 10
_CUES = 10  # columns of X2
_HIDDEN = 10


@dataclass(frozen=True)
class RandomNetworks:
    """The weights that EERM draws: two GCNs of two layers without biases, and a linear map of the environment.

    PyG starts a `GCNConv` with Glorot weights and a bias of zero, torch a `Linear` with both uniform.

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
        """Drawn in the order of EERM's script."""
        cues = _glorot(CLASSES, _HIDDEN, generator), _glorot(_HIDDEN, _CUES, generator)
        labels = _glorot(features, _HIDDEN, generator), _glorot(_HIDDEN, CLASSES, generator)
        bound = ENVIRONMENTS**-0.5
        shift = torch.empty(_CUES, ENVIRONMENTS).uniform_(-bound, bound, generator=generator)
        return cls(cues, labels, shift, torch.empty(_CUES).uniform_(-bound, bound, generator=generator))


def photo_graph(data: Data, *, split_seed: int) -> Data:
    """Ten environments of one graph side by side: the first trains, the second validates, the others are T1 to T8.

    All share ``edge_index``, the label and the features X1 of ``data``; ``x`` is [X1, X2], and X2 differs. The labels
    that ``data`` may have are not used. ``split_seed`` draws the networks.

    Example:
        >>> ring = Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
        >>> made = photo_graph(ring, split_seed=0)
        >>> made.num_nodes, made.num_features, int(made.ood_test_mask.sum()), made.groups[-1]
        (50, 15, 40, 'T8')
    """
    nodes = data.x.size(0)
    y, cues = labels_and_cues(data.x, data.edge_index, RandomNetworks.draw(data.x.size(1), seeded(split_seed)))
    x = data.x.new_empty(ENVIRONMENTS, nodes, data.x.size(1) + _CUES)
    x[..., : data.x.size(1)] = data.x
    x[..., data.x.size(1) :] = cues
    starts = nodes * torch.arange(ENVIRONMENTS)
    environment = torch.arange(ENVIRONMENTS).repeat_interleave(nodes)
    train = environment == 0
    return Data(
        x=x.view(ENVIRONMENTS * nodes, -1),
        edge_index=(data.edge_index[:, None, :] + starts[:, None]).view(2, -1),
        y=y.repeat(ENVIRONMENTS),
        train_mask=train,
        ood_val_mask=environment == 1,
        ood_test_mask=environment >= 2,
        visible_mask=train.clone(),
        domain_id=environment,
        env_id=torch.where(train, 0, -1),
        group_id=(environment - 2).clamp(min=-1),
        groups=[f"T{test + 1}" for test in range(ENVIRONMENTS - 2)],
        shift="concept",
        split_seed=split_seed,
        num_classes=CLASSES,
    )


def labels_and_cues(x: Tensor, edge_index: Tensor, networks: RandomNetworks) -> tuple[Tensor, Tensor]:
    """Y = argmax GCN(X1), [nodes], and X2 = GCN(one-hot Y) + linear(environment), [environments, nodes, 10].

    In float64, so that neither the number of threads nor the order of a sum decides a label.
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
