"""A model for other programs: torch.export, ONNX, and a folder in the form of the Hugging Face Hub."""

import dataclasses
import json
import logging
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from mario.embedder.embedding import embed_by
from mario.embedder.folder import CARD, HEAD, MODEL, PLAN, ModelFolder
from mario.embedder.reading import Given, Ready, make_ready
from mario.encoders import GCN, GIN, Encoder, GraphSAGE
from mario.encoders.adjacency import entries, propagation_matrix
from mario.errors import MarioError, RunFailedError
from mario.files import check_path, write_json, write_text, write_whole
from mario.methods import WithSteady

FORMS = ("torch", "onnx", "huggingface")
CLOSE = 1e-4
"""Largest difference of an exported model from the model, in units of the largest number of its embeddings."""
_OPSET = 18


class PlainEncoder(nn.Module):
    """An encoder of ours in plain products and sums, which every runtime has.

    ``forward(x, edge_index, edge_value)`` takes edges that are normalized already: :func:`normalized_edges`.
    """

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.kind = type(encoder).__name__
        self.weights = nn.ModuleList()
        self.own = nn.ModuleList()
        self.after = nn.ModuleList()
        self.norms = nn.ModuleList()
        self.activation = encoder.activation.__name__.rstrip("_")
        self.last_activation = encoder.last_activation
        convs: list[Any] = list(encoder.convs)
        for conv, norm in zip(convs, encoder.norms, strict=True):
            bias = conv.nn[0].bias if self.kind == "GIN" else conv.lin_l.bias if self.kind == "GraphSAGE" else conv.bias
            self.weights.append(_linear(encoder.transform(conv).weight, bias))
            self.own.append(_linear(conv.lin_r.weight, None) if self.kind == "GraphSAGE" else nn.Identity())
            self.after.append(conv.nn[1:] if self.kind == "GIN" else nn.Identity())
            plain = nn.Identity()
            if isinstance(norm, nn.BatchNorm1d):
                plain = nn.BatchNorm1d(norm.num_features, eps=norm.eps)  # type: ignore[assignment]
                plain.load_state_dict(norm.state_dict())
            self.norms.append(plain)
        self.eval()

    def forward(self, x: Tensor, edge_index: Tensor, edge_value: Tensor) -> Tensor:
        """One row per node."""
        source, target = edge_index[0], edge_index[1]
        h = x
        layers: list[Any] = [self.weights, self.own, self.after, self.norms]
        for i, (linear, own, after, norm) in enumerate(zip(*layers, strict=True)):
            sent = nn.functional.linear(h, linear.weight)
            got = torch.zeros_like(sent).index_add(0, target, sent[source] * edge_value.unsqueeze(1))
            got = got + linear.bias
            if self.kind == "GraphSAGE":
                got = got + own(h)
            h = norm(after(got))
            if i < len(self.weights) - 1 or self.last_activation:
                h = getattr(nn.functional, self.activation)(h)
        return h


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    made = nn.Linear(weight.size(1), weight.size(0), bias=bias is not None)
    made.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias.detach().clone(), requires_grad=False)
    return made


class Exported(nn.Module):
    """Features and normalized edges in, scaled embeddings out, as of a model without centers of domains."""

    def __init__(self, model: WithSteady) -> None:
        super().__init__()
        self.names = tuple(model.channels_)
        self.encoder = PlainEncoder(model.encoder_) if "graph" in self.names else None  # type: ignore[arg-type]
        for name, channel in model.channels_.items():
            width = model.blocks_[name].stop - model.blocks_[name].start
            centers = torch.zeros(1, width) if channel.mean is None else channel.mean[None]
            known = torch.zeros(0, dtype=torch.int64) if channel.domains is None else channel.domains
            if channel.centers is not None and len(known) and int(known[-1]) >= 0:
                # Row 0 is for an unknown domain, row d + 1 for domain d.
                table = channel.mean[None].repeat(int(known[-1]) + 2, 1)  # type: ignore[index]
                table[known[known >= 0] + 1] = channel.centers[known >= 0]
                centers = table
            self.register_buffer(f"centers_{name}", centers)
            self.register_buffer(f"scale_{name}", torch.tensor(float(channel.scale)))

    def forward(self, x: Tensor, edge_index: Tensor, edge_value: Tensor, domain: Tensor) -> Tensor:
        """All channels side by side. ``domain`` is -1 for an unknown domain, else the number in ``config.json``."""
        parts = []
        for name in self.names:
            own = x if name == "x" or self.encoder is None else self.encoder(x, edge_index, edge_value)
            centers = getattr(self, f"centers_{name}")
            row = (domain + 1).clamp(0, centers.size(0) - 1) if centers.size(0) > 1 else torch.zeros_like(domain)
            parts.append((own - centers[row]) * getattr(self, f"scale_{name}"))
        return torch.cat(parts, 1)


