"""Any command line ends with exit code 0, 1 or 2 and one message, and writes only where it was told to."""

import functools
import os
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from forked import start
from fuzz.targets import fuzz, inside
from lab import results
from mario.datasets import CATALOG, save_dataset
from mario.lab.studies.read import study_names
from mario.methods import REGISTRY
from methods.tiny import tiny_graph

NAMES = (
    "../outside/x",
    "a/b",
    "..",
    "",
    " ",
    "x" * 300,
    "é",
    "a\nb",
    "-",
    "--",
    "NUL",
    "*",
    "{}",
    "$HOME",
    "~",
    "%s",
    "[red]",
)
NUMBERS = ("0", "1", "-1", "2", "3.5", "1e999", "nan", "inf", "9" * 30, "9" * 5000, "0x10", "１", "true", "")
DATASETS = ("good-cbas", "mine", "Good-Cbas", *(name for name in CATALOG if not name.startswith("shifting")))
METHODS = (*sorted(REGISTRY), "grace+mario", "raw-features+mario", "Grace", "mario+mario")
SETTINGS = ("epochs", "lr", "hidden_channels", "encoder", "tau", "milestones", "sampling", "views", "probe", "no_such")
PATHS = (
    "run",
    "runs",
    "new/folder",
    "file.txt",
    "file.txt/inside",
    "page.html",
    "a.toml",
    "a.json",
    ".",
    "mine",
    "é/ü",
)
JUNK = (
    "--help",
    "-h",
    "--debug",
    "--version",
    "--no-such",
    "-x",
    "--",
    "run",
    "data",
    "--set",
    "-",
    "\udc80",
    *NAMES,
    *NUMBERS,
)

names = st.sampled_from(NAMES)
numbers = st.sampled_from(NUMBERS)
paths = st.sampled_from(PATHS)
datasets = st.one_of(st.sampled_from(DATASETS[:2]), st.sampled_from(DATASETS), names)
methods = st.one_of(st.sampled_from(METHODS), names)
cases = st.sampled_from(
    ("concept", "covariate", "no_shift", "label", "color", "degree", "inductive", "transductive", "x")
)
assigned = st.builds(
    "{}={}".format, st.one_of(st.sampled_from(SETTINGS), names), st.one_of(numbers, names, st.sampled_from(METHODS))
)
studies = st.one_of(st.sampled_from((*study_names(), "all", "study.toml", "broken.toml", "none.toml")), names)

SHARED = {"--shift": cases, "--domain": cases, "--setting": cases, "--root": paths, "--device": names}
SPEC = {**SHARED, "--method": methods, "--encoder": names, "--set": st.one_of(assigned, names)}
OPTIONS: dict[str, dict[str, st.SearchStrategy[str] | None]] = {
    "run": {
        **SPEC,
        "--split-seed": numbers,
        "--seed": numbers,
        "--preset": paths,
        "--threads": numbers,
        "--tensorboard": paths,
        "--anonymous": None,
        "--quiet": None,
    },
    "tune": {
        **SPEC,
        "--trials": numbers,
        "--sampler": names,
        "--only": st.sampled_from(SETTINGS),
        "--search": assigned,
        "--select": cases,
        "--seeds": numbers,
        "--pruner": names,
        "--study-name": names,
        "--timeout": numbers,
        "--out": paths,
        "--runs": paths,
        "--workers": numbers,
        "--quiet": None,
        "--retry-failed": None,
    },
    "reproduce": {
        "--seeds": numbers,
        "--datasets": datasets,
        "--methods": methods,
        "--out": paths,
        "--workers": numbers,
        "--launcher": st.sampled_from(("local", "slurm", "x")),
        "--launcher-option": assigned,
        "--report": paths,
        "--document": paths,
        "--records": paths,
        "--root": paths,
        "--quick": None,
        "--anonymous": None,
    },
    "report": {"--out": paths, "--document": paths, "--root": paths, "--anonymous": None},
    "methods": {"--json": None},
    "demo": {"--out": paths, "--seeds": numbers, "--epochs": numbers},
    "data list": {"--root": paths, "--json": None},
    "data show": {"--root": paths, "--json": None},
    "data fetch": {"--root": paths},
    "data verify": {"--root": paths, "--json": None},
    "no-such-verb": {},
}
QUICK = [
    word
    for pair in (
        "epochs=1",
        "steps_per_epoch=1",
        "hidden_channels=4",
        "num_layers=1",
        "roots=10",
        "clusters=3",
        "checkpoints=1",
        "probe=linear",
        "probe_epochs=1",
        "compiled=no",
    )
    for word in ("--set", pair)
]
LAST = {
    "run": [*QUICK, "--out", "run/it"],
    "tune": [*QUICK, "--timeout", "0", "--workers", "1"],  # no trial starts
    "reproduce": ["--dry-run"],
    "demo": ["--workers", "0"],  # refused
}
"""Options that keep a sound command short; the last of several counts."""
ARGUMENTS = {
    "run": datasets,
    "tune": datasets,
    "reproduce": studies,
    "report": paths,
    "methods": methods,
    "data show": datasets,
    "data fetch": datasets,
    "data verify": datasets,
}


