"""The split of a graph whose card declares none, chosen with care for few labels and few domains."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs.declared import REST, DeclaredSplit
from mario.graphs.own_splits import ordering
from mario.graphs.rules import choose

_MOST_NAMED = 50
"""With more domains, parts are fractions of the ordered domains rather than lists of names."""
_LEAST_SHARE = 0.1


def default_split(
    data: Data, by: str, shift: str = "covariate", *, names: Mapping[str, Sequence[str]] | None = None
) -> DeclaredSplit:
    """How ``data`` is split by ``by`` if nobody says more.

    - By time: the last 20 % of the nodes test and the 20 % before validate.
    - By named domains: the smallest test. From four domains on, the next smallest validate. Where two or more domains
      have labels, only those are held out, as the others could not be scored.
    - By degree: nodes of few edges test, as new nodes have few. By another number: the largest values test.
    - Under ``no_shift``: at random. Under ``concept``: as `own_split` does.

    Example:
        >>> import torch
        >>> data = Data(x=torch.ones(6, 1), edge_index=torch.empty(2, 0).long(), town=torch.tensor([0, 0, 0, 1, 1, 2]))
        >>> default_split(data, "town", names={"town": ("Bern", "Rome", "Oslo")}).test
        ('Oslo',)
    """
    choose("shift", shift, ("covariate", "concept", "no_shift"))
    if shift == "no_shift" or by == "random":
        return DeclaredSplit(by="random")
    if shift == "concept":
        return DeclaredSplit(by=by, shift="concept")
    if by in ("time", "given"):
        return DeclaredSplit(by=by)
    if by == "degree" and by not in data:
        return DeclaredSplit(by=by, descending=True)
    order = ordering(data, by, names)
    if order.names is None:
        return DeclaredSplit(by=by)
    sizes = np.bincount(order.values[order.known], minlength=len(order.names))
    there = np.flatnonzero(sizes)
    if len(there) < 2:
        raise MarioError(f"{by} has {len(there)} domain with nodes, so none can be held out; split by another")
    if len(there) > _MOST_NAMED:
        return DeclaredSplit(by=by)
    free = _with_labels(data, order.values, there)
    free = free[np.lexsort((-free, sizes[free]))].tolist()
    most = max(1, (len(there) - 2) // 2)
    test = _take(free, sizes, most)
    if len(there) == 2:
        return DeclaredSplit(by=by, leave_out=order.names[test[0]])
    validation = _take(free, sizes, most) if len(there) > 3 else []
    named = [tuple(order.names[code] for code in codes) for codes in (validation, test)]
    return DeclaredSplit(by=by, train="rest", validation=named[0] or None, test=named[1])


def described(split: DeclaredSplit) -> str:
    """A split in words.

    Example:
        >>> described(DeclaredSplit(by="town", leave_out="Rome")), described(DeclaredSplit(by="time"))
        ('by town (the rest trains, Rome tests)', 'by time (the first 60 % train, the next 20 % validate, 20 % test)')
    """
    if split.shift == "concept":
        return f"by {split.by} (labels go with it in training and against it in the test)"
    if split.names_domains:
        shown = ["the rest" if names == REST else ", ".join(names) for names in split.domains]
        verbs = ("trains", "validates", "tests")
        said = [f"{names} {verb}" for names, verb in zip(shown, verbs, strict=True) if names]
        return f"by {split.by} ({', '.join(said)})"
    if split.by == "given":
        return "by the masks of the graph"
    train, validation, test = (f"{100 * share:.0f} %" for share in split.fractions)
    first = f"{train} train" if split.by == "random" else f"the first {train} train"
    if split.by not in ("random", "time"):
        first = f"the {'largest' if split.descending else 'smallest'} {train} train"
    middle = f"the next {validation} validate, " if split.fractions[1] else ""
    return f"by {split.by} ({first}, {middle}{test} test)"


def _with_labels(data: Data, codes: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The domains that may be held out: those with labels, if there are two."""
    y = data.get("y")
    if y is None:
        return there
    labeled = np.unique(codes[(y.cpu().numpy() >= 0) & (codes >= 0)])
    return labeled if len(labeled) > 1 else there


def _take(free: list[int], sizes: np.ndarray, most: int) -> list[int]:
    """The smallest domains, which are removed from ``free``, until they have a tenth of the nodes."""
    taken: list[int] = []
    while len(free) > 1 and len(taken) < most and sizes[taken].sum() < math.ceil(_LEAST_SHARE * sizes.sum()):
        taken.append(free.pop(0))
    return taken
