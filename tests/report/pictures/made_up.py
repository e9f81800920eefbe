"""Results that were never run, for pictures."""

from typing import Any

SETS = ("train", "id_val", "id_test", "ood_val", "ood_test")


def run(method: str, seed: int, ood: float, *, groups: int = 0, **other: Any) -> dict[str, Any]:
    """A run whose scores follow from ``ood``: ID is 0.1 above, group Tk is k/100 above."""
    curve = [{"step": 10 * (i + 1)} | dict.fromkeys(SETS, ood - 0.1 + 0.05 * i) for i in range(3)]
    scores: dict[str, Any] = {"id_test": ood + 0.1, "ood_test": ood, "ood_val": ood - 0.02}
    if groups:
        scores = {"ood_test": ood, "groups": {f"T{k}": ood + k / 100 for k in range(1, groups + 1)}}
    result = {"method": method, "label": method, "seed": seed, "split_seed": seed, "metric": "accuracy"}
    return result | {"scores": scores, "curve": curve, "settings": {}} | other


def texts(figure: Any) -> set[str]:
    """Everything that is written in a figure."""
    from matplotlib.text import Text

    return {text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()}
