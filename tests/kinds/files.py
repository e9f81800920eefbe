"""Damaged bytes in every format of file that is read."""

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

import mario
from kinds.graphs import fitted, sound
from kinds.kind import Kind, refused
from lab import results
from mario.datasets import load_dataset, save_dataset
from mario.graphs import load_graph, load_mapped, save_graph, save_mapped
from mario.lab.presets.file import read_preset, write_preset
from mario.lab.result import RunResult
from mario.lab.runs.records import read_records
from mario.lab.runs.store import look, read_spec
from mario.lab.studies.plan import make_plan
from mario.lab.studies.plan_files import read_plans, write_plan
from mario.lab.studies.read import find_study
from mario.training import Checkpoint


def _model() -> Path:
    fitted().save("model.safetensors")
    return Path("model.safetensors")


def _graph() -> Path:
    save_graph(sound(), "graph.safetensors")
    return Path("graph.safetensors")


def _array(name: str) -> Callable[[], Path]:
    def made() -> Path:
        save_mapped(sound(), "mapped")
        return Path("mapped") / name

    return made


def _card() -> Path:
    save_dataset(sound(), "mine")
    return Path("mine/graph.toml")


def _dataset() -> Path:
    save_dataset(sound(), "mine")
    return Path("mine/graph.safetensors")


def _run(name: str) -> Callable[[], Path]:
    def made() -> Path:
        one = results.result(results.spec())
        results.write(Path("runs"), one)
        folder = Path("runs") / one.spec.digest
        if name == "settings.json":
            (folder / "result.json").unlink()
        return folder / name

    return made


def _records() -> Path:
    Path("runs.jsonl").write_text(json.dumps(results.result(results.spec()).to_dict()) + "\n")
    return Path("runs.jsonl")


def _plan() -> Path:
    return write_plan(make_plan(find_study("ablation"), datasets=["good-cbas"], seeds=1), Path("runs"))


def _preset(name: str) -> Callable[[], Path]:
    def made() -> Path:
        write_preset(name, {"method": "grace", "settings": {"lr": 0.1}})
        return Path(name)

    return made


def _study() -> Path:
    Path("mine.toml").write_text(
        'title = "Mine"\nrows = ["grace", "mario"]\n[[cases]]\ndataset = "good-cbas"\nepochs = 2\n'
    )
    return Path("mine.toml")


def _checkpoint() -> Path:
    layer = torch.nn.Linear(3, 2)
    Checkpoint.capture(7, layer, torch.optim.Adam(layer.parameters()), [], {}).save(Path("checkpoint"))
    return Path("checkpoint/000000007.safetensors")


def _broken(path: Path) -> object:
    """What a listing of runs says of a folder; problems are states there."""
    found = look(path.parent)
    if found.state == "broken":
        raise mario.MarioError(found.reason)
    return found


# How a sound file of each format is made, and what reads it.
FORMATS: dict[str, tuple[Callable[[], Path], Callable[[Path], object]]] = {
    "model": (_model, mario.load),
    "graph": (_graph, load_graph),
    "x of a mapped graph": (_array("x.npy"), lambda path: load_mapped(path.parent)),
    "edges of a mapped graph": (_array("edge_index.npy"), lambda path: load_mapped(path.parent)),
    "starts of a mapped graph": (_array("starts.npy"), lambda path: load_mapped(path.parent)),
    "a mask of a mapped graph": (_array("train_mask.npy"), lambda path: load_mapped(path.parent)),
    "graph.json": (_array("graph.json"), lambda path: load_mapped(path.parent)),
    "graph.toml": (_card, lambda path: load_dataset(path.parent)),
    "graph of a dataset": (_dataset, lambda path: load_dataset(path.parent)),
    "result.json": (_run("result.json"), lambda path: RunResult.read(path.parent)),
    "result.json of a listing": (_run("result.json"), _broken),
    "settings.json": (_run("settings.json"), lambda path: read_spec(path.parent)),
    "settings.json of a listing": (_run("settings.json"), _broken),
    "records": (_records, read_records),
    "plan": (_plan, lambda path: read_plans(path.parents[1])),
    "preset in TOML": (_preset("mine.toml"), read_preset),
    "preset in JSON": (_preset("mine.json"), read_preset),
    "study": (_study, lambda path: find_study(str(path))),
    "checkpoint": (_checkpoint, lambda path: Checkpoint.newest(path.parent)),
}
MANY = list(range(1, 300))
BINARY = ("model", "graph", "graph of a dataset", "checkpoint")


def _cut(share: float) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])


def _bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def _noise(path: Path) -> object:
    return path.write_bytes(random.Random(0).randbytes(path.stat().st_size))


def _replaced(make: Callable[[Path], object]) -> Callable[[Path], object]:
    return lambda path: (path.unlink(), make(path))


