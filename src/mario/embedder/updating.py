"""A model that goes on training with a new graph and keeps what it knows of the old one."""

import dataclasses
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer
from torch_geometric.data import Data

from mario.arguments import check_seed
from mario.embedder.clock import Clock
from mario.embedder.compact import compact
from mario.embedder.embedding import MEMORY, Embeddings, embed_by
from mario.embedder.fitting import Progress, Watch
from mario.embedder.folder import About, GraphAbout, ModelFolder
from mario.embedder.reading import Given, Ready, make_ready
from mario.embedder.sources import Source, read_source, with_masks
from mario.errors import MarioError
from mario.evaluation import BlockClassifier
from mario.files import check_path
from mario.graphs import Block, BlockMatrix
from mario.graphs.fingerprint import fingerprint
from mario.graphs.samplers import Sampler
from mario.graphs.scratch import Scratch
from mario.methods import WithSteady
from mario.training import train
from mario.training.streams import SELECTION, stream

STEPS, LR, KEEP = 50, 3e-3, 1.0
"""Defaults of an update: optimizer steps, learning rate of Adam, and the weight of what is kept."""
_PER_EPOCH = 10
_HELD = 0.2
_LEAST_LABELS = 20
_SAMPLE = 20_000


@dataclasses.dataclass(frozen=True)
class Moved:
    """How far known vectors have moved.

    Attributes:
        of: Which vectors: ``old graph``, ``shared nodes`` or ``new graph by the old model``.
        rows: Their number.
        mean, low: The mean cosine of a vector before and after, and the cosine that 5 % of them are below.
    """

    of: str
    rows: int
    mean: float
    low: float


@dataclasses.dataclass(frozen=True)
class Updated:
    """What :func:`update` made.

    Attributes:
        model: The updated method.
        head: The classifier, or ``None``.
        embeddings: Of the new graph.
        about: What ``model.json`` will say.
        entry: What was added to its history.
    """

    model: WithSteady
    head: BlockClassifier | None
    embeddings: Embeddings
    about: About
    entry: Mapping[str, Any]


def update(
    folder: ModelFolder,
    graph: Given,
    *,
    replay: Given | None = None,
    keep: float = KEEP,
    steps: int = STEPS,
    lr: float = LR,
    seed: int = 0,
    checkpoint: Path | None = None,
    root: Path | None = None,
    memory: int = MEMORY,
    device: str = "cpu",
    budget: float | None = None,
    watch: Watch | None = None,
) -> Updated:
    """Go on training on ``graph`` while known embeddings stay where they are.

    Each step adds to the loss of the method ``keep`` times the mean squared distance of the embeddings from those of
    the model before the update, in units of their variance (distillation, as in Li & Hoiem, Learning without
    forgetting, ECCV 2016). If the old graph is there, half of the batches are of it, and only its nodes are kept where
    they are (replay). If it is not there and nodes of the new graph have ids of the old one, these are kept; if there
    are none, all. The statistics of batch norm, the scale of each channel and the centers of known domains stay;
    centers follow what the encoder has moved them by. New domains get a center.

    Args:
        folder: The model.
        graph: The new graph.
        replay: The old graph, if it is still there.
        keep: Weight of the distance from the model before the update; 0 lets it forget.
        steps: Optimizer steps.
        lr: Learning rate.
        seed: Of batches and views.
        checkpoint: Where to keep what is needed to go on after a stop.
        root: Folder of raw files.
        memory: Bytes that matrices may take.
        device: ``auto``, ``cpu`` or ``cuda``.
        budget: Seconds after which training stops.
        watch: Called with the :class:`mario.embedder.Progress`.
    """
    check_seed("seed", seed)
    if steps < 1 or not 0 < lr < 10 or not 0 <= keep < 1e6:
        raise MarioError(f"steps must be at least 1, lr from 0 to 10 and keep from 0 on; got {steps}, {lr} and {keep}")
    about = folder.about
    model, before = folder.model(device), folder.model(device)
    new = make_ready(about, graph, root=root, plan=folder.plan)
    old = None if replay is None else _old(folder, replay, root)
    same = None if old is not None else shared(folder, new)
    known = None if same is None else same >= 0
    took = _train(
        model,
        before,
        new.data,
        None if old is None else old.data,
        known,
        keep=keep,
        steps=steps,
        lr=lr,
        seed=seed,
        checkpoint=checkpoint,
        identity={"model": folder.digest, "old": None if old is None else old.fingerprint},
        clock=Clock(budget),
        watch=watch or (lambda progress: None),
    )
    with Scratch(memory=memory):
        if old is not None:
            _recenter(model, before, old.data, torch.ones(len(old.ids), dtype=torch.bool), new)
        else:
            _recenter(model, before, new.data, known if known is not None and known.any() else None, new)
    about = _about(about, new)
    z = embed_by(model, about, new, memory=memory)
    moved = _moved(folder, model, before, z, old, same, memory)
    head, labels = _head(folder, z, new, None if old is None else embed_by(model, about, old, memory=memory), old, seed)
    entry = {
        "from": folder.digest,
        "graph": {"name": new.name, "fingerprint": new.fingerprint, "nodes": len(new.ids)},
        "kept_by": "replay"
        if old is not None
        else "shared ids"
        if known is not None and known.any()
        else "distillation",
        "steps": took,
        "keep": keep,
        "lr": lr,
        "seed": seed,
        "new_domains": list(new.new_domains),
        "moved": dataclasses.asdict(moved),
        "head": labels,
    }
    classes = about.class_names if head is None else tuple(str(name) for name in _names_of(head, about))
    about = dataclasses.replace(about, history=(*about.history, entry), class_names=classes)
    return Updated(model, head, z, about, entry)


