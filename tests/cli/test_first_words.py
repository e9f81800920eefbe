"""What the terminal shows first, and how it answers mistakes: at once, without torch, without a broken word."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forked import mario

SMALL = ["--set", "hidden_channels=8", "--set", "num_layers=1", "--set", "epochs=1", "--set", "probe_epochs=1"]


def first_words(*words: str) -> str:
    """What a terminal shows first; the command is then stopped."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mario", *words], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        return os.read(ours, 1000).decode()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(ours)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "good-cbas"), "mario on good-cbas: importing torch ..."),
        (("methods",), "importing the methods"),
        (("demo",), "demo: importing torch ..."),
        (("reproduce", "demo", "--dry-run"), "reading the studies ..."),
    ],
)
def test_a_terminal_is_told_at_once_what_is_being_done(words: tuple[str, ...], said: str) -> None:
    assert first_words(*words).startswith(said)


def test_mistakes_are_answered_without_torch() -> None:
    script = """
import contextlib, io, sys
from mario.cli import main
for words in (["run", "good-cbs"], ["fit", "good-cbs"], ["tune", "good-cbas", "--shift", "consept"],
              ["run", "good-cbas", "--domain", "colour"], ["run", "good-cbas", "--epochs", "3"]):
    sys.argv = ["mario", *words]
    try: main()
    except SystemExit as ended: print(ended.code, file=sys.stderr)
sys.exit("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, "torch was imported"
    assert done.stderr.count("did you mean 'good-cbas'?") == 2
    assert "'consept'" in done.stderr
    assert "'colour'" in done.stderr
    assert "use --set epochs=3" in done.stderr


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("run", "good-cbas", "--epochs=3"), "epochs is a setting: use --set epochs=3"),
        (("fit", "good-cbas", "--hidden-channels", "64"), "use --set hidden_channels=64"),
        (("tune", "good-cbas", "--lr"), "use --set lr=VALUE"),
        (("run", "good-cbas", "--sead", "3"), "No such option: --sead"),
    ],
)
def test_a_setting_given_as_an_option_is_answered_with_set(words: tuple[str, ...], advice: str) -> None:
    done = mario(*words)
    assert done.returncode == 2
    assert advice in " ".join(done.stderr.split())


@pytest.mark.parametrize("setting", ["hidden_channels=100000000", "num_layers=100000", "hidden_channels=1000000"])
def test_huge_values_are_refused_in_one_line(setting: str, tmp_path: Path) -> None:
    done = mario("run", "good-cbas", "--set", setting, "--out", "huge", "--no-controls", cwd=tmp_path)
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(errors) == 1
    assert errors[0].startswith("mario: error: ")
    assert setting.partition("=")[0] in errors[0]


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("words", [("data", "list"), ("methods",), ("methods", "mario")])
def test_listings_break_no_word_or_number(words: tuple[str, ...], width: int) -> None:
    done = mario(*words, env={"COLUMNS": str(width)})
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= width
    table, _, hidden = done.stdout.partition("not shown, as the terminal is narrow: ")
    whole = mario(*words, env={"COLUMNS": "1000"}).stdout
    assert set(re.split(r"[\s─]+", table)) <= set(re.split(r"[\s─]+", whole))
    if words == ("data", "list"):
        assert "2,381,620" in table
        assert hidden.startswith("license") == (width <= 80)
    elif words == ("methods", "mario"):
        assert not hidden


def test_a_pipe_has_every_column_and_no_backticks() -> None:
    there = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    command = [sys.executable, "-m", "mario", "data", "list"]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=there).stdout
    assert "license" in out.splitlines()[0]
    assert "`" not in out
    assert "'webkb' is the sound data" in out


def test_a_run_into_the_folder_of_another_says_that_the_method_differs(tmp_path: Path) -> None:
    first = mario("run", "good-cbas", "--method", "grace", *SMALL, "--out", "one", "--no-controls", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert re.search(r"ood_test[^\n]* \d+\.\d %", first.stdout)
    assert not re.search(r"\d\.\d\d+ %", first.stdout)
    second = mario("run", "good-cbas", "--method", "bgrl", *SMALL, "--out", "one", cwd=tmp_path)
    assert second.returncode == 2
    assert "it differs in method (grace there, bgrl requested). Choose" in second.stderr
    third = mario("run", "good-cbas", "--method", "grace", *SMALL, "--seed", "1", "--out", "one", cwd=tmp_path)
    assert "it differs in seed (0 there, 1 requested). Choose" in third.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run good-webkb --shift ", {"covariate", "concept"}),
        ("run good-cbas --domain ", {"color"}),
        ("run good-cbas --encoder g", {"gcn", "gat", "gin"}),
        ("run good-cbas --setting ", {"transductive", "inductive"}),
        ("run good-cbas --method costa+", {"costa+mario", "costa+steady", "costa+mario+steady"}),
        ("run good-cbas --method erm", {"erm"}),
        ("run good-cbas --method gra", {"grace", "graphcl", "graphmae"}),
    ],
)
def test_completion(words: str, expected: set[str]) -> None:
    *typed, incomplete = words.split(" ")
    asked = {"_MARIO_COMPLETE": "complete_bash", "COMP_WORDS": f"mario {words}", "COMP_CWORD": str(len(typed) + 1)}
    done = mario(env=asked)
    assert set(done.stdout.split()) >= expected
    assert all(name.startswith(incomplete) for name in done.stdout.split())
    if not words.endswith(" "):
        assert set(done.stdout.split()) == expected


def test_names_read_from_the_source_are_those_registered() -> None:
    from mario.cli import names
    from mario.encoders import ENCODERS
    from mario.errors import MarioError
    from mario.lab.presets import settings_of
    from mario.methods import REGISTRY, find

    assert names.encoders() == list(ENCODERS)
    for name, over in names.methods().items():
        assert name in REGISTRY
        assert ("mario" in over) == REGISTRY[name].host
        assert set(settings_of(name)) <= names.settings()
        try:
            find(f"{name}+steady")
        except MarioError:
            assert "steady" not in over, name
        else:
            assert "steady" in over, name
    assert json.loads(mario("methods", "--json").stdout)[0]["name"] in names.methods()


def test_help_of_a_method_explains_each_setting() -> None:
    import mario as library

    for field in library.MARIO.fields():
        assert re.search(rf"^    {field.name}: \S.* \(default ", library.MARIO.__doc__ or "", re.MULTILINE), field.name
