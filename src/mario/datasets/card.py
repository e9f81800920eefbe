"""The card of a dataset: the facts that ``mario data`` shows. No torch here."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mario.errors import MarioError
from mario.graphs.rules import SETTINGS, SHIFTS, choose

CHECKSUMS = Path(__file__).with_name("checksums.csv")


@dataclass(frozen=True)
class RawFile:
    """A file as published: its path in a data folder, and its size and SHA-256 where we know them."""

    path: str
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class DatasetCard:
    """Facts about a dataset that can be read before it is loaded.

    Attributes:
        name: the name that `load_dataset` takes.
        what: one line that describes the data and the task.
        nodes, edges, features, classes: counts. An undirected edge counts twice.
        domains: the values of the ``domain`` argument; the first is the default.
        source: where the data comes from.
        license: the license of the data.
        metric: ``"accuracy"``, ``"roc_auc"`` or ``"f1"``.
        parts: names of the disconnected subgraphs, sorted. Each is one domain.
        files: the raw files. None for data that is generated.
        faults: known faults. The first sentence of each is the warning of `load_dataset`.
        notes: anything else that a user should know.
        shifts: the values of the ``shift`` argument.
        setting: the default setting, ``"transductive"`` or ``"inductive"``.
        layouts: other folders that may hold all the files, such as the one in Kaggle's archive.
        level: ``"node"``, or ``"graph"`` for a set of graphs: labels and masks then have one row per graph.
        graphs: the number of graphs of a set.
        cached: size in bytes of data that is generated into the user's cache on first use.
        folder: for a dataset of your own, the folder that holds its ``graph.toml``.
        class_names: the name of each class, by its number; empty if the source names none.
        usual_shift: the default shift; empty for ``"concept"`` if the dataset has it, otherwise its first shift.
    """

    name: str
    what: str
    nodes: int
    edges: int
    features: int
    classes: int
    domains: tuple[str, ...]
    source: str
    license: str
    metric: str = "accuracy"
    parts: tuple[str, ...] = ()
    files: tuple[RawFile, ...] = ()
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    shifts: tuple[str, ...] = SHIFTS
    setting: str = "transductive"
    layouts: tuple[str, ...] = ()
    level: str = "node"
    graphs: int = 1
    cached: int = 0
    folder: str = ""
    usual_shift: str = ""
    class_names: tuple[str, ...] = ()

    @property
    def identity(self) -> str:
        """What identifies the dataset in results, and what `load_dataset` takes: its name, or the folder's path."""
        return self.folder or self.name

    @property
    def default_shift(self) -> str:
        """``usual_shift``, or ``"concept"`` if the dataset has it, otherwise its first shift."""
        return self.usual_shift or ("concept" if "concept" in self.shifts else self.shifts[0])

    def case(
        self, domain: str | None = None, shift: str | None = None, setting: str | None = None
    ) -> tuple[str, str, str]:
        """The domain, shift and setting, with defaults filled in; `MarioError` for values the dataset does not have."""
        domain = self.domains[0] if domain is None else choose(f"domain of {self.name}", domain, self.domains)
        shift = self.default_shift if shift is None else choose(f"shift of {self.name}", shift, self.shifts)
        setting = self.setting if setting is None else choose("setting", setting, SETTINGS)
        if domain in self.parts and shift != "covariate":
            raise MarioError(
                f"domain {domain!r} holds out {domain}, which is a covariate shift; {shift} takes domain "
                f"{self.domains[0]!r}"
            )
        return domain, shift, setting


def raw_files(under: str, table: Path = CHECKSUMS) -> tuple[RawFile, ...]:
    """The files under a path of a data folder that ``table`` lists: a CSV file with columns path, size and sha256.

    Example:
        >>> [file.path for file in raw_files("Coauthor/CS/")]
        ['Coauthor/CS/raw/ms_academic_cs.npz']
    """
    with table.open(encoding="utf-8", newline="") as lines:
        return tuple(_rows(under, csv.DictReader(lines)))


def _rows(under: str, rows: Iterable[dict[str, str]]) -> Iterable[RawFile]:
    return (RawFile(row["path"], int(row["size"]), row["sha256"]) for row in rows if row["path"].startswith(under))