def shared(folder: ModelFolder, new: Ready) -> Tensor | None:
    """The row of the old graph that each row of the new one was, -1 for a new one; ``None`` if nothing tells."""
    ids = folder.ids()
    if not ids.named or not new.ids.named:
        return None
    import pyarrow
    import pyarrow.compute as compute

    mine, theirs = new.ids.column, ids.column
    if mine.type != theirs.type:
        try:
            mine = mine.cast(theirs.type)
        except pyarrow.ArrowException:
            return None
    found = compute.fill_null(compute.index_in(mine, value_set=theirs), -1)
    return torch.from_numpy(np.asarray(found).astype(np.int64))


def graph_of_fit(folder: ModelFolder, *, root: Path | None = None) -> Given | None:
    """The graph that the model was fitted on, if it is still where it was, with every number as it was."""
    about = folder.about.graph
    if about.source == "data":
        return None
    case = {key: value for key, value in about.case.items() if key in ("domain", "shift", "setting", "split_seed")}
    for read in (
        lambda: read_source(about.source, **case, root=root),
        lambda: make_ready(folder.about, about.source, root=root, plan=folder.plan).given,
    ):
        try:
            found = read()
        except MarioError:
            continue
        if fingerprint(found.data if isinstance(found, Source) else found) == about.fingerprint:
            return found if isinstance(found, Source) else about.source
    return None


def _old(folder: ModelFolder, replay: Given, root: Path | None) -> Ready:
    old = make_ready(folder.about, replay, root=root, plan=folder.plan)
    if old.new_domains:
        name = next(iter(old.new_domains))
        raise MarioError(f"{old.name} has the domain {name!r}, which the model was not fitted on: it is not its graph")
    return old


# Training -------------------------------------------------------------------------------------------------------------


