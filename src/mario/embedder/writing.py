"""From a fit to a model folder. ``model.json`` is written last: a folder without it is no model."""

import dataclasses
import platform
import shutil
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import mario
from mario.embedder.card import model_card
from mario.embedder.compact import compact, width_of
from mario.embedder.fitting import Fitted
from mario.embedder.folder import (
    ABOUT,
    CARD,
    CHECKPOINT,
    FORMAT,
    HEAD,
    IDS,
    MODEL,
    PLAN,
    TRAIN,
    About,
    GraphAbout,
    ModelFolder,
    PickAbout,
    Scored,
    file_facts,
)
from mario.embedder.heads import fit_head
from mario.embedder.reading import plan_digest
from mario.embedder.sources import Source
from mario.embedder.updating import Updated
from mario.evaluation import BlockClassifier
from mario.evaluation.controls import READABLE
from mario.files import write_json, write_tensors, write_text, write_whole
from mario.graphs import BlockMatrix
from mario.graphs.card import read_card
from mario.graphs.fingerprint import fingerprint
from mario.methods import WithSteady
from mario.training.streams import SELECTION, stream

_Z_BYTES = 2**31
"""Size of the embeddings of the training graph up to which all of them are kept; of more, a sample of the nodes."""
_COPIED = (PLAN, "features.safetensors", IDS)


@dataclasses.dataclass(frozen=True)
class Result:
    """A fitted model in memory: what a model folder holds."""

    fitted: Fitted
    source: Source
    head: BlockClassifier | None
    z: Tensor
    rows: Tensor
    seed: int
    about: About


def conclude(fitted: Fitted, source: Source, *, seed: int = 0, asked: Any = None) -> Result:
    """Fit the head, and say all of a fit in an :class:`About`.

    Args:
        fitted: The fit.
        source: The graph that it was of.
        seed: Of the fit.
        asked: What the fit was given, as JSON, to recognize the same one.
    """
    blocks = fitted.blocks
    row = fitted.rows[fitted.chosen]
    head = None if fitted.plan.rule == "gate" else fit_head(blocks, source.data, fitted.plan.rule, row, seed=seed)
    if fitted.plan.rule == "gate" and source.class_names:
        head = fit_head(blocks, source.data, "id_val", row, seed=seed)
    rows = _kept_rows(blocks, seed)
    z = compact(blocks if len(rows) == blocks.shape[0] else blocks.rows(rows))
    return Result(
        fitted,
        source,
        head,
        z,
        rows,
        seed,
        dataclasses.replace(_about(fitted, source, blocks, head, seed), asked=asked),
    )


def write_model(result: Result, folder: Path) -> ModelFolder:
    """Write everything into ``folder`` and remove what a fit kept there for a resume."""
    home = result.source.folder
    copied = [] if home is None else [home / name for name in _COPIED]
    domain = result.source.data.get("domain_id")
    return write_folder(folder, result.fitted.model, result.head, result.z, result.rows, domain, copied, result.about)


