"""A fitted model as a folder: weights, head, transforms, and a ``model.json`` that says how all of it came about."""

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mario.errors import MarioError
from mario.files import check_path
from mario.from_json import from_json
from mario.untrusted import open_file, parse_json, read_bytes, safe_name

if TYPE_CHECKING:
    from torch import Tensor

    from mario.embedder.ids import Ids
    from mario.evaluation import BlockClassifier
    from mario.methods import WithSteady

FORMAT = 1
ABOUT, MODEL, HEAD, TRAIN, CARD, PLAN, IDS = (
    "model.json",
    "model.safetensors",
    "head.safetensors",
    "train.safetensors",
    "README.md",
    "features.json",
    "ids.arrow",
)
CHECKPOINT = "checkpoint"
_HEX = re.compile(r"[0-9a-f]{16,128}")


@dataclasses.dataclass(frozen=True)
class GraphAbout:
    """The graph that a model was fitted on.

    Attributes:
        name: Its name, and ``source`` what was given to the command: a name or a path.
        fingerprint: A hash of all its tensors.
        plan: The digest of its feature plan, or ``""``.
        nodes, edges, features: Counts.
        level: ``node`` or ``graph``.
        domain: The column that says the domain, or ``""``.
        domains: The name of each domain, by its number in ``domain_id``.
        case: What else ``load_dataset`` was given: ``domain``, ``shift``, ``setting``, ``split_seed``.
        label: The column of the labels.
    """

    name: str
    source: str
    fingerprint: str
    plan: str
    nodes: int
    edges: int
    features: int
    level: str
    domain: str
    domains: tuple[str, ...]
    case: Mapping[str, Any]
    label: str = "label"


@dataclasses.dataclass(frozen=True)
class FileAbout:
    """The size of a file in bytes, and its checksum."""

    bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class PickAbout:
    """A setting, the value that was picked for it, and why."""

    setting: str
    value: Any
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scored:
    """How a candidate did: see :class:`mario.embedder.bench.Row`; ``training`` is what it was made from."""

    name: str
    training: str
    control: bool
    score: float | None = None
    low: float | None = None
    high: float | None = None
    rank: float | None = None
    readability: float | None = None
    calibration: float | None = None
    decisions: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class About:
    """What ``model.json`` says.

    Attributes:
        chosen: The candidate that the model is.
        method, channels, center: The same in settings.
        seed: Of all draws.
        rule: What chose it; ``rule_why`` says why this rule.
        score, interval: The expected score on other domains by that rule, a fraction, with a 95 % interval; ``None``
            without labels.
        baseline: The score of a constant prediction.
        metric: Of the scores.
        calibration: The expected calibration error of the head's probabilities.
        class_names: Of the head, in its order; empty without one.
        labeled: Nodes whose labels were trained on.
        picks: Each setting, its value and the reason.
        candidates: All that were scored, controls first.
        left_out: Candidates that were not scored, and why.
        decisions: What is centered, and why.
        blocks: The width of each block of columns.
        warnings: What a user should know.
        graph: The graph.
        files: The other files: bytes and SHA-256 of each.
        versions: Of mario and of what it computes with.
        seconds: That the fit took.
        asked: What the command was given, by which a repeated one is recognized.
        history: Later updates, oldest first.
    """

    chosen: str
    method: str
    channels: tuple[str, ...]
    center: str
    seed: int
    rule: str
    rule_why: str
    score: float | None = None
    interval: tuple[float, float] | None = None
    baseline: float | None = None
    metric: str
    calibration: float | None = None
    class_names: tuple[str, ...]
    labeled: int
    picks: tuple[PickAbout, ...]
    candidates: tuple[Scored, ...]
    left_out: Mapping[str, str]
    decisions: tuple[str, ...]
    blocks: Mapping[str, int]
    warnings: tuple[str, ...]
    graph: GraphAbout
    files: Mapping[str, FileAbout]
    versions: Mapping[str, str]
    seconds: float
    asked: Mapping[str, Any] | None = None
    history: tuple[Mapping[str, Any], ...] = ()

    @property
    def controls(self) -> dict[str, Scored]:
        """The candidates that learn nothing, by name."""
        return {one.name: one for one in self.candidates if one.control}

    @property
    def columns(self) -> list[str]:
        """The name of each column of the embeddings, such as ``graph_0``."""
        return [f"{block}_{i}" for block, width in self.blocks.items() for i in range(width)]

    def as_json(self) -> dict[str, Any]:
        """What is written."""
        return {"format": FORMAT, **_present(dataclasses.asdict(self))}

    @classmethod
    def from_dict(cls, value: Any, where: str) -> "About":
        """What was written, checked; `MarioError` for anything else."""
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            there = value.get("format") if isinstance(value, dict) else None
            raise MarioError(f"{where} has format {there}; this version of mario reads format {FORMAT}")
        found = from_json(cls, value, where)
        for name in found.files:
            safe_name(name, f"{where}: the name of a file")
        sound = (
            all(_HEX.fullmatch(facts.sha256) for facts in found.files.values()),
            {MODEL, TRAIN} <= found.files.keys(),
            all(width > 0 for width in found.blocks.values()),
            found.interval is None or len(found.interval) == 2,
        )
        if not all(sound):
            raise MarioError(f"{where} was written by another version of mario, or it is damaged")
        return found