def exportable(model: WithSteady) -> "Exported":
    """``model`` as a plain module; `MarioError` that says what does not allow it."""
    names = set(model.channels_)
    if names - {"x", "graph"}:
        raise MarioError(
            f"{model.name} has the channels {', '.join(model.channels_)}, which are not those of one encoder: export "
            "--to huggingface"
        )
    if "graph" in names and type(getattr(model, "encoder_", None)) not in (GCN, GIN, GraphSAGE):
        kind = type(getattr(model, "encoder_", None)).__name__
        raise MarioError(f"the encoder {kind} cannot be exported: gcn, sage and gin can; export --to huggingface")
    if "graph" in names and len([part for part in model.modules() if isinstance(part, Encoder)]) > 1:
        raise MarioError(f"{model.name} has more than one encoder: export --to huggingface")
    return Exported(model).eval().requires_grad_(False)


def normalized_edges(model: WithSteady, graph: Ready) -> tuple[Tensor, Tensor]:
    """Edges and their values as :class:`PlainEncoder` takes them, self-loops among them."""
    encoder = getattr(model, "encoder_", None)
    data = graph.data
    if not isinstance(encoder, Encoder) or encoder.normalization is None:
        return data.edge_index, torch.ones(data.edge_index.size(1))
    weight = data.get("edge_weight") if model.uses("edge_weight") else None
    matrix = propagation_matrix(data.edge_index, data.x.size(0), encoder.normalization, torch.float32, weight)
    return entries(matrix), matrix.values()


def inputs(model: WithSteady, graph: Ready) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """What an exported model takes, of a graph."""
    x = graph.data.x
    x = (x.to_dense() if x.layout == torch.sparse_csr else x).float()
    domain = graph.data.get("domain_id")
    domain = torch.full((x.size(0),), -1) if domain is None else domain
    # Copies: torch.export takes no views of sparse matrices.
    return x.clone(), *(part.clone() for part in normalized_edges(model, graph)), domain.clone()


@dataclasses.dataclass(frozen=True)
class Export:
    """What was written: the files, and how far the exported model is from the model on a sample graph."""

    files: tuple[Path, ...]
    difference: float | None
    nodes: int


def export(folder: ModelFolder, to: str, out: Path, *, sample: Given | None = None, root: Path | None = None) -> Export:
    """Write the model for other programs, and compare what was written with it on a graph.

    Args:
        folder: The model.
        to: ``torch`` (a ``.pt2`` file of torch.export), ``onnx`` (an ``.onnx`` file) or ``huggingface`` (a folder).
        out: The file or the folder.
        sample: The graph to compare on; ``None`` is a random one of the same width.
        root: Folder of raw files.
    """
    out = check_path("-o", out).expanduser()
    if to not in FORMS:
        raise MarioError(f"to must be one of {', '.join(FORMS)}, got {to!r}")
    if to == "huggingface":
        return _huggingface(folder, out)
    suffix = ".pt2" if to == "torch" else ".onnx"
    if out.suffix != suffix or out.is_dir():
        raise MarioError(f"-o must be a file that ends with {suffix}, got {str(out)!r}")
    model = folder.model()
    module = exportable(model)
    graph = _random(folder) if sample is None else make_ready(folder.about, sample, root=root, plan=folder.plan)
    given = inputs(model, graph)
    # New domains are centered by their own nodes, which an exported model cannot know.
    known = len(folder.about.graph.domains)
    given = (*given[:3], torch.where(given[3] < known, given[3], -1)) if known else given
    graph.data.domain_id = given[3]
    due = embed_by(model, folder.about, graph).dense()
    write = _write_torch if to == "torch" else _write_onnx
    difference = 0.0

    def checked(name: str) -> None:
        nonlocal difference
        found = write(module, given, name).detach()
        difference = float((found - due).abs().max()) / max(1e-12, float(due.abs().max()))
        if not difference < CLOSE:
            raise RunFailedError(
                f"the exported model differs from the model by {difference:.1e} on {len(due):,} nodes, so it was not "
                "kept; please report this"
            )

    write_whole(out, checked)
    beside = out.with_suffix(".json")
    write_json(beside, _config(folder))
    return Export((out, beside), difference, len(due))


