"""Models in files: weights and settings in one safetensors file, from which no code is ever run."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import save_file
from torch import Tensor, nn

from mario.encoders.size import count_weights
from mario.errors import MarioError
from mario.files import write_whole
from mario.methods.parts import PARTS, Transform, described, is_object, match
from mario.untrusted import open_file, read_safetensors

if TYPE_CHECKING:
    from mario.methods.base import Method

_SMALL = 10**8  # weights: a network that is built at once on any machine


def save(model: "Method", path: Path) -> None:
    """Write ``model``, which is fitted, to ``path``."""
    if "name" not in vars(type(model)):
        known = f", not as {model.name!r}, which is another class" if model.name else ""
        raise MarioError(f'register {type(model).__name__} to save it: @register("a-name") above the class{known}')
    params = model.get_params()
    header = {
        "method": model.name,
        "settings": {name: value for name, value in params.items() if not is_object(value)},
        "parts": {name: described(value) for name, value in params.items() if is_object(value)},
        "in_channels": model.in_channels_,
        "num_classes": model.num_classes_,
        "edge_channels": model.edge_channels_,
    }
    # Copies, as safetensors refuses tensors that share memory, such as a weight with two names.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in model.state_dict().items()}
    write_whole(path, lambda name: save_file(tensors, name, {"mario": json.dumps(header)}))


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
    from mario.methods.registry import find  # which imports this

    path = Path(path)
    header, tensors = _read(path)
    for name, kind in (("method", str), ("settings", dict), ("parts", dict)):
        if not isinstance(header.get(name), kind):
            raise _other_version(path, MarioError(f"its header has no {name}"))
    try:
        given = _given(header["parts"], {"encoder": encoder, "projector": projector, "views": views})
        model = find(header["method"]).from_settings({**header["settings"], **given})
        shape = {"num_classes": header["num_classes"], "edge_channels": header["edge_channels"]}
        in_channels = header["in_channels"]
    except (KeyError, TypeError) as error:
        raise _other_version(path, error) from None
    _check_asked(path, model, in_channels, shape, tensors)
    model.place(in_channels, **shape, device=device)
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
    model.eval()
    return model


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    open_file(path).close()  # its errors say it better
    try:
        header, tensors = read_safetensors(path, "mario")
    except MarioError as error:
        raise MarioError(f"{path} is not a model that mario wrote, or it is damaged ({error})") from None
    if not isinstance(header, dict):
        raise MarioError(f"{path} is not a model that mario wrote: its header is not an object")
    return header, tensors


def _check_asked(
    path: Path, model: "Method", in_channels: Any, shape: dict[str, Any], tensors: dict[str, Tensor]
) -> None:
    """A file must hold the weights of the networks that it asks for."""
    for name, value in {"in_channels": in_channels, **shape}.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
            raise MarioError(f"{path} is damaged: its header has {name} = {value!r}")
    there = sum(tensor.numel() for tensor in tensors.values())
    asked = count_weights([in_channels] + [model.hidden_channels] * model.num_layers)
    if isinstance(model.encoder, str) and asked > 8 * there + _SMALL:  # some methods have narrower encoders, or none
        raise MarioError(f"{path} is damaged: its header asks for {asked:,} weights, and it holds {there:,} numbers")


def _given(saved: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The objects to use as settings; those of the file and those of the caller must be the same."""
    assert given.keys() == set(PARTS)
    for name, value in given.items():
        if value is None and name in saved:
            raise MarioError(
                f"the model was saved with {name}={saved[name]}, which is not read from a file: pass {name}= to "
                "mario.load, made as it was then"
            )
        if value is not None and name not in saved:
            raise MarioError(f"the model was saved without {name} of its own: leave {name}= out of mario.load")
        if value is not None:
            match(name, value, saved[name])
    return {name: value for name, value in given.items() if value is not None}


def _other_version(path: Path, error: Exception) -> MarioError:
    reason = str(error).splitlines()[-1].strip()
    return MarioError(f"{path} was written by another version of mario, or it is damaged ({reason})")
