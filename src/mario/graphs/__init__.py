"""Graphs that shift: PyG `Data` with five masks. Checks, the split engine, samplers and files.

Names are loaded on first use, so that `mario.datasets` can read its cards without importing torch.
"""

from typing import TYPE_CHECKING

from mario.lazy import lazy

_HOME = {
    "Block": "mario.graphs.block_matrix",
    "BlockMatrix": "mario.graphs.block_matrix",
    "check_graph": "mario.graphs.validation",
    "DeclaredSplit": "mario.graphs.declared",
    "default_split": "mario.graphs.default_splits",
    "column_std": "mario.graphs.sparse",
    "load_graph": "mario.graphs.store",
    "load_mapped": "mario.graphs.mapped",
    "own_split": "mario.graphs.own_splits",
    "quantity": "mario.graphs.quantities",
    "save_graph": "mario.graphs.store",
    "save_mapped": "mario.graphs.mapped",
    "SplitRule": "mario.graphs.rules",
    "split_facts": "mario.graphs.facts",
    "split_graph": "mario.graphs.splits",
    "training_graph": "mario.graphs.visibility",
}

__all__ = [
    "Block",
    "BlockMatrix",
    "DeclaredSplit",
    "SplitRule",
    "check_graph",
    "column_std",
    "default_split",
    "load_graph",
    "load_mapped",
    "own_split",
    "quantity",
    "save_graph",
    "save_mapped",
    "split_facts",
    "split_graph",
    "training_graph",
]

if TYPE_CHECKING:
    from mario.graphs.block_matrix import Block, BlockMatrix
    from mario.graphs.declared import DeclaredSplit
    from mario.graphs.default_splits import default_split
    from mario.graphs.facts import split_facts
    from mario.graphs.mapped import load_mapped, save_mapped
    from mario.graphs.own_splits import own_split
    from mario.graphs.quantities import quantity
    from mario.graphs.rules import SplitRule
    from mario.graphs.sparse import column_std
    from mario.graphs.splits import split_graph
    from mario.graphs.store import load_graph, save_graph
    from mario.graphs.validation import check_graph
    from mario.graphs.visibility import training_graph

__getattr__, __dir__ = lazy(__name__, _HOME)
