"""What is soaked: a study of `mario reproduce`, and tunings in SQLite and PostgreSQL. Each is done in rounds.

In a round, commands are killed and started again until all is done. Then a last command that nobody kills must end
well, and the folder must be as if nobody had killed anything.
"""

import gc
import json
import random
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import TrialState

from mario.lab.case import Case
from mario.lab.runs import lock, store
from mario.lab.runs.execute import finish, load_data
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import counted, open_study
from tests.soak.commands import Command

GIVEN = {"hidden_channels": 8, "num_layers": 1, "steps_per_epoch": 4, "probe_epochs": 2, "roots": 20}
STUDY = """
title = "Soak"
reference = ""
subject = ""
rows = ["grace", "random-init"]
seeds = {seeds}
epochs = 60
checkpoints = 12
given = {{ hidden_channels = 8, num_layers = 1, steps_per_epoch = 4, probe_epochs = 2, roots = 20 }}
cases = [{{ dataset = "good-cbas", shift = "concept" }}]
"""
TUNE = """
import json, sys
from pathlib import Path
from mario.errors import MarioError
from mario.lab.case import Case
from mario.lab.tune import work
from mario.lab.tune.plan import Tuning
from mario.lab.tune.study import retry_failed
if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    tuning = Tuning.plan(Case.find("good-cbas", shift="concept"), "grace", folder=Path("runs"), **asked)
    retry_failed(tuning)
    try:
        for now in work.tune(tuning, workers=2):
            pass
    except MarioError as error:
        sys.exit(f"mario: error: {error}")
"""
ACCEPTED = (
    "interrupted: repeat the same command",
    "runs failed, the first",
    "killed twice in a row",
    "workers of the tuning died",
    "a worker of the tuning ended",
)
"""What a command whose workers were killed may say when it ends with an error."""


def content(folder: Path) -> dict[str, Any]:
    """The names of the files of a run, and of some the content; without the map that a page makes of it."""
    files: dict[str, Any] = {str(path.relative_to(folder)): "" for path in folder.rglob("*") if path.is_file()}
    files.pop("map.npz", None)
    files.pop(".map.npz.lock", None)
    for name in ("model.safetensors", "log.jsonl"):
        if name in files:
            files[name] = (folder / name).read_bytes()
    result = json.loads((folder / "result.json").read_text())
    files["result.json"] = {key: value for key, value in result.items() if "seconds" not in key}
    return files


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and "map.npz" not in path.name)


