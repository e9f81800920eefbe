"""The paper's figures, one file per kind: each is a function of a frame of runs and gives a figure with a description.

A file of this package that registers a picture with :func:`register_picture` is found without being listed anywhere.
"""

from mario.report.pictures.bars import bars
from mario.report.pictures.boxes import boxes
from mario.report.pictures.curves import curves
from mario.report.pictures.differences import differences
from mario.report.pictures.draw import draw
from mario.report.pictures.forest import ForestLine, forest, forest_lines
from mario.report.pictures.grid import grid
from mario.report.pictures.invariance import invariance_curves
from mario.report.pictures.label_rates import label_counts, label_rates
from mario.report.pictures.maps import Map, embedding_maps, id_and_ood_maps
from mario.report.pictures.picture import Drawing, Picture, save_picture
from mario.report.pictures.ranking import critical_difference
from mario.report.pictures.registry import Sketch, check_shown, register_picture

__all__ = [
    "Drawing",
    "ForestLine",
    "Map",
    "Picture",
    "Sketch",
    "bars",
    "boxes",
    "check_shown",
    "critical_difference",
    "curves",
    "differences",
    "draw",
    "embedding_maps",
    "forest",
    "forest_lines",
    "grid",
    "id_and_ood_maps",
    "invariance_curves",
    "label_counts",
    "label_rates",
    "register_picture",
    "save_picture",
]