def _shapes() -> dict[str, Any]:
    nodes, edges = torch.export.Dim("nodes", min=2), torch.export.Dim("edges", min=2)
    return {"x": {0: nodes}, "edge_index": {1: edges}, "edge_value": {0: edges}, "domain": {0: nodes}}


def _write_torch(module: nn.Module, given: tuple[Tensor, ...], name: str) -> Tensor:
    try:
        program = torch.export.export(module, given, dynamic_shapes=_shapes())
    except Exception as error:  # torch.export has errors of many kinds
        raise MarioError(f"torch.export cannot export this model ({_line(error)}): export --to huggingface") from error
    with open(name, "wb") as file:
        torch.export.save(program, file)
    with open(name, "rb") as file:
        found: Tensor = torch.export.load(file).module()(*given)
    return found


def _write_onnx(module: nn.Module, given: tuple[Tensor, ...], name: str) -> Tensor:
    try:
        import onnx  # noqa: F401
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise MarioError(f"ONNX needs {error.name}: pip install 'mario-gcl[onnx]'") from None
    names = ["x", "edge_index", "edge_value", "domain"]
    try:
        with _quietly():
            program = torch.onnx.export(
                module,
                given,
                dynamo=True,
                input_names=names,
                output_names=["embedding"],
                dynamic_shapes=_shapes(),
                opset_version=_OPSET,
                verbose=False,
            )
            assert program is not None
            content = program.model_proto.SerializeToString()
    except Exception as error:
        raise MarioError(f"ONNX cannot hold this model ({_line(error)}): export --to huggingface") from error
    Path(name).write_bytes(content)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    there = {one.name for one in session.get_inputs()}
    feed = {key: value.numpy() for key, value in zip(names, given, strict=True) if key in there}
    return torch.from_numpy(session.run(None, feed)[0])


@contextmanager
def _quietly() -> Iterator[None]:
    """Without the warnings of the exporter about packages that are not needed."""
    log = logging.getLogger("torch.onnx")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(before)


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _random(folder: ModelFolder) -> Ready:
    from torch_geometric.data import Data

    draws = torch.Generator().manual_seed(0)
    about = folder.about.graph
    nodes = 50
    data = Data(
        x=torch.rand(nodes, about.features, generator=draws),
        edge_index=torch.randint(nodes, (2, 4 * nodes), generator=draws),
    )
    if about.domains:
        data.domain_id = torch.randint(len(about.domains), (nodes,), generator=draws)
        data.domain_names = None
    return make_ready(folder.about, data)


def _config(folder: ModelFolder) -> dict[str, Any]:
    """What another program needs to know of the model."""
    about, model = folder.about, folder.model()
    encoder = getattr(model, "encoder_", None)
    return {
        "library_name": "mario-gcl",
        "architecture": model.name,
        "model": folder.digest,
        "features": about.graph.features,
        "blocks": dict(about.blocks),
        "domains": list(about.graph.domains),
        "class_names": list(about.class_names),
        "normalization": getattr(encoder, "normalization", None) or "none",
        "settings": json.loads(json.dumps(model.settings(), default=str)),
        "versions": dict(about.versions),
    }


def _huggingface(folder: ModelFolder, out: Path) -> Export:
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MarioError(f"{out} is there already: choose a new folder for -o")
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        names = [name for name in (MODEL, HEAD, PLAN, "features.safetensors") if name in folder.about.files]
        for name in names:
            shutil.copyfile(folder.path / name, part / name)
        write_json(part / "config.json", _config(folder))
        write_json(part / "model.json", folder.about.as_json())
        write_text(part / CARD, (folder.path / CARD).read_text(encoding="utf-8"))
        if out.exists():
            out.rmdir()
        part.rename(out)
    except OSError as error:
        raise RunFailedError(f"cannot write {out}: {error.strerror or error}; nothing was kept") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Export(tuple(sorted(out.iterdir())), None, 0)
