"""A case: a dataset under one shift."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mario.datasets import DatasetCard, find, find_case, load_dataset
from mario.errors import MarioError

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Case:
    """A dataset, what shifts in it, how it shifts, and whether training sees the test nodes.

    Attributes:
        dataset: name of a dataset, or the path of a folder with a ``graph.toml``.
        domain: the attribute that shifts.
        shift: ``covariate``, ``concept``, ``no_shift`` or ``label``.
        setting: ``transductive`` or ``inductive``.

    Example:
        >>> case = Case.find("good-cbas")
        >>> case
        Case(dataset='good-cbas', domain='color', shift='concept', setting='transductive')
        >>> case.name
        'good-cbas-concept'
    """

    dataset: str
    domain: str
    shift: str
    setting: str

    @classmethod
    def find(
        cls, dataset: str, *, domain: str | None = None, shift: str | None = None, setting: str | None = None
    ) -> "Case":
        """The case with the dataset's defaults for everything that is ``None``; unknown values raise a `MarioError`."""
        card, domain, shift, setting = find_case(dataset, domain, shift, setting)
        return cls(card.identity, domain, shift, setting)

    @property
    def card(self) -> DatasetCard:
        """The card of the dataset."""
        return find(self.dataset).card

    @property
    def name(self) -> str:
        """The dataset and the shift, plus the domain and the setting where they are not the only or default ones."""
        try:
            card = self.card
        except MarioError:  # a result of a dataset that is not installed, or of a folder that is gone
            return "-".join((self.dataset, self.domain, self.shift, self.setting))
        several = len([domain for domain in card.domains if domain not in card.parts]) > 1
        domain = self.domain if several or self.domain != card.domains[0] else ""
        setting = self.setting if self.setting != card.setting else ""
        return "-".join(part for part in (card.name, domain, self.shift, setting) if part)

    def load(self, *, split_seed: int = 0, root: Path | str | None = None, download: bool = True) -> "Data":
        """The graph. Its known faults are in ``data.faults``; the caller shows them.

        Args:
            split_seed: seed of the split.
            root: folder of raw files to look in first.
            download: whether to fetch missing files; without it they are an error.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*data.faults has the details")
            return load_dataset(
                self.dataset,
                domain=self.domain,
                shift=self.shift,
                setting=self.setting,
                split_seed=split_seed,
                root=root,
                download=download,
            )

    def __str__(self) -> str:
        return f"{self.dataset}, {self.domain}, {self.shift}, {self.setting}"
