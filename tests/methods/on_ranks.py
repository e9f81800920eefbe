"""What each of two ranks does in the tests of every method."""

from typing import Any

from torch import Tensor

from mario.methods import find
from methods.tiny import tiny_graph
from methods.tiny_graphs import tiny_graph_set


def fitted(rank: int, name: str, level: str, settings: dict[str, Any]) -> dict[str, Tensor]:
    data = tiny_graph() if level == "node" else tiny_graph_set()
    model = find(name).from_settings(settings).fit(data, seed=3)
    return {key: value.clone() for key, value in model.state_dict().items()}