@st.composite
def commands(draw: DrawFn) -> list[str]:
    verb = draw(st.sampled_from(sorted(OPTIONS)))
    words = verb.split()
    if verb in ARGUMENTS and draw(st.integers(0, 9)):
        words.append(draw(ARGUMENTS[verb]))
    for option in draw(st.lists(st.sampled_from(sorted(OPTIONS[verb])), max_size=3)) if OPTIONS[verb] else ():
        values = OPTIONS[verb][option]
        words += [option] if values is None else [option, draw(values)]
    words += LAST.get(verb, [])
    if draw(st.integers(0, 3)) == 0:
        words.insert(draw(st.integers(0, min(3, len(words)))), draw(st.sampled_from(JUNK)))
    return words


STUDY = 'rows = ["grace"]\nepochs = 1\ncases = [{ dataset = "good-cbas" }]\n'


@functools.cache
def work() -> dict[str, bytes]:
    """A folder with a dataset, two finished runs, a document and studies."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        save_dataset(tiny_graph(nodes=20), home / "mine")
        results.write(home / "runs", *(results.result(results.spec(seed), 0.5) for seed in (0, 1)))
        (home / "file.txt").write_text("<!-- table runs -->\n<!-- end -->\n")
        (home / "study.toml").write_text(STUDY)
        (home / "broken.toml").write_text("a = [")
        (home / "a.toml").write_text("method = 'grace'\n[settings]\nlr = 0.1\n")
        return inside(home)


def give(words: list[str], folder: Path, seconds: float) -> tuple[int | None, str, str]:
    """Exit code (None if it does not end), output and errors."""
    home = folder / "work"
    for name, content in work().items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if name.endswith("/") else path.write_bytes(content)
    nowhere = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # nothing is downloaded
    places = {"HOME": str(home), "MARIO_CACHE": str(folder / "cache"), "MARIO_DATA": "", "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir()
    environment = {**os.environ, **nowhere, **places, "COLUMNS": "120", "OMP_NUM_THREADS": "1"}
    process = start("mario.cli", *words, said=folder / "said", cwd=home, env=environment)
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
        return None, "", ""
    out, err = (Path(folder, "said", name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
    return process.exitcode, out, err


@fuzz(examples=8, seconds=100, words=commands())
def test_any_command(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "outside").mkdir()
        (folder / "outside/thesis.tex").write_text("years of work")
        code, out, err = give(words, folder, seconds=90)
        assert code is not None, "it does not end"
        if "--debug" not in words:
            assert code in (0, 1, 2), (code, err)
            assert "Traceback" not in err + out, err
            assert "bug of mario" not in err, err
            assert err.count("mario: error:") <= 1, err
        assert code == 0 or err.strip() or out.strip(), "no message"
        assert inside(folder / "outside") == {"thesis.tex": b"years of work"}
        assert {entry.name for entry in folder.iterdir()} <= {"outside", "work", "cache", "tmp", "said"}
        assert not [name for name in inside(folder / "tmp") if not name.startswith("torch_geometric")]  # PyG's own
