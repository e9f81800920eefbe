"""The sinks that ``mario run`` was told of, and what they are shown at the end."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from mario import ranks
from mario.datasets import find as find_dataset
from mario.evaluation import SETS
from mario.files import read_json
from mario.lab.runs.execute import Run
from mario.lab.sinks import Sink, TensorBoard, WeightsAndBiases
from mario.methods import load


@contextmanager
def sinks_of(run: Run, folder: Path, tensorboard: Path | None, wandb: str | None) -> Iterator[list[Sink]]:
    """The sinks asked for, open; over ranks those of rank 0, which writes for all."""
    name = f"{run.method}-{find_dataset(run.dataset).card.name}-{run.shift}-{run.digest()}"
    opened: list[Sink] = []
    with ExitStack() as stack:
        if ranks.rank() == 0:
            if tensorboard is not None:
                opened.append(TensorBoard(tensorboard / name))
                stack.enter_context(closing(opened[-1]))
            if wandb is not None:
                opened.append(WeightsAndBiases(wandb, folder, id=run.digest(), name=name, config=run.as_dict()))
                stack.enter_context(closing(opened[-1]))
        yield opened


def show(sinks: Sequence[Sink], folder: Path, data: Data, root: Path | None) -> None:
    """Give ``sinks`` the pictures of the finished run in ``folder``, and its embeddings with what is known of each."""
    if not sinks:
        return
    from mario.report.maps import map_of
    from mario.report.pictures import Map, curves, embedding_maps, invariance_curves
    from mario.report.pictures.curves import rows_with_curves
    from mario.report.pictures.invariance import rows_with_invariance

    result = read_json(folder / "result.json")
    found = map_of(folder, root)
    sets = np.array([*SETS, "none"])[found.split]
    ood = np.char.startswith(sets, "ood")
    figures = {"map": embedding_maps([Map(result["method"], found.xy, found.y, found.domain, ood)])}
    if rows_with_curves([result]):
        figures["curves"] = curves([result])
    if rows_with_invariance([result]):
        figures["invariance"] = invariance_curves([result])
    z = load(folder / "model.safetensors").transform(data)[found.node]
    known = {"class": found.y, "domain": found.domain, "split": sets, "prediction": found.prediction}
    metadata = {name: column.tolist() for name, column in {**known, "node": found.node}.items()}
    for sink in sinks:
        for name, drawing in figures.items():
            sink.figure(name, drawing.figure)
        sink.embedding("embedding", z, metadata)
