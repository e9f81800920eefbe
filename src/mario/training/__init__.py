"""Training: the loop, its checkpoints and its log."""

from mario.training.checkpoint import Checkpoint
from mario.training.log import Log
from mario.training.loop import Epoch, Trainable, pauses, train
from mario.training.schedule import SCHEDULES, learning_rate_factor

__all__ = [
    "SCHEDULES",
    "Checkpoint",
    "Epoch",
    "Log",
    "Trainable",
    "learning_rate_factor",
    "pauses",
    "train",
]
