"""What is trained, and how, from what the graph is like. Every pick has its reason."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from mario.embedder.facts import GraphFacts
from mario.errors import MarioError, nearest
from mario.graphs.rules import choose
from mario.methods import STRONG, Method, find, parse_setting

STRONG_SUFFIX = " strong"
"""Behind the name of a method with the recipe: with the strong adversary and without the conditional term."""
OWN = ("method", "channels", "center", "rule", "steps")
"""Settings of a fit that are not those of a method."""
_WAYS = (("x", "graph", "auto"), ("graph", "never"), ("graph", "always"))
_STEPS, _PER_EPOCH, _LEAST = 100, 10, 20
_FULL, _BATCH = 2_000, 2_000  # nodes up to which a batch is the whole graph, and about the nodes of other batches


@dataclasses.dataclass(frozen=True)
class Pick:
    """A setting, the value picked for it, and why."""

    setting: str
    value: Any
    reason: str


@dataclasses.dataclass(frozen=True)
class Training:
    """A method to train once; several candidates are made from it.

    Attributes:
        name: What candidates of it are called after.
        method: The name of a registered method.
        settings: Its settings.
    """

    name: str
    method: str
    settings: dict[str, Any]

    def make(self, **changes: Any) -> Method:
        """The method, not fitted."""
        return find(self.method).from_settings({**self.settings, **changes})

    @property
    def trains(self) -> bool:
        """Whether it has weights to train."""
        return find(self.method).trains

    @property
    def steps(self) -> int:
        """Optimizer steps of the training."""
        return int(self.settings.get("epochs", 0)) * int(self.settings.get("steps_per_epoch", 0))


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Embeddings to choose among: channels of one training, centered or not."""

    training: str
    channels: tuple[str, ...]
    center: str

    @property
    def name(self) -> str:
        """As tables show it.

        Example:
            >>> Candidate("grace", ("x", "graph"), "auto").name, Candidate("raw-features", ("x",), "never").name
            ('grace + x, gated', 'raw-features')
        """
        own = "x" if self.training == "raw-features" else "graph"
        parts = self.training if own in self.channels or self.training == "hops" else "x"
        beside = " + x" if self.channels == ("x", "graph") and self.training != "hops" else ""
        how = {"auto": ", gated", "always": ", centered", "never": ""}[self.center]
        return f"{parts}{beside}{how}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to train and what to compare.

    Attributes:
        picks: The settings and their reasons, for people.
        trainings: Controls first, which learn nothing, then methods in the order in which they are trained.
        candidates: What is compared; of equal ones the first is chosen.
        facts: Of the graph.
        rule: What candidates are scored by.
    """

    picks: tuple[Pick, ...]
    trainings: tuple[Training, ...]
    candidates: tuple[Candidate, ...]
    facts: GraphFacts
    rule: str

    def of(self, training: str) -> list[Candidate]:
        """The candidates of one training."""
        return [one for one in self.candidates if one.training == training]


def make_plan(facts: GraphFacts, rule: str, why: str, given: Mapping[str, Any] | None = None) -> Plan:
    """Pick everything from the facts of a graph.

    Args:
        facts: Of the graph.
        rule: What candidates are scored by: see :func:`mario.select`.
        why: The reason for it.
        given: Values by name that are not to be picked: settings of methods, and those of :data:`OWN`; texts are
            parsed.

    Example:
        >>> import mario
        >>> facts = GraphFacts.of(mario.load_dataset("good-cbas", shift="covariate"))
        >>> plan = make_plan(facts, "ood_val", "labels of other domains", {"hidden_channels": "64"})
        >>> [(pick.value, pick.reason) for pick in plan.picks if pick.setting == "hidden_channels"]
        [(64, 'given')]
    """
    asked = dict(given or {})
    own = {name: asked.pop(name) for name in OWN if name in asked}
    names, method_why = _methods(facts, rule, own.get("method"))
    picks = [Pick("rule", rule, why), Pick("method", ", ".join(names), method_why)]
    centers, center_why = _centers(facts, rule, own.get("center"))
    channels, channels_why = _channels(rule, own.get("channels"))
    picks += [Pick("channels", channels_why[0], channels_why[1]), Pick("center", centers[0], center_why)]
    steps, steps_why = _steps(facts, own.get("steps"))
    settings = _settings(facts)
    settings["epochs"] = Pick("epochs", max(1, round(steps / _PER_EPOCH)), steps_why)
    settings["steps_per_epoch"] = Pick("steps_per_epoch", min(_PER_EPOCH, steps), "progress is shown after each epoch")
    parsed = _parsed(asked, names)
    settings = {**settings, **{name: Pick(name, value, "given") for name, value in parsed.items()}}
    trainings = [_training(name, settings) for name in ("raw-features", "hops", "random-init")]
    trainings += [_training(name, settings) for name in names if name not in ("raw-features", "hops", "random-init")]
    shown = [pick for name, pick in settings.items() if any(name in one.settings for one in trainings if one.trains)]
    candidates = _candidates(trainings, channels, centers)
    return Plan((*picks, *shown), tuple(trainings), candidates, facts, rule)


def _training(name: str, settings: Mapping[str, Pick]) -> Training:
    strong = name.endswith(STRONG_SUFFIX)
    method = name.removesuffix(STRONG_SUFFIX)
    fixed = {"conditional": False, **STRONG} if strong else {}
    known = {field.name for field in find(method).fields()}
    values = {key: pick.value for key, pick in settings.items() if key in known}
    given = {key: pick.value for key, pick in settings.items() if key in known and pick.reason == "given"}
    if not find(method).trains:
        values = {key: value for key, value in values.items() if key in _ENCODER}
        values["epochs"] = 1
    return Training(name, method, {**values, **fixed, **given} if find(method).trains else values)


_ENCODER = ("encoder", "hidden_channels", "num_layers", "batch_norm", "dropout", "last_activation", "hops", "readout")


def _methods(facts: GraphFacts, rule: str, given: Any) -> tuple[list[str], str]:
    if given is not None:
        names = [name.strip() for name in (given.split(",") if isinstance(given, str) else given)]
        for name in names:
            _check_method(name, facts)
        return list(dict.fromkeys(names)), "given"
    if facts.level == "graph":
        return ["graphcl"], "contrasts whole graphs"
    if rule == "gate":
        return ["mario strong"], "one training: without labels nothing could choose among several"
    return ["grace", "mario strong"], "the plain contrast, and one against a strong adversary; labels decide"


def _check_method(name: str, facts: GraphFacts) -> None:
    method = find(name.removesuffix(STRONG_SUFFIX))
    if method.supervised:
        raise MarioError(f"method={name} learns from labels: fit chooses among methods that do not, such as grace")
    if name.endswith("+steady"):
        raise MarioError(f"method={name}: fit makes every method steady itself, use method={name[:-7]}")
    if name.endswith(STRONG_SUFFIX) and not hasattr(method, "robust_loss"):
        raise MarioError(f"method={name}: the strong adversary is for mario and HOST+mario, such as 'mario strong'")
    method.check_level(facts.level)


def _centers(facts: GraphFacts, rule: str, given: Any) -> tuple[tuple[str, ...], str]:
    if given is not None:
        return (choose("center", given, ("auto", "always", "never")),), "given"
    if facts.domains < 2:
        return ("never",), "no two domains are known" if facts.domains else "no domains are known"
    if rule == "gate":
        return ("auto",), "centered by domain where the domain can be read"
    return ("auto", "never", "always"), "gated, never and always are compared"


def _channels(rule: str, given: Any) -> tuple[tuple[tuple[str, ...], ...], tuple[str, str]]:
    if given is not None:
        names = tuple(name.strip() for name in (given.split(",") if isinstance(given, str) else given))
        for name in names:
            choose("channel", name, ("x", "graph"))
        if not names or len(set(names)) < len(names):
            raise MarioError(f"channels must name each channel once, x, graph or both, got {given!r}")
        return (tuple(name for name in ("x", "graph") if name in names),), (", ".join(names), "given")
    if rule == "gate":
        return (("x", "graph"),), ("x, graph", "without labels nothing could choose one of them")
    return (("x", "graph"), ("graph",), ("x",)), ("x, graph or both", "labels decide")


def _steps(facts: GraphFacts, given: Any) -> tuple[int, str]:
    if given is not None:
        try:
            steps = int(given)
        except (TypeError, ValueError):
            steps = 0
        if steps < 1:
            raise MarioError(f"steps must be a whole number above 0, got {given!r}")
        return steps, "given"
    return (
        _STEPS,
        "more gave no better scores on other domains" if facts.nodes > _FULL else "small graph, whole batches",
    )


def _settings(facts: GraphFacts) -> dict[str, Pick]:
    """The settings of methods, by name."""
    picks = [
        Pick("encoder", "gcn", "the default"),
        Pick("hidden_channels", 128, "width of the embeddings"),
        Pick("num_layers", 2, "two hops"),
        Pick("batch_norm", True, "scales differ between features"),
        *_sampling(facts),
        Pick("tau", 0.5, "temperature of the contrast"),
        *_augmentation(facts),
        Pick("lr", 1e-2, "of Adam"),
    ]
    return {pick.setting: pick for pick in picks}


def _sampling(facts: GraphFacts) -> list[Pick]:
    if facts.level == "graph":
        return []
    if facts.nodes <= _FULL:
        return [Pick("sampling", "full", f"{facts.nodes:,} nodes fit into one batch")]
    reach = 3  # nodes of a walk: its root and one per layer
    roots = max(50, _BATCH // reach // 50 * 50)
    return [
        Pick("sampling", "random_walk", f"{facts.nodes:,} nodes are too many for one batch"),
        Pick("roots", roots, f"batches of at most {roots * reach:,} nodes"),
    ]


def _augmentation(facts: GraphFacts) -> list[Pick]:
    sparse = facts.mean_degree < 4
    drop = (0.2, 0.3) if sparse else (0.3, 0.4)
    why = f"{facts.mean_degree:.1f} edges per node: {'few' if sparse else 'enough'} to drop"
    few = facts.features < 16
    mask = (0.1, 0.2) if few else (0.2, 0.3)
    reason = f"{facts.features:,} features: {'each one counts' if few else 'others say the same'}"
    return [
        Pick("drop_edges_1", drop[0], why),
        Pick("drop_edges_2", drop[1], why),
        Pick("mask_features_1", mask[0], reason),
        Pick("mask_features_2", mask[1], reason),
    ]


def _parsed(given: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """The values of settings that the methods have; texts are parsed."""
    fields: dict[str, Any] = {}
    for name in ("random-init", "hops", *names):
        fields |= {field.name: field for field in find(name.removesuffix(STRONG_SUFFIX)).fields()}
    found = {}
    for name, value in given.items():
        if name not in fields:
            meant = nearest(name, [*fields, *OWN])
            raise MarioError(
                f"there is no setting '{name}'; a fit has {', '.join(OWN)}, and those of "
                f"`mario methods {names[-1].removesuffix(STRONG_SUFFIX)}`{meant and f'; {meant}'}"
            )
        found[name] = parse_setting(fields[name], value) if isinstance(value, str) else value
    for name in names:
        known = {field.name for field in find(name.removesuffix(STRONG_SUFFIX)).fields()}
        find(name.removesuffix(STRONG_SUFFIX)).from_settings({k: v for k, v in found.items() if k in known})
    return found


def _candidates(
    trainings: list[Training],
    channels: tuple[tuple[str, ...], ...],
    centers: tuple[str, ...],
) -> tuple[Candidate, ...]:
    plain = [center for center in centers if center != "auto"] or ["auto"]
    found = []
    for training in trainings:
        if training.name == "raw-features":
            found += [Candidate(training.name, ("x",), center) for center in plain]
        elif training.name == "hops":
            found += [Candidate(training.name, ("x", "graph"), center) for center in plain]
        elif training.name == "random-init":
            found.append(Candidate(training.name, ("graph",), "never"))
        else:
            found += [
                Candidate(training.name, some, center)
                for some in channels
                for center in centers
                if some != ("x",) and not (some == ("graph",) and center == "auto" and len(centers) > 1)
            ]
    return tuple(found)
