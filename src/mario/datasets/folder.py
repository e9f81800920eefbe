"""A dataset of your own: a folder with a graph and a ``graph.toml`` that describes it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.datasets.card import DatasetCard, RawFile
from mario.datasets.dataset import Dataset, Root
from mario.datasets.feature_columns import with_column
from mario.datasets.files import FileState
from mario.errors import MarioError
from mario.files import check_path
from mario.graphs.card import CARD_FILE, GraphCard, check_card, read_card, write_card
from mario.graphs.declared import DeclaredSplit
from mario.graphs.rules import SHIFTS, SplitRule
from mario.untrusted import safe_name

if TYPE_CHECKING:
    from torch_geometric.data import Data

_COUNTS = ("nodes", "edges", "features", "classes", "level", "graphs")
_SHOWN = ("name", "what", "source", "license", "metric", "setting", "domains", "shifts", "notes", "faults", *_COUNTS)


class FolderDataset(Dataset):
    """The dataset in a folder that `save_dataset` wrote, or that has a ``graph.toml`` of the same form.

    Masks that are saved with the graph are used as they are. A graph without masks is split by the ``[split]`` of its
    card: by `mario.graphs.own_split`, or by `split_graph` if the table holds the numbers of a `SplitRule`. Without that
    table, or for another domain or shift than it declares, `mario.graphs.default_split` chooses, and ``split_note`` of
    the graph says what.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self.folder = check_path("a dataset", folder).expanduser().resolve()
            self.folder.is_file()  # of a path too long, too
        except (OSError, RuntimeError) as error:  # a loop of links
            raise MarioError(f"cannot read {str(folder)[:200]}: {getattr(error, 'strerror', error)}") from None
        if self.folder.is_file():
            raise MarioError(
                f"{folder} is a file; a dataset of your own is a folder with a {CARD_FILE}: "
                "mario.datasets.save_dataset(data, folder) writes one"
            )
        if not self.folder.is_dir():
            raise MarioError(f"there is no folder {folder}; `mario data list` lists the datasets that have a name")
        if not (self.folder / CARD_FILE).is_file():
            raise MarioError(f"{folder} has no {CARD_FILE}; mario.datasets.save_dataset(data, folder) writes one")
        self.graph_card = card = read_card(self.folder)
        facts: dict[str, Any] = {key: getattr(card, key) for key in _SHOWN}
        facts |= {"domains": _domains_of(card), "shifts": _shifts_of(card)}
        usual = card.split.shift if isinstance(card.split, DeclaredSplit) else "" if card.shifts else "covariate"
        files = (RawFile(card.file, _size(card.path)),)
        self.card = DatasetCard(files=files, folder=self.folder.as_posix(), usual_shift=usual, **facts)

    def read(self, files: Sequence[Path] = ()) -> "Data":
        """The saved graph, whose counts must be those of ``graph.toml``."""
        from mario.graphs.mapped import load_mapped
        from mario.graphs.store import load_graph

        card = self.graph_card
        data = load_mapped(card.path) if card.path.is_dir() else load_graph(card.path)
        found = _facts(data)
        for key in _COUNTS:
            if found[key] != getattr(card, key):
                raise MarioError(
                    f"{self.folder / CARD_FILE} says {key} = {getattr(card, key)!r}, but {card.path.name} has "
                    f"{found[key]!r}; save the graph again with mario.datasets.save_dataset"
                )
        return data

    def split(self, data: "Data", *, domain: str, shift: str, split_seed: int) -> "Data":
        """The saved masks, or those of the ``[split]`` table, or those of the default split."""
        from mario.graphs.splits import split_graph

        card = self.graph_card
        masked, given = "train_mask" in data, isinstance(card.split, DeclaredSplit) and card.split.by == "given"
        if masked and card.split is not None and not given:
            raise MarioError(
                f"{self.folder}: the graph has masks, so {CARD_FILE} must have no [split]; save masks with the graph, "
                'or a [split] table that says how to split it, not both; or write by = "given"'
            )
        if masked:
            data.shift, data.split_seed = shift, split_seed
            return data
        if isinstance(card.split, SplitRule):
            return split_graph(data, domain=domain, shift=shift, split_seed=split_seed, rule=card.split)
        try:
            return self.own_split(data, domain=domain, shift=shift, split_seed=split_seed)
        except MarioError as error:
            raise MarioError(f"{self.folder}: {error}") from None

    def own_split(
        self, data: "Data", split: DeclaredSplit | None = None, *, domain: str, shift: str, split_seed: int = 0
    ) -> "Data":
        """The graph by a declared split, by that of the card if it is by ``domain`` and ``shift``, or by default."""
        from mario.graphs.default_splits import default_split, described
        from mario.graphs.own_splits import own_split

        card, note = self.graph_card, ""
        by = domain if split is None else split.by
        names = {**card.domain_columns(), **with_column(data, card, by)}
        declared = card.split if isinstance(card.split, DeclaredSplit) else None
        if split is None and declared is not None and (declared.by, declared.shift) == (domain, shift):
            split = declared
        if split is None:
            split = default_split(data, domain, shift, names=names)
            if declared is None:
                said = described(split)
                note = f"{CARD_FILE} has no [split], so the graph is split {said}; `mario graph split` changes it"
        time = card.column("time")
        dates = None if time is None else time.kind == "date"
        made = own_split(data, split, names=names, dates=dates, split_seed=split_seed, setting=card.setting)
        made.domain, made.shift, made.split_note = domain, shift, note
        if card.class_names:
            made.class_names = list(card.class_names)
            made.num_classes = card.classes
        return made

    def load(self, *, domain: str, shift: str, split_seed: int, root: Root = None, download: bool = True) -> "Data":
        """The split graph; ``root`` and ``download`` are not used."""
        return self.split(self.read(), domain=domain, shift=shift, split_seed=split_seed)

    def where(self, root: Root = None) -> str:
        """The folder."""
        return str(self.folder)

    def fetch(self, root: Root = None, *, download: bool = True) -> Path:
        """The folder."""
        return self.folder

    def states(self, root: Root = None) -> list[FileState]:
        """The state of the graph's file, for which there is no checksum."""
        return [FileState(self.card.files[0], self.graph_card.path, "UNKNOWN")]


