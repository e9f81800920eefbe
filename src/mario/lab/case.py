"""A case: a dataset under one shift."""

from dataclasses import dataclass

from mario.graphs.catalog import CATALOG, DatasetCard, find_card, find_case


@dataclass(frozen=True)
class Case:
    """A dataset, what shifts in it, how it shifts, and whether training sees the test nodes.

    Attributes:
        dataset: name of a dataset.
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
        _, domain, shift, setting = find_case(dataset, domain, shift, setting)
        return cls(dataset, domain, shift, setting)

    @property
    def card(self) -> DatasetCard:
        """The card of the dataset."""
        return find_card(self.dataset)

    @property
    def name(self) -> str:
        """The dataset and the shift, plus the domain and the setting where they are not the only or default ones."""
        if self.dataset not in CATALOG:  # a result of a dataset that is not installed
            return "-".join((self.dataset, self.domain, self.shift, self.setting))
        card = self.card
        several = len([domain for domain in card.domains if domain not in card.parts]) > 1
        domain = self.domain if several or self.domain != card.domains[0] else ""
        setting = self.setting if self.setting != card.setting else ""
        return "-".join(part for part in (self.dataset, domain, self.shift, setting) if part)

    def __str__(self) -> str:
        return f"{self.dataset}, {self.domain}, {self.shift}, {self.setting}"