def _flipped(position: float) -> Callable[[Path], object]:
    def change(path: Path) -> object:
        content = bytearray(path.read_bytes())
        content[int((len(content) - 1) * position)] ^= 4
        return path.write_bytes(content)

    return change


DAMAGE: dict[str, Callable[[Path], object]] = {
    "removed": lambda path: path.unlink(),
    "empty": _bytes(b""),
    "cut in half": _cut(0.5),
    "cut to a tenth": _cut(0.1),
    "one byte": _bytes(b"{"),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "noise": _noise,
    "a pickle": _bytes(b"\x80\x04\x95\x1b\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."),
    "a zip": _bytes(b"PK\x03\x04" + bytes(100)),
    "latin-1": _bytes('titre = "é"\n{"a": "é"}'.encode("latin-1")),
    "UTF-16": _bytes('{"a": 1}'.encode("utf-16")),
    "a list": _bytes(b"[1, 2, 3]"),
    "a number": _bytes(b"3"),
    "null": _bytes(b"null"),
    "an empty object": _bytes(b"{}"),
    "nested 100,000 deep": _bytes(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "a number of 5,000 digits": _bytes(b'{"seed": ' + b"9" * 5000 + b"}"),
    "not a number": _bytes(b'{"lr": NaN}'),
    "HTML of an error page": _bytes(b"<!DOCTYPE html><html><body>404 Not Found</body></html>"),
    "a pointer of Git LFS": _bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"),
    "a folder": _replaced(lambda path: path.mkdir()),
    "a fifo": _replaced(os.mkfifo),
    "a device": _replaced(lambda path: path.symlink_to("/dev/zero")),
    "a link to itself": _replaced(lambda path: path.symlink_to(path.name)),
    "a link to nothing": _replaced(lambda path: path.symlink_to("nowhere")),
}
FLIPS = {
    f"a bit flipped at {share}": _flipped(share) for share in (0.0, 0.01, 0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)
}


def kinds() -> list[Kind]:
    return [*_damaged(), *_flips(), *_headers(), *_jsons(), *_tables()]


def _damaged() -> Iterator[Kind]:
    for name, (make, read) in FORMATS.items():
        for damage, change in DAMAGE.items():
            if _harmless(name, damage):
                continue

            def given(make: Any = make, read: Any = read, change: Any = change) -> object:
                path = make()
                change(path)
                return read(path)

            yield refused(f"{name}: {damage}", given)


def _harmless(name: str, damage: str) -> bool:
    """Whether the file is absent, which is a state of its own, or an empty list of results."""
    absent = damage in ("removed", "a link to nothing")
    if name in ("result.json of a listing", "settings.json of a listing"):
        return absent or damage == "a link to itself"
    if name == "records":
        return absent or damage in ("empty", "a link to itself")
    if name in ("plan", "checkpoint"):
        return absent or (name == "checkpoint" and damage in ("a folder", "a fifo", "a device", "a link to itself"))
    return False


def _flips() -> Iterator[Kind]:
    """In files that hold numbers as bytes, a single bit is noticed too."""
    for name in BINARY:
        make, read = FORMATS[name]
        for damage, change in FLIPS.items():

            def given(make: Any = make, read: Any = read, change: Any = change) -> object:
                path = make()
                change(path)
                return read(path)

            yield refused(f"{name}: {damage}", given)


def _headers() -> Iterator[Kind]:
    """Arrays of a mapped graph with other shapes and types, or other values after it was written."""
    import numpy as np

    arrays: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "x of other rows": ("x", lambda x: x[:-1]),
        "x of integers": ("x", lambda x: x.astype("int64")),
        "x in column-major order": ("x", np.asfortranarray),
        "x of objects": ("x", lambda x: x.astype(object)),
        "x with three dimensions": ("x", lambda x: x[None]),
        "x in another byte order": ("x", lambda x: x.astype(">f4")),
        "edges to nowhere": ("edge_index", lambda e: e + 100),
        "negative edges": ("edge_index", lambda e: e - 1),
        "edges out of order": ("edge_index", lambda e: e[:, ::-1].copy()),
        "edges of floats": ("edge_index", lambda e: e.astype("float64")),
        "edges transposed": ("edge_index", lambda e: e.T.copy()),
        "starts that fall": ("starts", lambda s: s[::-1].copy()),
        "starts beyond the edges": ("starts", lambda s: s * 100),
        "negative starts": ("starts", lambda s: s - 1),
        "too few starts": ("starts", lambda s: s[:-1]),
    }
    for fault, (name, change) in arrays.items():

        def given(name: str = name, change: Any = change) -> object:
            save_mapped(sound(), "mapped")
            path = Path("mapped") / f"{name}.npy"
            array = change(np.load(path))
            np.save(path, array, allow_pickle=True)
            return load_mapped("mapped")

        yield refused(f"a mapped graph with {fault}", given)

    def not_finite() -> object:
        save_mapped(sound(), "mapped")
        np.save("mapped/x.npy", np.full((8, 3), np.nan, dtype="float32"))
        os.utime("mapped/x.npy", ns=(0, 0))
        return fitted().transform(load_mapped("mapped"))

    yield refused("a mapped graph with NaN written later", not_finite)
    facts: dict[str, dict[str, Any]] = {
        "another format": {"format": 2},
        "a format that is a text": {"format": "1"},
        "no arrays": {"arrays": {}},
        "arrays that are a list": {"arrays": []},
        "an array outside": {"arrays": {"../../x": {"dtype": "float32", "shape": [1], "written": 0}}},
        "an array that is missing": {"arrays": {"z": {"dtype": "float32", "shape": [1], "written": 0}}},
        "plain facts that are a list": {"plain": [1]},
        "no extremes": {"extremes": None},
        "extremes of texts": {"extremes": ["a", "b"]},
        "a plain x": {"plain": {"x": 3}},
    }
    for fault, change in facts.items():

        def given_facts(change: dict[str, Any] = change) -> object:
            save_mapped(sound(), "mapped")
            path = Path("mapped/graph.json")
            path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
            return load_mapped("mapped")

        yield refused(f"graph.json with {fault}", given_facts)