def write_folder(
    folder: Path,
    model: WithSteady,
    head: BlockClassifier | None,
    z: Tensor,
    rows: Tensor,
    domain: Tensor | None,
    copied: Iterable[Path],
    about: About,
) -> ModelFolder:
    """Write the files of a model, ``model.json`` last.

    Args:
        folder: Where to.
        model, head: The method and the classifier.
        z, rows: Compact embeddings of some rows of its graph.
        domain: The domain of each row of the graph.
        copied: Files to be copied if they are there.
        about: What ``model.json`` will say, without the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / MODEL)
    names = [MODEL]
    if head is not None:
        head.save(folder / HEAD)
        names.append(HEAD)
    tensors = {"z": z.contiguous(), "rows": rows}
    if domain is not None:
        tensors["domain_id"] = domain.cpu()[rows].contiguous()
    write_tensors(folder / TRAIN, tensors, {"mario_train": f'{{"format": {FORMAT}}}'})
    names.append(TRAIN)
    for there in copied:
        if there.is_file():
            write_whole(folder / there.name, lambda target, there=there: shutil.copyfile(there, target))  # type: ignore[misc]
            names.append(there.name)
    about = dataclasses.replace(about, files={name: file_facts(folder / name) for name in names})
    write_text(folder / CARD, model_card(about))
    write_json(folder / ABOUT, about.as_json())
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    return ModelFolder.read(folder)


def write_update(updated: Updated, before: ModelFolder, folder: Path, asked: Any = None) -> ModelFolder:
    """Write an updated model; the transforms of the tables are those of the model before."""
    z = updated.embeddings
    rows = _kept_rows(z.blocks, int(updated.entry["seed"]))
    home = z.graph.folder
    copied = [before.path / name for name in _COPIED if name != IDS and name in before.about.files]
    copied += [] if home is None else [home / IDS]
    return write_folder(
        folder,
        updated.model,
        updated.head,
        compact(z.blocks.rows(rows)),
        rows,
        z.graph.data.get("domain_id"),
        copied,
        dataclasses.replace(updated.about, asked=asked),
    )


def _kept_rows(z: BlockMatrix, seed: int) -> Tensor:
    count = z.shape[0]
    most = _Z_BYTES // (4 * width_of([block.shape[1] for block in z.values()]))
    if count <= most:
        return torch.arange(count)
    return torch.randperm(count, generator=stream(seed, 4, 0, SELECTION))[:most].sort().values


def _about(fitted: Fitted, source: Source, blocks: BlockMatrix, head: BlockClassifier | None, seed: int) -> About:
    candidate = next(one for one in fitted.plan.candidates if one.name == fitted.chosen)
    row = fitted.rows[fitted.chosen]
    rule = next(pick for pick in fitted.plan.picks if pick.setting == "rule")
    controls = {training.name for training in fitted.plan.trainings if not training.trains}
    scored = [
        Scored(
            name=one.name,
            training=one.training,
            control=one.training in controls,
            decisions=tuple(map(str, fitted.decisions[one.name])),
            **{
                key: getattr(fitted.rows[one.name], key)
                for key in ("score", "low", "high", "rank", "readability", "calibration")
            },
        )
        for one in fitted.plan.candidates
        if one.name in fitted.rows
    ]
    data = source.data
    classes = () if head is None else tuple(source.class_names[int(label)] for label in head.classes_)
    return About(
        chosen=fitted.chosen,
        method=candidate.training,
        channels=candidate.channels,
        center=candidate.center,
        seed=seed,
        rule=fitted.plan.rule,
        rule_why=rule.reason,
        score=row.score,
        interval=None if row.low is None or row.high is None else (row.low, row.high),
        baseline=fitted.baseline,
        metric=str(data.get("metric") or "accuracy"),
        calibration=row.calibration,
        class_names=classes,
        labeled=fitted.plan.facts.labeled,
        picks=tuple(PickAbout(pick.setting, pick.value, pick.reason) for pick in fitted.plan.picks),
        candidates=tuple(scored),
        left_out=dict(fitted.left_out),
        decisions=tuple(map(str, fitted.model.decisions_)),
        blocks={name: block.shape[1] for name, block in blocks.items()},
        warnings=tuple(warnings_of(fitted, scored)),
        graph=GraphAbout(
            name=source.name,
            source=source.source,
            fingerprint=fingerprint(data),
            plan=_plan(source),
            nodes=fitted.plan.facts.nodes,
            edges=fitted.plan.facts.edges,
            features=fitted.plan.facts.features,
            level=fitted.plan.facts.level,
            domain=source.domain,
            domains=source.domains,
            case=source.case,
            label=_label(source),
        ),
        files={},
        versions=_versions(),
        seconds=round(fitted.seconds, 1),
        asked=None,
    )


def _plan(source: Source) -> str:
    """The digest of the feature plan of the graph."""
    named = None if source.folder is None else read_card(source.folder).plan
    return "" if named is None or source.folder is None else plan_digest(source.folder / named)


def _label(source: Source) -> str:
    """The name of the label column."""
    column = None if source.folder is None else read_card(source.folder).column("label")
    return "label" if column is None else column.name


def warnings_of(fitted: Fitted, scored: list[Scored]) -> list[str]:
    """What a user should know about the choice, with figures and a remedy."""
    found = []
    chosen = next(one for one in scored if one.name == fitted.chosen)
    readable = chosen.readability is not None and chosen.readability > READABLE
    if readable and fitted.plan.rule in ("id_val", "gate"):
        found.append(
            f"The domain can be read from these embeddings (readability {chosen.readability:.2f}), and no label of "
            "another domain says whether they hold there: label a few nodes of a second domain, or use "
            "--set center=always"
        )
    plain = {one.training: one for one in scored if not one.control and one.name == one.training}
    controls = [one for one in scored if one.name == one.training and one.control and one.score is not None]
    best = max(controls, key=lambda one: one.score or 0.0, default=None)
    for name, one in plain.items():
        beaten = best is not None and one.score is not None and (best.score or 0.0) > one.score
        if beaten and best is not None and one.readability is not None and one.readability > READABLE:
            found.append(
                f"{name} by itself scores {100 * (one.score or 0.0):.1f} % where {best.name} has "
                f"{100 * (best.score or 0.0):.1f} %: the domain can be read from it (readability {one.readability:.2f})"
            )
    if chosen.score is not None and fitted.baseline is not None and chosen.score <= fitted.baseline:
        found.append(
            f"No candidate is better than a constant prediction ({100 * fitted.baseline:.1f} %): neither the features "
            "nor the graph say the label on another domain"
        )
    if chosen.rank is not None and chosen.rank < 2 and fitted.plan.facts.features > 2:
        found.append(
            f"The embeddings have collapsed (effective rank {chosen.rank:.1f}): use another --seed or fewer steps"
        )
    return found


def _versions() -> dict[str, str]:
    found = {"mario": mario.__version__, "python": platform.python_version()}
    for name in ("torch", "torch_geometric", "numpy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
