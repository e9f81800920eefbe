"""Steady: channels side by side, centered by domain where the domain can be read from them. Laid over any method."""

import copy
import dataclasses
import warnings
from typing import Any, ClassVar, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from mario.errors import MarioError
from mario.graphs import Block, BlockMatrix, training_graph
from mario.graphs.remembered import remembered
from mario.methods.base import Method
from mario.methods.graph_level import GraphLevel
from mario.methods.laid_over import laid_over
from mario.methods.readability import readability
from mario.methods.registry import find
from mario.methods.settings import setting

# What is left of a channel's variance below which it is rounding, not information.
_NOTHING = 1e-6


@dataclasses.dataclass(frozen=True)
class Decision:
    """What was done to a channel, and why.

    Attributes:
        channel: Its name.
        readability: How well the domain can be read from it, 0 to 1; ``None`` if there are no two domains.
        centered: Whether the mean of a node's domain is subtracted from its row.
        why: The reason, as a sentence.
    """

    channel: str
    readability: float | None
    centered: bool
    why: str

    def __str__(self) -> str:
        return f"{self.channel}: {self.why}"


@dataclasses.dataclass(frozen=True)
class _Channel:
    """What was measured of a channel on the training graph."""

    decision: Decision
    scale: float
    mean: Tensor | None = None  # [F], and what follows only if it is centered
    domains: Tensor | None = None  # [D], ascending
    centers: Tensor | None = None  # [D, F]


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class WithSteady(Method):
    """The settings and steps that steady adds to a method, as a mixin: see :func:`Steady`."""

    # fmt: off
    channels: tuple[str, ...] = setting(("x", "graph"), choices=("x", "graph"), help="what is put side by side: the node's own features, and what the method makes of the graph")
    center: str = setting("auto", choices=("auto", "always", "never"), help="subtract the mean of a node's domain: where the domain can be read, in all channels, or in none")
    threshold: float = setting(0.7, low=0.0, high=1.0, search=(0.5, 0.7, 0.9), help="readability of the domain above which center=auto centers")
    min_nodes: int = setting(20, low=1, help="nodes of a domain from which on its own mean counts fully; with fewer it is drawn toward the training mean")
    # fmt: on

    host: ClassVar[bool] = False

    def check_together(self) -> None:
        super().check_together()
        if not self.channels or len(set(self.channels)) < len(self.channels):
            raise MarioError(f"channels must name each channel once, at least one of x, graph; got {self.channels}")

    def fit(self, data: Data, *, domain: Tensor | None = None, **arguments: Any) -> Self:
        """:meth:`Method.fit` of the host, then measure the channels. No label is read.

        Args:
            data: A graph, or a set of graphs. Domains are in ``data.domain_id``, if it has that.
            domain: The domain of each node, or of each graph of a set, instead of ``data.domain_id``: whole numbers
                from 0; -1 is unknown.
            arguments: Those of :meth:`Method.fit`.
        """
        return super().fit(with_domain(data, domain), **arguments)

    def transform(self, data: Data, domain: Tensor | None = None) -> Tensor:
        """All channels side by side, one row per node; ``blocks_`` has the columns of each.

        ``domain`` is as in :meth:`fit`. A domain that the model was not fitted on is centered by its own nodes in
        ``data``. ``notes_`` says what was done to which domain. Wide sparse features are written out here: use
        :meth:`blocks` to keep them sparse.
        """
        return self.blocks(data, domain).dense()

    def blocks(self, data: Data, domain: Tensor | None = None, *, raw: BlockMatrix | None = None) -> BlockMatrix:
        """The channels of :meth:`transform` as named blocks: sparse features stay sparse, and those on disk there.

        ``raw`` is what :meth:`raw_channels` returned for ``data``, if that is known.
        """
        self.check_fitted()
        if not hasattr(self, "channels_"):
            raise MarioError("the channels are not measured yet: call fit(data), or settle(data) between checkpoints")
        data = with_domain(data, domain)
        domains = _domains(data)
        chosen = self._chosen(self.raw_channels(data) if raw is None else raw)
        self.notes_: list[str] = []
        return BlockMatrix({name: self._placed(name, block, domains) for name, block in chosen.items()})

    def settle(self, data: Data, *, raw: BlockMatrix | None = None) -> None:
        """Measure the scale of each channel and the readability of its domain; decide what to center.

        ``raw`` is what :meth:`raw_channels` returned for the graph of :func:`seen_by_channels`, if that is known.
        """
        seen, domains = seen_by_channels(data)
        raw = self._chosen(self.raw_channels(seen) if raw is None else raw)
        readable = {name: self._readability(name, block, seen, domains) for name, block in raw.items()}
        self.channels_ = {name: self._measure(name, block, domains, readable) for name, block in raw.items()}
        self.decisions_ = [channel.decision for channel in self.channels_.values()]
        self.blocks_ = raw.columns

    def settled(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        facts: dict[str, Any] = {}
        tensors: dict[str, Tensor] = {}
        for name, channel in getattr(self, "channels_", {}).items():
            parts = {key: getattr(channel, key) for key in ("mean", "domains", "centers")}
            tensors |= {f"{name}.{key}": part for key, part in parts.items() if part is not None}
            stop = self.blocks_[name].stop
            facts[name] = {**dataclasses.asdict(channel.decision), "scale": channel.scale, "stop": stop}
        return facts, tensors

    def resettle(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        self.channels_, self.blocks_ = {}, {}
        start = 0
        for name, fact in facts.items():
            decision = Decision(**{field.name: fact[field.name] for field in dataclasses.fields(Decision)})
            width, scale = fact["stop"] - start, float(fact["scale"])
            parts = {key: tensors.get(f"{name}.{key}") for key in ("mean", "domains", "centers")}
            _check_parts(name, decision, width, scale, **parts)
            self.channels_[name] = _Channel(decision, scale, **parts)
            self.blocks_[name] = slice(start, fact["stop"])
            start = fact["stop"]
        self.decisions_ = [channel.decision for channel in self.channels_.values()]

    # Channels -------------------------------------------------------------------------------------------------------

    def raw_channels(self, data: Data) -> BlockMatrix:
        """The channels as the graph and the host have them, neither scaled nor centered.

        Several steady forms of one host (:func:`steady_of`) can share them: they differ in what is made of these.
        """
        own = dict(super().blocks(data)) if self.channels != ("x",) else {}
        found = {"x": own["x"] if "x" in own else Block(self._features(data))} if "x" in self.channels else {}
        if "graph" in self.channels:
            found |= {name: block for name, block in own.items() if name != "x"}
        if not found:
            raise MarioError(f"{self.name} has no channel 'graph' beside the features: use channels=('x',)")
        return BlockMatrix(found)

    def _chosen(self, raw: BlockMatrix) -> BlockMatrix:
        """Those of ``raw`` that are in ``channels``."""
        found = {name: raw[name] for name in raw if ("x" if name == "x" else "graph") in self.channels}
        if not found:
            raise MarioError(f"there is none of the channels {', '.join(self.channels)} in {', '.join(raw)}")
        return BlockMatrix(found)

    def _features(self, data: Data) -> Tensor:
        self.check_fits(data)
        x: Tensor = data.x.to(torch.get_default_dtype())
        if "batch" not in data:
            return x.cpu()
        assert isinstance(self, GraphLevel)
        return self.pool(x.to_dense(), data).cpu()

    def _readability(self, name: str, block: Block, seen: Data, domains: Tensor | None) -> float | None:
        if domains is None:
            return None
        # The features are the same at every checkpoint, and what a host makes of a graph in every form made of it.
        kept = seen.x if name == "x" and "batch" not in seen else block.values
        key = ("readability", self.seed_)
        return remembered(kept, key, lambda: readability(block, domains, seed=self.seed_), seen.domain_id)

    def _measure(self, name: str, block: Block, domains: Tensor | None, readable: dict[str, float | None]) -> _Channel:
        centered, why = self._gate(name, domains, readable)
        one = torch.zeros(block.shape[0], dtype=torch.long)
        mean = block.group_sums(one, 1)[0] / block.shape[0]
        squares = block.squares()
        variance = squares - block.shape[0] * float(mean.square().sum())
        if variance <= _NOTHING * squares:
            return _Channel(Decision(name, readable[name], False, "the same for all nodes: dropped"), 0.0)
        if not centered or domains is None:
            scale = (block.shape[0] / variance) ** 0.5
            return _Channel(Decision(name, readable[name], False, why), scale)
        ids, group, counts = domains.unique(return_inverse=True, return_counts=True)
        sums = block.group_sums(group, len(ids))
        centers = self._drawn(sums, torch.where(ids < 0, 0, counts), mean)
        left = squares - 2 * float((centers * sums).sum()) + float(counts.double() @ centers.square().sum(1))
        if left <= _NOTHING * variance:
            why = f"{why}; nothing is left of it: dropped"
            return _Channel(Decision(name, readable[name], True, why), 0.0)
        dtype = torch.get_default_dtype()
        scale = (block.shape[0] / left) ** 0.5
        return _Channel(Decision(name, readable[name], True, why), scale, mean.to(dtype), ids, centers.to(dtype))

    def _gate(self, name: str, domains: Tensor | None, readable: dict[str, float | None]) -> tuple[bool, str]:
        """Whether a channel is centered, and why."""
        own = readable[name]
        if domains is None:
            return False, "no domain ids: not centered"
        if self.center == "never":
            return False, "not centered, as center=never says"
        if own is None:
            return False, "one domain only: not centered"
        said = f"domain readable at {own:.2f}"
        if self.center == "always":
            return True, f"{said}; centered, as center=always says"
        if own > self.threshold:
            return True, f"{said}, above {self.threshold:g}: centered by domain"
        others = [f"{key} at {value:.2f}" for key, value in readable.items() if value and value > self.threshold]
        if name == "x" and others:
            return True, f"{said}, but of {', '.join(others)}: centered by domain"
        return False, f"{said}, not above {self.threshold:g}: not centered"

    def _drawn(self, sums: Tensor, counts: Tensor, mean: Tensor) -> Tensor:
        """The center of each domain: its own mean, drawn toward ``mean`` if it has fewer than ``min_nodes`` nodes."""
        own = sums / counts.clamp(min=1).unsqueeze(1)
        share = (counts / self.min_nodes).clamp(max=1.0).to(own.dtype).unsqueeze(1)
        return share * own + (1 - share) * mean.to(own.dtype)

    def _placed(self, name: str, block: Block, domains: Tensor | None) -> Block:
        """A channel with its scale, and with the centers of the domains of these nodes."""
        channel = self.channels_[name]
        if channel.centers is None or channel.mean is None or channel.domains is None:
            return dataclasses.replace(block, scale=channel.scale)
        if domains is None:
            warnings.warn(
                f"{name} is centered by domain, and this graph has no domain_id: all nodes are centered by the "
                "training mean; pass domain=",
                UserWarning,
                stacklevel=4,
            )
            domains = torch.full((block.shape[0],), -1)
        ids, group, counts = domains.unique(return_inverse=True, return_counts=True)
        place = torch.searchsorted(channel.domains, ids).clamp(max=len(channel.domains) - 1)
        known = channel.domains[place] == ids
        centers = channel.centers[place]
        if not bool(known.all()):
            counts = torch.where(ids < 0, 0, counts)
            own = self._drawn(block.group_sums(group, len(ids)), counts, channel.mean)
            centers = torch.where(known.unsqueeze(1), centers, own.to(centers.dtype))
            self.notes_ += [self._note(name, int(ids[i]), int(counts[i])) for i in (~known).nonzero().view(-1).tolist()]
        return dataclasses.replace(block, scale=channel.scale, centers=centers, group=group)

    def _note(self, name: str, domain: int, count: int) -> str:
        if domain < 0:
            return f"{name}: nodes of unknown domain are centered by the training mean"
        own = f"{name}: domain {domain} is new; centered by its own {count} nodes"
        share = count / self.min_nodes
        return own if share >= 1 else f"{own} for {share:.0%}, by the training mean for the rest"


def Steady(host: Method, **settings: Any) -> WithSteady:  # noqa: N802 (it reads as the thing it makes)
    """``host`` with its embeddings made steady under a shift of domains. No label is read.

    The node's own features (``x``) and what the host makes of the graph (``graph``) are kept side by side as named
    blocks, each scaled by one number. Where the domain of a node (a country, a year, a university) can be read from a
    channel, the mean of the domain is subtracted; where it cannot, centering would only remove information, and the
    channel is left as it is. ``decisions_`` says what was done and why.

    Domains come from ``data.domain_id`` or from ``fit(data, domain=...)``; without any, channels are only put side by
    side. Domains of unlabeled nodes are used: a new domain is centered by the mean of its own nodes.

    Args:
        host: Any method that learns without labels, such as ``GRACE()``.
        settings: ``channels``, ``center``, ``threshold``, ``min_nodes``; others are the host's.

    Example:
        >>> import mario
        >>> data = mario.load_dataset("good-cbas", shift="covariate")
        >>> model = mario.Steady(mario.GRACE(hidden_channels=16, epochs=1, steps_per_epoch=1)).fit(data)
        >>> model.transform(data).shape, model.blocks_["graph"]
        (torch.Size([700, 20]), slice(4, 20, None))
        >>> print(model.decisions_[0])
        x: domain readable at 1.00, above 0.7: centered by domain; nothing is left of it: dropped
    """
    if isinstance(host, type):
        raise MarioError(f"Steady takes a method, got the class {host.__name__}: use {host.__name__}()")
    if not isinstance(host, Method):
        raise MarioError(f"Steady takes a method such as GRACE(), got {host!r}")
    made = with_steady(type(host)).from_settings({**host.get_params(), **settings})
    assert isinstance(made, WithSteady)
    return made


def steady_of(host: Method, **settings: Any) -> WithSteady:
    """``host``, which is fitted, made steady without another training: both share the networks.

    :meth:`WithSteady.settle` on the graph of the training is what is left to do. So one training serves several
    choices of channels and centering.

    Args:
        host: A fitted method that learns without labels.
        settings: ``channels``, ``center``, ``threshold`` and ``min_nodes``.

    Example:
        >>> import mario
        >>> from mario.methods import steady_of
        >>> data = mario.load_dataset("good-cbas", shift="covariate")
        >>> host = mario.GRACE(hidden_channels=16, epochs=1, steps_per_epoch=1).fit(data)
        >>> raw = steady_of(host).raw_channels(data)
        >>> for center in ("never", "always"):
        ...     model = steady_of(host, center=center)
        ...     model.settle(data, raw=raw)
        ...     print([decision.centered for decision in model.decisions_])
        [False, False]
        [True, True]
    """
    if not isinstance(host, Method):
        raise MarioError(f"steady_of takes a fitted method, got {host!r}")
    host.check_fitted()
    own = {field.name for field in dataclasses.fields(WithSteady)} - {
        field.name for field in dataclasses.fields(Method)
    }
    if unknown := sorted(settings.keys() - own):
        raise MarioError(f"steady_of takes {', '.join(sorted(own))}, got {unknown[0]}: other settings are the host's")
    made = with_steady(type(host)).from_settings({**host.fitted_params_, **settings})
    assert isinstance(made, WithSteady)
    known = {field.name for field in made.fields()}
    vars(made).update({name: value for name, value in vars(host).items() if name not in known})
    made.fitted_params_ = made.get_params()
    return made


_OVER: dict[type[Method], type[Method]] = {}


def with_steady(host: type[Method]) -> type[Method]:
    """The class of ``host`` with steady, called ``HOST+steady``."""
    if host not in _OVER:
        if issubclass(host, WithSteady):
            raise MarioError(f"{host.name} is steady already")
        if host.supervised:
            raise MarioError(f"steady is for methods that learn without labels, which {host.name} does not")
        name = f"{host.name}+steady"
        _OVER[host] = laid_over(WithSteady, host, name=name, class_name=f"Steady{host.__name__}", module=__name__)
    return _OVER[host]


def __getattr__(name: str) -> Any:
    """``SteadyGRACE`` and so on: pickle looks for a class in its module."""
    from mario.methods.registry import systems

    if name.startswith("Steady"):
        for host in dict.fromkeys((*systems("node"), *systems("graph"))):
            if f"Steady{find(host).__name__}" == name and not find(host).supervised:
                return with_steady(find(host))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def with_domain(data: Data, domain: Tensor | None) -> Data:
    """``data`` with ``domain`` as its ``domain_id``, or as it is."""
    if domain is None:
        return data
    data = copy.copy(data)
    data.domain_id = torch.as_tensor(domain)
    return data


def _domains(data: Data) -> Tensor | None:
    domains: Tensor | None = data.get("domain_id")
    return None if domains is None else domains.cpu()


def seen_by_channels(data: Data) -> tuple[Data, Tensor | None]:
    """What training may see of a graph, with the domains of its nodes, or of its graphs."""
    domains = _domains(data)
    if "train_mask" not in data or ("batch" not in data and data.get("setting") != "inductive"):
        return data, domains
    seen = training_graph(data)
    if domains is not None:
        domains = domains[data.train_mask.cpu() if "batch" in data else seen.n_id.cpu()]
        seen.domain_id = domains
    return seen, domains


def _check_parts(
    name: str,
    decision: Decision,
    width: int,
    scale: float,
    mean: Tensor | None,
    domains: Tensor | None,
    centers: Tensor | None,
) -> None:
    """Raise a ValueError unless the parts of a saved channel fit together."""
    if not (isinstance(decision.why, str) and isinstance(decision.centered, bool) and width > 0 and scale >= 0):
        raise ValueError(f"the channel {name} is not sound")
    if (mean is None, domains is None) != (centers is None,) * 2:
        raise ValueError(f"the channel {name} lacks a part")
    if mean is not None and domains is not None and centers is not None:
        sound = mean.shape == (width,) and centers.shape == (domains.numel(), width) and domains.numel() > 0
        ascending = domains.dtype == torch.int64 and bool((domains[1:] > domains[:-1]).all())
        if not (sound and ascending and bool(torch.isfinite(centers).all()) and bool(torch.isfinite(mean).all())):
            raise ValueError(f"the channel {name} does not fit together")
