"""Shifting graphs: our own generated graphs of 10,000 to 1,000,000 nodes, with a misleading cue."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from mario.datasets.card import DatasetCard
from mario.datasets.dataset import Dataset, Root
from mario.datasets.registry import register
from mario.errors import MarioError
from mario.files import cache_folder

if TYPE_CHECKING:
    from torch_geometric.data import Data

_BYTES_PER_NODE = 4 * 128 + 10 * 16 + 4 * 8 + 6  # features, edges, row starts, labels and domains, masks


class Shifting(Dataset):
    """A graph that `write_shifting` makes in the user's cache on first use. ``split_seed`` draws all of it."""

    def load(self, *, domain: str, shift: str, split_seed: int, root: Root = None, download: bool = True) -> "Data":
        from mario.graphs.mapped import load_mapped

        return load_mapped(self.make(split_seed))

    def where(self, root: Root = None) -> str:
        return str(self._folder()) if self._is_made() else "at first use"

    def fetch(self, root: Root = None, *, download: bool = True) -> Path:
        return self.make()

    def make(self, split_seed: int = 0) -> Path:
        """The folder of the graph in the cache, written if it is not there."""
        folder = self._folder(split_seed)
        if self._is_made(split_seed):
            return folder
        from mario.datasets.generators.shifting import write_shifting

        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as private:
                made = Path(private) / "graph"
                write_shifting(made, nodes=self.card.nodes, edges=self.card.edges, seed=split_seed)
                if not self._is_made(split_seed):  # another process may have been faster
                    os.replace(made, folder)
        except OSError as error:
            if not self._is_made(split_seed):
                advice = "set MARIO_CACHE to a folder with enough space"
                raise MarioError(f"cannot write {folder}: {error.strerror or error}; {advice}") from None
        return folder

    def _folder(self, split_seed: int = 0) -> Path:
        return cache_folder() / "graphs" / f"{self.card.name}-{split_seed}-v{self.version}"

    def _is_made(self, split_seed: int = 0) -> bool:
        return (self._folder(split_seed) / "graph.json").is_file()


def _card(name: str, nodes: int) -> DatasetCard:
    return DatasetCard(
        name=name,
        what=f"our own: {nodes:,} nodes with a weak signal that holds in all domains and a strong cue that does not",
        nodes=nodes,
        edges=10 * nodes,
        features=128,
        classes=10,
        domains=("domain",),
        source="generated (mario.datasets.generators; degree-corrected planted partition of Karrer & Newman 2011)",
        license="none needed",
        notes=(
            "split_seed draws all of it: graph, features and split. It is made in the user's cache on first use.",
            "The class has a faint signal in 112 columns and in the edges, in every domain; a cue in 16 columns agrees "
            "with it in the six training domains (0.8 to 1.0), rarely in ood_val (0.3) and by chance in ood_test.",
            "Three labels per class at any size; in the inductive setting all nodes of the training domains are "
            "visible.",
        ),
        shifts=("concept",),
        cached=_BYTES_PER_NODE * nodes,
    )


@register
class Shifting10k(Shifting):
    card = _card("shifting-10k", 10_000)


@register
class Shifting100k(Shifting):
    card = _card("shifting-100k", 100_000)


@register
class Shifting1M(Shifting):
    card = _card("shifting-1m", 1_000_000)
