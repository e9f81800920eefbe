"""TensorBoard (the extra ``tensorboard``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from mario.errors import MarioError
from mario.untrusted import read_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TensorBoard:
    """Event files in ``folder``. ``tensorboard --logdir`` takes its parent to show several runs.

    Existing event files are read first, so that nothing is written twice and values lost in a kill are written again.
    """

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MarioError(
                "--tensorboard needs TensorBoard, which is not installed: pip install 'mario-gcl[tensorboard]'"
            ) from None
        self.folder = folder
        self._steps, self._figures = _written(folder)
        # Torch's default is two minutes, which a kill would lose.
        self._writer = SummaryWriter(str(folder), flush_secs=10)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            if step > self._steps.get(name, -1):
                self._writer.add_scalar(name, value, step)
                self._steps[name] = step

    def figure(self, name: str, figure: "Figure") -> None:
        if name not in self._figures:
            figure.set_facecolor("white")  # TensorBoard does not support transparency
            self._writer.add_figure(name, figure, close=False)
            self._figures.add(name)

    def embedding(self, name: str, z: Tensor, metadata: Mapping[str, Sequence[Any]]) -> None:
        """Write the files of TensorBoard's projector."""
        listed = self.folder / "projector_config.pbtxt"
        if not listed.exists() or f'"{name}:' not in read_text(listed):
            rows = [list(row) for row in zip(*metadata.values(), strict=True)]
            self._writer.add_embedding(z, metadata=rows, metadata_header=list(metadata), tag=name)

    def close(self) -> None:
        self._writer.close()


def _written(folder: Path) -> tuple[dict[str, int], set[str]]:
    """The last step of every scalar in ``folder``, and the names of its figures."""
    if not folder.is_dir():
        return {}, set()
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 1, "images": 1})
    events.Reload()
    names = events.Tags()
    return {name: events.Scalars(name)[-1].step for name in names["scalars"]}, set(names["images"])