def _jsons() -> Iterator[Kind]:
    """Each fact of a result, of settings and of a plan, with a value of another type."""
    sound_result = results.result(results.spec(), curve=results.result(results.spec()).curve).to_dict()
    wrong: dict[str, Any] = {
        "a text": "x",
        "a number": 3.5,
        "null": None,
        "a list": [[]],
        "an object": {"a": {}},
        "true": True,
    }
    for key, value in sound_result.items():
        if key in ("model", "checkpoints", "encoder", "environment", "data"):
            continue  # facts that nothing is computed from
        for fault, other in {**wrong, "missing": ...}.items():
            if _plausible(value, other) or (key in ("faults", "ranks") and other in (None, ...)):
                continue

            def given(key: str = key, other: Any = other) -> object:
                made = {**results.result(results.spec()).to_dict(), key: other}
                if other is ...:
                    del made[key]
                return RunResult.from_dict(made)

            yield refused(f"a result whose {key} is {fault}", given)
    changes: dict[str, dict[str, Any]] = {
        "a score of 7": {"scores": {"ood_test": 7.0}},
        "a negative score": {"scores": {"ood_test": -0.5}},
        "a score that is a text": {"scores": {"ood_test": "0.5"}},
        "an unknown rule": {"scores": {"ood_test": 0.5, "chosen_on": {"ood_test": "best"}}},
        "a rule without its score": {"scores": {"ood_test": 0.5, "chosen_on": {"ood_test": "id_val"}}},
        "groups that are a list": {"scores": {"ood_test": 0.5, "groups": [1]}},
        "a curve without steps": {"curve": [{"ood_test": 0.5}]},
        "a curve of texts": {"curve": ["a"]},
        "a curve with a text": {"curve": [{"step": 1, "ood_test": "x"}]},
        "a negative seed": {"seed": -1},
        "a negative split seed": {"split_seed": -1},
        "negative steps": {"steps": -1},
        "negative seconds": {"seconds": -1.0},
        "no ranks": {"ranks": 0},
        "an unknown metric": {"metric": "no-such"},
    }
    for fault, change in changes.items():
        yield refused(
            f"a result with {fault}",
            lambda c=change: RunResult.from_dict({**results.result(results.spec()).to_dict(), **c}),
        )