def save_dataset(
    data: "Data",
    folder: str | os.PathLike[str],
    *,
    name: str | None = None,
    what: str = GraphCard.what,
    domains: str | Sequence[str] | None = None,
    shifts: str | Sequence[str] | None = None,
    rule: SplitRule | None = None,
    split: DeclaredSplit | Mapping[str, Any] | None = None,
    mapped: bool = False,
) -> Path:
    """Write a graph and its ``graph.toml``, so that the folder is a dataset: `load_dataset` and the commands take it.

    With ``data.train_mask`` the masks are saved and used as they are. Without it the graph is split when it is loaded:
    as ``split`` declares, or by `split_graph`, and then ``domains`` says by what. ``data.metric`` (default
    ``"accuracy"``) and ``data.setting`` (default ``"transductive"``) are taken from the graph. Nothing is pickled.

    Args:
        data: a graph, or a set of graphs, with labels ``y``.
        folder: a new folder, or one without a dataset.
        name: the name in tables and messages. Default: the folder's name.
        what: one line that describes the data.
        domains: names of node attributes of ``data``, ``"word"`` or ``"degree"``. Default, for saved masks:
            ``data.domain``, else ``"given"``.
        shifts: default ``data.shift``, else ``"given"``, for saved masks; otherwise ``"covariate"``, ``"concept"`` and
            ``"no_shift"``.
        rule: the numbers of the split. Default: `SplitRule()`.
        split: instead of ``domains`` and ``rule``, a declared split for `mario.graphs.own_split`, such as
            ``{"by": "time", "train_until": 2017}``: for few labels or none.
        mapped: write memory-mapped arrays (`mario.graphs.save_mapped`) instead of one file, for a graph that is larger
            than memory.

    Returns:
        The folder.

    Example:
        >>> import tempfile
        >>> from mario.datasets import load_dataset
        >>> with tempfile.TemporaryDirectory() as home:
        ...     folder = save_dataset(load_dataset("good-cbas"), f"{home}/mine")
        ...     data = load_dataset(folder)
        >>> data.name, data.shift, int(data.train_mask.sum())
        ('mine', 'concept', 140)
    """
    from mario.graphs.mapped import save_mapped
    from mario.graphs.store import save_graph
    from mario.graphs.validation import check_graph

    home = check_path("folder", folder).expanduser()
    if rule is not None and not isinstance(rule, SplitRule):
        raise MarioError(f"rule must be a SplitRule or None, got {rule!r}")
    for names in (domains, shifts):
        if names is not None and not isinstance(names, str | list | tuple):
            raise MarioError(f"domains and shifts must be names, or lists of names, got {names!r}")
    if not isinstance(what, str):
        raise MarioError(f"what must be a line that describes the data, got {what!r}")
    if name is not None:
        safe_name(name, "name")
    if (home / CARD_FILE).exists():
        raise MarioError(f"{home} already holds a dataset; give a new folder, as results refer to the old one by path")
    check_graph(data)
    masked = "train_mask" in data
    if masked and (rule is not None or split is not None):
        named = "rule" if split is None else "split"
        raise MarioError(
            f"{named} is for a graph without masks, but data has train_mask; delete the masks or omit {named}"
        )
    if split is not None and (rule is not None or domains or shifts):
        raise MarioError("split says by what and how, so domains, shifts and rule cannot be given with it")
    if not masked and not domains and split is None:
        raise MarioError(
            "data has no train_mask, so domains must name the attributes to split by, such as ('degree',), or split "
            "must declare how"
        )
    table: dict[str, Any] = {
        "name": home.resolve().name if name is None else name,
        "what": what,
        "file": "graph" if mapped else "graph.safetensors",
        "metric": data.get("metric", "accuracy"),
        "setting": data.get("setting", "transductive"),
        **_facts(data),
    }
    if split is not None:
        from mario.graphs.own_splits import declared_split, own_split

        declared = declared_split(split)
        own_split(data, declared)  # it must be possible
        table["split"] = declared.as_table()
    else:
        table["domains"] = _listed(domains or data.get("domain") or "given")
        table["shifts"] = _listed(shifts or ((data.get("shift") or "given") if masked else SHIFTS))
    if not masked and split is None:
        table["split"] = _changed(rule or SplitRule())
    check_card(table)
    (save_mapped if mapped else save_graph)(data, home / table["file"])
    write_card(home, table)
    return home


