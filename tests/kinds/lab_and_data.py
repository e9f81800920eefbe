"""Arguments of datasets, splits, runs, studies, searches and reports."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kinds.graphs import INF, NAN, sound
from kinds.kind import Kind, refused, same
from lab import results
from mario.datasets import CATALOG, REGISTRY, DatasetCard, load_dataset, register, save_dataset
from mario.files import write_json
from mario.graphs import SplitRule, split_graph
from mario.lab import Case, RunSpec, load_runs
from mario.lab.frame import frame
from mario.lab.launch import launch, make_launcher
from mario.lab.presets import complete_settings
from mario.lab.studies.collect import collect
from mario.lab.studies.plan import make_plan
from mario.lab.studies.read import find_study
from mario.lab.tune.plan import Tuning
from mario.lab.tune.storage import storage_url, without_password
from mario.report import write_report

NAMES = ["../x", "/etc/x", "a/b", "a\\b", "a\0b", "..", ".hidden", " ", "x" * 300, "NUL", "a\nb", "C:x", "a*", "\ud800"]


def kinds() -> list[Kind]:
    return [*_datasets(), *_raw_files(), *_splits(), *_saving(), *_runs(), *_tuning(), *_reports()]


def _datasets() -> Iterator[Kind]:
    names: dict[str, Any] = {
        "a typo": "good-cba",
        "in capitals": "GOOD-CBAS",
        "empty": "",
        "None": None,
        "a number": 3,
        "a list": ["good-cbas"],
        "a class": DatasetCard,
        "a folder that is not there": "none/such",
        "a folder without a card": ".",
        "a null character": "a\0/b",
        "a long path": "x/" * 3000,
        "a name of the paper that is no dataset": "cora",
        "bytes": b"good-cbas",
    }
    for fault, name in names.items():
        yield refused(f"{fault} as a dataset", lambda n=name: load_dataset(n))
        yield refused(f"{fault} as a dataset of a case", lambda n=name: Case.find(n))
    arguments: dict[str, dict[str, Any]] = {
        "domain": {"unknown": "colour", "empty": "", "a number": 3, "a list": ["color"]},
        "shift": {"unknown": "concpt", "in capitals": "Concept", "a number": 3, "empty": ""},
        "setting": {"unknown": "Inductive", "a number": 1, "empty": ""},
        "split_seed": {"-1": -1, "True": True, "a text": "0", "2**32": 2**32, "a fraction": 0.5, "None": None},
        "root": {"a file": "file", "not there": "none"},
    }
    for name, values in arguments.items():
        for fault, value in values.items():
            if name == "root":

                def given(value: Any = value) -> object:
                    Path("file").write_text("x")
                    return load_dataset("good-cora", root=value, download=False)

                yield refused(f"{fault} for load_dataset({name})", given)
                continue
            yield refused(
                f"{fault} for load_dataset({name})", lambda n=name, v=value: load_dataset("good-cbas", **{n: v})
            )
    for name, card in CATALOG.items():
        if card.files:
            yield refused(f"{name} without files and downloads", lambda n=name: load_dataset(n, download=False))
    yield refused("a dataset without a card", lambda: register(type("Mine", (), {})))
    yield refused("a dataset whose name is taken", _taken)


def _taken() -> object:
    kind = type(REGISTRY["good-cbas"])
    return register(type("Mine", (kind,), {"card": CATALOG["good-cbas"]}))


def _raw_files() -> Iterator[Kind]:
    """Raw files of every dataset that are not the published ones."""
    damage: dict[str, Callable[[Path, int], object]] = {
        "empty": lambda path, size: path.write_bytes(b""),
        "of zeros": lambda path, size: path.write_bytes(bytes(min(size, 10_000))),
        "of text": lambda path, size: path.write_text("1, 2\n2, 1\n" * 50),
        "an error page": lambda path, size: path.write_text("<html>404</html>"),
    }
    for name, card in CATALOG.items():
        for fault, change in damage.items():
            if not card.files:
                continue

            def given(name: str = name, card: DatasetCard = card, change: Any = change) -> object:
                for file in card.files:
                    path = Path("root") / file.path
                    path.parent.mkdir(parents=True, exist_ok=True)
                    change(path, file.size or 1000)
                return load_dataset(name, root="root", download=False)

            yield refused(f"the files of {name} are {fault}", given)


def _splits() -> Iterator[Kind]:
    data = sound(x=torch.ones(40, 2), edge_index=torch.arange(40).repeat(2, 1), y=torch.arange(40) % 2)
    for key in [key for key in data.keys() if key.endswith("_mask")] + ["domain_id", "env_id"]:  # noqa: SIM118
        del data[key]
    good: dict[str, Any] = {"domain": torch.arange(40) // 4, "shift": "covariate", "rule": SplitRule(environments=2)}
    arguments: dict[str, dict[str, Any]] = {
        "domain": {
            "an unknown name": "colour",
            "None": None,
            "too few": torch.arange(39),
            "NaN": torch.full((40,), NAN),
            "infinity": torch.full((40,), INF),
            "a matrix": torch.ones(40, 2),
            "objects": np.array([object()] * 40),
            "one value": torch.zeros(40),
            "a number": 3,
            "a name of x": "x",
            "complex numbers": torch.ones(40).to(torch.complex64),
            "nested lists": [[1], [2, 3]],
        },
        "shift": {"a typo": "covariat", "None": None, "a number": 3, "empty": ""},
        "setting": {"a typo": "Inductive", "None": None, "a number": 3},
        "split_seed": {"-1": -1, "True": True, "a text": "0", "2**32": 2**32, "a fraction": 1.0, "None": None},
        "rule": {"a dict": {"cuts": (0.1, 0.2)}, "a text": "good", "a class": SplitRule},
    }
    for name, values in arguments.items():
        for fault, value in values.items():
            yield refused(
                f"{fault} for split_graph({name})", lambda n=name, v=value: split_graph(data, **{**good, n: v})
            )
    rules: dict[str, dict[str, Any]] = {
        "cuts that fall": {"cuts": (0.8, 0.6)},
        "cuts above 1": {"cuts": (0.6, 1.2)},
        "one cut": {"cuts": (0.6,)},
        "cuts that are a text": {"cuts": "ab"},
        "cuts of NaN": {"cuts": (NAN, 0.8)},
        "cuts that are a number": {"cuts": 0.6},
        "no environments": {"environments": 0},
        "half an environment": {"environments": 2.5},
        "environments that are a text": {"environments": "2"},
        "environments that are a bool": {"environments": True},
        "four picks": {"pick": (0.4,) * 4},
        "a bias above 1": {"bias": (1.5,) * 5},
        "a bias of NaN": {"bias": (NAN,) * 5},
        "a share of -1": {"covariate_id": -1.0},
        "a share of NaN": {"concept_id": NAN},
        "a control of two": {"control": (0.5, 0.5)},
        "a control above 1": {"control": (0.6, 0.6, 0.6)},
        "a descending that is a text": {"descending": "no"},
        "a domain to hold out that is a number": {"held_out": 3},
    }
    for fault, facts in rules.items():
        yield refused(f"SplitRule with {fault}", lambda f=facts: SplitRule(**f))
    yield refused(
        "a domain to hold out that is not there",
        lambda: split_graph(data, **{**good, "rule": SplitRule(held_out="99")}),
    )
    yield refused(
        "labels that are missing", lambda: split_graph(sound(y=torch.tensor([-1] + [0] * 7)), domain="degree")
    )
    yield refused("a graph too small to split", lambda: split_graph(sound(), domain="degree", shift="covariate"))
    yield same(
        "names as domains",
        lambda: split_graph(data, **{**good, "domain": [f"d{i // 4:02}" for i in range(40)]}).domain_id,
        lambda: split_graph(data, **good).domain_id,
    )


def _saving() -> Iterator[Kind]:
    for name in NAMES:
        yield refused(f"the name {name[:12]!r} of a dataset", lambda n=name: save_dataset(sound(), "mine", name=n))
        yield refused(
            f"the name {name[:12]!r} of a search", lambda n=name: Tuning.plan(Case.find("good-cbas"), "grace", name=n)
        )
    arguments: dict[str, dict[str, Any]] = {
        "a name that is a number": {"name": 3},
        "an empty name": {"name": ""},
        "a text that is None": {"what": None},
        "an empty text": {"what": ""},
        "domains of numbers": {"domains": [3]},
        "a domain that is a number": {"domains": 3},
        "shifts of numbers": {"shifts": [3]},
        "a rule beside masks": {"rule": SplitRule()},
    }
    for fault, facts in arguments.items():
        yield refused(f"save_dataset with {fault}", lambda f=facts: save_dataset(sound(), "mine", **f))
    bare = sound(train_mask=None, id_val_mask=None, id_test_mask=None, ood_val_mask=None, ood_test_mask=None)
    for fault, facts in {
        "no domains": {},
        "an unknown shift": {"domains": "degree", "shifts": "drift"},
        "a rule that is a dict": {"domains": "degree", "rule": {"environments": 2}},
        "a domain that is not there": {"domains": "colour"},
    }.items():
        yield refused(
            f"save_dataset of a bare graph with {fault}", lambda f=facts: load_dataset(save_dataset(bare, "mine", **f))
        )
    yield refused("save_dataset with a metric that is a number", lambda: save_dataset(sound(metric=3), "mine"))
    yield refused(
        "save_dataset where one is", lambda: (save_dataset(sound(), "mine"), save_dataset(sound(), "mine"))[1]
    )
    yield refused("save_dataset into a file", lambda: (Path("mine").write_text("x"), save_dataset(sound(), "mine"))[1])
    yield refused("save_dataset to a null character", lambda: save_dataset(sound(), "a\0b"))
    yield refused("save_dataset to None", lambda: save_dataset(sound(), None))


def _runs() -> Iterator[Kind]:
    case = Case.find("good-cbas")
    specs: dict[str, dict[str, Any]] = {
        "a seed of -1": {"seed": -1},
        "a seed that is a bool": {"seed": True},
        "a seed that is a text": {"seed": "0"},
        "a seed of 2**32": {"seed": 2**32},
        "a split seed of -1": {"split_seed": -1},
        "a split seed that is a bool": {"split_seed": True},
        "a split seed that is a text": {"split_seed": "0"},
        "a split seed of 2**32": {"split_seed": 2**32},
        "an unknown setting": {"given": {"hiden": 3}},
        "a setting that is NaN": {"given": {"lr": NAN}},
        "a setting that is a module": {"given": {"encoder": torch.nn.Linear(2, 2)}},
        "settings that are a list": {"given": [1]},
        "a number of checkpoints of 0": {"given": {"checkpoints": 0}},
        "an unknown probe": {"given": {"probe": "knn"}},
    }
    for fault, facts in specs.items():
        yield refused(f"a run with {fault}", lambda f=facts: RunSpec.plan(case, "grace", **f))
    for fault, method in {"a typo": "grcae", "None": None, "a method of sets": "graphcl", "a number": 3}.items():
        yield refused(f"a run of {fault}", lambda m=method: RunSpec.plan(case, m))
    written = results.spec().to_dict()
    for key in written:
        for fault, value in {"missing": ..., "null": None, "a list": [1], "a number": 3.5}.items():

            def given(key: str = key, value: Any = value) -> object:
                made = {**written, key: value}
                if value is ...:
                    del made[key]
                return RunSpec.from_dict(made)

            yield refused(f"settings whose {key} is {fault}", given)
    for fault, value in {"None": None, "a list": [], "a text": "x"}.items():
        yield refused(f"settings that are {fault}", lambda v=value: RunSpec.from_dict(v))
    yield refused(
        "settings that JSON cannot hold", lambda: RunSpec(case=case, method="grace", settings={"a": object()})
    )
    odd = RunSpec(case=case, method="grace", settings={"a": NAN})
    yield refused("settings that are NaN, written", lambda: write_json(Path("settings.json"), odd.to_dict()))
    yield refused("settings that are no mapping", lambda: RunSpec(case=case, method="grace", settings=[3]))
    paths: dict[str, Any] = {
        "not there": "none",
        "a text file": "a.txt",
        "None": None,
        "a number": 3,
        "a null character": "a\0b",
    }
    for fault, path in paths.items():
        yield refused(f"load_runs of {fault}", lambda p=path: (Path("a.txt").write_text("x"), load_runs(p))[1])
    yield refused("a frame of numbers", lambda: frame([1, 2]))
    yield refused("a frame of None", lambda: frame(None))
    yield refused(
        "settings of an unknown method", lambda: complete_settings("no-such", "good-cbas", "color", "concept")
    )
    for fault, workers in {"0": 0, "-1": -1, "a text": "2", "None": None, "a fraction": 1.5}.items():
        yield refused(f"{fault} workers", lambda w=workers: list(launch([], Path("runs"), workers=w)))
    for fault, name in {"a typo": "locl", "None": None, "a number": 3}.items():
        yield refused(f"{fault} as a launcher", lambda n=name: make_launcher(n))
    yield refused("an option of a launcher that has none", lambda: make_launcher("local", {"partition": "x"}))
    yield refused("a launch in a file", lambda: (Path("runs").write_text("x"), list(launch([], Path("runs"))))[1])
    for fault, name in {"a typo": "table-concpt", "empty": "", "None": None, "a number": 3, "a path": "../x"}.items():
        yield refused(f"{fault} as a study", lambda n=name: find_study(n))
    study = find_study("ablation")
    plans: dict[str, dict[str, Any]] = {
        "no seeds": {"seeds": 0},
        "negative seeds": {"seeds": -1},
        "seeds that are a text": {"seeds": "2"},
    }
    for fault, facts in plans.items():
        yield refused(f"a plan with {fault}", lambda f=facts: make_plan(study, **f))


def _tuning() -> Iterator[Kind]:
    case = Case.find("good-cbas")
    facts: dict[str, dict[str, Any]] = {
        "an unknown sampler": {"sampler": "bayes"},
        "an unknown pruner": {"pruner": "mean"},
        "a choice by test": {"select": "ood_test"},
        "no trials": {"trials": 0},
        "negative trials": {"trials": -3},
        "trials that are a text": {"trials": "5"},
        "no seeds": {"seeds": 0},
        "seeds that are a text": {"seeds": "1"},
        "an unknown setting": {"only": ["hiden"]},
        "a setting that is not searched": {"only": ["encoder_"]},
        "an unknown range": {"search": {"hiden": "1:2"}},
        "an empty range": {"search": {"lr": ""}},
        "a range that falls": {"search": {"lr": "1:0.1"}},
        "a range of words": {"search": {"lr": "a:b"}},
        "a range of NaN": {"search": {"lr": "nan:1"}},
        "an infinite range": {"search": {"lr": "0:inf"}},
        "a logarithmic range from 0": {"search": {"lr": "0:1:log"}},
        "a range beyond the bounds": {"search": {"dropout": "0:7"}},
        "a range of many colons": {"search": {"lr": "1:2:3:4"}},
        "a grid of ranges": {"sampler": "grid", "search": {"lr": "0.1:0.2"}},
        "a setting that is given and searched": {"given": {"lr": "0.1"}, "only": ["lr"]},
        "an unknown device": {"device": "tpu"},
        "a storage that is a number": {"storage": 3},
        "a storage that is empty": {"storage": " "},
    }
    for fault, given in facts.items():
        yield refused(f"a search with {fault}", lambda g=given: Tuning.plan(case, "grace", **g))
    secrets = ["postgresql://me:SECRET@h/db", "postgresql://me:SEC?RET@h/db", "postgresql://me:SE#C@RET@h/db"]
    secrets += [
        "postgresql://me:SECRET@[::1/db",
        "mysql+x://a:SECRET@h",
        "postgresql://h/db?password=SECRET",
        "x://:SECRET@",
    ]
    secrets += [
        "postgresql://me:SEC/RET@h/db",
        "postgresql://h/db?user=a&password=SECRET&x=1",
        "postgresql://me:%53ECRET@h/d",
    ]
    for url in secrets:
        yield Kind(
            f"the password in {url}",
            lambda u=url: without_password(u),
            lambda said: "SEC" not in said and "RET" not in said and "ECR" not in said,
            or_refused=True,
        )
    yield refused("a storage that is None", lambda: storage_url(None))


def _reports() -> Iterator[Kind]:
    study = find_study("ablation")

    def collected() -> Any:
        return collect(make_plan(study, datasets=["good-cbas"], seeds=1), Path("runs"))

    yield refused("a report of nothing", lambda: write_report("a.html", [], title="x"))
    yield refused("a report of None", lambda: write_report("a.html", None, title="x"))
    yield refused("a report of numbers", lambda: write_report("a.html", [3], title="x"))
    yield refused(
        "a report in a file", lambda: (Path("a").write_text("x"), write_report("a/b.html", [collected()], title="x"))[1]
    )
    yield refused(
        "a report that is a folder", lambda: (Path("a").mkdir(), write_report("a", [collected()], title="x"))[1]
    )
    yield refused("a report to a null character", lambda: write_report("a\0b", [collected()], title="x"))
    for what in ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</title><script>x</script>"):
        yield Kind(
            f"a title of {what}",
            lambda w=what: write_report("a.html", [collected()], title=w, command=w).read_text(encoding="utf-8"),
            lambda page, w=what: w not in page,
        )
