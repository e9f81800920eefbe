"""Whatever the bytes of a file are, reading it is one MarioError, and no name leads out of its folder."""

import json
import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import mario
from mario import untrusted
from mario.datasets import find, save_dataset
from mario.errors import MarioError, RunFailedError
from mario.files import append_line, locked, write_json
from mario.graphs.mapped import load_mapped, save_mapped
from mario.graphs.store import load_graph, save_graph
from mario.lab.case import Case
from mario.lab.presets.file import read_preset
from mario.lab.runs.records import read_records
from mario.lab.runs.store import look
from mario.lab.studies.plan_files import read_plans
from mario.lab.studies.read import find_study
from mario.lab.tune.plan import Tuning
from mario.untrusted import parse_json, parse_toml, read_json, read_json_lines, read_toml, safe_name

HUGE = "9" * 5000
DEEP = 100_000
JSON = {
    "digits": f'{{"seed": {HUGE}}}',
    "65 bits": '{"seed": 18446744073709551616}',
    "deep list": "[" * DEEP + "]" * DEEP,
    "deep object": '{"a":' * DEEP + "1" + "}" * DEEP,
    "rather deep": "[" * 60 + "]" * 60,
    "not a number": '{"a": NaN}',
    "infinity": '{"a": [-Infinity]}',
    "overflow": '{"a": 1e999}',
    "twice": '{"a": 1, "a": 2}',
    "half a pair": '{"a": "\\ud800"}',
    "half a pair as key": '{"\\ud800": 1}',
    "cut": '{"a": ',
    "empty": "",
}
TOML = {
    "digits": f"a = {HUGE}",
    "deep list": "a = " + "[" * DEEP + "]" * DEEP,
    "deep table": "a = " + "{a = " * 5000 + "1" + "}" * 5000,
    "long key": ".".join("a" * 100_000) + " = 1",
    "long header": "[" + ".".join("a" * 100_000) + "]",
    "nan": "a = nan",
    "inf": "a = [-inf]",
    "date": "a = 1979-05-27",
    "twice": "a = 1\na = 2",
    "cut": "a = ",
}
BYTES = {"latin": b'{"a": "\xe9"}', "utf-16": '{"a": 1}'.encode("utf-16"), "zeros": bytes(100), "pickle": b"\x80\x04N."}


@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
def test_json_that_is_refused(text: str) -> None:
    with pytest.raises(MarioError, match=r"^the file is not valid JSON \(.*\); remove it$") as caught:
        parse_json(text, "the file", "remove it")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", TOML.values(), ids=TOML)
def test_toml_that_is_refused(text: str) -> None:
    began = time.monotonic()
    with pytest.raises(MarioError, match=r"^the file is not valid TOML: ") as caught:
        parse_toml(text, "the file")
    assert len(str(caught.value)) < 300
    assert time.monotonic() - began < 5


def test_what_is_sound_is_read() -> None:
    value = {"ε": [1, -(2**63), 2**63 - 1, 1e308, None, True, {}, []], "deep": json.loads("[" * 40 + "]" * 40)}
    assert parse_json(json.dumps(value), "it") == value
    assert parse_json('{"best": Infinity}', "it", finite=False) == {"best": float("inf")}
    assert parse_toml('a = [1, 2.5]\n[b.c]\nd = "é"', "it") == {"a": [1, 2.5], "b": {"c": {"d": "é"}}}


def test_limits_on_size_and_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([0] * 100))
    monkeypatch.setattr(untrusted, "ITEMS", 50)
    with pytest.raises(MarioError, match="more than 50 values"):
        read_json(path)
    with pytest.raises(MarioError, match="larger than 10 bytes, the most that is read"):
        untrusted.read_bytes(path, 10)
    monkeypatch.setattr(untrusted, "TEXT_BYTES", 20)
    with pytest.raises(MarioError, match=r"line 1 of .* is longer than 20 bytes"):
        list(read_json_lines(path))


def within(seconds: float, work: Callable[[], Any]) -> None:
    """``work`` raises MarioError and does not wait."""
    seen: list[BaseException | None] = []

    def run() -> None:
        try:
            work()
            seen.append(None)
        except BaseException as error:
            seen.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert seen, "it waits without end"
    assert isinstance(seen[0], MarioError), repr(seen[0])


READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "json": ("a.json", read_json),
    "lines": ("a.jsonl", lambda path: list(read_json_lines(path))),
    "toml": ("a.toml", read_toml),
    "preset": ("a.toml", read_preset),
    "json preset": ("a.json", read_preset),
    "records": ("a.jsonl", read_records),
    "study": ("a.toml", lambda path: find_study(str(path))),
    "model": ("a.safetensors", mario.load),
    "graph": ("a.safetensors", load_graph),
    "plan": ("plans/a.00000000.json", lambda path: read_plans(path.parents[1])),
    "card": ("mine/graph.toml", lambda path: find(str(path.parent))),
    "mapped": ("mine/graph.json", lambda path: load_mapped(path.parent)),
}


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", *BYTES, "digits", "deep list"])
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_raises_one_kind_of_error(reader: str, kind: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(BYTES.get(kind) or (TOML if name.endswith("toml") else JSON)[kind].encode())
    within(20, lambda: read(path))


def test_headers_of_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    for about in ("[" * DEEP + "]" * DEEP, f'{{"method": {HUGE}}}', "3", '{"method": 3}', "{}"):
        header = json.dumps({"__metadata__": {"mario": about, "mario-graph": about}}).encode()
        path.write_bytes(struct.pack("<Q", len(header)) + header)
        for read in (mario.load, load_graph):
            with pytest.raises(MarioError):
                read(path)
    path.write_bytes(struct.pack("<Q", 2**62) + b"{}")
    with pytest.raises(MarioError):
        mario.load(path)


def test_a_small_file_that_asks_for_a_huge_network(tmp_path: Path) -> None:
    from safetensors import safe_open
    from safetensors.torch import save_file

    path = tmp_path / "a.safetensors"
    data = mario.load_dataset("good-cbas")
    mario.GRACE(hidden_channels=4, epochs=1, steps_per_epoch=1).fit(data).save(path)
    with safe_open(path, "pt") as file:
        header = json.loads(file.metadata()["mario"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header["settings"]["hidden_channels"] = 20_000  # 6 GB
    save_file(tensors, path, {"mario": json.dumps(header)})
    with pytest.raises(MarioError, match=r"asks for a network of 1,600,500,004 numbers and holds 168"):
        mario.load(path)
    for wrong in (-1, "4", 2**40, True, None):
        save_file(tensors, path, {"mario": json.dumps({**header, "in_channels": wrong})})
        with pytest.raises(MarioError, match="in_channels is"):
            mario.load(path)


@pytest.mark.parametrize(
    ("setting", "said"), [("hidden_channels", "at most 1000000|needs about .* GB"), ("num_layers", "at most 1000")]
)
@pytest.mark.parametrize("size", [1_000_000, 100_000_000])
def test_a_network_that_cannot_be_built_is_refused_at_once(setting: str, said: str, size: int) -> None:
    began = time.monotonic()
    with pytest.raises(MarioError, match=said):
        mario.GRACE(**{setting: size}, epochs=1).fit(mario.load_dataset("good-cbas"))  # type: ignore[arg-type]
    with pytest.raises(MarioError, match=said):
        mario.encoders.GCN(4, **{setting: size})
    assert time.monotonic() - began < 10


def npy(header: bytes, content: bytes = bytes(64)) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"PK\x03\x04" + bytes(100),
        b"\x93NUMPY\x09\x09" + bytes(100),
        npy(b"("),
        npy(b"[" * 5000),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + HUGE.encode() + b",)}"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (10**9,)}"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000000000,)}"),
        npy(b"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}"),
        npy(b"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"),
        npy(b"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}"),
        npy(b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
        npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}".replace(b"(1,)", b"(" + b"1," * 40 + b")")),
    ],
)
def test_headers_of_npy(content: bytes, tmp_path: Path) -> None:
    home = tmp_path / "graph"
    save_mapped(Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]])), home)
    (home / "x.npy").write_bytes(content)
    with pytest.raises(MarioError):
        untrusted.npy_header(home / "x.npy")
    with pytest.raises(MarioError, match="graph is not a sound graph"):
        load_mapped(home)


