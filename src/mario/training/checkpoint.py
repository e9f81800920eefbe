"""Checkpoints: one file with everything needed to resume after a kill."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from mario.arguments import check_count
from mario.errors import MarioError
from mario.files import remove_parts, write_tensors
from mario.untrusted import read_safetensors

# 3: every checkpoint has its identity. 2: randomness is a function of the step (1 kept the state of a generator).
FORMAT = 3


@dataclass
class Checkpoint:
    """Weights, optimizer state and position.

    The file is a safetensors file whose header holds the position as JSON. It is renamed into place when complete, and
    reading it runs no code.
    """

    step: int
    tensors: dict[str, Tensor]
    records: list[dict[str, Any]] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def capture(
        cls,
        step: int,
        model: nn.Module,
        optimizer: Optimizer,
        records: list[dict[str, Any]],
        extra: dict[str, Any],
    ) -> "Checkpoint":
        # Copies, as safetensors refuses tensors that share memory, such as a weight with two names.
        tensors = {f"model.{k}": v.detach().cpu().contiguous().clone() for k, v in model.state_dict().items()}
        for index, state in optimizer.state_dict()["state"].items():
            for key, value in state.items():
                tensors[f"optimizer.{index}.{key}"] = torch.as_tensor(value).cpu().contiguous().clone()
        return cls(step, tensors, records, extra)

    def restore(self, model: nn.Module, optimizer: Optimizer) -> None:
        try:
            model.load_state_dict(
                {k.removeprefix("model."): v for k, v in self.tensors.items() if k.startswith("model.")}
            )
        except RuntimeError as error:
            reason = str(error).splitlines()[-1].strip()
            raise MarioError(f"the checkpoint belongs to another model: {reason}") from None
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in self.tensors.items():
            if name.startswith("optimizer."):
                _, index, key = name.split(".", 2)
                state.setdefault(int(index), {})[key] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})

    def save(self, folder: Path) -> None:
        """Write ``folder/STEP.safetensors``, then remove older ones, except the last."""
        position = {"format": FORMAT, "step": self.step, "records": self.records, "extra": self.extra}
        write_tensors(folder / f"{self.step:09d}.safetensors", self.tensors, {"mario": json.dumps(position)})
        remove_old(folder, self.step)
        remove_parts(folder)

    @classmethod
    def newest(cls, folder: Path) -> "Checkpoint | None":
        """The newest readable checkpoint; ``None`` if there are no checkpoints."""
        faults = []
        for file in reversed(checkpoint_files(folder)):
            try:
                header, tensors = read_safetensors(file, "mario")
                found = cls(header["step"], tensors, list(header["records"]), {**header["extra"]})
                check_count("its step", found.step, low=0)
                if not all(isinstance(record, dict) for record in found.records):
                    raise TypeError("its records are not objects")
            except (MarioError, KeyError, TypeError) as error:
                faults.append(f"{file}: {error}")
                continue
            if header.get("format", 1) != FORMAT:
                raise MarioError(
                    f"{file} has format {header.get('format', 1)}, written by another version of mario; this version "
                    f"reads format {FORMAT}: finish the run with that version, or remove {folder} to start it again"
                )
            return found
        if faults:
            raise MarioError(
                "no checkpoint can be read (" + "; ".join(faults) + f"). Remove {folder} to start this run again"
            )
        return None


def remove_old(folder: Path, step: int) -> None:
    """Remove the checkpoints before ``step``, except the last of them."""
    for old in [file for file in checkpoint_files(folder) if int(file.stem) < step][:-1]:
        old.unlink(missing_ok=True)


def checkpoint_files(folder: Path) -> list[Path]:
    """The checkpoints in ``folder``, oldest first. Files with other names are not ours."""
    named = (file for file in folder.glob("*.safetensors") if re.fullmatch(r"[0-9]{9,}", file.stem))
    return sorted(file for file in named if file.is_file())