def _plausible(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        return True
    if isinstance(value, str) and isinstance(other, str):
        return True
    return isinstance(value, dict) and isinstance(other, dict)


def _tables() -> Iterator[Kind]:
    """graph.toml, presets and studies with other keys and values."""
    cards: dict[str, str] = {
        "a file outside": 'file = "../x.safetensors"',
        "an absolute file": 'file = "/etc/passwd"',
        "the folder as file": 'file = "."',
        "a file that is missing": 'file = "none"',
        "a null character": 'file = "a\\u0000b"',
        "an unknown key": 'sise = "x"',
        "a negative number of nodes": "nodes = -1",
        "another number of nodes": "nodes = 9",
        "another number of edges": "edges = 1",
        "another number of features": "features = 4",
        "another number of classes": "classes = 3",
        "nodes that are a text": 'nodes = "8"',
        "nodes that are a bool": "nodes = true",
        "domains that are a text": 'domains = "color"',
        "no domains": "domains = []",
        "domains of numbers": "domains = [1]",
        "an unknown setting": 'setting = "Inductive"',
        "an unknown level": 'level = "edge"',
        "a name with a slash": 'name = "a/b"',
        "an empty name": 'name = ""',
        "a reserved name": 'name = "NUL"',
        "a split beside masks": "[split]\nenvironments = 2",
        "a date": "nodes = 1979-05-27",
        "infinity": "nodes = inf",
        "a key twice": "nodes = 8\nnodes = 8",
    }
    for fault, line in cards.items():

        def given(line: str = line) -> object:
            save_dataset(sound(), "mine")
            path, key = Path("mine/graph.toml"), line.split(" ")[0]
            kept = [text for text in path.read_text().splitlines() if not text.startswith(f"{key} =")]
            path.write_text("\n".join([*kept, line]) + "\n")
            return load_dataset("mine")

        yield refused(f"graph.toml with {fault}", given)
    presets: dict[str, str] = {
        "no settings": 'method = "grace"',
        "settings that are a list": "settings = [1]",
        "an unknown key": "[settings]\nlr = 0.1\n[more]\na = 1",
        "a method that is a number": "method = 3\n[settings]\nlr = 0.1",
        "an unknown setting": "[settings]\nhiden = 3",
        "a setting that is a table": "[settings.lr]\na = 1",
        "a setting of another type": "[settings]\nepochs = 1.5",
        "an unknown method": 'method = "no-such"\n[settings]\nlr = 0.1',
        "a setting beyond its range": "[settings]\nlr = -1",
    }
    for fault, text in presets.items():

        def given_preset(text: str = text) -> object:
            from mario.cli.run import make_spec

            Path("mine.toml").write_text(text)
            facts: dict[str, Any] = dict.fromkeys(("domain", "shift", "setting"))
            return make_spec("good-cbas", None, preset=Path("mine.toml"), given={}, split_seed=0, seed=0, **facts)

        yield refused(f"a preset with {fault}", given_preset)
    case = '[[cases]]\ndataset = "good-cbas"\nepochs = 2\n'
    studies: dict[str, str] = {
        "no cases": 'rows = ["grace"]',
        "no rows": case,
        "cases that are a text": 'rows = ["grace"]\ncases = "good-cbas"',
        "an unknown dataset": 'rows = ["grace"]\n[[cases]]\ndataset = "no-such"',
        "a dataset outside": 'rows = ["grace"]\n[[cases]]\ndataset = "../x"',
        "an unknown method": f'rows = ["no-such"]\n{case}',
        "rows that are a text": f'rows = "grace"\n{case}',
        "a row of numbers": f"rows = [3]\n{case}",
        "a row twice": f'rows = ["grace", "grace"]\n{case}',
        "an unknown key": f'rowz = ["grace"]\n{case}',
        "an unknown key of a case": f'rows = ["grace"]\n{case}epoch = 3',
        "negative epochs": 'rows = ["grace"]\n[[cases]]\ndataset = "good-cbas"\nepochs = -2',
        "epochs that are a text": 'rows = ["grace"]\n[[cases]]\ndataset = "good-cbas"\nepochs = "two"',
        "no seeds": f'rows = ["grace"]\nseeds = 0\n{case}',
        "a bool of seeds": f'rows = ["grace"]\nseeds = true\n{case}',
        "an unknown shift": f'rows = ["grace"]\nshift = "drift"\n{case}',
        "an unknown setting of a case": f'rows = ["grace"]\nsetting = "Inductive"\n{case}',
        "given that is a list": f'rows = ["grace"]\ngiven = [1]\n{case}',
        "an unknown setting of a method": f'rows = ["grace"]\ngiven = {{hiden = 3}}\n{case}',
        "a grid that is a list": f'rows = ["grace"]\ngrid = [1]\n{case}',
        "a grid of a text": f'rows = ["grace"]\ngrid = {{lr = "x"}}\n{case}',
        "a huge grid": f'rows = ["grace"]\ngrid = {{lr = {MANY}, tau = {MANY}, epochs = {MANY}}}\n{case}',
        "a reference that is a number": f'rows = ["grace"]\nreference = 3\n{case}',
        "a case twice": f'rows = ["grace"]\n{case}{case}',
        "a title that is a list": f'title = [1]\nrows = ["grace"]\n{case}',
    }
    for fault, text in studies.items():
        yield refused(
            f"a study with {fault}", lambda t=text: (Path("mine.toml").write_text(t), find_study("mine.toml"))[1]
        )
    names = {
        "a name with a dot": "./.toml",
        "nothing": "none.toml",
        "a null character": "a\0.toml",
        "a long name": "x" * 300 + ".toml",
    }
    for fault, name in names.items():
        yield refused(f"a study of {fault}", lambda n=name: find_study(n))
