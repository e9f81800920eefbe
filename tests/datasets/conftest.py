"""Tests of graphs keep their prepared graphs apart from the user's."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MARIO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
