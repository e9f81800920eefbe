"""A graph made ready for a model that was fitted on another one: no split, domains by name, features checked."""

import copy
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from mario.datasets import find, load_dataset
from mario.datasets.folder import FolderDataset
from mario.embedder.folder import About
from mario.embedder.ids import Ids
from mario.embedder.sources import Source, domain_names
from mario.errors import MarioError
from mario.graphs.card import GraphCard, read_card
from mario.graphs.fingerprint import fingerprint
from mario.graphs.graph_sets import count_graphs
from mario.graphs.sparse import csr
from mario.untrusted import read_json

_SHOWN = 5
Given: TypeAlias = str | os.PathLike[str] | Data | Source


@dataclasses.dataclass(frozen=True)
class Ready:
    """A graph that a model can embed.

    Attributes:
        data: Features, edges, and ``domain_id`` in the numbers of the model; a domain that is new has a number of its
            own behind them. Labels and masks are as they were read.
        given: The graph as it was read.
        name: What it is called.
        ids: Of its nodes, or of the graphs of a set.
        folder: Where it is from, or ``None``.
        domains: The name of each number of ``domain_id``.
        class_names: The name of each class of its labels, if it has names.
        new_domains: The domains that the model was not fitted on, and how many rows each has.
        unknown: The number of rows whose domain is not known, if the model knows domains.
        notes: What a user should know of how it was read.
    """

    data: Data
    given: Data
    name: str
    ids: Ids
    folder: Path | None
    domains: tuple[str, ...]
    class_names: tuple[str, ...]
    new_domains: dict[str, int]
    unknown: int
    notes: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """A hash of all its tensors as they were read."""
        return fingerprint(self.given)


def make_ready(about: About, given: Given, *, root: Path | None = None, plan: Path | None = None) -> Ready:
    """The graph that ``given`` means, for the model that ``about`` describes.

    Args:
        about: Of the model.
        given: A dataset's name, the folder of a graph, a graph itself, or what :func:`read_source` returned.
        root: Folder of raw files, as in :func:`mario.load_dataset`.
        plan: The file with the feature plan of the model, to name features that do not fit.
    """
    folder, ids, notes = None, None, []
    classes: tuple[str, ...] = ()
    if isinstance(given, Source):
        data, names, name, folder = given.data, given.domains, given.name, given.folder
        classes = given.class_names
    elif isinstance(given, Data):
        data, names, name = _of_data(about, given)
    else:
        dataset = find(given)
        if isinstance(dataset, FolderDataset):
            folder, name = dataset.folder, dataset.card.name
            data, names = _of_folder(about, dataset, given)
            classes = dataset.graph_card.class_names
        else:
            data, names = _of_name(about, str(given), root)
            name = dataset.card.name
    if data.get("x") is None or not isinstance(data.x, Tensor):
        raise MarioError("the graph has no features x")
    if folder is not None:
        ids = ids_of(folder, _rows(data))
        x, said = in_order(about, data.x, folder, plan)
        data = copy.copy(data) if x is not data.x else data
        data.x = x
        notes += said
    if int(data.x.size(1)) != about.graph.features:
        raise MarioError(
            f"the model was fitted on {about.graph.features} features, {name} has {int(data.x.size(1))}: build it with "
            "`mario graph build --like` the graph of the model"
        )
    given, data = data, copy.copy(data)
    domains, new, unknown = _set_domains(data, about, names)
    if about.center != "never" and about.graph.domains and data.get("domain_id") is None:
        notes.append(f"{name} has no domains ({about.graph.domain}): its rows count as of unknown domain")
    classes = tuple(map(str, classes or data.get("class_names") or ()))
    return Ready(data, given, name, ids or Ids(_rows(data)), folder, domains, classes, new, unknown, tuple(notes))


def in_order(about: About, x: Tensor, folder: Path, plan: Path | None) -> tuple[Tensor, list[str]]:
    """The features of the graph in a folder in the order of the model, by their names, and what to say of them."""
    named = read_card(folder).plan
    if not about.graph.plan or named is None or plan is None:
        return x, []
    if plan_digest(folder / named) == about.graph.plan:
        return x, []
    from mario.graphs.tables.features import FeaturePlan

    due, there = FeaturePlan.load(plan), FeaturePlan.load(folder / named)
    advice = f"build it with `mario graph build ... --like {about.graph.source}`"
    if gone := [name for name in due.columns if name not in there.columns]:
        raise MarioError(f"{folder} lacks {_listed(gone)}, which the model was fitted on: {advice}")
    place = {name: number for number, name in enumerate(there.names)}
    if gone := [name for name in due.names if name not in place]:
        raise MarioError(
            f"{folder} lacks {_listed(gone)} of features, as its features were fitted to other data: {advice}"
        )
    notes = [f"the features of {folder.name} were fitted to its own data, not to that of the model: {advice}"]
    if extra := [name for name in there.columns if name not in due.columns]:
        notes.append(f"{_listed(extra)} of {folder.name} is not used: the model does not know it")
    index = torch.tensor([place[name] for name in due.names])
    if x.layout == torch.sparse_csr:
        return csr_columns(x, index), notes
    return x.index_select(1, index), notes