class _Kept(nn.Module):
    """A method in training, held near what it was; what :func:`mario.training.train` needs of a method."""

    def __init__(
        self,
        method: WithSteady,
        before: WithSteady,
        old: Data | None,
        keep: float,
        epochs: int,
        per_epoch: int,
        lr: float,
    ) -> None:
        super().__init__()
        self.method, self.old, self.keep = method, old, keep
        self.before = before.eval()
        for part in self.before.parameters():
            part.requires_grad_(False)
        self.epochs, self.steps_per_epoch, self.lr = epochs, per_epoch, lr
        self.schedule, self.warmup, self.patience = "constant", 0, 0
        self.milestones: tuple[int, ...] = ()

    def train(self, mode: bool = True) -> "_Kept":
        """Statistics of batch norm are those of the first fit, and the model before the update is at rest."""
        super().train(mode)
        self.before.eval()
        for part in self.method.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eval()
        return self

    def identity(self) -> dict[str, Any]:
        return {**self.method.identity(), "keep": self.keep, "update_lr": self.lr}

    def sampler(self, graph: Data) -> Sampler:
        own = self.method.sampler(graph)
        return own if self.old is None else _Alternating(own, self.method.sampler(self.old))

    def optimizer(self) -> Optimizer:
        return torch.optim.Adam(self.method.trained(), lr=self.lr)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        kept = batch.kept
        del batch.kept
        figures = self.method.step(batch, generator)
        if self.keep and bool(kept.any()):
            with torch.no_grad():
                due = self.before.embed(batch)
            self.method.eval()
            far = (self.method.embed(batch) - due).square().sum(1)
            self.train()
            rows = kept if len(kept) == len(far) else torch.ones(len(far), dtype=torch.bool)
            spread = (due - due.mean(0)).square().sum(1).mean().clamp(min=1e-12)
            loss = far[rows].mean() / spread
            (self.keep * loss).backward()
            figures["moved"] = loss.item()
        return figures

    def after_step(self, step: int, total: int) -> None:
        self.method.after_step(step, total)

    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        return {}


class _Alternating(Sampler):
    """Batches of two graphs, each of them half of the time."""

    def __init__(self, new: Sampler, old: Sampler) -> None:
        super().__init__(new.data)
        self.new, self.old = new, old

    def sample(self, generator: torch.Generator | None = None) -> Data:
        old = bool(torch.rand((), generator=generator) < 0.5)
        return (self.old if old else self.new).sample(generator)

    def epoch(self, generator: torch.Generator | None = None) -> Iterator[Data]:
        yield from self.new.epoch(generator)
        yield from self.old.epoch(generator)


def _train(
    model: WithSteady,
    before: WithSteady,
    new: Data,
    old: Data | None,
    known: Tensor | None,
    *,
    keep: float,
    steps: int,
    lr: float,
    seed: int,
    checkpoint: Path | None,
    identity: dict[str, Any],
    clock: Clock,
    watch: Watch,
) -> int:
    """Train; the number of steps that were taken, 0 if the method has no weights."""
    if not model.trains or not model.trained() or not any(part.numel() for part in model.trained()):
        return 0
    per_epoch = min(_PER_EPOCH, steps)
    if old is not None:
        mine, theirs = torch.zeros(_rows(new), dtype=torch.bool), torch.ones(_rows(old), dtype=torch.bool)
    else:
        mine = known if known is not None and bool(known.any()) else torch.ones(_rows(new), dtype=torch.bool)
        theirs = None
    graph = _seen(model, new, mine)
    past = None if old is None or theirs is None else _seen(model, old, theirs)
    kept = _Kept(model, before, past, keep, max(1, round(steps / per_epoch)), per_epoch, lr)
    home = None if checkpoint is None else check_path("checkpoint", checkpoint)
    began, taken = time.monotonic(), 0
    with closing(train(kept, graph, seed=seed, folder=home, identity=identity, save_every=20.0)) as epochs:
        for epoch in epochs:
            taken = epoch.step
            left = (time.monotonic() - began) / max(1, epoch.number) * (kept.epochs - epoch.number)
            watch(Progress("training", model.name, epoch.number, kept.epochs, left, epoch.losses.get("loss")))
            if clock.left() <= 0:
                break
    model.eval()
    return taken


def _rows(data: Data) -> int:
    return int(data.x.size(0))


def _seen(model: WithSteady, data: Data, kept: Tensor) -> Data:
    """What training may see of a graph, with the nodes that are kept where they are."""
    graph = model.see(data)
    graph.kept = kept[graph.n_id.cpu()] if "n_id" in graph else kept
    return graph


# Centers --------------------------------------------------------------------------------------------------------------


