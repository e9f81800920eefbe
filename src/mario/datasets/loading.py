"""`load_dataset`: a dataset by name or path, as one PyG graph with masks."""

import os
import warnings
from typing import TYPE_CHECKING

from mario.datasets.registry import find

if TYPE_CHECKING:
    from torch_geometric.data import Data


def load_dataset(
    name: str | os.PathLike[str],
    *,
    domain: str | None = None,
    shift: str | None = None,
    setting: str | None = None,
    split_seed: int = 0,
    root: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> "Data":
    """Load a dataset, split by GOOD's procedure (Gui et al., NeurIPS 2022) or by that of the paper it comes from.

    Besides ``x``, ``edge_index`` and ``y``, the graph has ``train_mask``, ``id_val_mask``, ``id_test_mask``,
    ``ood_val_mask``, ``ood_test_mask``, ``domain_id``, ``env_id`` (-1 outside training), and the plain attributes
    ``name``, ``domain``, ``shift``, ``setting``, ``split_seed``, ``metric``, ``num_classes`` and ``faults``. Wide
    bag-of-words features are sparse CSR. Datasets of several graphs have no ``id_val_mask`` and ``id_test_mask``;
    amazon-photo and elliptic have ``visible_mask`` (all nodes of the training graphs), ``group_id`` (the test group, -1
    outside) and ``groups``, their names. shifting-10k, -100k and -1m are read-only and stay on disk
    (`mario.graphs.load_mapped`).

    Args:
        name: a name in `mario.datasets.CATALOG`, such as good-cbas, which is generated and needs no file, or the path
            of a folder with a ``graph.toml`` (`mario.datasets.save_dataset`).
        domain: the attribute that shifts. Default: the dataset's first domain.
        shift: ``"covariate"``, ``"concept"`` or ``"no_shift"``; ``"label"`` for elliptic. Default: ``"concept"`` if the
            dataset has it.
        setting: ``"transductive"``, or ``"inductive"``: `training_graph` then holds the training nodes only. Default:
            the dataset's own, which is inductive where training and test are separate graphs.
        split_seed: seed of the split. Global random state is neither read nor changed.
        root: a folder of raw files to search before ``$MARIO_DATA`` and the user's cache. Nothing is written to it.
        download: whether missing files may be downloaded into the user's cache.

    Example:
        >>> data = load_dataset("good-cbas", shift="concept", split_seed=0)
        >>> int(data.train_mask.sum()), int(data.ood_test_mask.sum())
        (140, 140)
    """
    from mario.graphs.splits import seeded
    from mario.graphs.validation import check_graph

    dataset = find(name)
    card = dataset.card
    domain, shift, setting = card.case(domain, shift, setting)
    seeded(split_seed)  # checks it before any file is read
    data = dataset.load(domain=domain, shift=shift, split_seed=split_seed, root=root, download=download)
    for fault in card.faults:
        warnings.warn(f"{fault.partition('. ')[0]}; data.faults has the details", UserWarning, stacklevel=2)
    data.name, data.domain, data.setting, data.metric = card.name, domain, setting, card.metric
    if "num_classes" not in data and "y" in data and bool((data.y >= 0).any()):
        data.num_classes = int(data.y.max()) + 1
    data.faults = list(card.faults)
    check_graph(data)
    return data
