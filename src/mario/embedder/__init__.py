"""A graph of your own in, a model to keep out: what is trained is picked from the graph, and the reasons are kept.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from mario.lazy import lazy

_HOME = {
    "Embedder": "mario.embedder.estimator",
    "Embeddings": "mario.embedder.embedding",
    "Fitted": "mario.embedder.fitting",
    "GraphFacts": "mario.embedder.facts",
    "Ids": "mario.embedder.ids",
    "ModelFolder": "mario.embedder.folder",
    "Predictions": "mario.embedder.embedding",
    "Progress": "mario.embedder.fitting",
    "compact": "mario.embedder.compact",
    "conclude": "mario.embedder.writing",
    "embed": "mario.embedder.embedding",
    "fit_graph": "mario.embedder.fitting",
    "plan_of": "mario.embedder.fitting",
    "predict": "mario.embedder.embedding",
    "read_source": "mario.embedder.sources",
    "write_model": "mario.embedder.writing",
}

__all__ = [
    "Embedder",
    "Embeddings",
    "Fitted",
    "GraphFacts",
    "Ids",
    "ModelFolder",
    "Predictions",
    "Progress",
    "compact",
    "conclude",
    "embed",
    "fit_graph",
    "plan_of",
    "predict",
    "read_source",
    "write_model",
]

if TYPE_CHECKING:
    from mario.embedder.compact import compact
    from mario.embedder.embedding import Embeddings, Predictions, embed, predict
    from mario.embedder.estimator import Embedder
    from mario.embedder.facts import GraphFacts
    from mario.embedder.fitting import Fitted, Progress, fit_graph, plan_of
    from mario.embedder.folder import ModelFolder
    from mario.embedder.ids import Ids
    from mario.embedder.sources import read_source
    from mario.embedder.writing import conclude, write_model

__getattr__, __dir__ = lazy(__name__, _HOME)
