"""The base class of datasets: a card, ``read`` and ``split``. Torch is imported inside functions only."""

import contextlib
import dataclasses
import hashlib
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mario.datasets.card import DatasetCard
from mario.datasets.files import (
    FileState,
    absent_message,
    checksums,
    downloads_folder,
    file_paths,
    file_states,
    locate,
    sha256,
)
from mario.errors import MarioError, RunFailedError, out_of_memory
from mario.files import cache_folder
from mario.graphs.rules import SplitRule

if TYPE_CHECKING:
    from torch_geometric.data import Data

_UNVERIFIED = "MARIO_UNVERIFIED"
Root = str | os.PathLike[str] | None


class _WrongFileError(MarioError):
    """A download brought a file with another checksum."""


class Dataset:
    """A dataset: its card, how it is read, and how it is split.

    A subclass sets ``card`` and writes :meth:`read`. The default :meth:`split` is GOOD's procedure with the numbers of
    ``rule``. A dataset with raw files may also write :meth:`download`. The module of a dataset imports torch inside
    functions only, so that cards can be listed without it.

    Attributes:
        card: the facts that ``mario data`` shows.
        rule: the numbers of GOOD's split procedure (Gui et al., NeurIPS 2022).
        presets_file: a TOML file in the format of ``mario/lab/presets`` with the settings of methods on this dataset.
            Packages that add a dataset ship it next to their module: ``Path(__file__).with_name("presets.toml")``.
        version: raise it when `read` returns another graph for the same files, so that cached graphs are read again.
        verify_download: whether the checksums of the card are those of the files that :meth:`download` gets. If not,
            other files of the right counts are used with a warning.
        other_counts: numbers of nodes and edges that such other files have, if not those of the card.
    """

    card: DatasetCard
    rule: SplitRule = SplitRule()
    presets_file: Path | None = None
    version: int = 1
    verify_download: bool = False
    other_counts: tuple[tuple[int, int], ...] = ()

    @property
    def graph_name(self) -> str:
        """Name of the unsplit graph in the cache. Datasets that split the same graph differently may share it."""
        return self.card.name

    def read(self, files: Sequence[Path]) -> "Data":
        """The unsplit graph from the files of the card, in the card's order; no files if the graph is generated.

        It has ``x``, ``edge_index`` and ``y``, and ``part_id`` where the card has ``parts``. `check_graph` runs on it.
        """
        raise NotImplementedError(f"{type(self).__name__} must define read(files)")

    def split(self, data: "Data", *, domain: str, shift: str, split_seed: int) -> "Data":
        """The graph with masks, ``domain_id``, ``env_id``, ``shift`` and ``split_seed``."""
        import numpy as np

        from mario.graphs.splits import split_graph

        if not self.card.parts:
            return split_graph(data, domain=domain, shift=shift, split_seed=split_seed, rule=self.rule)
        rule = dataclasses.replace(self.rule, held_out=domain) if domain in self.card.parts else self.rule
        values = np.array(self.card.parts)[data.part_id.numpy()]
        del data.part_id
        return split_graph(data, domain=values, shift=shift, split_seed=split_seed, rule=rule)

    def download(self, folder: Path) -> None:
        """Download the files of the card into ``folder``, each at its path."""
        raise NotImplementedError("mario cannot download this dataset")

    def load(self, *, domain: str, shift: str, split_seed: int, root: Root = None, download: bool = True) -> "Data":
        """The split graph. `load_dataset` calls it with values that the card has."""
        data = self._prepared(root, download) if self.card.files else self.read(())
        data = self.split(data, domain=domain, shift=shift, split_seed=split_seed)
        if not _unverified():
            self._check_counts(data)
        return data

    def where(self, root: Root = None) -> str:
        """The folder that holds the data, or ``"generated"``, ``"at first use"`` or ``"absent"``."""
        if not self.card.files:
            return "generated"
        folder = locate(self.card, root)
        return "absent" if folder is None else str(folder)

    def fetch(self, root: Root = None, *, download: bool = True) -> Path | None:
        """The folder that holds the data, after a download if necessary; None if no files are needed."""
        if not self.card.files:
            return None
        folder = locate(self.card, root)
        if folder is not None:
            return folder
        if not download:
            raise MarioError(absent_message(self.card, root, "downloads are disabled"))
        try:
            self._download()
        except _WrongFileError:
            raise
        except Exception as error:  # archives and urllib raise many kinds of errors for one fact: no files
            raise MarioError(absent_message(self.card, root, f"the download failed ({error})")) from None
        return downloads_folder()

    def states(self, root: Root = None) -> list[FileState]:
        """The state of each file, compared by checksum."""
        return file_states(self.card, root)

    def _prepared(self, root: Root, download: bool) -> "Data":
        """The unsplit graph, from the cache if the same files have been read before."""
        from mario.graphs.store import load_graph, save_graph

        folder = self.fetch(root, download=download)
        assert folder is not None  # the card has files
        files = file_paths(self.card, folder)
        found = checksums(files)
        self._check_files(files, found)
        key = hashlib.sha256((str(self.version) + "".join(found)).encode()).hexdigest()
        kept = cache_folder() / "graphs" / f"{self.graph_name}-{key[:16]}.safetensors"
        if kept.is_file():
            with contextlib.suppress(MarioError):
                return load_graph(kept)
        data = self._checked(files, folder)
        with contextlib.suppress(MarioError):  # the cache may be read-only
            save_graph(data, kept)
        return data

    def _check_files(self, files: Sequence[Path], found: Sequence[str]) -> None:
        """Refuse files that are not the published ones, or warn where others may be right."""
        pairs = zip(files, found, self.card.files, strict=True)
        others = [(path, sha, file.sha256) for path, sha, file in pairs if file.sha256 not in (None, sha)]
        if not others:
            return
        path, sha, due = others[0]
        more = f", and {len(others) - 1} more of its files" if len(others) > 1 else ""
        what = f"{path} is not the known file of {self.card.name}{more}: its SHA-256 is {sha}, expected {due}"
        if not (self.verify_download or _unverified()):
            warnings.warn(f"{what}; `mario data verify {self.card.name}` has a note on this", UserWarning, stacklevel=5)
        elif not _unverified():
            raise MarioError(
                f"{what}. `mario data verify {self.card.name}` checks all files. Remove those that differ and "
                f"`mario data fetch {self.card.name}` downloads them, or set {_UNVERIFIED}=1 to use them as they are"
            )

    def _check_counts(self, data: "Data") -> None:
        """Compare the split graph with the card: a file that was cut, or is of other data, may still be readable."""
        from mario.graphs.subgraph import count_nodes

        card = self.card
        nodes, edges = count_nodes(data), int(data.edge_index.size(1))
        classes = int(data.get("num_classes") or data.y.max() + 1)
        found = (nodes, edges, int(data.x.size(1)), classes, int(data.y.size(0)) if card.level == "graph" else 1)
        due = (card.nodes, card.edges, card.features, card.classes, card.graphs)
        if found == due or (found[2:] == due[2:] and found[:2] in self.other_counts):
            return
        names = ("nodes", "edges", "features", "classes", "graphs")
        said = [f"{a:,} {name} instead of {b:,}" for name, a, b in zip(names, found, due, strict=True) if a != b]
        raise MarioError(
            f"{card.name} has {' and '.join(said)}: a file is incomplete, or of other data. "
            f"`mario data verify {card.name}` checks the files; set {_UNVERIFIED}=1 to use them as they are"
        )

    def _checked(self, files: Sequence[Path], folder: Path) -> "Data":
        from mario.graphs.validation import check_graph

        try:
            data = self.read(files)
            check_graph(data)
        except MarioError as error:
            raise MarioError(f"{self.card.name} cannot be read from {folder}: {error}") from None
        except Exception as error:  # the parser met something that is not the published format
            if out_of_memory(error):
                raise RunFailedError(f"there is not enough memory to read {self.card.name} from {folder}") from error
            named = f"{type(error).__name__}: {error}"
            advice = f"`mario data verify {self.card.name}` says which"
            raise MarioError(
                f"{self.card.name} cannot be read from {folder}: a file is damaged ({named}); {advice}"
            ) from None
        return data

    def _download(self) -> None:
        """Download into a private folder in the cache first, so that a file at its final path is always complete."""
        home = downloads_folder()
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=".downloading-") as private:
            stage = Path(private)
            self.download(stage)
            for file in self.card.files:
                if self.verify_download and sha256(stage / file.path) != file.sha256:
                    raise _WrongFileError(
                        f"the download of {self.card.name} brought a {file.path} that is not the published one; "
                        "try again"
                    )
                target = home / file.path
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(stage / file.path, target)
        if not self.verify_download:
            warnings.warn(
                f"no checksums are known for the files of {self.card.name} that were downloaded: only the server's "
                f"certificate was checked. They are in {home}",
                UserWarning,
                stacklevel=5,
            )


def _unverified() -> bool:
    """Whether the user accepts files that are not the published ones."""
    return os.environ.get(_UNVERIFIED, "") not in ("", "0")
