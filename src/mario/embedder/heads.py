"""The classifier that is kept with a model, for the label of the graph."""

import numpy as np
import torch
from torch_geometric.data import Data

from mario.embedder.bench import Row
from mario.embedder.facts import labeled_rows
from mario.evaluation.block_classifier import BlockClassifier
from mario.evaluation.metrics import is_defined
from mario.graphs import BlockMatrix


def fit_head(z: BlockMatrix, data: Data, rule: str, row: Row, *, seed: int = 0) -> BlockClassifier | None:
    """A classifier of the labels for training; ``None`` without labels of two classes.

    C is chosen on the validation nodes that ``rule`` scores, and the probabilities are calibrated there, too: with
    ``leave_domain_out`` on the domains that were left out.

    Args:
        z: The embeddings of all nodes.
        data: The graph that they are of.
        rule: What the embeddings were chosen by.
        row: How they did.
        seed: Of the rows that are held out where there are no validation nodes.
    """
    train = labeled_rows(data, ("train",))
    if train is None or len(data.y[train].unique()) < 2:
        return None
    y, rows = data.y.cpu(), train.cpu()
    part = "ood_val" if rule == "ood_val" else "id_val"
    held = None if data.get(f"{part}_mask") is None else labeled_rows(data, (part,))
    validation = None
    if held is not None and bool(torch.isin(y[held.cpu()], y[rows]).any()):
        validation = (z.rows(held.cpu()), y[held.cpu()].numpy())
    metric = data.get("metric") or "accuracy"
    if not is_defined(y[rows], metric):
        metric = "accuracy"
    head = BlockClassifier(metric=metric, seed=seed).fit(z.rows(rows), y[rows].numpy(), validation=validation)
    if rule == "leave_domain_out" and row.temperature is not None:
        head.temperature_ = row.temperature
    head.classes_ = np.asarray(head.classes_)
    return head
