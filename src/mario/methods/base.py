"""What every method is: settings, networks, a step that makes gradients, and an embedding.

``fit`` goes ``prepare`` (check, see, build) → :func:`mario.training.train` → ``step`` → contrast → and back.
"""

import dataclasses
import os
import shutil
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from mario.arguments import check_seed
from mario.encoders import ENCODERS, Encoder, Projector
from mario.encoders.apply import encode, encoder_width, takes, takes_features
from mario.encoders.size import MOST_LAYERS
from mario.errors import MarioError
from mario.files import check_path
from mario.graphs import Block, BlockMatrix, check_graph, training_graph
from mario.graphs.paging import count_not_finite, mapping_of, release
from mario.graphs.remembered import forget
from mario.graphs.rules import EDGE_DATA, SEES
from mario.graphs.samplers import Clusters, FullGraph, Neighbors, RandomWalk, Sampler
from mario.methods.parts import described, fresh
from mario.methods.progress import with_progress
from mario.methods.registry import systems
from mario.methods.saving import save
from mario.methods.settings import MOST_CHANNELS, setting
from mario.methods.with_settings import WithSettings
from mario.training import SCHEDULES, Epoch, train

_CLUSTER = 200  # nodes per cluster, about


@dataclasses.dataclass(eq=False, repr=False, kw_only=True)
class Method(WithSettings, nn.Module):
    """An estimator of embeddings: ``fit``, ``transform``, ``save``, ``load``.

    A subclass declares its hyper-parameters as fields, makes its networks in :meth:`build` and says in :meth:`step` how
    a batch becomes gradients. What ``fit`` learns has a name that ends with an underscore.

    ``encoder`` is a name or any ``nn.Module`` that maps ``(x, edge_index)`` to one row per node. The module itself is
    never trained: ``fit`` trains a copy, ``encoder_``. If the module has ``reset_parameters``, as PyG's models do, the
    copy's weights are drawn from ``seed``; if not, training starts from the weights that the module has. The width of
    the embeddings is that of its output, and its ``num_layers``, if it has that attribute, says how far sampled
    neighborhoods reach; ``hidden_channels``, ``num_layers``, ``batch_norm``, ``dropout`` and ``last_activation`` do not
    change it.
    """

    # fmt: off
    encoder: str | nn.Module = setting("gcn", choices=tuple(ENCODERS), help="kind of convolution, or any module that maps (x, edge_index) to one row per node")  # noqa: RUF009
    hidden_channels: int = setting(300, low=1, high=MOST_CHANNELS, search=(64, 128, 256, 300, 512), help="width of the encoder and of the embeddings")
    num_layers: int = setting(3, low=1, high=MOST_LAYERS, search=(1, 2, 3, 4), help="number of convolutions")
    batch_norm: bool = setting(True, search=(False, True), help="batch norm after each convolution")
    dropout: float = setting(0.0, low=0.0, high=0.99, search=(0.0, 0.5), help="dropout after each convolution")
    last_activation: bool = setting(False, search=(False, True), help="activation after the last convolution too")
    epochs: int = setting(30, low=1, search=(50, 100, 200, 500, 600), help="epochs of steps_per_epoch optimizer steps")
    steps_per_epoch: int = setting(10, low=1, help="optimizer steps per epoch, one sampled subgraph each")
    lr: float = setting(1e-2, low=0.0, search=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5), help="learning rate of Adam")
    weight_decay: float = setting(0.0, low=0.0, search=(0.0, 1e-5, 1e-4), help="weight decay of Adam")
    schedule: str = setting("constant", choices=SCHEDULES, help="course of the learning rate")
    milestones: tuple[int, ...] = setting((150,), help="optimizer steps at which schedule=steps multiplies it by 0.1")
    warmup: int = setting(0, low=0, help="optimizer steps in which the learning rate rises linearly")
    patience: int = setting(0, low=0, help="stop after this many epochs without a lower training loss; 0 is never")
    sampling: str = setting("random_walk", choices=("full", "random_walk", "neighbors", "clusters"), help="training batches")
    roots: int = setting(1000, low=1, high=MOST_CHANNELS, help="roots of random walks, seeds of neighbor sampling, or about the nodes of the clusters in a batch")
    precision: str = setting("float32", choices=("float32", "bfloat16"), help="of the products in a training step; bfloat16 is faster on hardware that supports it")
    compiled: bool = setting(False, help="compile the row-wise parts of our own encoders and projectors with torch.compile; needs a C++ compiler")
    sees: str = setting("all", choices=SEES, help="nodes that training sees in the transductive setting: all, or those of the training domains, which are in no OOD part")
    # fmt: on

    description: ClassVar[str] = ""
    """The docstring as written, without the settings."""
    trains: ClassVar[bool] = True
    host: ClassVar[bool] = False
    levels: ClassVar[tuple[str, ...]] = ("node",)
    """What it embeds: nodes of a graph, whole graphs of a set, or both."""
    uses_edge_data: ClassVar[bool] = True
    """Whether edge weights and attributes reach the encoder; not if the method makes edges of its own."""
    presets_file: ClassVar[Path | None] = None
    """TOML file with the presets of a plug-in method, in the form of ``mario/lab/presets/methods``."""

    def __post_init__(self) -> None:
        super().__init__()

    # What a subclass says -------------------------------------------------------------------------------------------

    def build(self, in_channels: int, num_classes: int) -> None:
        """Make the networks. Weights may be drawn from torch's default generator: :meth:`fit` seeds and restores it."""
        self.encoder_ = self.make_encoder(in_channels)

    def step(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Add the gradients of one training step to the parameters; return figures to log, ``loss`` among them."""
        raise NotImplementedError

    def after_step(self, step: int, total: int) -> None:
        """Called after each optimizer step, for example to move a target network."""

    def diagnostics(self, batch: Data, generator: torch.Generator) -> dict[str, float]:
        """Figures for the log that are too expensive for every step."""
        return {}

    def embed(self, data: Data) -> Tensor:
        """Embeddings of all nodes of ``data`` by the network that is kept."""
        return encode(self.encoder_, data)

    def settle(self, data: Data) -> None:
        """Called when the weights have stopped moving, after training and before a checkpoint is evaluated.

        For what a method derives from the embeddings of the graph that it was trained on, without labels.
        """

    def settled(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What :meth:`settle` found, as JSON and as tensors, for :meth:`save`."""
        return {}, {}

    def resettle(self, facts: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Take back what :meth:`settled` returned; for what does not fit, any KeyError, TypeError or ValueError."""

    # What every method has ------------------------------------------------------------------------------------------

    def fit(
        self,
        data: Data,
        *,
        seed: int = 0,
        device: str = "auto",
        folder: Path | str | None = None,
        verbose: bool = False,
        callback: Callable[[Epoch], object] | None = None,
    ) -> Self:
        """Train on what :func:`mario.training_graph` shows of ``data``, or on all of it if it has no ``train_mask``.

        Args:
            data: A graph, or a set of graphs.
            seed: Of all random numbers: first weights, batches, views, dropout.
            device: ``auto`` is a GPU if there is one.
            folder: Where to keep checkpoints and a log. A training that was stopped resumes from there; one with
                another seed, other settings or another graph is refused.
            verbose: Show a progress bar with epoch, loss and time left.
            callback: Called after each epoch with an :class:`mario.training.Epoch`. If it returns ``True``, training
                stops; over several ranks it has to return the same on all of them.
        """
        if callback is not None and not callable(callback):
            raise MarioError(f"callback must be a function of an Epoch, or None, got {callback!r}")
        home = check_path("folder", folder) if folder else None
        graph = self.prepare(data, seed=seed, device=device)
        # Closed also if the callback raises: the folder must not stay locked as long as a traceback is kept.
        with closing(train(self, graph, seed=seed, folder=home)) as epochs:
            for epoch in with_progress(epochs, self.epochs) if verbose else epochs:
                if callback is not None and callback(epoch) is True:
                    break
        self.settle(data)
        return self

    def identity(self) -> dict[str, Any]:
        """The method's name and all its settings; of modules and transforms, the names of their classes."""
        return {"method": self.name, **{name: described(value) for name, value in self.get_params().items()}}

    def fit_transform(self, data: Data, **fit_arguments: Any) -> Tensor:
        """:meth:`fit`, then the embeddings of ``data``."""
        return self.fit(data, **fit_arguments).transform(data)

    def prepare(self, data: Data, *, seed: int = 0, device: str = "auto") -> Data:
        """Check ``data``, make the networks from ``seed``, and return the graph that training may see."""
        check_graph(data)
        self.check_level("graph" if "batch" in data else "node")
        check_seed("seed", seed)
        if self.supervised and (data.get("y") is None or data.get("train_mask") is None):
            raise MarioError(f"{self.name} learns from labels: the graph needs y and train_mask")
        if self.supervised and not bool((data.y[data.train_mask] >= 0).any()):
            raise MarioError(f"{self.name} learns from labels: no node of train_mask has one")
        if self.compiled and choose_device(device).type == "cpu":
            _check_compiler()
        num_classes = int(data.get("num_classes") or data.y[data.train_mask].max() + 1) if self.supervised else 0
        self.place(data.x.size(1), num_classes, edge_channels=_edge_channels(data), seed=seed, device=device)
        with torch.inference_mode(False):
            return self.see(data)

    def see(self, data: Data) -> Data:
        """What training may see of ``data``: no labels that it must not know, no edge data that it does not use."""
        if "train_mask" not in data and self.sees != "all":
            raise MarioError(f"sees='{self.sees}' needs train_mask, which the graph lacks: use sees='all'")
        graph = in_default_type(training_graph(data, sees=self.sees) if "train_mask" in data else bare_graph(data))
        if not self.supervised and "y" in graph:
            del graph.y
        unused = [name for name in EDGE_DATA if name in data and not self.uses(name)]
        for name in unused:
            if name in graph:
                del graph[name]
        if unused:
            encoder = self.encoder if isinstance(self.encoder, str) else type(self.encoder).__name__
            warnings.warn(
                f"{' and '.join(unused)} of the graph will not be used: {self.name} with the encoder {encoder} "
                f"does not take {'it' if len(unused) == 1 else 'them'}",
                UserWarning,
                stacklevel=4,
            )
        return graph

    def uses(self, name: str) -> bool:
        """Whether ``edge_weight`` or ``edge_attr`` has an effect."""
        encoder = getattr(self, "encoder_", None)
        return self.uses_edge_data and isinstance(encoder, nn.Module) and takes(encoder, name)

    def place(
        self, in_channels: int, num_classes: int, *, edge_channels: int = 0, seed: int = 0, device: str = "cpu"
    ) -> None:
        """Make the networks with weights drawn from ``seed``, leaving torch's default generator as it was."""
        self.in_channels_, self.num_classes_, self.edge_channels_ = in_channels, num_classes, edge_channels
        self.fitted_params_, self.seed_ = self.get_params(), seed  # `set_params` changes what the next fit uses
        for earlier in (self._modules, self._parameters, self._buffers):
            earlier.clear()  # parts of an earlier fit with other settings
        with (
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
        ):  # weights need gradients, whatever the mode
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would reseed GPUs too
            self.build(in_channels, num_classes)
            self.to(choose_device(device))
        if self.compiled:
            for part in self.children():
                if isinstance(part, Encoder):
                    part.compile_rows()
                elif isinstance(part, Projector):
                    part.compile(dynamic=True)

    def transform(self, data: Data) -> Tensor:
        """One embedding per node, or per graph of a set of graphs, on the CPU."""
        return self.embedded(data)

    def blocks(self, data: Data) -> BlockMatrix:
        """The columns of :meth:`transform` as named blocks, which may be sparse or on disk."""
        return BlockMatrix({"graph": Block(self.embedded(data))})

    @torch.no_grad()
    def embedded(self, data: Data) -> Tensor:
        """The checked result of :meth:`embed`, on the CPU."""
        self.check_fits(data)
        graph = self.embeddable(data)
        self.eval()
        with torch.autocast(graph.edge_index.device.type, enabled=False):
            z = self.finite(self.embed(graph).cpu())
        # Of a graph on disk nothing stays in memory: training may go on with batches.
        if mapping_of(graph.edge_index) is not None:
            forget(graph.edge_index)
        for key in ("x", "edge_index", *EDGE_DATA):
            if key in graph:
                release(graph[key])
        return z

    def finite(self, z: Tensor) -> Tensor:
        """``z``; `MarioError` if it has NaN or infinite entries, or if the variance in a batch norm overflowed.

        The latter divides by infinity, so that all rows are the same.
        """
        for name, value in self.named_buffers():
            if name.endswith("running_var") and count_not_finite(value):
                raise MarioError(
                    f"the model's {name} is not finite: data.x is too large to be normalized; scale it, train again"
                )
        if bad := count_not_finite(z):
            broken = [name for name, value in self.state_dict().items() if count_not_finite(value)]
            cause = f"the model's {broken[0]} is not finite, train it again" if broken else "scale data.x"
            raise MarioError(f"the result would hold {bad} NaN or infinite entries: {cause}")
        return z

    def embeddable(self, data: Data) -> Data:
        """What :meth:`embed` needs of ``data``, on the device and in the type of the model."""
        device = next((p.device for p in self.parameters()), torch.device("cpu"))
        graph = in_default_type(bare_graph(data).to(device))
        for name in EDGE_DATA:
            if name in graph and not self.uses(name):
                del graph[name]
        return graph

    def save(self, path: Path | str) -> None:
        """Write weights and settings to one safetensors file, for :func:`mario.load` to find the class by its name.

        Of modules and transforms that were given, the file has the qualified names of their classes;
        :func:`mario.load` takes the objects themselves.
        """
        self.check_fitted()
        save(self, check_path("path", path))

    # Parts ----------------------------------------------------------------------------------------------------------

    def make_encoder(self, in_channels: int, kind: str | None = None, **changes: Any) -> nn.Module:
        """A new encoder: of ``kind``, or as the setting says. ``changes`` replace settings of an encoder with a name."""
        if kind is None and isinstance(self.encoder, nn.Module):
            encoder = fresh(self.encoder)
            self.out_channels_ = encoder_width(encoder, in_channels, self.edge_channels_)
        else:
            cls = ENCODERS[kind or str(self.encoder)]
            facts: dict[str, Any] = {
                "hidden_channels": self.hidden_channels,
                "num_layers": self.num_layers,
                "batch_norm": self.batch_norm,
                "dropout": self.dropout,
                "last_activation": self.last_activation,
                **changes,
            }
            if self.edge_channels_ and cls.supports_edge_attr:
                facts["edge_dim"] = self.edge_channels_
            encoder = cls(in_channels, **facts)
            self.out_channels_ = facts["hidden_channels"]
        return self.reduced(encoder)

    def reduced(self, part: nn.Module) -> nn.Module:
        """``part`` with its products in the precision that the setting says."""
        if self.precision == "bfloat16":
            part.products = torch.bfloat16  # type: ignore[assignment]
        return part

    @property
    def takes_features(self) -> bool:
        """Whether the encoder takes sparse features and features in parts, and all its randomness is the generator's."""
        return takes_features(self.encoder_)

    def sampler(self, graph: Data) -> Sampler:
        """Training batches of ``graph``; walks and neighborhoods reach as far as the encoder is deep."""
        depth = getattr(self.encoder, "num_layers", None)
        depth = depth if isinstance(depth, int) else self.num_layers
        if self.sampling == "full":
            return FullGraph(graph)
        if self.sampling == "random_walk":
            return RandomWalk(graph, roots=self.roots, length=depth)
        if self.sampling == "neighbors":
            nodes = graph.train_mask & (graph.y >= 0) if self.supervised else None
            seeds = min(self.roots, graph.num_nodes if nodes is None else int(nodes.sum()))
            return Neighbors(graph, seeds=seeds, fanouts=[10] * depth, nodes=nodes)
        size = min(_CLUSTER, self.roots)
        clusters = max(1, graph.num_nodes // size)
        return Clusters(graph, clusters=clusters, per_batch=min(clusters, max(1, self.roots // size)))

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.trained(), lr=self.lr, weight_decay=self.weight_decay, fused=True)

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the optimizer of the loop moves."""
        return [p for p in self.parameters() if p.requires_grad] or [nn.Parameter(torch.empty(0))]

    # Checks ---------------------------------------------------------------------------------------------------------

    @classmethod
    def check_level(cls, level: str) -> None:
        """Raise a :class:`MarioError` that names the methods for ``level`` if this is not one of them."""
        if level not in cls.levels:
            what = "a set of graphs" if level == "graph" else "data whose nodes are classified"
            hint = "" if level == "graph" else "; torch_geometric's Batch.from_data_list makes a set of graphs"
            raise MarioError(
                f"{cls.name} embeds {cls.levels[0]}s; {what} needs one of {', '.join(sorted(systems(level)))}{hint}"
            )

    def check_fits(self, data: Data) -> None:
        """Raise a :class:`MarioError` unless this model is fitted and ``data`` is a graph that it can embed."""
        self.check_fitted()
        check_graph(data)
        self.check_level("graph" if "batch" in data else "node")
        if data.x.size(1) != self.in_channels_:
            raise MarioError(f"this model was fitted on {self.in_channels_} features, the graph has {data.x.size(1)}")
        if self.uses("edge_attr") and _edge_channels(data) != self.edge_channels_:
            raise MarioError(
                f"this model was fitted on {self.edge_channels_} edge attributes, the graph has {_edge_channels(data)}"
            )

    def check_fitted(self) -> None:
        """Raise a :class:`MarioError` unless :meth:`fit` was called."""
        if not hasattr(self, "in_channels_"):
            raise MarioError(f"this {type(self).__name__} is not fitted yet: call fit(data) first")


def bare_graph(data: Data) -> Data:
    """Features and edges alone, and for a set of graphs the graph of each node."""
    kept = ("x", "edge_index", *EDGE_DATA, "batch", "ptr", "num_graphs")
    return Data.from_dict({key: data[key] for key in kept if key in data})


def in_default_type(graph: Data) -> Data:
    """``graph`` with its features and edge data in torch's default type.

    Outside of inference mode, tensors that were made in it are copied: they cannot be part of a backward pass.
    """
    for key in ("x", *EDGE_DATA):
        if key in graph:
            graph[key] = graph[key].to(torch.get_default_dtype())
    for key, value in graph:
        if isinstance(value, Tensor) and value.is_inference() and not torch.is_inference_mode_enabled():
            graph[key] = value.clone()
    return graph


def choose_device(device: str) -> torch.device:
    """``auto`` is a GPU if torch finds one."""
    if device not in ("auto", "cpu", "cuda"):
        raise MarioError(f"device must be auto, cpu or cuda, got '{device}'")
    if device == "cuda" and not torch.cuda.is_available():
        raise MarioError("device is cuda, but torch finds no GPU: use cpu or auto")
    return torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")


def _edge_channels(data: Data) -> int:
    attributes = data.get("edge_attr")
    return 0 if attributes is None else int(attributes.size(1))


def _check_compiler() -> None:
    """For a CPU torch.compile writes C++."""
    if not any(shutil.which(name) for name in (os.environ.get("CXX"), "g++", "clang++", "c++", "cl") if name):
        raise MarioError(
            "compiled=true needs a C++ compiler and there is none: install g++, name another in CXX, or leave it false"
        )
