"""Amazon-Photo in ten environments (Shchur et al. 2018), made as EERM does (Wu et al., ICLR 2022).

Random networks draw the labels and the cues. Labels depend on the features that all environments share; ten more
columns depend on both the label and the environment. A model that relies on those columns fails in other environments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mario.datasets.card import DatasetCard, raw_files
from mario.datasets.pyg import SPARSE_MATRICES, PyGDataset
from mario.datasets.registry import register

if TYPE_CHECKING:
    from torch_geometric.data import Data


@register
class AmazonPhoto(PyGDataset):
    card = DatasetCard(
        name="amazon-photo",
        what="products bought together, in ten environments with labels and cues from random networks, as in EERM",
        nodes=76500,
        edges=2381620,
        features=755,
        classes=10,
        domains=("environment",),
        files=raw_files("Amazon/Photo/"),
        source="https://github.com/shchur/gnn-benchmark (PyG Amazon; Shchur et al. 2018; Wu et al., ICLR 2022)",
        license="not stated",
        notes=(
            "Ten copies of the same 7,650 nodes and 238,162 edges: one trains, one validates, T1 to T8 test.",
            "split_seed draws the networks. Their labels are uneven: over split seeds 0 to 19 the largest class has 42 "
            "to 99 % of the nodes, and up to half of the ten classes have none.",
            "The known file was saved again without pickles; PyG downloads the original, whose checksum is not known.",
        ),
        shifts=("concept",),
        setting="inductive",
    )
    pyg_class = "Amazon"
    pyg_names = ("Photo",)
    files_url = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
    npz_members = SPARSE_MATRICES

    def split(self, data: Data, *, domain: str, shift: str, split_seed: int) -> Data:
        return photo_graph(data, split_seed=split_seed)


def photo_graph(data: Data, *, split_seed: int) -> Data:
    """Ten environments of one graph in one `Data`: the first trains, the second validates, the others are T1 to T8.

    All share ``edge_index``, the label and the features X1 of ``data``; ``x`` is [X1, X2], and X2 differs. Labels of
    ``data`` are not used. ``split_seed`` draws the networks.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> ring = Data(x=torch.eye(5), edge_index=torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 0]]))
        >>> made = photo_graph(ring, split_seed=0)
        >>> made.num_nodes, made.num_features, int(made.ood_test_mask.sum()), made.groups[-1]
        (50, 15, 40, 'T8')
    """
    import torch
    from torch_geometric.data import Data

    from mario.datasets.generators.random_networks import CLASSES, ENVIRONMENTS, RandomNetworks, labels_and_cues
    from mario.graphs.splits import seeded

    nodes, width = data.x.shape
    y, cues = labels_and_cues(data.x, data.edge_index, RandomNetworks.draw(width, seeded(split_seed)))
    x = data.x.new_empty(ENVIRONMENTS, nodes, width + cues.size(2))
    x[..., :width] = data.x
    x[..., width:] = cues
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
        setting="inductive",
        split_seed=split_seed,
        num_classes=CLASSES,
    )
