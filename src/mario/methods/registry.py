"""Methods by name, and models from files."""

import difflib
import json
from pathlib import Path

from safetensors import SafetensorError, safe_open

from mario.errors import MarioError
from mario.methods.base import REGISTRY, Method, hosts
from mario.methods.recipe import with_recipe


def find(name: str) -> type[Method]:
    """The method called ``name`` on the command line: ``grace``, ``mario``, or a host with the recipe, ``costa+mario``."""
    base, plus, recipe = name.partition("+")
    if base in REGISTRY and not plus:
        return REGISTRY[base]
    if base in REGISTRY and recipe == "mario":
        return with_recipe(REGISTRY[base])
    near = difflib.get_close_matches(name, REGISTRY, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    over = ", ".join(hosts())
    raise MarioError(
        f"there is no method '{name}'; there are {', '.join(sorted(REGISTRY))}, and HOST+mario over {over}{meant}"
    )


def systems(level: str) -> tuple[str, ...]:
    """Every registered method that embeds nodes or graphs, then every host with the recipe over it."""
    plain = [name for name, cls in REGISTRY.items() if level in cls.levels]
    return (*plain, *(f"{name}+mario" for name in hosts() if name in plain and name != "grace"))  # that is mario


def load(path: Path | str, *, device: str = "cpu") -> Method:
    """The method that :meth:`Method.save` wrote to ``path``, on ``device``. Reading it runs no code from the file."""
    path = Path(path)
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})["mario"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise MarioError(f"there is no file {path}") from None
    except (SafetensorError, OSError, KeyError, json.JSONDecodeError) as error:
        raise MarioError(f"{path} is not a model that mario wrote, or it is damaged ({error})") from None
    try:
        method = find(header["method"]).from_settings(header["settings"])
        method.place(header["in_channels"], header["num_classes"], device=device)
        method.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise MarioError(f"{path} was written by another version of mario, or it is damaged ({reason})") from None
    method.eval()
    return method