def _recenter(model: WithSteady, before: WithSteady, data: Data, known: Tensor | None, new: Ready) -> None:
    """Move the centers of known domains as the encoder has moved them, and give new domains a center of their own.

    ``data`` has nodes that were known before: those in ``known``, or all.
    """
    facts, tensors = model.settled()
    if not any(f"{name}.centers" in tensors for name in facts):
        return
    domain = data.get("domain_id")
    domain = torch.full((_rows(data),), -1) if domain is None else domain.cpu()
    rows = torch.arange(len(domain)) if known is None else known.nonzero().view(-1)
    raw_before, raw_after = before.raw_channels(data), model.raw_channels(data)
    fresh = new.data.get("domain_id")
    raw_new = raw_after if data is new.data else model.raw_channels(new.data)
    for name in facts:
        if f"{name}.centers" not in tensors:
            continue
        ids, centers, mean = (tensors[f"{name}.{part}"] for part in ("domains", "centers", "mean"))
        place = torch.searchsorted(ids, domain[rows]).clamp(max=len(ids) - 1)
        group = torch.where(ids[place] == domain[rows], place, len(ids))
        counts = torch.bincount(group, minlength=len(ids) + 1).clamp(min=1).unsqueeze(1)
        sums = [raw[name].rows(rows).group_sums(group, len(ids) + 1) for raw in (raw_before, raw_after)]
        overall = (sums[1] - sums[0]).sum(0) / max(1, len(rows))
        shift = torch.where(
            torch.bincount(group, minlength=len(ids) + 1)[: len(ids), None] > 0,
            ((sums[1] - sums[0]) / counts)[: len(ids)],
            overall,
        )
        centers, mean = (centers + shift).to(centers.dtype), (mean + overall).to(mean.dtype)
        if fresh is not None:
            added = [one for one in fresh.unique().tolist() if one >= 0 and not bool((ids == one).any())]
            for one in added:
                own = (fresh == one).nonzero().view(-1).cpu()
                part = raw_new[name].rows(own)
                total = part.group_sums(torch.zeros(len(own), dtype=torch.long), 1)[0]
                share = min(1.0, len(own) / model.min_nodes)
                center = share * total / len(own) + (1 - share) * mean.double()
                ids = torch.cat([ids, torch.tensor([one])])
                centers = torch.cat([centers, center[None].to(centers.dtype)])
        order = ids.argsort()
        tensors |= {f"{name}.domains": ids[order], f"{name}.centers": centers[order], f"{name}.mean": mean}
    model.resettle(facts, {name: part.contiguous() for name, part in tensors.items()})


# What came of it ------------------------------------------------------------------------------------------------------


def _about(about: About, new: Ready) -> About:
    graph = GraphAbout(
        name=new.name,
        source=str(new.folder or new.name),
        fingerprint=new.fingerprint,
        plan=about.graph.plan,
        nodes=_rows(new.data),
        edges=int(new.data.edge_index.size(1)),
        features=about.graph.features,
        level=about.graph.level,
        domain=about.graph.domain,
        domains=new.domains if about.graph.domains else (),
        case={},
        label=about.graph.label,
    )
    return dataclasses.replace(about, graph=graph, asked=None)


def _moved(
    folder: ModelFolder,
    model: WithSteady,
    before: WithSteady,
    z: Embeddings,
    old: Ready | None,
    same: Tensor | None,
    memory: int,
) -> Moved:
    """The cosine of known vectors before and after, on at most 20,000 of them."""
    if old is not None:
        first, second = (embed_by(one, folder.about, old, memory=memory) for one in (before, model))
        rows = _some(len(first))
        return _cosines("old graph", first.blocks.rows(rows), second.blocks.rows(rows))
    kept = folder.training()
    if same is not None and bool((same >= 0).any()):
        place = torch.full((int(max(same.max(), kept.rows.max())) + 1,), -1)
        place[kept.rows] = torch.arange(len(kept.rows))
        now = (same >= 0).nonzero().view(-1)
        now = now[place[same[now]] >= 0]
        now = now[_some(len(now))]
        if len(now):
            found = compact(z.blocks.rows(now))
            return _moved_by("shared nodes", kept.z[place[same[now]]], found)
    first = embed_by(before, z.about, z.graph, memory=memory)
    rows = _some(len(first))
    return _cosines("new graph by the old model", first.blocks.rows(rows), z.blocks.rows(rows))


