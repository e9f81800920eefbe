"""The paper's figures, one file a kind: each a function of results that gives a figure and its description."""

from mario.report.pictures.bars import bars
from mario.report.pictures.boxes import boxes
from mario.report.pictures.curves import curves
from mario.report.pictures.differences import differences
from mario.report.pictures.draw import draw
from mario.report.pictures.grid import grid
from mario.report.pictures.invariance import invariance_curves
from mario.report.pictures.label_rates import label_counts, label_rates
from mario.report.pictures.maps import Map, embedding_maps, id_and_ood_maps
from mario.report.pictures.picture import Drawing, Picture, save_picture
from mario.report.pictures.ranks import ranks

__all__ = [
    "Drawing",
    "Map",
    "Picture",
    "bars",
    "boxes",
    "curves",
    "differences",
    "draw",
    "embedding_maps",
    "grid",
    "id_and_ood_maps",
    "invariance_curves",
    "label_counts",
    "label_rates",
    "ranks",
    "save_picture",
]
