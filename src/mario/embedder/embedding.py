"""Embeddings and predictions of any graph by a model folder."""

import copy
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from mario.embedder.compact import compact, width_of
from mario.embedder.folder import About, ModelFolder
from mario.embedder.ids import Ids
from mario.embedder.reading import Given, Ready, make_ready
from mario.errors import MarioError
from mario.evaluation import BlockClassifier
from mario.graphs import BlockMatrix
from mario.graphs.scratch import Scratch
from mario.methods import WithSteady

MEMORY = 2**31
"""Bytes that matrices of nodes and edges may take before they are put into temporary files."""
ROWS = 2**14
_SHOWN = 5


@dataclasses.dataclass(frozen=True)
class Embeddings:
    """The embeddings of a graph: not written out, but made a batch at a time.

    Attributes:
        blocks: Named blocks of columns.
        ids: Of the rows.
        graph: What was embedded.
        about: Of the model.
        digest: Of the model folder, or ``""``.
        notes: What a user should know: domains that the model was not fitted on, and how those are centered.
    """

    blocks: BlockMatrix
    ids: Ids
    graph: Ready
    about: About
    digest: str
    notes: tuple[str, ...]

    def __len__(self) -> int:
        """The number of rows."""
        return self.blocks.shape[0]

    @property
    def columns(self) -> list[str]:
        """The name of each column, such as ``graph_0``."""
        return [f"{name}_{i}" for name, block in self.blocks.items() for i in range(block.shape[1])]

    def width(self, *, narrow: bool = False) -> int:
        """The number of columns of :meth:`batches`."""
        widths = [block.shape[1] for block in self.blocks.values()]
        return width_of(widths) if narrow else sum(widths)

    def batches(self, rows: int = ROWS, *, narrow: bool = False) -> Iterator[tuple[int, int, Tensor]]:
        """First row, row behind the last, and the vectors in float32, a batch of ``rows`` at a time.

        With ``narrow``, blocks of more than 1,024 columns are projected to 256, as :func:`mario.embedder.compact` does.
        """
        if rows < 1:
            raise MarioError(f"rows must be at least 1, got {rows}")
        for start in range(0, len(self), rows):
            stop = min(start + rows, len(self))
            part = self.blocks.rows(torch.arange(start, stop))
            yield start, stop, compact(part) if narrow else part.dense(torch.float32)

    def dense(self, *, narrow: bool = False) -> Tensor:
        """All vectors in float32, in memory."""
        found = torch.empty(len(self), self.width(narrow=narrow))
        for start, stop, part in self.batches(narrow=narrow):
            found[start:stop] = part
        return found


def embed(
    folder: ModelFolder,
    graph: Given,
    *,
    root: Path | None = None,
    memory: int = MEMORY,
    temporary: Path | None = None,
    device: str = "cpu",
) -> Embeddings:
    """Embed a graph: that of the training, or one that the model has never seen.

    The same graph gives the same bits; its nodes in another order give the same vectors up to rounding (1e-5). A domain
    that the model was not fitted on is centered by its own nodes, all of which have to be in ``graph`` for that.

    Args:
        folder: The model.
        graph: A dataset's name, the folder of a graph, a ``Data``, or what `read_source` returned.
        root: Folder of raw files, as in :func:`mario.load_dataset`.
        memory: Bytes that matrices may take; what does not fit is in temporary files.
        temporary: Folder of these; ``None`` is the system's.
        device: ``auto``, ``cpu`` or ``cuda``.

    Example:
        >>> import mario, tempfile
        >>> from pathlib import Path
        >>> from mario.embedder import ModelFolder, conclude, fit_graph, read_source, write_model
        >>> source = read_source("good-cbas", shift="covariate")
        >>> fitted = fit_graph(source.data, given={"method": "grace", "steps": 1, "hidden_channels": 8})
        >>> with tempfile.TemporaryDirectory() as home:
        ...     folder = write_model(conclude(fitted, source), Path(home) / "model")
        ...     z = embed(folder, "good-cbas")
        ...     found = predict(folder, z)
        >>> z.dense().shape == (len(z), z.width()), tuple(found.probabilities(0, 2).shape)
        (True, (2, 4))
    """
    return embed_by(
        folder.model(device),
        folder.about,
        make_ready(folder.about, graph, root=root, plan=folder.plan),
        digest=folder.digest,
        memory=memory,
        temporary=temporary,
    )