def _domains_of(card: GraphCard) -> tuple[str, ...]:
    """What the graph can be split by, the default first."""
    declared = (card.split.by,) if isinstance(card.split, DeclaredSplit) else ()
    if card.domains:
        return tuple(dict.fromkeys((*declared, *card.domains)))
    named = {name: len(values) for name, values in card.domain_columns().items()}
    time = ("time",) if card.column("time") else ()
    last = ("size", "degree") if card.level == "graph" else ("degree",)
    several = [name for name, count in named.items() if count != 1]
    return tuple(dict.fromkeys((*declared, *time, *several, *last, *named)))


def _shifts_of(card: GraphCard) -> tuple[str, ...]:
    declared = (card.split.shift,) if isinstance(card.split, DeclaredSplit) else ()
    return tuple(dict.fromkeys((*declared, *(card.shifts or SHIFTS))))


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _facts(data: "Data") -> dict[str, Any]:
    from mario.graphs.graph_sets import count_graphs

    stated = data.get("num_classes")
    y = data.get("y")
    highest = -1 if y is None or not y.numel() else int(y.max())
    return {
        "nodes": int(data.x.size(0)),
        "edges": int(data.edge_index.size(1)),
        "features": int(data.x.size(1)),
        "classes": highest + 1 if stated is None else int(stated),
        "level": "graph" if "batch" in data else "node",
        "graphs": count_graphs(data),
    }


def _changed(rule: SplitRule) -> dict[str, Any]:
    default = SplitRule()
    return {key: value for key, value in vars(rule).items() if value != getattr(default, key)}


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
