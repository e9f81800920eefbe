"""The names in ``show`` of a study. ``tests/test_newcomer.py`` adds a picture."""

import pytest

from mario.errors import MarioError
from mario.report.pictures import check_shown


def test_names_are_checked() -> None:
    check_shown(["table", "validation", "ranking", "map-id-ood", "label-rates"])
    with pytest.raises(MarioError, match=r"unknown show 'ranks'; use one of table, .*; did you mean 'ranking'\?"):
        check_shown(["table", "ranks"])
