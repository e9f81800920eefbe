"""The sinks of ``mario run``, and what they get at the end."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from mario import ranks
from mario.evaluation import SETS
from mario.graphs.labels import labeled_parts
from mario.lab.frame import frame
from mario.lab.result import RunResult
from mario.lab.sinks import Sink, TensorBoard, WeightsAndBiases
from mario.lab.spec import RunSpec
from mario.methods import load


@contextmanager
def open_sinks(spec: RunSpec, folder: Path, tensorboard: Path | None, wandb: str | None) -> Iterator[list[Sink]]:
    """The requested sinks, open; with several ranks, only rank 0 has them."""
    name = f"{spec.method}-{spec.case.card.name}-{spec.case.shift}-{spec.digest}"
    opened: list[Sink] = []
    with ExitStack() as stack:
        if ranks.rank() == 0:
            if tensorboard is not None:
                opened.append(TensorBoard(tensorboard / name))
                stack.enter_context(closing(opened[-1]))
            if wandb is not None:
                opened.append(WeightsAndBiases(wandb, folder, id=spec.digest, name=name, config=spec.to_dict()))
                stack.enter_context(closing(opened[-1]))
        yield opened


def show(sinks: Sequence[Sink], folder: Path, data: Data, root: Path | None) -> None:
    """Pass the pictures of a finished run to ``sinks``, and its embeddings with their labels, if it has any."""
    if not sinks or "train_mask" not in labeled_parts(data):
        return
    from mario.report.maps import map_of
    from mario.report.pictures import Map, curves, embedding_maps, invariance_curves
    from mario.report.pictures.curves import rows_with_curves
    from mario.report.pictures.invariance import rows_with_invariance

    runs = frame([RunResult.read(folder)])
    found = map_of(folder, root)
    sets = np.array([*SETS, "none"])[found.split]
    figures = {"map": embedding_maps([Map(runs["method"][0], found.xy, found.y, found.domain, found.ood)])}
    if rows_with_curves(runs):
        figures["curves"] = curves(runs)
    if rows_with_invariance(runs):
        figures["invariance"] = invariance_curves(runs)
    z = load(folder / "model.safetensors").transform(data)[found.node]
    known = {"class": found.y, "domain": found.domain, "split": sets, "prediction": found.prediction}
    metadata = {name: column.tolist() for name, column in {**known, "node": found.node}.items()}
    for sink in sinks:
        for name, drawing in figures.items():
            sink.figure(name, drawing.figure)
        sink.embedding("embedding", z, metadata)
