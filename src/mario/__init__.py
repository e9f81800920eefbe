"""Node and graph embeddings without labels that keep working when the data shifts.

Public names are loaded on first use, so that ``import mario`` and ``mario --help`` do not import torch. Besides the
names in ``__all__``, every registered method is here by the name of its class (``mario.GRACE``), and each room by its
own (``mario.contrast.info_nce``).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mario.lazy import lazy

__version__ = "0.1.0"

_HOME = {
    "Embedder": "mario.embedder",
    "MarioError": "mario.errors",
    "load_dataset": "mario.datasets",
    "training_graph": "mario.graphs",
    "MARIO": "mario.methods",
    "Recipe": "mario.methods",
    "Steady": "mario.methods",
    "load": "mario.methods",
    "evaluate": "mario.evaluation",
    "from_dataframe": "mario.graphs.tables.frames",
    "from_networkx": "mario.graphs.tables.frames",
    "from_pyg": "mario.graphs.tables.frames",
    "from_scipy": "mario.graphs.tables.frames",
    "select": "mario.evaluation",
}

_ROOMS = ("contrast", "datasets", "encoders", "evaluation", "graphs", "lab", "methods", "report", "training", "views")

__all__ = [
    "MARIO",
    "Embedder",
    "MarioError",
    "Recipe",
    "Steady",
    "evaluate",
    "from_dataframe",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "load",
    "load_dataset",
    "select",
    "training_graph",
]

if TYPE_CHECKING:
    from mario.datasets import load_dataset
    from mario.embedder.estimator import Embedder
    from mario.errors import MarioError
    from mario.evaluation.choosing import select
    from mario.evaluation.scoring import evaluate
    from mario.graphs import training_graph
    from mario.graphs.tables.frames import from_dataframe, from_networkx, from_pyg, from_scipy

    # For type checkers: at run time a method is here by being registered. A new one works without a line of its own.
    from mario.methods.bgrl import BGRL as BGRL
    from mario.methods.controls import Hops as Hops, RandomInit as RandomInit, RawFeatures as RawFeatures
    from mario.methods.costa import COSTA as COSTA
    from mario.methods.dgi import DGI as DGI
    from mario.methods.eerm import EERM as EERM
    from mario.methods.erm import ERM as ERM
    from mario.methods.gae import GAE as GAE
    from mario.methods.grace import GRACE as GRACE
    from mario.methods.graphcl import GraphCL as GraphCL
    from mario.methods.graphmae import GraphMAE as GraphMAE
    from mario.methods.irm import IRM as IRM
    from mario.methods.mvgrl import MVGRL as MVGRL
    from mario.methods.recipe import MARIO, Recipe
    from mario.methods.rosa import RoSA as RoSA
    from mario.methods.saving import load
    from mario.methods.steady import Steady
    from mario.methods.swav import SwAV as SwAV
    from mario.methods.vgae import VGAE as VGAE


_named, _ = lazy(__name__, _HOME)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"mario.{name}")
    if name[:1].isupper() and name not in _HOME:
        methods = import_module("mario.methods")
        if any(cls.__name__ == name for cls in methods.REGISTRY.values()):
            return getattr(methods, name)
    return _named(name)


def __dir__() -> list[str]:
    methods = [cls.__name__ for cls in import_module("mario.methods").REGISTRY.values()]
    return sorted({"__version__", *__all__, *_ROOMS, *methods})
