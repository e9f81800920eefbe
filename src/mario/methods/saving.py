"""Models in files: weights and settings in one safetensors file, from which no code is ever run."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.nn.parameter import is_lazy

from mario.errors import MarioError
from mario.files import check_path, write_tensors
from mario.methods.parts import PARTS, Transform, described, is_object, match
from mario.methods.registry import find
from mario.methods.settings import check_value
from mario.untrusted import open_file, read_safetensors

if TYPE_CHECKING:
    from mario.methods.base import Method

_SETTLED = "settled."  # before the names of tensors that are no weights
_SPARE = 2**20  # numbers; a network of fewer does no harm
_REGISTRATIONS = (register_module_parameter_registration_hook, register_module_module_registration_hook)


def save(model: "Method", path: Path) -> None:
    """Write ``model``, which is fitted, to ``path``."""
    if "name" not in vars(type(model)):
        known = f", not as {model.name!r}, which is another class" if model.name else ""
        raise MarioError(f'register {type(model).__name__} to save it: @register("a-name") above the class{known}')
    params = model.fitted_params_
    facts, settled = model.settled()
    header = {
        "method": model.name,
        "settings": {name: value for name, value in params.items() if not is_object(value)},
        "parts": {name: described(value) for name, value in params.items() if is_object(value)},
        "in_channels": model.in_channels_,
        "num_classes": model.num_classes_,
        "edge_channels": model.edge_channels_,
        **({"settled": facts} if facts else {}),
    }
    # Copies, as safetensors refuses tensors that share memory, such as a weight with two names.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    tensors |= {_SETTLED + name: tensor.detach().cpu().contiguous() for name, tensor in settled.items()}
    write_tensors(path, tensors, {"mario": json.dumps(header)})


def load(
    path: Path | str,
    *,
    device: str = "cpu",
    encoder: nn.Module | None = None,
    projector: nn.Module | None = None,
    views: tuple[Transform, Transform] | None = None,
) -> "Method":
    """The method that :meth:`Method.save` wrote to ``path``, on ``device``. Reading it runs no code from the file.

    A model that was fitted with a module or transforms of yours needs them again: the file only has the qualified
    names of their classes, which must be those of the objects given. Weights come from the file.

    Args:
        path: The file.
        device: ``auto``, ``cpu`` or ``cuda``.
        encoder: A module like the one that the model was fitted with, if it was one.
        projector: Likewise.
        views: Likewise, two transforms.

    Example:
        >>> import mario, tempfile
        >>> from torch_geometric.nn import GCN
        >>> data = mario.load_dataset("good-cbas", shift="concept")
        >>> model = mario.GRACE(encoder=GCN(4, 16, num_layers=2), epochs=1, steps_per_epoch=1).fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.safetensors")
        ...     mario.load(f"{folder}/model.safetensors", encoder=GCN(4, 16, num_layers=2)).transform(data).shape
        torch.Size([700, 16])
    """
    path = check_path("path", path)
    header, tensors = _read(path)
    settled = {name.removeprefix(_SETTLED): tensors.pop(name) for name in [*tensors] if name.startswith(_SETTLED)}
    try:
        if not isinstance(header["method"], str):
            raise TypeError(f"method is {header['method']!r}")
        method, saved = find(header["method"]), dict(header["parts"])
        if unknown := sorted(saved.keys() - set(PARTS)):
            raise TypeError(f"it has the part {unknown[0]!r}")
        given = _given(method, saved, {"encoder": encoder, "projector": projector, "views": views})
        model = method.from_settings({**header["settings"], **given})
        in_channels, shape = header["in_channels"], {name: header[name] for name in ("num_classes", "edge_channels")}
        _check_sizes(model, {"in_channels": in_channels, **shape}, tensors)
    except MarioError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise _other_version(path, error) from None
    model.place(in_channels, **shape, device=device)
    own = model.state_dict()
    if wrong := [name for name, value in tensors.items() if name in own and _other_type(value, own[name])]:
        raise _other_version(path, TypeError(f"{wrong[0]} holds {tensors[wrong[0]].dtype}"))
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        foreign = [name for name in given if name != "views"]
        if not foreign:
            raise _other_version(path, error) from None
        reason = str(error).splitlines()[-1].strip()
        raise MarioError(
            f"the weights in {path} do not fit the {' and '.join(foreign)} given, which must be made with the same "
            f"arguments as the one that was saved ({reason})"
        ) from None
    try:
        model.resettle(header.get("settled", {}), settled)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _other_version(path, error) from None
    model.eval()
    return model


def _check_sizes(model: "Method", shape: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise a TypeError if the networks that a header asks for are larger than the weights that come with it.

    They are built on torch's meta device, which takes no memory for them; :meth:`Method.place` builds them again.
    """
    if wrong := [f"{name} is {size!r}" for name, size in shape.items() if type(size) is not int or size < 0]:
        raise TypeError(wrong[0])
    there = sum(tensor.numel() for tensor in tensors.values())
    most = max((size for tensor in tensors.values() for size in tensor.shape), default=0)
    if wrong := [f"{name} is {size}" for name, size in shape.items() if size > most + _SPARE]:
        raise TypeError(f"{wrong[0]}, but no weight is that large")
    parts = 1000 + 20 * len(tensors)
    model.in_channels_, model.num_classes_, model.edge_channels_ = shape.values()
    try:
        with torch.random.fork_rng(devices=[]), torch.device("meta"), _at_most(parts):
            model.build(model.in_channels_, model.num_classes_)
    except Exception as error:
        if "meta" in str(error):  # a module that computes with numbers while it is made
            return
        if isinstance(error, MarioError):
            raise
        raise TypeError(str(error) or type(error).__name__) from None
    due = sum(part.numel() for part in (*model.parameters(), *model.buffers()) if not is_lazy(part))
    if due > 2 * there + _SPARE:
        raise TypeError(f"it asks for a network of {due:,} numbers and holds {there:,}")


