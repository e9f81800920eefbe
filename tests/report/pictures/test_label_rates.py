"""Label rates: what is counted in a graph of snapshots, and two bars a split."""

import pytest
import torch
from torch_geometric.data import Data

from mario.datasets.elliptic import elliptic_graph
from mario.errors import MarioError
from mario.report.pictures import label_counts, label_rates
from mario.report.pictures.label_rates import Counts
from report.pictures.made_up import texts


def test_counts_by_hand() -> None:
    # Four nodes a snapshot: one illicit in odd snapshots, one licit in all, the rest unknown.
    step = torch.arange(1, 50).repeat_interleave(4)
    y = torch.full((196,), -1)
    y[0::4] = 0
    y[1::4] = torch.where(torch.arange(1, 50) % 2 == 1, 1, -1)
    data = elliptic_graph(Data(x=torch.ones(196, 1), edge_index=torch.zeros(2, 0).long(), y=y, time_step=step))
    counts = label_counts(data)
    assert [split.name for split in counts] == ["Tr", "Val", *(f"T{k}" for k in range(1, 10))]
    assert counts[0] == Counts("Tr", nodes=20, labeled=8, positive=3)  # snapshots 7 to 11
    assert counts[1] == Counts("Val", nodes=20, labeled=7, positive=2)  # 12 to 16
    assert counts[2] == Counts("T1", nodes=16, labeled=6, positive=2)  # 17 to 20
    assert counts[-1] == Counts("T9", nodes=4, labeled=2, positive=1)  # 49


def test_two_bars_a_split() -> None:
    drawing = label_rates([Counts("Tr", 100, 20, 5), Counts("Val", 50, 10, 1), Counts("T1", 10, 4, 2)])
    axis = drawing.figure.axes[0]
    assert [bar.get_height() for bar in axis.patches] == pytest.approx([20, 20, 40, 25, 10, 50])
    assert {"Tr", "Val", "T1", "label rate", "positive label rate", "25", "50"} <= texts(drawing.figure)
    assert "T1: 40.0 and 50.0." in drawing.description


def test_a_split_without_labels_is_refused() -> None:
    with pytest.raises(MarioError, match="labeled=0"):
        label_rates([Counts("Tr", 100, 0, 0)])
    with pytest.raises(MarioError, match="counts"):
        label_rates([])