class Lane:
    """One thing that is done again and again."""

    name: str
    commands: list[Command]
    last: Command
    """The one that nobody kills."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rounds = 0
        self.faults: list[str] = []
        self.ended: Counter[str] = Counter()
        self.finishing = False
        self.over = False
        """Whether this is the last round."""
        self.sessions: set[int] = set()
        self.memory: list[list[tuple[float, int]]] = []
        self.excused = False
        """Whether something that is not a process of a command, such as a server, was killed in this round."""

    def begin(self) -> None:
        """A new round in a new folder."""
        self.finishing, self.excused = False, False
        self.folder = self.root / f"{self.name}-{self.rounds}"
        self.folder.mkdir()
        self.prepare()
        for command in self.commands:
            command.start()

    def prepare(self) -> None:
        raise NotImplementedError

    def complete(self) -> bool:
        raise NotImplementedError

    def check(self) -> None:
        raise NotImplementedError

    def words(self, *words: str, log: str, steady: bool = False) -> Command:
        return Command(list(words), self.folder, self.folder / f"{log}.log", steady)

    def step(self) -> None:
        """Start commands again that have ended; go on to the end of the round, or to the next."""
        if self.finishing:
            code = self.last.ended()
            if code and self.excused:
                self.excused = False
                self.last.start()
            elif code is not None:
                if code:
                    self.fault(f"the last command ended with {code}: {self.last.log.read_text()[-2000:]}")
                else:
                    self.check()
                if not self.faults:
                    shutil.rmtree(self.folder)
                self.rounds += 1
                for command in (*self.commands, self.last):
                    self.sessions |= command.sessions
                    self.memory += command.memory.values()
                if not self.over:
                    self.begin()
            return
        for command in self.commands:
            code = command.ended()
            if code is not None:
                self.judge(command, code)
        if self.complete() or self.over:
            for command in self.commands:
                command.end()
            self.finishing = True
            self.last.start()
            return
        for command in self.commands:
            if command.ended() is not None:
                command.start()

    def judge(self, command: Command, code: int) -> None:
        """A command may end early only because of kills, and must say so in words."""
        self.ended[str(code)] += 1
        said = command.log.read_text(errors="replace")
        command.log.unlink()
        if code in (0, 130) or command.hit or self.excused:
            return
        lines = [line for line in said.splitlines() if line.startswith("mario: ")]
        if code != 1 or not any(phrase in line for line in lines for phrase in ACCEPTED):
            self.fault(f"a command ended with {code}: {said[-2000:]}")
        if "Traceback" in said or "bug of mario" in said:
            self.fault(f"a traceback: {said[-3000:]}")

    def fault(self, text: str) -> None:
        print(f"{self.name}, round {self.rounds}: {text}", file=sys.stderr, flush=True)
        self.faults.append(text)

    def end(self) -> None:
        for command in (*self.commands, self.last):
            command.end()


class Reproduce(Lane):
    """Two commands of `mario reproduce` that share a folder of runs."""

    name = "reproduce"

    def __init__(self, root: Path, seeds: int) -> None:
        super().__init__(root)
        self.seeds = seeds
        self.expected: dict[str, dict[str, Any]] = {}
        self.size = 0

    def prepare(self) -> None:
        (self.folder / "soak.toml").write_text(STUDY.format(seeds=self.seeds))
        words = ["-m", "mario", "reproduce", "soak.toml", "--out", "runs", "--retry-failed"]
        self.commands = [
            self.words(*words, "--workers", "1", "--report", f"{i}.html", log=f"command-{i}", steady=i == 0)
            for i in range(2)
        ]
        self.last = self.words(*words, "--workers", "2", "--records", "records.jsonl", log="last")

    def undisturbed(self) -> None:
        """The runs as they are if nothing happens."""
        self.folder = self.root / "undisturbed"
        self.folder.mkdir()
        self.prepare()
        self.last.start()
        assert self.last.process is not None
        assert self.last.process.wait() == 0, self.last.log.read_text()
        runs = self.folder / "runs"
        self.expected = {path.name: content(path) for path in store.run_folders(runs)}
        self.size = sum(size(runs / name) for name in self.expected)

    def complete(self) -> bool:
        folders = [self.folder / "runs" / name for name in self.expected]
        return all(store.state(folder) == store.DONE for folder in folders)

    def check(self) -> None:
        runs = self.folder / "runs"
        there = {path.name for path in runs.iterdir() if path.is_dir() and path.name not in ("pictures", "plans")}
        if there != self.expected.keys():
            self.fault(f"folders: {sorted(there ^ self.expected.keys())}")
        for name, expected in self.expected.items():
            found = content(runs / name)
            if found != expected:
                keys = [key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)]
                self.fault(f"{name} differs in {keys}")
            if lock.holder(runs / name):
                self.fault(f"{name} is locked by {lock.holder(runs / name)}")
        recorded = [json.loads(line) for line in (self.folder / "records.jsonl").read_text().splitlines()]
        if len(recorded) != len(self.expected):
            self.fault(f"{len(recorded)} results are recorded")
        grown = sum(size(runs / name) for name in self.expected) / self.size
        if not 0.98 < grown < 1.02:
            self.fault(f"the folders have {grown:.2f} times their size")


class Tune(Lane):
    """A command of `mario tune`: all trials count once, and keep their scores."""

    name = "tune"
    storage: str | None = None
    study: optuna.Study | None = None

    def __init__(self, root: Path, trials: int, draw: random.Random) -> None:
        super().__init__(root)
        self.trials = trials
        self.draw = draw
        self.total = Counter[str]()

    def asked(self) -> dict[str, Any]:
        asked = {"given": {**GIVEN, "epochs": 30, "checkpoints": 6}, "only": ["lr", "tau"], "pruner": "none"}
        return {**asked, "sampler": "random", "trials": self.trials, "name": f"soak-{self.rounds}"}

    def prepare(self) -> None:
        self.scores: dict[int, float | None] = {}
        (self.folder / "tuning.py").write_text(TUNE)
        words = ["tuning.py", json.dumps({**self.asked(), "heartbeat": 2})]
        self.commands = [self.words(*words, log=f"command-{i}", steady=i == 0) for i in range(2)]
        self.last = self.words(*words, log="last")
        self.open()

    def open(self) -> None:
        asked = {**self.asked(), **({"storage": self.storage} if self.storage else {})}
        case = Case.find("good-cbas", shift="concept")
        self.study = None
        gc.collect()  # closes the connections of the round before: an Optuna study is part of a cycle
        self.tuning = Tuning.plan(case, "grace", folder=self.folder / "runs", **asked)
        self.study = open_study(self.tuning)

    def complete(self) -> bool:
        assert self.study is not None
        trials = counted(self.study.get_trials(deepcopy=False))
        now = {trial.number: trial.value for trial in trials if trial.state == TrialState.COMPLETE}
        if not self.scores.items() <= now.items():
            self.fault(f"scores were {self.scores} and are {now}")
        self.scores = now
        return len(now) >= self.trials

    def check(self) -> None:
        assert self.study is not None
        every = self.study.get_trials()
        trials = counted(every)
        self.total["trials"] += len(every)
        self.total["counted"] += len(trials)
        if [trial.number for trial in every] != list(range(len(every))):
            self.fault("a number is missing or there twice")
        states = Counter(trial.state.name for trial in trials)
        if states != {"COMPLETE": self.trials}:
            self.fault(f"the trials are {dict(states)}")
        if running := [trial.number for trial in every if trial.state == TrialState.RUNNING]:
            self.fault(f"trials {running} are running")
        known = {digest for trial in every for digest in trial.user_attrs.get("runs", ())}
        runs = self.folder / "runs"
        if strange := {path.name for path in store.run_folders(runs)} - known:
            self.fault(f"folders without a trial: {sorted(strange)}")
        names = set()
        for trial in trials:
            (digest,) = trial.user_attrs["runs"]
            result = store.read_result(runs / digest)
            if result is None or trial.value != max(point.scores["ood_val"] for point in result.curve):
                self.fault(f"trial {trial.number} has not the score of its run {digest}")
                continue
            names.add(frozenset(content(runs / digest)))
        if len(names) != 1:
            self.fault(f"files: {[sorted(each) for each in names]}")
        for trial in self.draw.sample(trials, 2):
            (spec,) = self.tuning.runs(trial.params)
            finish(spec, load_data(spec), self.folder / "again" / spec.digest, device="cpu")
            ours, theirs = (content(self.folder / name / spec.digest) for name in ("again", "runs"))
            if ours["model.safetensors"] != theirs["model.safetensors"] or ours["log.jsonl"] != theirs["log.jsonl"]:
                self.fault(f"{spec.digest} has other bits if nothing happens")


class TuneInPostgres(Tune):
    """The same in a database that is killed as well, with the command as a person types it."""

    name = "tune-postgres"

    def __init__(self, root: Path, trials: int, draw: random.Random, url: str) -> None:
        super().__init__(root, trials, draw)
        self.storage = url

    def prepare(self) -> None:
        self.scores = {}
        asked = self.asked()
        words = ["-m", "mario", "tune", "good-cbas", "--method", "grace", "--shift", "concept", "--retry-failed"]
        words += ["--only", "lr,tau", "--pruner", "none", "--sampler", "random", "--trials", str(self.trials)]
        words += ["--storage", str(self.storage), "--study-name", asked["name"], "--workers", "1"]
        words += [word for name, value in asked["given"].items() for word in ("--set", f"{name}={value}")]
        self.commands = [self.words(*words, log="command-0")]
        self.last = self.words(*words, log="last")
        self.open()
