"""What every method is: settings, networks, a step that makes gradients, and an embedding."""

import dataclasses
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.encoders import ENCODERS, Encoder, Projector
from mario.encoders.propagation import forget
from mario.errors import MarioError
from mario.files import write_whole
from mario.graphs import check_graph, training_graph
from mario.graphs.fingerprint import fingerprint
from mario.graphs.paging import mapping_of, release
from mario.graphs.samplers import Clusters, FullGraph, Neighbors, RandomWalk, Sampler
from mario.methods.settings import check_settings, setting
from mario.training import SCHEDULES, train

REGISTRY: dict[str, type["Method"]] = {}
_CLUSTER = 200  # nodes of a cluster, about


def hosts() -> list[str]:
    """The methods that the recipe can be laid over."""
    return sorted(name for name, cls in REGISTRY.items() if cls.host)


def register(name: str) -> Callable[[type["Method"]], type["Method"]]:
    """Make a method known by ``name`` to the command line, the tests and the tables."""

    def keep(cls: type["Method"]) -> type["Method"]:
        # The same class may come twice: a file that is run and imported, or collected by a test runner.
        if name in REGISTRY and _origin(REGISTRY[name]) != _origin(cls):
            raise MarioError(f"a method is already registered as '{name}': {REGISTRY[name].__name__}")
        cls.name = name
        REGISTRY[name] = cls
        return cls

    return keep