@contextmanager
def _at_most(parts: int) -> Iterator[None]:
    """End the making of networks in this thread after ``parts`` parameters and modules."""
    mine, made = threading.get_ident(), 0

    def count(*_: object) -> None:
        nonlocal made
        made += threading.get_ident() == mine
        if made > parts:
            raise TypeError(f"it asks for a network of more than {parts:,} parts")

    hooks = [register(count) for register in _REGISTRATIONS]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if os.path.isdir(path):
        raise MarioError(f"{path} is a folder; pass the file that save wrote, such as a run's model.safetensors")
    open_file(path).close()  # its errors say it better
    try:
        return read_safetensors(path, "mario")
    except MarioError as error:
        raise MarioError(f"{path} is not a model that mario wrote, or it is damaged ({error})") from None


def _given(method: type["Method"], saved: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The objects to use as settings; those of the file and those of the caller must be of the same classes."""
    assert given.keys() == set(PARTS)
    fields = {field.name: field for field in method.fields()}
    for name, value in given.items():
        if value is None and name in saved:
            raise MarioError(
                f"the model was saved with {name}={saved[name]}, which is not read from a file: pass {name}= to "
                "mario.load, made as it was then"
            )
        if value is not None and name not in saved:
            raise MarioError(f"the model was saved without {name} of its own: leave {name}= out of mario.load")
        if value is not None:
            given[name] = check_value(fields[name], value)
            match(name, given[name], saved[name])
    return {name: value for name, value in given.items() if value is not None}


def _other_type(saved: Tensor, own: Tensor) -> bool:
    """Whether copying ``saved`` into ``own`` would change its numbers: complex into real, real into whole."""
    return saved.is_complex() != own.is_complex() or saved.is_floating_point() != own.is_floating_point()


def _other_version(path: Path, error: Exception) -> MarioError:
    reason = str(error).splitlines()[-1].strip()
    return MarioError(f"{path} was written by another version of mario, or it is damaged ({reason})")
