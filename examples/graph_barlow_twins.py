"""A method of your own: Graph Barlow Twins, ready to be compared with all others.

Run it (``python examples/graph_barlow_twins.py``), or put the file into ``src/mario/methods/``: the method is then in the
command line, the tests that every method passes, the tables and the documentation.
"""

import dataclasses

import torch
import torch.nn.functional as F
from torch import Tensor

from mario.methods.registry import register
from mario.methods.settings import setting
from mario.methods.two_view import DropAndMask, Side, embeddings


@register("gbt")
@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class GraphBarlowTwins(DropAndMask):
    """Graph Barlow Twins (Bielak et al., Knowledge-Based Systems 2022).

    The cross-correlation between the columns of two views is drawn to the identity: a column is the same in both views,
    and no two columns are redundant.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> GraphBarlowTwins(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data).transform(data).shape
        torch.Size([700, 16])
    """

    # fmt: off
    redundancy: float = setting(0.0, low=0.0, search=(0.0, 0.001, 0.005, 0.01), help="weight of entries off the diagonal; 0 is 1 / width")
    # fmt: on

    def contrast(self, alpha: Side, beta: Side, generator: torch.Generator | None = None) -> Tensor:
        u, v = (_standardized(embeddings(side)) for side in (alpha, beta))
        correlation = u.t() @ v / u.size(0)
        on = (1 - correlation.diagonal()).square().sum()
        off = correlation.square().sum() - correlation.diagonal().square().sum()
        return on + (self.redundancy or 1 / u.size(1)) * off


def _standardized(z: Tensor) -> Tensor:
    z = z - z.mean(0)
    # A column that does not vary correlates with nothing.
    return F.normalize(z, dim=0, eps=1e-6) * z.size(0) ** 0.5


if __name__ == "__main__":
    import mario

    data = mario.load_dataset("good-cbas", shift="concept")
    for model in (GraphBarlowTwins(epochs=5), mario.Recipe(GraphBarlowTwins(epochs=5)), mario.RandomInit(epochs=1)):
        scores = mario.evaluate(model.fit(data), data)
        print(f"{type(model).__name__:30} id_test {scores['id_test']:.3f}  ood_test {scores['ood_test']:.3f}")
