"""What embeddings have to beat: the features, neighbor means and an encoder that was never trained."""

import warnings
from collections.abc import Mapping

from torch_geometric.data import Data

from mario.evaluation.probe import Probe
from mario.methods import Method, find
from mario.methods.readability import readability

CONTROLS = ("raw-features", "hops", "random-init")
"""The methods that learn nothing."""
READABLE = 0.7
"""Readability of the domain above which embeddings that a control beats are warned about."""


def score_controls(
    data: Data, *, like: Method | None = None, probe: Probe | None = None, seed: int = 0
) -> dict[str, dict[str, float]]:
    """The scores of :func:`mario.evaluate` of each method in :data:`CONTROLS`, by name.

    Args:
        data: A graph as for :func:`mario.evaluate`.
        like: The method that they are to be compared with: the untrained encoder is then like its encoder.
        probe: As in :func:`mario.evaluate`.
        seed: Of the untrained encoder's weights and of the probes.

    Example:
        >>> import mario
        >>> list(score_controls(mario.load_dataset("good-cbas", shift="concept")))
        ['raw-features', 'hops', 'random-init']
    """
    from mario.evaluation.scoring import evaluate

    found = {}
    for name in CONTROLS:
        cls = find(name)
        known = {field.name for field in cls.fields()}
        shared = {} if like is None else {key: value for key, value in like.get_params().items() if key in known}
        model = cls.from_settings({**shared, "epochs": 1, "compiled": False})
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* of the graph will not be used", category=UserWarning)
            model.fit(data, seed=seed)
        found[name] = evaluate(model, data, probe=probe, seed=seed)
    return found


def warn_if_beaten(
    model: Method, data: Data, scores: Mapping[str, float], beside: Mapping[str, Mapping[str, float]]
) -> str | None:
    """Warn if a control is better on validation and the domain can be read from the embeddings; returns the text.

    Validation is ``ood_val``, or ``id_val`` if there is none.
    """
    text = beaten(model, data, scores, beside)
    if text is not None:
        warnings.warn(text, UserWarning, stacklevel=3)
    return text


def beaten(
    model: Method, data: Data, scores: Mapping[str, float], beside: Mapping[str, Mapping[str, float]]
) -> str | None:
    """The figures and the remedy if a control is better and the domain can be read, else ``None``."""
    on = "ood_val" if "ood_val" in scores else "id_val"
    if on not in scores or "domain_id" not in data or model.supervised:
        return None
    best = max(beside, key=lambda name: beside[name].get(on, 0.0))
    if beside[best].get(on, 0.0) <= scores[on]:
        return None
    blocks = model.blocks(data)
    name = "graph" if "graph" in blocks else next(iter(blocks))
    found = readability(blocks[name], data.domain_id.cpu())
    if found is None or found <= READABLE:
        return None
    remedy = "use the features alone" if model.name.endswith("+steady") else "try mario.Steady, METHOD+steady"
    return (
        f"{best} scores {100 * beside[best][on]:.1f} % on {on} and {model.name} {100 * scores[on]:.1f} %. The domain "
        f"can be read from its embeddings (readability {found:.2f}), so they may not hold on other domains: {remedy}, "
        "or train with sees='training domains'"
    )
