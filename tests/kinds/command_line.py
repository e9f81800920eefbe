"""Bad arguments of every verb of the command line."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kinds.graphs import sound
from kinds.kind import Kind, command, refused
from lab import results
from mario.datasets import save_dataset

BAD_NUMBERS = ("x", "-1", "1.5", "", "1e3", "nan", "99999999999999999999")


def kinds() -> list[Kind]:
    return [*_words(), *_options(), *_folders(), *_runs_of_others(), *_sound()]


def said(*words: str) -> Kind:
    return refused(f"mario {' '.join(word[:40] for word in words)}", lambda: command(*words))


def _words() -> Iterator[Kind]:
    for words in [
        ("no-such",),
        ("runn", "good-cbas"),
        ("--no-such",),
        ("run",),
        ("run", "good-cba"),
        ("run", "GOOD-CBAS"),
        ("run", ""),
        ("run", "good-cbas", "extra"),
        ("run", "good-cbas", "--no-such"),
        ("run", "/nowhere/at/all"),
        ("run", "../../etc"),
        ("run", "good-cbas", "--method"),
        ("run", "good-cbas", "--method", "grcae"),
        ("run", "good-cbas", "--method", ""),
        ("run", "good-cbas", "--method", "graphcl"),
        ("run", "good-cbas", "--method", "erm+mario"),
        ("run", "good-cbas", "--shift", "drift"),
        ("run", "good-cbas", "--domain", "colour"),
        ("run", "good-cbas", "--setting", "Inductive"),
        ("run", "good-cbas", "--encoder", "gcnn"),
        ("run", "good-cbas", "--device", "tpu"),
        ("run", "good-cbas", "--device", ""),
        ("run", "good-cbas", "--set", "epochs"),
        ("run", "good-cbas", "--set", "=3"),
        ("run", "good-cbas", "--set", "hiden=3"),
        ("run", "good-cbas", "--set", "epochs=x"),
        ("run", "good-cbas", "--set", "epochs="),
        ("run", "good-cbas", "--set", "epochs=0"),
        ("run", "good-cbas", "--set", "epochs=-1"),
        ("run", "good-cbas", "--set", "lr=nan"),
        ("run", "good-cbas", "--set", "lr=inf"),
        ("run", "good-cbas", "--set", "batch_norm=maybe"),
        ("run", "good-cbas", "--set", "milestones=a,b"),
        ("run", "good-cbas", "--set", "hidden_channels=1000000000"),
        ("run", "good-cbas", "--set", "num_layers=1000000"),
        ("run", "good-cbas", "--set", "epochs=" + "9" * 5000),
        ("run", "good-cbas", "--set", "probe=knn"),
        ("run", "good-cbas", "--set", "views=x"),
        ("run", "good-cbas", "--preset", "none.toml"),
        ("run", "good-cbas", "--preset", "."),
        ("run", "good-cbas", "--preset", "/dev/zero"),
        ("run", "good-cora", "--root", "none"),
        ("run", "good-cbas", "--threads", "100000"),
        ("run", "good-cbas", "--wandb", ""),
        ("data", "no-such"),
        ("data", "show"),
        ("data", "show", "good-cba"),
        ("data", "show", "../x"),
        ("data", "list", "extra"),
        ("data", "list", "--no-such"),
        ("data", "fetch"),
        ("data", "fetch", "no-such"),
        ("data", "verify"),
        ("data", "verify", "no-such"),
        ("data", "verify", "good-cora", "--root", "none"),
        ("methods", "grcae"),
        ("methods", ""),
        ("methods", "grace", "extra"),
        ("methods", "--no-such"),
        ("report",),
        ("report", "none"),
        ("report", ""),
        ("report", "/dev/null"),
        ("report", ".", "--no-such"),
        ("report", "."),
        ("report", ".", "--out", "/dev/full/x.html"),
        ("report", ".", "--document", "none.md"),
        ("reproduce",),
        ("reproduce", "no-such"),
        ("reproduce", ""),
        ("reproduce", "none.toml"),
        ("reproduce", "table-concept", "--datasets", "no-such", "--dry-run"),
        ("reproduce", "table-concept", "--methods", "no-such", "--dry-run"),
        ("reproduce", "table-concept", "--launcher", "no-such", "--dry-run"),
        ("reproduce", "table-concept", "--launcher-option", "x", "--dry-run"),
        ("reproduce", "table-concept", "--launcher-option", "x=y", "--dry-run"),
        ("reproduce", "table-concept", "--records", "/dev/zero", "--dry-run"),
        ("reproduce", "table-concept", "--document", "none.md", "--dry-run"),
        ("reproduce", "table-concept", "--root", "none"),
        ("tune",),
        ("tune", "no-such"),
        ("tune", "good-cbas", "--method", "no-such"),
        ("tune", "good-cbas", "--sampler", "bayes"),
        ("tune", "good-cbas", "--pruner", "mean"),
        ("tune", "good-cbas", "--select", "ood_test"),
        ("tune", "good-cbas", "--only", "hiden"),
        ("tune", "good-cbas", "--search", "lr"),
        ("tune", "good-cbas", "--search", "lr=1:0"),
        ("tune", "good-cbas", "--search", "hiden=1:2"),
        ("tune", "good-cbas", "--set", "hiden=3"),
        ("tune", "good-cbas", "--study-name", "../x"),
        ("tune", "good-cbas", "--study-name", "a\nb"),
        ("tune", "good-cbas", "--storage", "nosuch://a/b"),
        ("tune", "good-cbas", "--storage", "/dev/null/x.db"),
        ("tune", "good-cbas", "--out", "a.txt"),
        ("tune", "good-cbas", "--timeout", "-1"),
        ("tune", "good-cbas", "--timeout", "x"),
        ("tune", "good-cbas", "--device", "tpu"),
        ("demo", "extra"),
        ("demo", "--no-such"),
    ]:
        yield said(*words)


def _options() -> Iterator[Kind]:
    numbers = {
        ("run", "good-cbas"): ("--seed", "--split-seed", "--threads"),
        ("tune", "good-cbas"): ("--trials", "--seeds", "--workers"),
        ("reproduce", "ablation", "--dry-run"): ("--seeds", "--workers"),
        ("demo",): ("--seeds", "--epochs", "--workers"),
    }
    for verb, options in numbers.items():
        for option in options:
            for value in BAD_NUMBERS:
                yield said(*verb, option, value)
    for option in ("--workers",):
        yield said("demo", option, "100000")
        yield said("tune", "good-cbas", option, "100000")
    for verb in (("run", "good-cbas"), ("tune", "good-cbas"), ("report", "runs"), ("reproduce", "ablation"), ("demo",)):
        yield said(*verb, "--seed")
        yield said(*verb, "--out")


def _folders() -> Iterator[Kind]:
    def with_file(*words: str) -> Callable[[], object]:
        def given() -> object:
            Path("file").write_text("mine")
            Path("full").mkdir()
            Path("full/thesis.tex").write_text("mine")
            return command(*words)

        return given

    fast = ("--set", "epochs=1", "--set", "steps_per_epoch=1", "--set", "hidden_channels=4")
    given: dict[str, tuple[str, ...]] = {
        "run into a file": ("run", "good-cbas", *fast, "--out", "file"),
        "run into a file's folder": ("run", "good-cbas", *fast, "--out", "file/x"),
        "run into a folder of others": ("run", "good-cbas", *fast, "--out", "full"),
        "run into a null device": ("run", "good-cbas", *fast, "--out", "/dev/null"),
        "run with TensorBoard in a file": ("run", "good-cbas", *fast, "--tensorboard", "file"),
        "run with a preset of text": ("run", "good-cbas", "--preset", "full/thesis.tex"),
        "tune into a file": ("tune", "good-cbas", "--trials", "1", "--runs", "file"),
        "tune with an outcome in a file": ("tune", "good-cbas", "--trials", "1", "--out", "file/x.toml"),
        "tune with a file that is no database": ("tune", "good-cbas", "--trials", "1", "--storage", "file"),
        "demo into a file": ("demo", "--out", "file", "--epochs", "1", "--seeds", "1"),
        "reproduce into a file": ("reproduce", "ablation", "--datasets", "good-cbas", "--out", "file"),
        "reproduce with records that are text": ("reproduce", "ablation", "--records", "full/thesis.tex", "--dry-run"),
        "reproduce with records that are a folder": ("reproduce", "ablation", "--records", "full", "--dry-run"),
        "report of a file": ("report", "file"),
        "report of a folder without runs": ("report", "full"),
        "a dataset that is a file": ("run", "./file"),
        "a dataset that is a folder of others": ("run", "./full"),
        "data of a folder of others": ("data", "show", "./full"),
        "verify a file": ("data", "verify", "./file"),
        "a root that is a file": ("data", "list", "--root", "file"),
    }
    for fault, words in given.items():
        yield refused(fault, with_file(*words))

    def unknown_picture() -> object:
        Path("mine.toml").write_text(
            'rows = ["grace"]\nshow = ["tabel"]\nsubject = "grace"\n[[cases]]\ndataset = "good-cbas"\n'
        )
        return command("reproduce", "mine.toml", "--dry-run")

    yield refused("a study that shows what is unknown", unknown_picture)


def _runs_of_others() -> Iterator[Kind]:
    """A folder of runs in which one is odd: the others are shown."""
    sound_one = json.dumps(results.result(results.spec(9)).to_dict())
    odd: dict[str, str] = {
        "digits": sound_one.replace('"seed": 9', f'"seed": {"9" * 5000}'),
        "deep nesting": '{"a":' * 100_000 + "1" + "}" * 100_000,
        "nothing": "",
        "a list": "[]",
        "a number": "3",
        "not a number": sound_one.replace('"steps": 10', '"steps": NaN'),
        "markup": json.dumps({**json.loads(sound_one), "seed": "<script>alert(1)</script>"}),
        "an unknown dataset": json.dumps({**json.loads(sound_one), "dataset": "<b>no-such"}),
        "a dataset outside": json.dumps({**json.loads(sound_one), "dataset": "/nowhere/../x"}),
        "an unknown method": json.dumps({**json.loads(sound_one), "method": "<i>no-such"}),
        "an unknown shift": json.dumps({**json.loads(sound_one), "shift": "drift"}),
        "an unknown rule": json.dumps(
            {**json.loads(sound_one), "scores": {"ood_test": 0.5, "chosen_on": {"ood_test": "x"}}}
        ),
        "no curve": json.dumps({**json.loads(sound_one), "curve": []}),
        "an unknown metric": json.dumps({**json.loads(sound_one), "metric": "x"}),
        "a score of 1e300": json.dumps({**json.loads(sound_one), "scores": {"ood_test": 1e300}}),
    }
    for fault, content in odd.items():

        def given(content: str = content) -> object:
            results.write(Path("runs"), *(results.result(results.spec(seed), 0.5 + seed / 100) for seed in (0, 1)))
            Path("runs/odd").mkdir()
            for name in ("result.json", "settings.json"):
                Path("runs/odd", name).write_text(content)
            command("report", "runs")
            return Path("report.html").read_text(encoding="utf-8")

        yield Kind(
            f"a report with one run of {fault}",
            given,
            lambda page: (
                "51.00" in page or "50.50" in page
                if "<script>alert" not in page and "<b>no-such" not in page
                else False
            ),
        )

    def fifo() -> object:
        results.write(Path("runs"), results.result(results.spec(0), 0.5))
        Path("runs/odd").mkdir()
        os.mkfifo("runs/odd/result.json")
        command("report", "runs")
        return Path("report.html").read_text(encoding="utf-8")

    yield Kind("a report with one run that is a fifo", fifo, lambda page: "50.00" in page)


def _sound() -> Iterator[Kind]:
    """Odd, but right."""

    def own() -> str:
        save_dataset(sound(), "a folder with spaces", name="mine")
        return command("data", "show", "./a folder with spaces")

    yield Kind("a dataset in a folder with spaces", own, lambda said: "mine" in said and "8 nodes" in said)
    yield Kind("--debug anywhere", lambda: command("data", "list", "--debug"), lambda said: "good-cbas" in said)
    yield Kind("a verb's help", lambda: command("run", "-h"), lambda said: "--seed" in said)
    yield Kind("a terminal of one column", lambda: _narrow(), lambda said: "good-cbas" in said.replace("\n", ""))
    yield Kind(
        "a run whose folder has spaces and markup",
        lambda: command(
            *("run", "good-cbas", "--method", "raw-features", "--set", "epochs=1", "--set", "checkpoints=1"),
            *("--set", "probe_epochs=1", "--out", "a [bold] folder"),
        ),
        lambda said: "a [bold] folder" in said,
    )


def _narrow() -> str:
    before = os.environ["COLUMNS"]
    os.environ["COLUMNS"] = "1"
    try:
        return command("data", "list")
    finally:
        os.environ["COLUMNS"] = before
