"""Imports and calls leave the process, its environment and the disk as they were."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Prints what differs in global state before and after ACTION, one fact per line. Third-party packages are imported
# first: what they change is not ours.
SCRIPT = """
import ctypes, importlib, json, locale, logging, multiprocessing, os, pkgutil, random, signal, sys, threading, warnings
import numpy, torch, torch_geometric
for name in ("matplotlib.pyplot", "optuna", "pandas", "scipy.sparse", "scipy.stats", "sklearn", "rich.console", "typer",
             "wandb", "mlflow", "torch.utils.tensorboard", "jinja2", "filelock", "torch_geometric.nn",
             "torch_geometric.datasets", "torch_geometric.transforms", "torch.distributed", "safetensors.torch"):
    try:
        importlib.import_module(name)
    except ImportError:
        pass

loaded = []
class Watched(ctypes.CDLL):
    def __init__(self, name=None, *more, **named):
        loaded.append(name)
        super().__init__(name, *more, **named)
    def __getattr__(self, name):
        if name.startswith("mall"):
            loaded.append(name)
        return super().__getattr__(name)
ctypes.CDLL = Watched

def state():
    root = logging.getLogger()
    found = {
        "warnings.filters": [repr(f) for f in warnings.filters],
        "warnings.showwarning": repr(warnings.showwarning),
        "default dtype": str(torch.get_default_dtype()),
        "threads": [torch.get_num_threads(), torch.get_num_interop_threads()],
        "grad mode": [torch.is_grad_enabled(), torch.is_inference_mode_enabled()],
        "deterministic": [torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()],
        "torch generator": torch.get_rng_state().tolist(),
        "numpy generator": repr(numpy.random.get_state()),
        "random": repr(random.getstate()),
        "numpy errors": repr(numpy.geterr()),
        "print options": [repr(numpy.get_printoptions()), repr(torch._tensor_str.PRINT_OPTS)],
        "environment": dict(os.environ),
        "signals": {str(s): repr(signal.getsignal(s)) for s in signal.valid_signals()},
        "logging": [root.level, [repr(h) for h in root.handlers], logging.root.manager.disable],
        "locale": locale.setlocale(locale.LC_ALL),
        "start method": multiprocessing.get_start_method(allow_none=True),
        "threads running": sorted(t.name for t in threading.enumerate()),
        "hooks": [repr(sys.excepthook), repr(sys.unraisablehook), repr(sys.displayhook), sys.getrecursionlimit()],
        "folder": os.getcwd(),
        "mallopt": list(loaded),
    }
    if "matplotlib" in sys.modules:
        import matplotlib
        found["matplotlib"] = {k: repr(v) for k, v in dict.items(matplotlib.rcParams)}
        found["matplotlib backend"] = matplotlib.get_backend()
    return found

before = state()
ACTION
after = state()
changed = {}
for key in before:
    if before[key] != after[key]:
        lists = isinstance(after[key], list)
        changed[key] = [new for new in after[key] if new not in before[key]] if lists else after[key]
print(json.dumps(changed))
"""

IMPORTS = """
import mario
for found in pkgutil.walk_packages(mario.__path__, "mario."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)
"""

FIT = """
import mario
from mario.contrast import conditional_mi, info_nce
from torch_geometric.data import Data
own = torch.Generator().manual_seed(0)
edges = torch.randint(3000, (2, 9000), generator=own)
data = Data(x=torch.randn(3000, 8, generator=own), edge_index=torch.cat([edges, edges.flip(0)], 1))
u, v = (torch.randn(3000, 16, generator=own, requires_grad=True) for _ in range(2))
info_nce(u, v).backward()
clusters = torch.randint(5, (3000,), generator=own)
conditional_mi(u, v, clusters, clusters).backward()
for settings in ({"sampling": "full"}, {"sampling": "random_walk", "roots": 50}):
    method = mario.MARIO(hidden_channels=8, clusters=4, epochs=1, steps_per_epoch=2, **settings)
    method.fit(data).transform(data)
"""


def changes(action: str, home: Path) -> dict[str, object]:
    """What ``action`` changes in a fresh process whose home and cache are the folder ``home``."""
    environment = {**os.environ, "HOME": str(home), "MARIO_CACHE": str(home / "cache"), "MPLBACKEND": "agg"}
    environment = {k: v for k, v in environment.items() if not k.startswith("XDG_")}
    environment["MPLCONFIGDIR"] = str(home.parent / "matplotlib")  # its own font cache
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", SCRIPT.replace("ACTION", action)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    changed: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return changed


@pytest.mark.parametrize("action", [IMPORTS, FIT], ids=["imports", "fit"])
def test_nothing_outside_changes(action: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert changes(action, home) == {}
    assert [str(file.relative_to(home)) for file in home.rglob("*")] == []


def test_changes_are_noticed(tmp_path: Path) -> None:
    noisy = """
warnings.filterwarnings("ignore", message="nothing")
torch.manual_seed(5)
os.environ["NOISE"] = "1"
ctypes.CDLL("libc.so.6").mallopt
"""
    assert set(changes(noisy, tmp_path)) == {"warnings.filters", "torch generator", "environment", "mallopt"}