def _some(count: int) -> Tensor:
    if count <= _SAMPLE:
        return torch.arange(count)
    return torch.randperm(count, generator=stream(0, 7, 0, SELECTION))[:_SAMPLE].sort().values


def _cosines(of: str, first: BlockMatrix, second: BlockMatrix) -> Moved:
    return _moved_by(of, compact(first), compact(second))


def _moved_by(of: str, first: Tensor, second: Tensor) -> Moved:
    cosine = F.cosine_similarity(first, second)
    both = (first.square().sum(1) > 0) & (second.square().sum(1) > 0)
    cosine = cosine[both] if bool(both.any()) else torch.ones(1)
    return Moved(of, len(first), round(float(cosine.mean()), 5), round(float(cosine.quantile(0.05)), 5))


def _head(
    folder: ModelFolder, z: Embeddings, new: Ready, z_old: Embeddings | None, old: Ready | None, seed: int
) -> tuple[BlockClassifier | None, str]:
    """The classifier to keep, and why: the old one, unless one with the new labels is clearly better."""
    head, names = folder.head(), folder.about.class_names
    labeled = _labels(new)
    if labeled is None or len(labeled[0]) < _LEAST_LABELS or len(set(labeled[1])) < 2:
        return head, "kept: the new graph has too few labels" if head is not None else "none"
    some = _some(len(labeled[0]))
    rows, texts = labeled[0][some], [labeled[1][i] for i in some.tolist()]
    order = torch.randperm(len(rows), generator=stream(seed, 8, 0, SELECTION))
    held, fitted = order[: round(_HELD * len(rows))], order[round(_HELD * len(rows)) :]
    truth = np.array(texts)
    own = z.blocks.rows(rows)
    parts, y = own.rows(fitted), truth[fitted.numpy()]
    before = _labels(old) if old is not None else None
    if before is not None and z_old is not None:
        some = _some(len(before[0]))
        earlier = z_old.blocks.rows(before[0][some])
        parts, y = _stacked(earlier, parts), np.concatenate([np.array(before[1])[some.numpy()], y])
    if len(set(y)) < 2:
        return head, "kept: the new labels are of one class" if head is not None else "none"
    other = BlockClassifier(seed=seed, metric="accuracy").fit(
        parts, y, validation=(own.rows(held), truth[held.numpy()])
    )
    if head is None:
        return other, f"fitted to {len(y):,} labels"
    said = np.array(names)[[list(head.classes_).index(one) for one in head.predict(own.rows(held))]]
    first, second = said == truth[held.numpy()], other.predict(own.rows(held)) == truth[held.numpy()]
    gain = second.astype(float) - first.astype(float)
    error = float(gain.std(ddof=1) / max(1, len(gain)) ** 0.5)
    figures = f"{100 * first.mean():.1f} % and {100 * second.mean():.1f} % on {len(held):,} labels held out"
    if gain.mean() > error:
        return other, f"fitted again with the new labels (before and after: {figures})"
    return head, f"kept: with the new labels it is not clearly better (before and after: {figures})"


def _names_of(head: BlockClassifier, about: About) -> list[str]:
    return [str(name) for name in head.classes_] if head.classes_.dtype.kind in "OU" else list(about.class_names)


def _stacked(first: BlockMatrix, second: BlockMatrix) -> BlockMatrix:
    """The rows of two matrices, one below the other."""
    return BlockMatrix(
        {
            name: Block(torch.cat([first[name].dense(torch.float32), second[name].dense(torch.float32)]))
            for name in first
        }
    )


def _labels(graph: Ready) -> tuple[Tensor, list[str]] | None:
    """The rows that may be trained on, and the names of their labels."""
    data = with_masks(graph.data)
    if data.get("y") is None or data.get("train_mask") is None:
        return None
    rows = ((data.y >= 0) & data.train_mask).cpu().nonzero().view(-1)
    names = list(graph.class_names) or [str(i) for i in range(int(data.y.max()) + 1)]
    return (rows, [names[label] for label in data.y[rows].tolist()]) if len(rows) else None
