"""Our own generator of graphs of any size with classes, domains and a shift between them, written to disk in blocks.

The signal that holds in every domain is weak in a node and strong in its neighborhood: the class has a faint signal in
most feature columns, and neighbors tend to share the class. The signal that holds in the training domains only is easy:
a cue in a few columns agrees with the class there, and less or not at all in other domains.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mario.errors import MarioError
from mario.graphs.mapped import finish_folder, new_folder, write_array
from mario.graphs.splits import seeded

_ROWS, _PAIRS = 1 << 15, 1 << 20  # rows of features and pairs of nodes per block


def write_shifting(
    folder: str | os.PathLike[str],
    *,
    nodes: int = 1_000_000,
    edges: int = 10_000_000,
    features: int = 128,
    classes: int = 10,
    domains: tuple[int, int, int] = (6, 2, 2),
    homophily: float = 0.5,
    within: float = 0.95,
    skew: float = 2.0,
    signal: float = 0.3,
    cue: float = 1.0,
    cue_columns: int = 16,
    agreement: tuple[float, float, float] = (0.9, 0.3, 0.0),
    offset: float = 0.1,
    labels: int = 3,
    judged: float = 0.1,
    seed: int = 0,
) -> None:
    """Write a graph under concept shift to a new ``folder``, which `mario.graphs.load_mapped` reads.

    Nodes have a class and a domain, both uniform. Edges are those of a degree-corrected planted partition (Karrer &
    Newman, Phys. Rev. E 2011), without loops and duplicates, each in both directions. The features of a node of class
    y in domain d are μ_y + ν_s + δ_d + ε: ε is standard normal noise; μ_y, random signs of size ``signal``, is in the
    last columns; ν_s, random signs of size ``cue``, is in the first ``cue_columns``; s, the class that the cue
    indicates, is y with the probability ``agreement`` of the domain, and a random class otherwise; δ_d is a normal draw
    of size ``offset`` in all columns.

    The result is a function of the arguments. Memory holds one block at a time and about 60 bytes per node.

    Args:
        folder: is created; must be empty if it exists.
        nodes: number of nodes.
        edges: number of edges, counting both directions; fewer if the graph is so small that most are duplicates.
        features: columns of ``x``.
        classes: number of classes.
        domains: number of training, ``ood_val`` and ``ood_test`` domains, in this order of ``domain_id``.
        homophily: probability that a link is drawn within the class; other links go to any class.
        within: probability that a link is drawn within the domain; other links go to any domain.
        skew: how uneven degrees are. Among the n nodes of a class in a domain, the one at rank r n is linked with a
            probability that falls as r^(1/skew - 1): 1 is even, 2 has the tail of a Barabasi-Albert graph.
        signal: size of the class's signs in each of its columns.
        cue: size of the cue's signs.
        cue_columns: columns of the cue.
        agreement: of cue and class in the training, ``ood_val`` and ``ood_test`` domains. Training domains differ:
            theirs are spread evenly by up to 0.1 around it.
        offset: size of the shift of a domain's features.
        labels: nodes of each class, from any training domain, in ``train_mask``. The number does not grow with the
            graph: large graphs have few labels.
        judged: fraction of the other nodes of training domains in ``id_val_mask``, and the same in ``id_test_mask``.
        seed: seed of the generator.

    Example:
        >>> import tempfile
        >>> from mario.graphs import load_mapped
        >>> with tempfile.TemporaryDirectory() as home:
        ...     write_shifting(f"{home}/small", nodes=2000, edges=8000, features=32)
        ...     data = load_mapped(f"{home}/small")
        >>> data.num_nodes, data.num_edges, data.num_features, data.num_classes
        (2000, 8000, 32, 10)
    """
    _check(nodes, edges, features, classes, domains, cue_columns, labels)
    _check_fractions(homophily=homophily, within=within, judged=judged, agreement=agreement)
    if not skew > 0:
        raise MarioError(f"skew must be above 0, got {skew}")
    generator = seeded(seed)
    home = new_folder(folder)
    num_domains = sum(domains)
    y = torch.randint(classes, (nodes,), generator=generator)
    domain = torch.randint(num_domains, (nodes,), generator=generator)
    shape = (signal, cue, offset)
    arrays = _write_split(home, y, domain, domains, labels, judged, generator)
    _write_edges(home, _Links(y, domain, classes, num_domains, (homophily, within, skew)), edges, generator)
    agrees = _agreements(domains, agreement)[domain]
    write_array(
        home / "x.npy",
        np.float32,
        (nodes, features),
        _features(y, domain, agrees, (classes, num_domains, features, cue_columns), shape, generator),
    )
    plain: dict[str, Any] = {"num_classes": classes, "shift": "concept", "setting": "transductive", "split_seed": seed}
    finish_folder(home, ("x", "edge_index", "starts", *arrays), plain, symmetric=True)


def _check(
    nodes: int, edges: int, features: int, classes: int, domains: tuple[int, int, int], cue_columns: int, labels: int
) -> None:
    for name, value, low in (("nodes", nodes, 2), ("edges", edges, 2), ("classes", classes, 2), ("labels", labels, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            raise MarioError(f"{name} must be a whole number of at least {low}, got {value!r}")
    if not 0 < cue_columns < features:
        raise MarioError(f"cue_columns must leave columns for the class: 1..{features - 1}, got {cue_columns}")
    if len(domains) != 3 or min(domains) < 1:
        raise MarioError(f"domains must be three numbers of at least 1, got {domains!r}")


def _check_fractions(**given: float | Sequence[float]) -> None:
    for name, value in given.items():
        values = value if isinstance(value, Sequence) else (value,)
        if not all(0 <= fraction <= 1 for fraction in values):
            raise MarioError(f"{name} must be from 0 to 1, got {value!r}")
    if given["judged"] > 0.5:  # type: ignore[operator]
        raise MarioError(f"judged must be at most 0.5, as there are two such parts, got {given['judged']!r}")


def _agreements(domains: tuple[int, int, int], agreement: tuple[float, float, float]) -> Tensor:
    """The agreement of each domain. Training domains differ, otherwise they could not show that the cue is unstable."""
    spread = torch.linspace(0.1, -0.1, domains[0]) if domains[0] > 1 else torch.zeros(1)
    train = (agreement[0] + spread).clamp(0, 1)
    return torch.cat([train, torch.full((domains[1],), agreement[1]), torch.full((domains[2],), agreement[2])])


def _write_split(
    home: Path,
    y: Tensor,
    domain: Tensor,
    domains: tuple[int, int, int],
    labels: int,
    judged: float,
    generator: torch.Generator,
) -> list[str]:
    """Write labels, masks, domains and environments; return the names of the arrays."""
    draw = torch.rand(y.numel(), generator=generator)
    seen = domain < domains[0]
    train = torch.zeros_like(seen)
    for label in np.unique(y.numpy()).tolist():
        own = (seen & (y == label)).nonzero().view(-1)
        train[own[torch.randperm(own.numel(), generator=generator)[:labels]]] = True
    rest = seen & ~train
    first_test = domains[0] + domains[1]
    masks = {
        "train": train,
        "id_val": rest & (draw < judged),
        "id_test": rest & (draw >= judged) & (draw < 2 * judged),
        "ood_val": ~seen & (domain < first_test),
        "ood_test": domain >= first_test,
        "visible": seen,
    }
    tensors = {"y": y, **{f"{part}_mask": mask for part, mask in masks.items()}, "domain_id": domain}
    tensors["env_id"] = domain.masked_fill(~masks["train"], -1)
    for key, tensor in tensors.items():
        write_array(home / f"{key}.npy", tensor.numpy().dtype, tensor.shape, [tensor.numpy()])
    return list(tensors)


class _Links:
    """Random links of a degree-corrected planted partition whose groups are the classes of each domain."""

    def __init__(
        self, y: Tensor, domain: Tensor, classes: int, domains: int, chances: tuple[float, float, float]
    ) -> None:
        self.classes, self.domains, self.nodes = classes, domains, y.numel()
        self.homophily, self.within, self.skew = chances
        self.group = y * domains + domain
        self.sizes = torch.bincount(self.group, minlength=classes * domains)
        self.first = self.sizes.cumsum(0) - self.sizes
        # A node's rank in its group decides its degree. Nodes are in random order, so ranks are random too.
        self.members = self.group.argsort(stable=True)

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """The two ends of up to ``count`` links, the lower one first, as ``low * nodes + high``."""
        seed = self.group[torch.randint(self.nodes, (count,), generator=generator)]
        label = torch.randint(self.classes, (count,), generator=generator)
        place = torch.randint(self.domains, (count,), generator=generator)
        chance = torch.rand((2, count), generator=generator)
        label = torch.where(chance[0] < self.homophily, seed // self.domains, label)
        place = torch.where(chance[1] < self.within, seed % self.domains, place)
        other = label * self.domains + place
        source, target = self._member(seed, generator), self._member(other, generator)
        kept = (source != target) & (self.sizes[other] > 0)
        low, high = torch.minimum(source, target)[kept], torch.maximum(source, target)[kept]
        return low * self.nodes + high

    def _member(self, group: Tensor, generator: torch.Generator) -> Tensor:
        rank = torch.rand(group.numel(), dtype=torch.float64, generator=generator).pow_(self.skew)
        slot = self.first[group] + (rank * self.sizes[group]).long()
        return self.members[slot.clamp_(max=self.nodes - 1)]


def _write_edges(home: Path, links: _Links, edges: int, generator: torch.Generator) -> None:
    """Write ``edge_index.npy`` and ``starts.npy``, sorted bucket by bucket: memory holds one bucket at a time."""
    nodes, wanted = links.nodes, edges // 2
    buckets = -(-edges // (2 * _PAIRS))
    counts = torch.zeros(nodes, dtype=torch.int64)
    with tempfile.TemporaryDirectory(dir=home) as private:
        drawn, turned = (_Buckets(Path(private), name, buckets) for name in ("drawn", "turned"))
        with drawn:
            left = wanted + wanted // 8 + 64  # some are duplicates
            while left > 0:
                keys = links.draw(min(left, _PAIRS), generator)
                drawn.add(keys, keys % buckets)
                left -= _PAIRS
        distinct = drawn.each(np.unique)
        total, seen, kept = sum(distinct), 0, 0
        with turned:
            for bucket, size in enumerate(distinct):
                # A share of each bucket, such that all shares sum to `wanted`.
                seen += size
                share = min(size, wanted * seen // total - kept) if total > wanted else size
                kept += share
                keys = drawn.read(bucket)[torch.randperm(size, generator=generator)[:share]]
                low, high = keys // nodes, keys % nodes
                both = torch.cat([keys, high * nodes + low])
                turned.add(both, both // nodes * buckets // nodes)
        turned.each(np.sort)
        for bucket in range(buckets):
            counts += torch.bincount(turned.read(bucket) // nodes, minlength=nodes)
        ends = (turned.read(bucket).numpy() for bucket in range(buckets))
        others = (turned.read(bucket).numpy() for bucket in range(buckets))
        halves = (
            keys // nodes if half == 0 else keys % nodes for half, part in enumerate((ends, others)) for keys in part
        )
        write_array(home / "edge_index.npy", np.int64, (2, 2 * kept), halves)
    starts = torch.zeros(nodes + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=starts[1:])
    write_array(home / "starts.npy", np.int64, starts.shape, [starts.numpy()])


class _Buckets(ExitStack):
    """Whole numbers in files, each small enough to be sorted in memory."""

    def __init__(self, folder: Path, name: str, count: int) -> None:
        super().__init__()
        self.paths = [folder / f"{name}-{bucket}" for bucket in range(count)]

    def __enter__(self) -> "_Buckets":
        self.files = [self.enter_context(path.open("wb")) for path in self.paths]
        return self

    def add(self, keys: Tensor, bucket: Tensor) -> None:
        ordered = keys[bucket.argsort(stable=True)].numpy()
        ends = torch.bincount(bucket, minlength=len(self.paths)).cumsum(0).numpy()
        for file, part in zip(self.files, np.split(ordered, ends[:-1]), strict=True):
            part.tofile(file)

    def read(self, bucket: int) -> Tensor:
        return torch.from_numpy(np.fromfile(self.paths[bucket], dtype=np.int64))

    def each(self, change: Any) -> list[int]:
        """Replace each file's numbers by ``change`` of them; return the new counts."""
        sizes = []
        for bucket, path in enumerate(self.paths):
            changed = change(self.read(bucket).numpy())
            changed.tofile(path)
            sizes.append(len(changed))
        return sizes


def _features(
    y: Tensor,
    domain: Tensor,
    agrees: Tensor,
    counts: tuple[int, int, int, int],
    sizes: tuple[float, float, float],
    generator: torch.Generator,
) -> Iterator[np.ndarray]:
    """Yield blocks of rows of x."""
    classes, domains, width, cue_columns = counts
    signal, cue, offset = sizes

    def signs(columns: int) -> Tensor:
        return torch.randint(2, (classes, columns), generator=generator).float() * 2 - 1

    meaning = signs(width - cue_columns) * signal
    claim = signs(cue_columns) * cue
    place = torch.randn((domains, width), generator=generator) * offset
    for start in range(0, y.numel(), _ROWS):
        rows = slice(start, start + _ROWS)
        count = y[rows].numel()
        x = torch.randn((count, width), generator=generator)
        claimed = torch.randint(classes, (count,), generator=generator)
        honest = torch.rand(count, generator=generator) < agrees[rows]
        x += place[domain[rows]]
        x[:, cue_columns:] += meaning[y[rows]]
        x[:, :cue_columns] += claim[torch.where(honest, y[rows], claimed)]
        yield x.numpy()
