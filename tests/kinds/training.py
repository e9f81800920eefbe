"""Arguments of ``fit``, what a folder of a training may hold, modes of torch, and files of models."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.nn import GCN as PYG_GCN

import mario
from kinds.graphs import INF, NAN, features, fitted, graph_set, model, sound
from kinds.kind import Kind, equal, refused, same
from mario.errors import MarioError
from mario.graphs.samplers import Clusters, Graphs, Neighbors, RandomWalk
from mario.methods import REGISTRY
from mario.training import Checkpoint, Log, learning_rate_factor, pauses, train
from mario.views import (
    AdversarialFeatures,
    Chain,
    Diffusion,
    DropEdges,
    DropNodes,
    MaskFeatures,
    MaskNodes,
    OneOf,
    PerturbEdges,
    RandomWalkSubgraph,
    ShuffleFeatures,
)

SEEDS = {
    "-1": -1,
    "True": True,
    "2**32": 2**32,
    "a text": "0",
    "None": None,
    "a fraction": 0.5,
    "NaN": NAN,
    "a list": [0],
}
SEEDS["a whole float"] = 1.0
SEEDS["a tensor"] = torch.tensor(1)


def kinds() -> list[Kind]:
    return [*_fit(), *_modes(), *_folders(), *_models(), *_views(), *_samplers(), *_loop()]


def _fit() -> Iterator[Kind]:
    arguments: dict[str, dict[str, Any]] = {
        "seed": SEEDS,
        "device": {"tpu": "tpu", "cuda:99": "cuda:99", "None": None, "a number": 0, "empty": "", "meta": "meta"},
        "callback": {"a text": "print", "a number": 3, "a list": [print]},
        "folder": {"a number": 3, "a list": ["x"], "a null character": "a\0b", "a name too long": "x" * 300},
    }
    for name, values in arguments.items():
        for fault, value in values.items():
            for method in ("RandomInit", "MARIO"):
                yield refused(
                    f"{fault} for fit({name}) of {method}",
                    lambda m=method, n=name, v=value: model(m).fit(sound(), **{n: v}),
                )
    if not torch.cuda.is_available():
        yield refused("cuda without a GPU", lambda: model().fit(sound(), device="cuda"))
    yield refused("an unknown argument of fit_transform", lambda: _typed(lambda: model().fit_transform(sound(), sed=1)))
    for fault, answer in {"a text": "stop", "1": 1, "None": None, "an object": object()}.items():
        yield same(
            f"a callback that returns {fault}",
            lambda a=answer: model("GRACE", epochs=2).fit(sound(), callback=lambda epoch: a).transform(sound()),
            lambda: model("GRACE", epochs=2).fit(sound()).transform(sound()),
        )

    def raises() -> object:
        def callback(epoch: object) -> object:
            raise KeyError("the user's own")

        try:
            model("GRACE").fit(sound(), folder="here", callback=callback)
        except KeyError:
            return model("GRACE").fit(sound(), folder="here").transform(sound())
        return None

    yield same("a callback that raises, then again", raises, lambda: model("GRACE").fit(sound()).transform(sound()))

    def changes() -> object:
        data = sound()
        made = model("GRACE", epochs=2).fit(data, callback=lambda epoch: data.x.fill_(0.0))
        return made.transform(sound()).isfinite().all()

    yield Kind("a callback that changes the graph", changes, bool, or_refused=True)


def _typed(call: Callable[[], object]) -> object:
    try:
        return call()
    except TypeError as error:  # what Python itself says of an unknown argument
        raise MarioError(str(error)) from None


METHODS = [name for name, cls in REGISTRY.items() if "node" in cls.levels]
HOSTS = [f"{name}+mario" for name, cls in REGISTRY.items() if cls.host and "node" in cls.levels]


def _made(name: str) -> Any:
    small = {"epochs": 1, "steps_per_epoch": 2, "hidden_channels": 4, "num_layers": 1, "sampling": "full"}
    return mario.methods.find(name).from_settings(small)


def _modes() -> Iterator[Kind]:
    modes: dict[str, Callable[[], Any]] = {
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
        "gradients off": lambda: torch.set_grad_enabled(False),
    }
    for name in [*METHODS, *HOSTS]:
        for mode, entered in modes.items():

            def under(name: str = name, entered: Callable[[], Any] = entered) -> object:
                with entered():
                    z = _made(name).fit(sound()).transform(sound())
                return z.clone()

            yield same(f"{mode} around fit of {name}", under, lambda n=name: _made(n).fit(sound()).transform(sound()))
    for name in ("grace", "mario"):

        def in_double(name: str = name) -> object:
            torch.set_default_dtype(torch.float64)
            try:
                return _made(name).fit(sound()).transform(sound())
            finally:
                torch.set_default_dtype(torch.float32)

        yield Kind(  # which draws other weights
            f"float64 by default in {name}",
            in_double,
            lambda z, again=in_double: z.dtype == torch.float64 and equal(z, again()),
        )

        def seeded(name: str = name) -> object:
            torch.manual_seed(7)
            before = torch.get_rng_state()
            made = _made(name).fit(sound()).transform(sound())
            assert torch.equal(before, torch.get_rng_state())
            return made

        yield same(
            f"a global seed around fit of {name}", seeded, lambda n=name: _made(n).fit(sound()).transform(sound())
        )


def _folders() -> Iterator[Kind]:
    def small(**settings: Any) -> Any:
        return model("GRACE", **{"epochs": 3, **settings})

    def half(folder: str = "here", **settings: Any) -> None:
        """A training that was stopped after its first pause."""
        small(**settings).fit(sound(), folder=folder, callback=lambda epoch: epoch.number == 2)

    def newest(folder: str = "here") -> Path:
        return sorted(Path(folder, "checkpoint").glob("*.safetensors"))[-1]

    def then(change: Callable[[], object], again: Callable[[], object] | None = None) -> Callable[[], object]:
        def given() -> object:
            half()
            change()
            return (again or (lambda: small().fit(sound(), folder="here").transform(sound())))()

        return given

    def whole() -> object:
        return small().fit(sound()).transform(sound())

    yield same("a training that was stopped", then(lambda: None), whole)
    others: dict[str, Callable[[], object]] = {
        "another seed": lambda: small().fit(sound(), seed=1, folder="here"),
        "another learning rate": lambda: small(lr=0.5).fit(sound(), folder="here"),
        "another width": lambda: small(hidden_channels=5).fit(sound(), folder="here"),
        "more epochs": lambda: small(epochs=9).fit(sound(), folder="here"),
        "another method": lambda: model("BGRL", epochs=3).fit(sound(), folder="here"),
        "another graph": lambda: small().fit(sound(x=features() + 1), folder="here"),
        "one other feature": lambda: small().fit(
            sound(x=features().index_put((torch.tensor(5), torch.tensor(1)), torch.tensor(9.0))), folder="here"
        ),
        "other edges": lambda: small().fit(sound(edge_index=sound().edge_index.flip(0)[:, :-1]), folder="here"),
        "another encoder": lambda: small(encoder="gin").fit(sound(), folder="here"),
        "a user's encoder": lambda: small(encoder=PYG_GCN(3, 4, 2)).fit(sound(), folder="here"),
    }
    for fault, again in others.items():
        yield refused(f"the folder of a training with {fault}", then(lambda: None, again))

    def other_seed() -> None:
        small().fit(sound(), seed=5, folder="other")
        for file in Path("here/checkpoint").glob("*"):
            file.unlink()
        shutil.copy(newest("other"), "here/checkpoint")

    yield refused("a checkpoint of another seed copied here", then(other_seed))

    def cut(keep: float) -> Callable[[], None]:
        def change() -> None:
            for file in Path("here/checkpoint").glob("*.safetensors"):
                content = file.read_bytes()
                file.write_bytes(content[: int(len(content) * keep)])

        return change

    for fault, change in {"cut in half": cut(0.5), "empty": cut(0.0), "cut by a bit": cut(0.999)}.items():
        yield refused(f"checkpoints {fault}", then(change))

    def flip(position: float) -> Callable[[], None]:
        def change() -> None:
            for file in Path("here/checkpoint").glob("*.safetensors"):
                content = bytearray(file.read_bytes())
                content[int((len(content) - 1) * position)] ^= 1
                file.write_bytes(content)

        return change

    for position in (0.0, 0.001, 0.02, 0.5, 0.7, 0.9, 1.0):
        yield refused(f"a bit flipped at {position} of all checkpoints", then(flip(position)))

    def newest_only() -> None:
        newest().write_bytes(b"")

    yield Kind(
        "a newest checkpoint that is empty", then(newest_only), lambda z: bool((z == whole()).all()), or_refused=True
    )
    yield same(
        "a file named best among checkpoints",
        then(lambda: Path("here/checkpoint/best.safetensors").write_bytes(b"x")),
        whole,
    )
    yield same("a folder among checkpoints", then(lambda: Path("here/checkpoint/000000009.safetensors").mkdir()), whole)
    yield same("a damaged log", then(lambda: Path("here/log.jsonl").write_bytes(b"\xff\xfe{[[[")), whole)
    yield Kind(
        "a log that is a link",
        lambda: (then(_linked)(), Path("thesis").read_text())[1],
        lambda text: text == "years of work",
        or_refused=True,
    )
    yield refused(
        "a folder that is a file", lambda: (Path("here").write_text("x"), small().fit(sound(), folder="here"))[1]
    )
    yield refused("a folder that is a fifo", lambda: (os.mkfifo("here"), small().fit(sound(), folder="here"))[1])
    yield refused(
        "checkpoints in a file",
        lambda: (Path("here").mkdir(), Path("here/checkpoint").write_text("x"), small().fit(sound(), folder="here"))[2],
    )
    yield refused("a checkpoint of an old format", then(lambda: _header(newest(), format=1)))
    yield refused("a checkpoint of a format to come", then(lambda: _header(newest(), format=99)))
    for fault, facts in {
        "a step that is a text": {"step": "x"},
        "a negative step": {"step": -5},
        "a step beyond the end": {"step": 10**6},
        "records that are a text": {"records": "x"},
        "records of numbers": {"records": [1]},
        "records without steps": {"records": [{}]},
        "no identity": {"extra": {}},
        "an identity that is a list": {"extra": []},
    }.items():
        yield refused(
            f"a checkpoint with {fault}",
            then(lambda f=facts: [_header(p, **f) for p in Path("here/checkpoint").glob("*.safetensors")]),
        )

    def twice() -> object:
        def inner(epoch: object) -> object:
            return small().fit(sound(), folder="here")

        return small().fit(sound(), folder="here", callback=inner)

    yield refused("two trainings in one folder", twice)


def _linked() -> None:
    Path("thesis").write_text("years of work")
    Path("here/log.jsonl").unlink()
    Path("here/log.jsonl").symlink_to(Path("thesis").resolve())


def _header(path: Path, **changes: Any) -> None:
    """Write ``path`` again with another header, and, as anybody can, without a checksum."""
    from safetensors import safe_open
    from safetensors.torch import save_file

    with safe_open(path, "pt") as file:
        facts = json.loads(file.metadata()["mario"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, value in changes.items():
        if value is ...:
            del facts[name]
        else:
            facts[name] = value
    save_file(tensors, path, {"mario": json.dumps(facts)})


def saved(name: str = "RandomInit", **settings: Any) -> Path:
    fitted(name, **settings).save("model.safetensors")
    return Path("model.safetensors")


def _models() -> Iterator[Kind]:
    headers: dict[str, dict[str, Any]] = {
        "an unknown method": {"method": "no-such"},
        "a method that is a number": {"method": 3},
        "a method that is a list": {"method": ["grace"]},
        "a method that is a path": {"method": "../grace"},
        "no method": {"method": ...},
        "no settings": {"settings": ...},
        "settings that are a list": {"settings": []},
        "an unknown setting": {"settings": {"hiden": 3}},
        "a setting of another type": {"settings": {"hidden_channels": "4"}},
        "a wide network": {"settings": {"hidden_channels": 10**8}},
        "a deep network": {"settings": {"num_layers": 1000}},
        "another width": {"settings": {"hidden_channels": 5, "num_layers": 2}},
        "no width of x": {"in_channels": ...},
        "a negative width of x": {"in_channels": -1},
        "a width of x that is a text": {"in_channels": "3"},
        "a width of x that is a bool": {"in_channels": True},
        "a huge width of x": {"in_channels": 2**40},
        "another width of x": {"in_channels": 4},
        "a huge number of classes": {"num_classes": 2**50},
        "edge channels that are None": {"edge_channels": None},
        "parts that are a list": {"parts": ["encoder"]},
        "a part that is code": {"parts": {"encoder": "os.system"}},
        "an unknown part": {"parts": {"encode": "x"}},
        "no parts": {"parts": ...},
    }
    for fault, changes in headers.items():

        def given(changes: dict[str, Any] = changes) -> object:
            path = saved()
            _header(path, **changes)
            return mario.load(path)

        yield refused(f"a model with {fault}", given)
    given_parts: dict[str, dict[str, Any]] = {
        "an encoder that it does not have": {"encoder": nn.Linear(3, 4)},
        "views that it does not have": {"views": (DropEdges(0.5), DropEdges(0.5))},
        "an unknown device": {"device": "tpu"},
        "a device that is None": {"device": None},
        "an encoder that is a text": {"encoder": "gcn"},
    }
    for fault, arguments in given_parts.items():
        yield refused(f"load with {fault}", lambda a=arguments: mario.load(saved(), **a))

    def foreign(encoder: Any) -> object:
        model(encoder=PYG_GCN(3, 4, 2)).fit(sound()).save("model.safetensors")
        return mario.load("model.safetensors", **({} if encoder is None else {"encoder": encoder}))

    yield refused("load without the user's encoder", lambda: foreign(None))
    yield refused("load with another class of encoder", lambda: foreign(nn.Linear(3, 4)))
    yield refused("load with an encoder of another width", lambda: foreign(PYG_GCN(3, 5, 2)))
    yield refused("load with an encoder of another depth", lambda: foreign(PYG_GCN(3, 4, 3)))

    def weights(change: Callable[[torch.Tensor], torch.Tensor], whole: bool = False) -> object:
        from safetensors import safe_open
        from safetensors.torch import save_file

        path = saved()
        with safe_open(path, "pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        name = sorted(tensors)[0]
        tensors[name] = change(tensors[name])
        save_file(tensors, path, {"mario": about["mario"]})
        return mario.load(path).transform(sound())

    yield refused("weights of another shape", lambda: weights(lambda w: torch.ones(9, 9)))
    yield refused("weights that are NaN in a file", lambda: weights(lambda w: w * NAN))
    yield refused("complex weights", lambda: weights(lambda w: w.to(torch.complex64)))
    yield same("float64 weights", lambda: weights(lambda w: w.double()), lambda: fitted().transform(sound()))
    paths: dict[str, Any] = {"a folder": ".", "nothing": "none.safetensors", "empty": "", "a null character": "a\0b"}
    paths |= {"None": None, "a number": 3, "a device": "/dev/zero", "a name too long": "x" * 5000}
    for fault, path in paths.items():
        yield refused(f"load of {fault}", lambda p=path: mario.load(p))
    for fault, path in {
        "a folder": ".",
        "a null character": "a\0b",
        "None": None,
        "a file as a folder": "model.safetensors/x",
    }.items():
        yield refused(f"save to {fault}", lambda p=path: (saved(), fitted().save(p))[1])

    def fifo() -> object:
        os.mkfifo("pipe")
        return mario.load("pipe")

    yield refused("load of a fifo", fifo)


def _views() -> Iterator[Kind]:
    ranged = (DropEdges, DropNodes, MaskFeatures, MaskNodes, PerturbEdges, RandomWalkSubgraph)
    values = {"-0.1": -0.1, "1.1": 1.1, "NaN": NAN, "infinity": INF, "a text": "0.5", "None": None, "a list": [0.5]}
    values |= {"a bool": True, "a tensor": torch.tensor(0.5), "a numpy array": np.array([0.5, 0.5])}
    for cls in ranged:
        for fault, value in values.items():
            yield refused(f"{fault} for {cls.__name__}(p)", lambda c=cls, v=value: c(v))
    others: dict[str, Callable[[], object]] = {
        "MaskNodes with a typo of fill": lambda: MaskNodes(0.5, fill="means"),
        "MaskNodes with fill None": lambda: MaskNodes(0.5, fill=None),
        "DropNodes with float ids": lambda: DropNodes(0.5, keep_ids=torch.tensor([0.5])),
        "DropNodes with ids in a list": lambda: DropNodes(0.5, keep_ids=[0, 1]),
        "DropNodes with an id beyond": lambda: DropNodes(0.5, keep_ids=torch.tensor([99]))(sound()),
        "DropNodes with a negative id": lambda: DropNodes(0.5, keep_ids=torch.tensor([-1]))(sound()),
        "RandomWalkSubgraph with ratio and roots": lambda: RandomWalkSubgraph(0.5, roots=3),
        "RandomWalkSubgraph with nothing": lambda: RandomWalkSubgraph(),
        "RandomWalkSubgraph with a negative length": lambda: RandomWalkSubgraph(roots=3, length=-1),
        "RandomWalkSubgraph with a bool": lambda: RandomWalkSubgraph(roots=True, length=1),
        "RandomWalkSubgraph with huge roots": lambda: RandomWalkSubgraph(roots=10**30, length=1)(sound()),
        "RandomWalkSubgraph with a huge length": lambda: RandomWalkSubgraph(roots=1, length=10**30)(sound()),
        "a ratio of 0": lambda: RandomWalkSubgraph(0.0),
        "Diffusion of a typo": lambda: Diffusion("pagerank"),
        "Diffusion of None": lambda: Diffusion(None),
        "teleport of 0": lambda: Diffusion(teleport=0.0),
        "teleport of 2": lambda: Diffusion(teleport=2.0),
        "teleport of NaN": lambda: Diffusion(teleport=NAN),
        "teleport a text": lambda: Diffusion(teleport="0.2"),
        "a negative time": lambda: Diffusion("heat", time=-1.0),
        "an infinite time": lambda: Diffusion("heat", time=INF),
        "a tolerance of 0": lambda: Diffusion(tolerance=0.0),
        "a tolerance of NaN": lambda: Diffusion(tolerance=NAN),
        "exact_nodes a text": lambda: Diffusion(exact_nodes="x")(sound()),
        "a negative epsilon": lambda: AdversarialFeatures(-1.0),
        "an epsilon of NaN": lambda: AdversarialFeatures(NAN),
        "an epsilon that is a text": lambda: AdversarialFeatures("1e-3"),
        "no ascent steps": lambda: AdversarialFeatures(steps=0),
        "ascent steps of 2.5": lambda: AdversarialFeatures(steps=2.5),
        "an unknown ascent step": lambda: AdversarialFeatures(step="signs"),
        "an adversary without a loss": lambda: AdversarialFeatures()(sound()),
        "a loss that is a text": lambda: AdversarialFeatures(loss="x")(sound()),
        "a loss that returns None": lambda: AdversarialFeatures(loss=lambda data: None)(sound()),
        "a loss that returns a number": lambda: AdversarialFeatures(loss=lambda data: 1.0)(sound()),
        "a loss that returns a vector": lambda: AdversarialFeatures(loss=lambda data: data.x.sum(1))(sound()),
        "a chain of a class": lambda: Chain(DropEdges),
        "a chain of a text": lambda: Chain("drop"),
        "a chain of a function": lambda: Chain(lambda data: data),
        "one of nothing": lambda: OneOf(),
        "one of a text": lambda: OneOf("drop"),
        "one of a class": lambda: OneOf(DropEdges),
    }
    for fault, given in others.items():
        yield refused(fault, given)
    every = [DropEdges(0.5), DropNodes(0.5), MaskFeatures(0.5), MaskNodes(0.5), PerturbEdges(0.5), ShuffleFeatures()]
    every += [RandomWalkSubgraph(0.5), Chain(DropEdges(0.5)), OneOf(DropEdges(0.5))]
    for view in every:
        name = type(view).__name__
        for fault, generator in {"a seed": 0, "a text": "0", "numpy's": np.random.default_rng(0)}.items():
            yield refused(f"{fault} as the generator of {name}", lambda v=view, g=generator: v(sound(), g))
    for view in (
        MaskFeatures(0.5),
        MaskNodes(0.5),
        ShuffleFeatures(),
        AdversarialFeatures(loss=lambda data: data.x.sum()),
    ):
        yield refused(f"a graph without x in {type(view).__name__}", lambda v=view: v(sound(x=None, num_nodes=8)))
    for view in (DropEdges(0.5), PerturbEdges(0.5), RandomWalkSubgraph(0.5), Diffusion()):
        yield refused(f"a graph without edges in {type(view).__name__}", lambda v=view: v(sound(edge_index=None)))


def _samplers() -> Iterator[Kind]:
    counts = {
        "0": 0,
        "-1": -1,
        "a fraction": 1.5,
        "a text": "3",
        "None": None,
        "a bool": True,
        "NaN": NAN,
        "a list": [1],
    }
    made: dict[str, Callable[[Any], Any]] = {
        "RandomWalk(roots)": lambda n: RandomWalk(sound(), roots=n, length=1),
        "Neighbors(seeds)": lambda n: Neighbors(sound(), seeds=n, fanouts=[1]),
        "Clusters(clusters)": lambda n: Clusters(sound(), clusters=n),
        "Clusters(per_batch)": lambda n: Clusters(sound(), clusters=2, per_batch=n),
        "Graphs(per_batch)": lambda n: Graphs(graph_set(), per_batch=n),
        "RandomWalk(coverage)": lambda n: RandomWalk(sound(), roots=1, length=1, normalize=True, coverage=n),
    }
    for entry, call in made.items():
        for fault, value in counts.items():
            yield refused(f"{fault} for {entry}", lambda c=call, v=value: c(v))
        yield refused(f"10**30 for {entry}", lambda c=call: c(10**30))
        if entry in ("Neighbors(seeds)", "Graphs(per_batch)"):
            yield same(f"10**12 for {entry}", lambda c=call: c(10**12).sample().num_nodes, lambda: 8)
    fanouts = {
        "empty": [],
        "a number": 3,
        "-2": [-2],
        "a fraction": [1.5],
        "a text": "35",
        "None": None,
        "a bool": [True],
    }
    for fault, value in fanouts.items():
        yield refused(f"{fault} for fanouts", lambda v=value: Neighbors(sound(), seeds=1, fanouts=v))
    nodes = {
        "beyond": torch.tensor([99]),
        "negative": torch.tensor([-1]),
        "floats": torch.tensor([0.5]),
        "none": torch.tensor([]).long(),
    }
    nodes |= {
        "twice": torch.tensor([1, 1]),
        "a list": [0],
        "a short mask": torch.ones(3).bool(),
        "an empty mask": torch.zeros(8).bool(),
    }
    for fault, value in nodes.items():
        yield refused(f"seed nodes {fault}", lambda v=value: Neighbors(sound(), seeds=1, fanouts=[1], nodes=v))
        yield refused(f"seeds around {fault}", lambda v=value: Neighbors(sound(), seeds=1, fanouts=[1]).around(v))
    for fault, value in {"a typo": "metsi", "None": None, "a number": 3}.items():
        yield refused(f"{fault} as the method of Clusters", lambda v=value: Clusters(sound(), clusters=2, method=v))
    for fault, value in {"a negative length": -1, "a text": "2", "a fraction": 0.5, "None": None}.items():
        yield refused(f"{fault} for RandomWalk(length)", lambda v=value: RandomWalk(sound(), roots=1, length=v))
    yield refused(
        "a typo of edge_norm_by", lambda: RandomWalk(sound(), roots=1, length=1, normalize=True, edge_norm_by="x")
    )
    samplers: dict[str, Callable[[], Any]] = {
        "RandomWalk": lambda: RandomWalk(sound(), roots=2, length=1),
        "Neighbors": lambda: Neighbors(sound(), seeds=2, fanouts=[1]),
        "Clusters": lambda: Clusters(sound(), clusters=2, method="bfs"),
        "Graphs": lambda: Graphs(graph_set(), per_batch=2),
    }
    for name, sampler in samplers.items():
        for fault, generator in {"a seed": 0, "a text": "0"}.items():
            yield refused(f"{fault} as the generator of {name}", lambda s=sampler, g=generator: s().sample(g))
            yield refused(
                f"{fault} as the generator of an epoch of {name}", lambda s=sampler, g=generator: list(s().epoch(g))
            )
    for name in ("x", "edge_index"):
        yield refused(f"a sampler of a graph without {name}", lambda n=name: RandomWalk(_empty(n), roots=1, length=1))


def _empty(name: str) -> Any:
    return (
        sound(edge_index=None)
        if name == "edge_index"
        else sound(x=torch.ones(0, 3), edge_index=torch.zeros(2, 0).long())
    )


def _loop() -> Iterator[Kind]:
    for fault, given in {
        "epochs of 0 for pauses": (0, 3),
        "negative epochs for pauses": (-3, 3),
        "negative checkpoints for pauses": (3, -1),
        "a text for pauses": ("3", 3),
        "a fraction for pauses": (3.5, 2),
        "checkpoints that are None": (3, None),
    }.items():
        yield refused(fault, lambda g=given: pauses(*g))
    rates: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "an unknown schedule": ((0, 10), {"schedule": "linear"}),
        "a schedule of None": ((0, 10), {"schedule": None}),
        "a negative step": ((-1, 10), {}),
        "a text as a step": (("0", 10), {}),
        "a negative warmup": ((0, 10), {"warmup": -1}),
        "milestones that are a number": ((0, 10), {"schedule": "steps", "milestones": 3}),
        "milestones of texts": ((0, 10), {"schedule": "steps", "milestones": ["3"]}),
    }
    for fault, (given, named) in rates.items():
        yield refused(f"{fault} for the learning rate", lambda g=given, n=named: learning_rate_factor(*g, **n))
    yield refused("a log in a folder that is a file", lambda: (Path("a").write_text("x"), Log(Path("a/log.jsonl")))[1])
    yield refused("a log that is a folder", lambda: (Path("a").mkdir(), Log(Path("a")))[1])
    yield same("no checkpoint", lambda: Checkpoint.newest(Path("none")), lambda: None)
    for fault, seed in {"-1": -1, "True": True, "a text": "x", "None": None}.items():
        yield refused(f"a seed of {fault} for train", lambda s=seed: list(train(_prepared(), sound(), seed=s)))
    yield refused("negative checkpoints for train", lambda: list(train(_prepared(), sound(), checkpoints=-1)))
    yield refused("a method that is not prepared", lambda: list(train(model("GRACE"), sound())))
    yield refused("a module that is no method", lambda: list(train(nn.Linear(2, 2), sound())))
    yield refused("a method that is a text", lambda: list(train("grace", sound())))


def _prepared() -> Any:
    made = model("GRACE")
    made.prepare(sound())
    return made
