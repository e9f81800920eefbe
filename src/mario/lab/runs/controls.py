"""The controls beside the scores of a run."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

import mario
from mario.evaluation import LogisticProbe, score_controls
from mario.evaluation.controls import beaten
from mario.files import write_json
from mario.graphs.features import is_wide
from mario.graphs.labels import labeled_parts
from mario.lab.presets import split_settings
from mario.lab.result import RunResult
from mario.lab.runs.execute import make_probe
from mario.untrusted import read_json


def control_scores(result: RunResult, data: Data) -> dict[str, Any] | None:
    """Scores of raw features, hops and an untrained encoder on the data of a run, by the head of the run.

    They are in the run's folder as ``controls.json``, under ``scores`` by name; ``warning`` says if one of them is
    better than the run while the domain can be read from its embeddings. ``None`` for wide features under a head
    that would write them out; no scores if no label is in the training part.
    """
    assert result.folder is not None
    path = result.folder / "controls.json"
    if path.exists():
        found: dict[str, Any] = read_json(path)
        return found
    settings, judged = split_settings(result.spec.method, result.spec.settings)
    probe = make_probe(judged)
    if "train_mask" not in labeled_parts(data):
        return {"scores": {}}
    if is_wide(data.x) and not isinstance(probe, LogisticProbe):
        return None
    beside = score_controls(data, like=settings, probe=probe, seed=result.spec.seed)
    warning = None
    if settings.trains:
        chosen = {key: value for key, value in result.curve[-1].scores.items() if isinstance(value, float)}
        warning = beaten(mario.load(Path(result.folder) / "model.safetensors"), data, chosen, beside)
    told = {"scores": beside, **({"warning": warning} if warning else {})}
    write_json(path, told)
    return told