def _origin(cls: type) -> tuple[str | None, str]:
    return getattr(sys.modules.get(cls.__module__), "__file__", None), cls.__qualname__


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Method(nn.Module):
    """An estimator of embeddings: ``fit``, ``transform``, ``save``, ``load``.

    A subclass declares its hyper-parameters as fields, makes its networks in :meth:`build` and says in :meth:`step` how
    a batch becomes gradients. What ``fit`` learns has a name that ends in an underscore.
    """

    # fmt: off
    encoder: str = setting("gcn", choices=tuple(ENCODERS), help="kind of convolution")
    hidden_channels: int = setting(300, low=1, search=(64, 128, 256, 300, 512), help="width of the encoder and of the embeddings")
    num_layers: int = setting(3, low=1, search=(1, 2, 3, 4), help="number of convolutions")
    batch_norm: bool = setting(True, search=(False, True), help="batch norm after each convolution")
    dropout: float = setting(0.0, low=0.0, high=0.99, search=(0.0, 0.5), help="dropout after each convolution")
    last_activation: bool = setting(False, search=(False, True), help="activation after the last convolution too")
    epochs: int = setting(30, low=1, search=(50, 100, 200, 500, 600), help="epochs of steps_per_epoch optimizer steps")
    steps_per_epoch: int = setting(10, low=1, help="optimizer steps an epoch, one sampled subgraph each")
    lr: float = setting(1e-2, low=0.0, search=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5), help="learning rate of Adam")
    weight_decay: float = setting(0.0, low=0.0, search=(0.0, 1e-5, 1e-4), help="weight decay of Adam")
    schedule: str = setting("constant", choices=SCHEDULES, help="course of the learning rate")
    milestones: tuple[int, ...] = setting((150,), help="optimizer steps at which schedule=steps multiplies it by 0.1")
    warmup: int = setting(0, low=0, help="optimizer steps of linear rise of the learning rate")
    patience: int = setting(0, low=0, help="stop after that many epochs without a lower training loss; 0 is never")
    sampling: str = setting("random_walk", choices=("full", "random_walk", "neighbors", "clusters"), help="training batches")
    roots: int = setting(1000, low=1, help="roots of random walks, seeds of neighbor sampling, or about the nodes of the clusters in a batch")
    precision: str = setting("float32", choices=("float32", "bfloat16"), help="of the products of a training step; bfloat16 is quicker on hardware made for it")
    compiled: bool = setting(False, help="compile what is done to rows with torch.compile; needs a C++ compiler")
    # fmt: on

    name: ClassVar[str] = ""
    supervised: ClassVar[bool] = False
    trains: ClassVar[bool] = True
    host: ClassVar[bool] = False
    levels: ClassVar[tuple[str, ...]] = ("node",)
    """What it embeds: nodes of a graph, whole graphs of a set, or both."""

    def __post_init__(self) -> None:
        super().__init__()
        check_settings(self)

    # What a subclass says -------------------------------------------------------------------------------------------

    def build(self, in_channels: int, num_classes: int) -> None:
        """Make the networks. Weights may be drawn from torch's default generator: :meth:`fit` seeds and restores it."""
        self.encoder_ = self.make_encoder(in_channels)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Add the gradients of one training step to the parameters; return what is to be logged, ``loss`` among it."""
        raise NotImplementedError

    def after_step(self, step: int, total: int) -> None:
        """Whatever follows an optimizer step, such as moving a target network."""

    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Figures for the log that are too dear for every step."""
        return {}

    def embed(self, data: Data) -> Tensor:
        """Embeddings of all nodes of ``data`` by the network that is kept."""
        return self.encoder_(data.x, data.edge_index)

    # What every method has ------------------------------------------------------------------------------------------

    def fit(self, data: Data, *, seed: int = 0, device: str = "auto", folder: Path | str | None = None) -> Self:
        """Train on what :func:`mario.training_graph` shows of ``data``, or on all of it where it has no ``train_mask``.

        With a ``folder``, checkpoints and a log are kept there, and a training that was stopped goes on.
        """
        graph = self.prepare(data, seed=seed, device=device)
        identity = {"method": self.name, "seed": seed, "nodes": graph.num_nodes, **self.get_params()}
        identity |= {"graph": fingerprint(graph)} if folder else {}
        for _ in train(self, graph, seed=seed, folder=Path(folder) if folder else None, identity=identity):
            pass
        return self

    def prepare(self, data: Data, *, seed: int = 0, device: str = "auto") -> Data:
        """Check ``data``, make the networks from ``seed``, and return the graph that training may see."""
        check_graph(data)
        self.check_level("graph" if "batch" in data else "node")
        check_seed(seed)
        if data.get("edge_weight") is not None:
            warnings.warn("edge_weight is not used: all edges count alike", UserWarning, stacklevel=3)
        graph = training_graph(data) if "train_mask" in data else bare_graph(data)
        graph.x = graph.x.to(torch.get_default_dtype())
        num_classes = 0
        if self.supervised:
            if data.get("y") is None or data.get("train_mask") is None:
                raise MarioError(f"{self.name} learns from labels: the graph needs y and train_mask")
            num_classes = int(data.get("num_classes") or data.y[data.train_mask].max() + 1)
        elif "y" in graph:
            del graph.y
        self.place(data.x.size(1), num_classes, seed=seed, device=device)
        if self.compiled and choose_device(device).type == "cpu":
            _check_compiler()
        return graph

    def place(self, in_channels: int, num_classes: int, *, seed: int = 0, device: str = "cpu") -> None:
        """Make the networks with weights drawn from ``seed``, leaving torch's default generator as it was."""
        self.in_channels_ = in_channels
        self.num_classes_ = num_classes
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed GPUs too
            self.build(in_channels, num_classes)
        self.to(choose_device(device))
        if self.precision == "bfloat16":
            for part in self.children():
                if isinstance(part, Encoder | Projector):
                    part.products = torch.bfloat16
        if self.compiled:
            for part in self.children():
                if isinstance(part, Encoder):
                    part.compile_rows()
                elif isinstance(part, Projector):
                    part.compile(dynamic=True)

    @torch.no_grad()
    def transform(self, data: Data) -> Tensor:
        """One embedding a node, or a graph of a set of graphs, on the CPU."""
        self._require_fitted()
        check_graph(data)
        self.check_level("graph" if "batch" in data else "node")
        if data.x.size(1) != self.in_channels_:
            raise MarioError(f"this model was fitted on {self.in_channels_} features, the graph has {data.x.size(1)}")
        device = next((p.device for p in self.parameters()), torch.device("cpu"))
        graph = bare_graph(data).to(device)
        graph.x = graph.x.to(torch.get_default_dtype())
        self.eval()
        z = self.embed(graph).cpu()
        # Of a graph on disk nothing stays in memory: training may go on with batches.
        if mapping_of(graph.edge_index) is not None:
            forget(graph.edge_index)
        for part in (graph.x, graph.edge_index):
            release(part)
        return z

    def save(self, path: Path | str) -> None:
        """Write weights and settings to one safetensors file, for :func:`mario.load` to find the class by its name."""
        self._require_fitted()
        if "name" not in vars(type(self)):
            known = f", not as {self.name!r}, which is another class" if self.name else ""
            raise MarioError(f'register {type(self).__name__} to save it: @register("a-name") above the class{known}')
        shape = {"in_channels": self.in_channels_, "num_classes": self.num_classes_}
        header = {"mario": json.dumps({"method": self.name, "settings": self.get_params(), **shape})}
        # Copies, as safetensors refuses tensors that share memory, such as a weight with two names.
        tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in self.state_dict().items()}
        write_whole(Path(path), lambda name: save_file(tensors, name, header))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All settings by name."""
        return {field.name: getattr(self, field.name) for field in self.fields()}

    @classmethod
    def fields(cls) -> tuple["dataclasses.Field[Any]", ...]:
        """The settings that this method has."""
        return dataclasses.fields(cls)

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> "Method":
        """The method with ``settings``; an unknown name is an error that lists the known ones."""
        known = {field.name for field in cls.fields()}
        unknown = sorted(set(settings) - known)
        if unknown:
            raise MarioError(
                f"{cls.name} has no setting {', '.join(map(repr, unknown))}; it has {', '.join(sorted(known))}"
            )
        return cls(**settings)

    def make_encoder(self, in_channels: int, kind: str | None = None) -> Encoder:
        return ENCODERS[kind or self.encoder](
            in_channels,
            hidden_channels=self.hidden_channels,
            num_layers=self.num_layers,
            batch_norm=self.batch_norm,
            dropout=self.dropout,
            last_activation=self.last_activation,
        )

    def sampler(self, graph: Data) -> Sampler:
        """Training batches of ``graph``; walks and neighborhoods reach as far as the encoder is deep."""
        if self.sampling == "full":
            return FullGraph(graph)
        if self.sampling == "random_walk":
            return RandomWalk(graph, roots=self.roots, length=self.num_layers)
        if self.sampling == "neighbors":
            nodes = graph.train_mask if self.supervised else None
            seeds = min(self.roots, graph.num_nodes if nodes is None else int(nodes.sum()))
            return Neighbors(graph, seeds=seeds, fanouts=[10] * self.num_layers, nodes=nodes)
        size = min(_CLUSTER, self.roots)
        clusters = max(1, graph.num_nodes // size)
        return Clusters(graph, clusters=clusters, per_batch=min(clusters, max(1, self.roots // size)))

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.trained(), lr=self.lr, weight_decay=self.weight_decay, fused=True)

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the optimizer of the loop moves."""
        return list(self.parameters()) or [nn.Parameter(torch.empty(0))]

    @classmethod
    def check_level(cls, level: str) -> None:
        """Raise a :class:`MarioError` that names the methods for ``level`` if this is not one of them."""
        if level not in cls.levels:
            what = "a set of graphs" if level == "graph" else "data whose nodes are classified"
            able = [name for name, other in REGISTRY.items() if level in other.levels]
            able += [f"{name}+mario" for name in hosts() if name in able and name != "grace"]
            hint = "" if level == "graph" else "; torch_geometric's Batch.from_data_list makes a set of graphs"
            raise MarioError(f"{cls.name} embeds {cls.levels[0]}s; {what} needs one of {', '.join(sorted(able))}{hint}")

    def _require_fitted(self) -> None:
        if not hasattr(self, "in_channels_"):
            raise MarioError(f"this {type(self).__name__} is not fitted yet: call fit(data) first")

    def __repr__(self) -> str:
        defaults = {field.name: field.default for field in self.fields()}
        changed = {k: v for k, v in self.get_params().items() if v != defaults[k]}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in changed.items())})"


def bare_graph(data: Data) -> Data:
    """Features and edges alone, and of a set of graphs which graph a node is of."""
    kept = ("x", "edge_index", "batch", "ptr", "num_graphs")
    return Data.from_dict({key: data[key] for key in kept if key in data})


def check_seed(seed: int) -> None:
    if not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise MarioError(f"seed must be a whole number from 0 to 4294967295, got {seed!r}")


def choose_device(device: str) -> torch.device:
    """``auto`` is a GPU where torch finds one."""
    if device not in ("auto", "cpu", "cuda"):
        raise MarioError(f"device must be auto, cpu or cuda, got '{device}'")
    if device == "cuda" and not torch.cuda.is_available():
        raise MarioError("device cuda was asked for and torch finds none: use cpu or auto")
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def _check_compiler() -> None:
    """For a CPU torch.compile writes C++."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX"), "g++", "clang++", "c++", "cl") if name):
        raise MarioError(
            "compiled=true needs a C++ compiler and there is none: install g++, name another in CXX, or leave it false"
        )