def plan_digest(path: Path) -> str:
    """What a feature plan says its digest is; this needs no pyarrow."""
    found = read_json(path, "build the graph again")
    return str(found.get("digest", "")) if isinstance(found, dict) else ""


def csr_columns(x: Tensor, index: Tensor) -> Tensor:
    """Some columns of a sparse matrix, in this order."""
    parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
    found = sparse.csr_matrix(parts, tuple(x.shape))[:, index.numpy()].tocsr()
    found.sort_indices()
    starts, columns = (torch.from_numpy(part.astype("int64")) for part in (found.indptr, found.indices))
    return csr(starts, columns, torch.from_numpy(found.data), found.shape)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"the column{'s' * (len(names) > 1)} {shown}{more}"


def ids_of(folder: Path, rows: int) -> Ids:
    """The ids in the folder of a graph, or row numbers if it has none."""
    named = read_card(folder).ids
    return Ids(rows) if named is None else Ids.read(folder / named, rows)


def _rows(data: Data) -> int:
    return count_graphs(data) if "batch" in data else int(data.x.size(0))


def _of_data(about: About, data: Data) -> tuple[Data, tuple[str, ...], str]:
    wanted = about.graph.domain
    if wanted and wanted != "domain_id" and isinstance(data.get(wanted), Tensor) and data.get("domain_id") is None:
        data = copy.copy(data)
        data.domain_id = data[wanted].long()
    return data, domain_names(data, "data"), str(data.get("name") or "graph")


def _of_folder(about: About, dataset: FolderDataset, given: str | os.PathLike[str]) -> tuple[Data, tuple[str, ...]]:
    """The graph as it is saved: what has no labels or no split can be embedded, too."""
    card: GraphCard = dataset.graph_card
    data = dataset.read()
    domain = about.graph.domain
    columns = card.domain_columns()
    if domain in columns and isinstance(data.get(domain), Tensor):
        data.domain_id = data[domain].long()
        return data, columns[domain]
    if data.get("domain_id") is not None or not about.graph.domains:
        return data, domain_names(data, dataset.card.identity)
    if isinstance(data.get(domain), Tensor) and not data[domain].is_floating_point():
        data.domain_id = data[domain].long()
        return data, ()
    try:  # a domain that the split makes, such as one by time
        split = load_dataset(given, domain=domain or None)
    except MarioError:
        return data, ()
    data.domain_id = split.get("domain_id")
    return data, domain_names(split, dataset.card.identity)


def _of_name(about: About, name: str, root: Path | None) -> tuple[Data, tuple[str, ...]]:
    case = dict(about.graph.case) if about.graph.source == name else {}
    known: dict[str, Any] = {key: case.get(key) for key in ("domain", "shift", "setting")}
    data = load_dataset(name, **known, split_seed=int(case.get("split_seed") or 0), root=root)
    same = about.graph.source == name or about.graph.domain == data.get("domain")
    if not same and data.get("domain_id") is not None:
        data = copy.copy(data)
        del data.domain_id
    return data, domain_names(data, name)


def _set_domains(data: Data, about: About, names: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int], int]:
    """Give ``data.domain_id`` the numbers of the model; all domains, the new ones, and the rows of none."""
    ids = data.get("domain_id")
    known = {name: number for number, name in enumerate(about.graph.domains)}
    if ids is None:
        return tuple(known), {}, _rows(data) if known else 0
    data.domain_id = ids = ids.cpu().long()
    top = int(ids.max()) + 1 if len(ids) else 0
    own = tuple(names) if len(names) >= top else tuple(map(str, range(top))) if top <= 100_000 else ()
    if not known or not own:
        return tuple(known), {}, 0
    fresh = [name for name in own if name not in known]
    place = {**known, **{name: len(known) + number for number, name in enumerate(fresh)}}
    table = torch.tensor([place[name] for name in own] + [-1])
    data.domain_id = table[ids.clamp(min=-1)]
    counts = torch.bincount(data.domain_id[data.domain_id >= 0], minlength=len(place))
    new = {name: int(counts[place[name]]) for name in fresh if counts[place[name]]}
    return tuple(place), new, int((ids < 0).sum())