def embed_by(
    model: WithSteady,
    about: About,
    graph: Ready,
    *,
    digest: str = "",
    memory: int = MEMORY,
    temporary: Path | None = None,
) -> Embeddings:
    """:func:`embed` by a model in memory, of a graph that :func:`make_ready` returned."""
    data = copy.copy(graph.data)
    centered = any(decision.centered for decision in model.decisions_)
    if centered and data.get("domain_id") is None:
        data.domain_id = torch.full((len(graph.ids),), -1)
    with Scratch(temporary, memory=memory):
        blocks = model.blocks(data)
    notes = (*graph.notes, *(_about_domains(graph, model.min_nodes) if centered else ()))
    return Embeddings(blocks, graph.ids, graph, about, digest, notes)


def _about_domains(graph: Ready, least: int) -> Iterator[str]:
    new = sorted(graph.new_domains.items(), key=lambda pair: -pair[1])
    for name, count in new[:_SHOWN]:
        how = "by its own rows" if count >= least else "mostly by the mean of the training, as it has so few rows"
        if least > count >= least / 2:
            how = "by its own rows and the mean of the training, as it has few rows"
        yield f"domain {name!r} is new to the model ({count:,} {_rows(count)}): centered {how}"
    if len(new) > _SHOWN:
        yield f"{len(new) - _SHOWN} more domains are new to the model: each is centered by its own rows"
    if graph.unknown:
        yield f"{graph.unknown:,} {_rows(graph.unknown)} of unknown domain: centered by the mean of the training"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


@dataclasses.dataclass(frozen=True)
class Predictions:
    """The label of every row by the head of a model, with calibrated probabilities.

    Attributes:
        embeddings: What the labels are predicted from.
        label: The name of the label column.
        class_names: The classes, in the order of the probabilities.
        warnings: What a user should know before relying on them.
    """

    embeddings: Embeddings
    head: BlockClassifier
    label: str
    class_names: tuple[str, ...]
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.embeddings)

    def probabilities(self, start: int, stop: int) -> Tensor:
        """The probability of each class, float64 ``[rows, classes]``, for consecutive rows."""
        stop = min(stop, len(self))
        rows = self.embeddings.blocks.rows(torch.arange(start, stop))
        return torch.from_numpy(self.head.predict_proba(rows))

    def batches(self, rows: int = ROWS) -> Iterator[tuple[int, int, Tensor]]:
        """First row, row behind the last, and probabilities, a batch at a time."""
        for start in range(0, len(self), rows):
            stop = min(start + rows, len(self))
            yield start, stop, self.probabilities(start, stop)


def predict(folder: ModelFolder, graph: Given | Embeddings, **options: object) -> Predictions:
    """Predict the label of every row of a graph.

    Args:
        folder: The model, which must have been fitted with labels.
        graph: As in :func:`embed`, or what that returned.
        options: As in :func:`embed`.
    """
    head = folder.head()
    if head is None:
        raise MarioError(
            f"{folder.path} has no classifier, as the graph of the fit had no labels of two classes for training: fit "
            "again with labels, or use `mario embed`"
        )
    found = graph if isinstance(graph, Embeddings) else embed(folder, graph, **options)  # type: ignore[arg-type]
    return Predictions(found, head, folder.about.graph.label, folder.about.class_names, tuple(_cautions(found)))


def _cautions(found: Embeddings) -> Iterator[str]:
    about = found.about
    new = found.graph.new_domains
    if about.rule == "id_val" and new:
        yield (
            f"{sum(new.values()):,} rows are of domains that the model was not fitted on, and no label of another "
            "domain was there to tell how well it holds on them: no promise can be made"
        )
    if about.score is not None and about.baseline is not None and about.score <= about.baseline:
        yield (
            f"the model is no better than a constant prediction ({100 * about.baseline:.1f} %) on other domains: do "
            "not rely on these labels"
        )
