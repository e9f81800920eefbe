"""`load_dataset`: a graph that shifts, by name."""

import dataclasses
import os
import warnings

import numpy as np
from torch_geometric.data import Data

from mario.graphs.by_size import size_split
from mario.graphs.catalog import DatasetCard, find_case
from mario.graphs.cbas import cbas_graph
from mario.graphs.elliptic import elliptic_graph
from mario.graphs.photo import photo_graph
from mario.graphs.rules import RULES, SIZE_RULES
from mario.graphs.shifting import shifting_graph
from mario.graphs.sources import source_graph
from mario.graphs.splits import seeded, split_graph
from mario.graphs.validation import check_graph


def load_dataset(
    name: str,
    *,
    domain: str | None = None,
    shift: str | None = None,
    setting: str | None = None,
    split_seed: int = 0,
    root: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Data:
    """A graph that shifts, split by GOOD's procedure (Gui et al., NeurIPS 2022) or by that of the paper it is from.

    Besides ``x``, ``edge_index`` and ``y`` it has ``train_mask``, ``id_val_mask``, ``id_test_mask``, ``ood_val_mask``,
    ``ood_test_mask``, ``domain_id``, ``env_id`` (-1 outside training), and as plain attributes ``name``, ``domain``,
    ``shift``, ``setting``, ``split_seed``, ``metric``, ``num_classes`` and ``faults``. Wide bag-of-words features are
    sparse CSR. Data of many graphs have no ``id_val_mask`` and ``id_test_mask``; amazon-photo and elliptic have
    ``visible_mask`` (all nodes of the training graphs), ``group_id`` (the test group, -1 outside) and ``groups``, their
    names. shifting-10k, -100k and -1m are read-only and stay on disk (`mario.graphs.mapped`).

    Args:
        name: a name in `mario.graphs.CATALOG`, such as good-cbas, which is generated and needs no file.
        domain: what shifts; the dataset's first domain unless told (`mario.graphs.CATALOG` lists them).
        shift: ``"covariate"``, ``"concept"`` (unless told, where there is one) or ``"no_shift"``; ``"label"`` for
            elliptic.
        setting: ``"transductive"``, or ``"inductive"``: `training_graph` then holds the training nodes only. The
            dataset's own unless told: inductive where training and tests are separate graphs.
        split_seed: the split is a function of it; no global random state is read or changed.
        root: a folder of raw files to look in first, before ``$MARIO_DATA`` and the user's cache; never written to.
        download: whether absent files may be downloaded into the user's cache.

    Example:
        >>> data = load_dataset("good-cbas", shift="concept", split_seed=0)
        >>> int(data.train_mask.sum()), int(data.ood_test_mask.sum())
        (140, 140)
    """
    card, domain, shift, setting = find_case(name, domain, shift, setting)
    seeded(split_seed)
    if name == "good-cbas":
        data = cbas_graph(shift=shift, split_seed=split_seed)
    elif card.cached:
        data = shifting_graph(card, split_seed=split_seed)
    else:
        data = _split(card, source_graph(card, root=root, download=download), domain, shift, split_seed)
    for fault in card.faults:
        warnings.warn(f"{fault.partition('. ')[0]}; data.faults has the details", UserWarning, stacklevel=2)
    data.name, data.domain, data.setting, data.metric = name, domain, setting, card.metric
    if "num_classes" not in data:
        data.num_classes = int(data.y.max()) + 1
    data.faults = list(card.faults)
    check_graph(data)
    return data


def _split(card: DatasetCard, data: Data, domain: str, shift: str, split_seed: int) -> Data:
    if card.name == "amazon-photo":
        return photo_graph(data, split_seed=split_seed)
    if card.name == "elliptic":
        return elliptic_graph(data, split_seed=split_seed)
    if card.name in SIZE_RULES:
        return size_split(data, SIZE_RULES[card.name].nodes, SIZE_RULES[card.name].train, split_seed)
    rule = RULES[card.name]
    if not card.parts:
        return split_graph(data, domain=domain, shift=shift, split_seed=split_seed, rule=rule)
    if domain in card.parts:
        rule = dataclasses.replace(rule, held_out=domain)
    values = np.array(card.parts)[data.part_id.numpy()]
    del data.part_id
    return split_graph(data, domain=values, shift=shift, split_seed=split_seed, rule=rule)