def test_an_array_is_read_as_numpy_writes_it(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    dtype, shape, offset = untrusted.npy_header(tmp_path / "a.npy")
    assert (dtype, shape, offset % 64) == (np.dtype("float64"), (2, 3), 0)


NAMES = ["../x", "/etc/x", "a/b", "a\\b", "a\0b", "..", ".", ".hidden", "", " ", "x" * 300, "é" * 100, "NUL", "con.txt"]
NAMES += ["COM1", "a\nb", "C:x", "a.", "a ", "a*", "\ud800"]


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leads_out_of_its_folder(name: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(MarioError, match="the name of a thing becomes the name of a file"):
        safe_name(name, "the name of a thing")

    plan = {"study": name, "title": "t", "paper": "", "show": [], "reference": None, "subject": None, "note": ""}
    plan |= {"quick": False, "command": "", "rows": [], "cases": [], "order": []}
    (home / "plans").mkdir()
    (home / "plans/a.00000000.json").write_text(json.dumps(plan))
    with pytest.raises(MarioError, match=r"is not a plan of this version|is not valid JSON"):
        read_plans(home)

    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.zeros(3).long())
    data[name] = torch.zeros(3)
    with pytest.raises(MarioError, match="the name of an attribute"):
        save_mapped(data, home / "graph")
    assert not (home / "graph").exists()

    del data[name]
    with pytest.raises(MarioError, match=r"^name (must|becomes)"):
        save_dataset(data, home / "set", name=name, domains="degree")

    if name:  # without one, it is made of the case
        with pytest.raises(MarioError, match="the name of a study"):
            Tuning.plan(Case.find("good-cbas"), "grace", name=name, folder=home)
    made = untrusted.file_name(name)
    assert safe_name(made, "it") == made
    assert {path.name for path in tmp_path.iterdir()} == {"home"}


def test_names_that_are_used_are_allowed() -> None:
    for name in ("table-concept", "good-cbas-color-concept-mario", "étude 2", "a.b", "x_1", "grace+mario"):
        assert safe_name(name, "it") == name


def test_a_symbolic_link_is_not_written_through(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    for name in ("log.jsonl", "a.json", ".a.json.lock"):
        (tmp_path / name).symlink_to(thesis)
    with pytest.raises(RunFailedError, match=r"log\.jsonl: it is a symbolic link"):
        append_line(tmp_path / "log.jsonl", "x")
    with pytest.raises(RunFailedError, match="cannot lock"), locked(tmp_path / "a.json"):
        pass
    write_json(tmp_path / "a.json", 1)
    assert not (tmp_path / "a.json").is_symlink()
    assert thesis.read_text() == "years of work"


def test_a_lock_is_not_waited_for_without_end(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with (
        locked(path),
        pytest.raises(RunFailedError, match=r"is working on .*records.jsonl: wait .*\.lock for more than 0.1 seconds"),
        locked(path, patience=0.1),
    ):
        pass
    with locked(path):
        pass


def test_nothing_is_written_that_cannot_be_read(tmp_path: Path) -> None:
    for value in ({"a": float("nan")}, [2**70], json.loads("[" * 60 + "]" * 60)):
        with pytest.raises(MarioError, match="what would be written to"):
            write_json(tmp_path / "a.json", value)
    with pytest.raises(MarioError):
        save_graph(Data(x=torch.eye(2), note=object()), tmp_path / "a.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["settings.json", "result.json", ".holder", "error.txt", "attempt.json", "log.jsonl"])
@pytest.mark.parametrize("kind", ["digits", "deep object", "fifo", "latin"])
def test_a_run_folder_that_is_odd_is_broken_and_nothing_worse(file: str, kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    if kind == "fifo":
        os.mkfifo(folder / file)
    else:
        (folder / file).write_bytes(BYTES.get(kind) or JSON[kind].encode())
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(look(folder).state), daemon=True)
    thread.start()
    thread.join(20)
    assert seen[0] in (("broken",) if file in ("settings.json", "result.json") else ("broken", "failed", "waiting"))
