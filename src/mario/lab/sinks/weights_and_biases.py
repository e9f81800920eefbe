"""Weights & Biases (the extra ``wandb``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from mario.errors import MarioError, RunFailedError
from mario.files import append_line
from mario.untrusted import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class WeightsAndBiases:
    """A run of a W&B project.

    W&B's environment variables apply: with ``WANDB_MODE=offline`` nothing leaves the machine, ``WANDB_DIR`` is the
    folder of its files. An offline run cannot be queried, so ``folder/wandb-has.txt`` lists what it has.
    """

    def __init__(self, project: str, folder: Path, *, id: str, name: str, config: Mapping[str, Any]) -> None:
        try:
            import wandb

            start = wandb.init  # a folder ./wandb of earlier runs can also be imported, but is empty
        except (ImportError, AttributeError):
            raise MarioError("--wandb needs wandb, which is not installed: pip install 'mario-gcl[wandb]'") from None
        try:
            self._run = start(project=project, id=id, name=name, config=dict(config), resume="allow")
        except Exception as error:
            said = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise RunFailedError(
                f"Weights & Biases refused a run of project {project} ({said}): "
                "use WANDB_MODE=offline to keep it on this machine"
            ) from error
        self._image, self._table = wandb.Image, wandb.Table
        self._note = folder / "wandb-has.txt"
        self._has = set(read_text(self._note).splitlines()) if self._note.exists() else set()
        self._last = max((int(line) for line in self._has if line.isdigit()), default=-1)
        if getattr(self._run, "resumed", False):
            self._last = max(self._last, self._run.step - 1)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        if step > self._last:
            self._last = step
            self._remember(str(step))
            self._run.log(dict(values), step=step)

    def figure(self, name: str, figure: "Figure") -> None:
        if name not in self._has:
            self._remember(name)
            self._run.log({name: self._image(figure)})

    def embedding(self, name: str, z: Tensor, metadata: Mapping[str, Sequence[Any]]) -> None:
        """A table of the metadata and the columns of the embedding, which W&B can project."""
        if name not in self._has:
            self._remember(name)
            columns = [*metadata, *(f"z{i}" for i in range(z.size(1)))]
            rows = [[*facts, *row] for *facts, row in zip(*metadata.values(), z.tolist(), strict=True)]
            self._run.log({name: self._table(columns=columns, data=rows)})

    def close(self) -> None:
        self._run.finish()

    def _remember(self, what: str) -> None:
        """Note it before it is sent, so that a kill in between loses it instead of doubling it."""
        self._has.add(what)
        append_line(self._note, what)
