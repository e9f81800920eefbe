"""Made-up tables of shops and their trade, to try the commands on: next month has a region that is new."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mario.errors import MarioError
from mario.files import check_path, write_text

KINDS = ("food", "clothes", "tools", "toys")
REGIONS = ("north", "south", "east", "west")
NEW_REGION = "islands"

_WORDS = {
    "food": ("bread", "fruit", "cheese", "fish", "soup", "spice", "wine", "cake", "oven", "fresh"),
    "clothes": ("shirt", "wool", "linen", "coat", "shoes", "fashion", "hat", "silk", "tailor", "dress"),
    "tools": ("drill", "saw", "paint", "screws", "wood", "metal", "repair", "garden", "hammer", "pipes"),
    "toys": ("puzzle", "doll", "games", "blocks", "kite", "train", "plush", "robot", "cards", "models"),
}
_REGION_WORDS = {
    "north": ("harbor", "winter", "station"),
    "south": ("vineyard", "terrace", "market"),
    "east": ("river", "factory", "square"),
    "west": ("coast", "village", "hill"),
    NEW_REGION: ("ferry", "lagoon", "beach"),
}
_COMMON = ("the", "family", "since", "quality", "open", "daily", "old", "new", "local", "best", "street", "corner")
_PAYMENT = ("cash", "card", "app")
_REVENUE = {"food": 11.0, "clothes": 11.5, "tools": 11.2, "toys": 10.6}
_RICHER = {"north": 0.4, "south": -0.4, "east": 0.0, "west": 0.2, NEW_REGION: 0.9}
_STAFF = {"food": 5.0, "clothes": 3.5, "tools": 4.5, "toys": 2.5}

_COLUMNS = ("shop", "region", "opened", "staff", "revenue", "payment", "about", "kind")
_MISSING = 0.05
_LABELED = 0.4
_BOUGHT_FROM = 4


def write_example(folder: Path | str, *, shops: int = 1600, new: int = 400, seed: int = 0) -> list[Path]:
    """Write ``shops.csv`` and ``sales.csv``, and next month's in ``next/`` with ``answers.csv``: the new shops' kinds.

    Args:
        folder: A new folder, or an empty one.
        shops: Their number this month.
        new: The number of shops that open next month, all in a new region.
        seed: Of all draws.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as home:
        ...     [path.name for path in write_example(home, shops=40, new=10)]
        ['shops.csv', 'sales.csv', 'shops.csv', 'sales.csv', 'answers.csv']
    """
    home = check_path("a folder", folder).expanduser()
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise MarioError(f"{home} is there and not empty: choose a new folder")
    draw = np.random.default_rng(seed)
    count = shops + new
    kind = draw.choice(len(KINDS), count, p=(0.35, 0.25, 0.2, 0.2))
    region = draw.choice(len(REGIONS), count, p=(0.3, 0.3, 0.2, 0.2))
    places = [REGIONS[i] for i in region]
    places[shops:] = [NEW_REGION] * new
    ids = [f"s-{number:06x}" for number in draw.choice(16**6, count, replace=False)]
    rows = [
        _shop(draw, ids[i], KINDS[kind[i]], places[i], days=i if i < shops else shops + i, last=shops)
        for i in range(count)
    ]
    sales = _sales(draw, kind, places, shops)
    labeled = draw.random(count) < _LABELED

    def table(end: int, known: Sequence[bool]) -> str:
        shown = [[*row, KINDS[kind[i]] if known[i] else ""] for i, row in enumerate(rows[:end])]
        return _csv(_COLUMNS, shown)

    def trade(pairs: Iterable[tuple[int, int, int]]) -> str:
        return _csv(("buyer", "seller", "orders"), ([ids[a], ids[b], n] for a, b, n in pairs))

    known_next = [bool(labeled[i]) and i < shops for i in range(count)]
    written = {
        home / "shops.csv": table(shops, known_next),
        home / "sales.csv": trade(sale for sale in sales if max(sale[:2]) < shops),
        home / "next" / "shops.csv": table(count, known_next),
        home / "next" / "sales.csv": trade(sales),
        home / "next" / "answers.csv": _csv(("shop", "kind"), ([ids[i], KINDS[kind[i]]] for i in range(shops, count))),
    }
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return list(written)


def _shop(draw: np.random.Generator, name: str, kind: str, place: str, *, days: int, last: int) -> list[Any]:
    opened = np.datetime64("2026-10-31") - np.timedelta64(max(0, last - days) * 2, "D")
    if days > last:
        opened = np.datetime64("2026-11-01") + np.timedelta64(int(draw.integers(30)), "D")
    words = [
        *draw.choice(_WORDS[kind], int(draw.integers(3)), replace=False),
        *(draw.choice(_WORDS[KINDS[other]]) for other in draw.integers(len(KINDS), size=2)),
        *draw.choice(_REGION_WORDS[place], 2, replace=False),
        *draw.choice(_COMMON, 3, replace=False),
    ]
    draw.shuffle(words)
    payment = "tide" if place == NEW_REGION and draw.random() < 0.3 else str(draw.choice(_PAYMENT))
    cells: list[Any] = [
        1 + draw.poisson(_STAFF[kind]),
        round(float(np.exp(_REVENUE[kind] + _RICHER[place] + 0.5 * draw.normal()))),
        payment,
        " ".join(words),
    ]
    return [name, place, opened, *("" if draw.random() < _MISSING else cell for cell in cells)]


def _sales(draw: np.random.Generator, kind: Any, places: list[str], shops: int) -> list[tuple[int, int, int]]:
    """Buyer, seller and number of orders: mostly within a kind and a region, and from shops that were there before."""
    region = np.array(places)
    found = {}
    for buyer in range(1, len(kind)):
        before = max(buyer, min(50, shops))
        for _ in range(_BOUGHT_FROM):
            near = np.arange(before) != buyer
            if draw.random() < 0.4:
                near &= kind[:before] == kind[buyer]
            if draw.random() < 0.7:
                near &= region[:before] == region[buyer]
            others = np.flatnonzero(near)
            if len(others):
                found[buyer, int(draw.choice(others))] = int(1 + draw.poisson(3))
    return [(a, b, n) for (a, b), n in found.items()]


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    from io import StringIO

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
