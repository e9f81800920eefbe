"""Tracking services for the scalars, figures and embeddings of a run: TensorBoard, Weights & Biases."""

from mario.lab.sinks.follow import followed
from mario.lab.sinks.sink import Sink
from mario.lab.sinks.tensorboard import TensorBoard
from mario.lab.sinks.weights_and_biases import WeightsAndBiases

__all__ = ["Sink", "TensorBoard", "WeightsAndBiases", "followed"]
