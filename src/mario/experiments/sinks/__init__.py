"""Where the scalars, figures and embeddings of a run can be sent to: TensorBoard, Weights & Biases."""

from mario.experiments.sinks.follow import followed
from mario.experiments.sinks.sink import Sink
from mario.experiments.sinks.tensorboard import TensorBoard
from mario.experiments.sinks.weights_and_biases import WeightsAndBiases

__all__ = ["Sink", "TensorBoard", "WeightsAndBiases", "followed"]