@dataclasses.dataclass(frozen=True)
class Training:
    """What later verbs need of the training graph.

    Attributes:
        z: Compact embeddings, float32 ``[rows, width]``: see :func:`mario.embedder.compact`.
        rows: The node of each row.
        domain_id: The domain of each row, or ``None``.
    """

    z: "Tensor"
    rows: "Tensor"
    domain_id: "Tensor | None"


@dataclasses.dataclass(frozen=True)
class ModelFolder:
    """A folder that ``mario fit`` or :meth:`mario.Embedder.save` wrote.

    Attributes:
        path: The folder.
        about: What ``model.json`` says.
        digest: A hash of all files of the model, which embeddings carry.

    Example:
        >>> import mario, tempfile
        >>> from pathlib import Path
        >>> from mario.embedder import ModelFolder, conclude, fit_graph, read_source, write_model
        >>> source = read_source("good-cbas", shift="covariate")
        >>> fitted = fit_graph(source.data, given={"method": "grace", "steps": 1, "hidden_channels": 8})
        >>> with tempfile.TemporaryDirectory() as home:
        ...     path = write_model(conclude(fitted, source), Path(home) / "model").path
        ...     folder = ModelFolder.read(path)
        ...     model = folder.model()
        >>> folder.about.graph.nodes, folder.about.rule, model.transform(source.data).shape[0]
        (700, 'ood_val', 700)
    """

    path: Path
    about: About
    digest: str

    @classmethod
    def read(cls, path: Path | str) -> "ModelFolder":
        """Read and check a folder; `MarioError` if it is no model, is not complete, or was changed."""
        home = check_path("a model", path).expanduser()
        if home.is_file():
            raise MarioError(f"{home} is a file; a model is the folder that `mario fit GRAPH -o FOLDER` writes")
        if not home.is_dir():
            raise MarioError(f"there is no folder {home}; `mario fit GRAPH -o {home}` writes one")
        if not (home / ABOUT).exists():
            if (home / CHECKPOINT).is_dir():
                raise MarioError(f"the fit in {home} is not finished: repeat its command to continue it")
            raise MarioError(f"{home} has no {ABOUT}; `mario fit GRAPH -o FOLDER` writes a model")
        content = read_bytes(home / ABOUT)
        about = About.from_dict(parse_json(content, str(home / ABOUT)), str(home / ABOUT))
        for name, facts in about.files.items():
            _check_file(home / name, facts, content=name in (PLAN, IDS))
        digest = hashlib.sha256(
            json.dumps({name: facts.sha256 for name, facts in sorted(about.files.items())}).encode()
        )
        return cls(home, about, digest.hexdigest()[:32])

    def model(self, device: str = "cpu") -> "WithSteady":
        """The fitted method."""
        from mario.methods import WithSteady, load

        found = load(self.path / MODEL, device=device)
        if not isinstance(found, WithSteady):
            raise MarioError(f"{self.path / MODEL} holds {found.name}, which `mario fit` does not write")
        return found

    def head(self) -> "BlockClassifier | None":
        """The classifier of the label column; ``None`` without labels."""
        from mario.evaluation import BlockClassifier

        return BlockClassifier.load(self.path / HEAD) if HEAD in self.about.files else None

    def training(self) -> Training:
        """Embeddings and domains of the training graph."""
        from mario.untrusted import read_safetensors

        about, tensors = read_safetensors(self.path / TRAIN, "mario_train")
        z, rows, domain = tensors.get("z"), tensors.get("rows"), tensors.get("domain_id")
        if z is None or rows is None or z.dim() != 2 or len(rows) != len(z) or about != {"format": FORMAT}:
            raise MarioError(f"{self.path / TRAIN} was written by another version of mario, or it is damaged")
        return Training(z, rows, domain)

    def ids(self) -> "Ids":
        """The ids of the nodes of the graph that it was fitted on, or their numbers."""
        from mario.embedder.ids import Ids

        count = self.about.graph.nodes
        return Ids.read(self.path / IDS, count) if IDS in self.about.files else Ids(count)

    @property
    def has_plan(self) -> bool:
        """Whether the graph came from tables, and its feature transforms are here."""
        return PLAN in self.about.files

    @property
    def plan(self) -> Path | None:
        """The file with the feature transforms, if there is one."""
        return self.path / PLAN if self.has_plan else None


def file_facts(path: Path) -> FileAbout:
    """The size and the checksum of a file."""
    digest, size = hashlib.sha256(), 0
    with open_file(path) as file:
        while part := file.read(2**22):
            digest.update(part)
            size += len(part)
    return FileAbout(size, digest.hexdigest())


def _check_file(path: Path, facts: FileAbout, *, content: bool) -> None:
    """Compare a file with what ``model.json`` says; files of tensors have a checksum of their own."""
    with open_file(path) as file:
        size = file.seek(0, 2)
    if size != facts.bytes:
        raise MarioError(
            f"{path} has {size:,} bytes, {ABOUT} says {facts.bytes:,}: the model was changed; fit it again"
        )
    if content and file_facts(path) != facts:
        raise MarioError(f"{path} is not the file that {ABOUT} describes: the model was changed; fit it again")


def _present(value: Any) -> Any:
    """``value`` without what is ``None``, as :func:`mario.from_json.from_json` reads it."""
    if isinstance(value, dict):
        return {key: _present(part) for key, part in value.items() if part is not None}
    return [_present(part) for part in value] if isinstance(value, list | tuple) else value
