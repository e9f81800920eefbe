"""A folder with a graph.toml is a dataset: it is saved, found, loaded, shown and run."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from typer.testing import CliRunner

from mario.cli import app
from mario.datasets import CATALOG, find, find_case, load_dataset, save_dataset
from mario.datasets.feature_columns import with_column
from mario.errors import MarioError
from mario.graphs import SplitRule, split_graph
from mario.graphs.graph_sets import stack_graphs
from mario.graphs.paging import mapping_of
from mario.graphs.rules import PARTS, SHIFTS


def ring(nodes: int = 60) -> Data:
    generator = torch.Generator().manual_seed(0)
    node = torch.arange(nodes)
    edges = torch.stack([node, (node + 1) % nodes])
    return Data(
        x=torch.rand(nodes, 5, generator=generator),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=node % 3,
        year=2000 + node // 6,
    )


def shifted() -> Data:
    return split_graph(ring(), domain="year", shift="covariate")


@pytest.mark.parametrize("mapped", [False, True])
def test_saved_masks_are_used_as_they_are(tmp_path: Path, mapped: bool) -> None:
    data = shifted()
    data.metric, data.setting = "f1", "inductive"
    folder = save_dataset(data, tmp_path / "mine", what="a ring", mapped=mapped)
    assert folder == tmp_path / "mine"
    again = load_dataset(folder, split_seed=5)
    for key in ("x", "y", "year", "domain_id", "env_id", *(f"{part}_mask" for part in PARTS)):
        assert torch.equal(again[key], data[key]), key
    assert again.num_edges == data.num_edges
    assert (mapping_of(again.x) is not None) == mapped
    facts = ("mine", "year", "covariate", "inductive", 5, "f1", 3, [])
    assert (
        again.name, again.domain, again.shift, again.setting, again.split_seed, again.metric, again.num_classes,
        again.faults,
    ) == facts  # fmt: skip


def test_only_a_training_mask_is_enough(tmp_path: Path) -> None:
    data = ring()
    data.train_mask = torch.arange(60) < 30
    card, *case = find_case(save_dataset(data, tmp_path / "mine"))
    assert (card.name, *case) == ("mine", "given", "given", "transductive")
    assert int(load_dataset(tmp_path / "mine").train_mask.sum()) == 30


def test_a_graph_without_masks_is_split_when_it_is_loaded(tmp_path: Path) -> None:
    rule = SplitRule(descending=False, environments=3, cuts=(0.5, 0.7))
    folder = save_dataset(ring(), tmp_path / "mine", domains=("year", "degree"), rule=rule)
    assert tomllib.loads((folder / "graph.toml").read_text())["split"] == {
        "descending": False,
        "cuts": [0.5, 0.7],
        "environments": 3,
    }
    card = find(folder).card
    assert (card.domains, card.shifts) == (("year", "degree"), SHIFTS)
    for shift in ("covariate", "no_shift"):
        for seed in (0, 1):
            ours = load_dataset(folder, shift=shift, split_seed=seed)
            theirs = split_graph(ring(), domain="year", shift=shift, split_seed=seed, rule=rule)
            assert all(torch.equal(ours[f"{part}_mask"], theirs[f"{part}_mask"]) for part in PARTS)
    with pytest.raises(MarioError, match="unknown domain of mine 'month'; use one of year, degree"):
        load_dataset(folder, domain="month")


def test_sets_of_graphs_too(tmp_path: Path) -> None:
    data = stack_graphs([Data(x=torch.ones(n, 2), edge_index=torch.zeros(2, 0).long(), y=torch.tensor([n % 2]))
                         for n in (2, 3, 4, 5)])  # fmt: skip
    data.train_mask = torch.tensor([True, True, False, False])
    card = find(save_dataset(data, tmp_path / "mine")).card
    assert (card.level, card.graphs, card.nodes, card.classes) == ("graph", 4, 14, 2)
    assert load_dataset(tmp_path / "mine").num_graphs == 4


def test_the_card_in_the_documentation_is_one(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```toml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    folder = save_dataset(ring(), tmp_path / "mine", domains="year")
    for key, count in (("nodes", 60), ("edges", 120), ("features", 5)):
        block = re.sub(rf"^{key} = \d+", f"{key} = {count}", block, flags=re.MULTILINE)
    (folder / "graph.toml").write_text(block, encoding="utf-8")
    data = load_dataset(folder, shift="covariate")
    assert data.name == "papers"
    assert data.year[data.train_mask].max() < data.year[data.ood_test_mask].min()


def test_a_path_is_a_dataset_wherever_a_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_dataset(shifted(), tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    identity = (tmp_path / "mine").resolve().as_posix()
    for given in ("./mine", "mine", "mine/", str(tmp_path / "mine"), tmp_path / "mine"):
        card = find(given).card
        assert (card.name, card.identity, card.nodes, card.edges, card.features, card.classes) == (
            "mine", identity, 60, 120, 5, 3,
        )  # fmt: skip
    assert "mine" not in CATALOG
    save_dataset(shifted(), tmp_path / "webkb", name="other")
    assert find("webkb").card is CATALOG["webkb"]  # a registered name wins; ./webkb is the folder
    assert find("./webkb").card.name == "other"


def test_what_is_no_dataset_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("file", "is a file; a dataset of your own is a folder with a graph.toml: .*save_dataset"),
        ("nowhere", "there is no folder .*nowhere; `mario data list`"),
        ("empty", r"empty has no graph\.toml; mario\.datasets\.save_dataset"),
    ):
        with pytest.raises(MarioError, match=message):
            find(tmp_path / name)
    with pytest.raises(MarioError, match="unknown dataset 'min'"):
        find("min")
    with pytest.raises(MarioError, match="unknown dataset 3"):
        find(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metric": None, "nodes": None}, r"graph\.toml: missing metric, nodes; it needs name, file, metric"),
        ({"nodes": '"many"'}, "nodes must be a whole number, got 'many'"),
        ({"nodes": "true"}, "nodes must be a whole number, got True"),
        ({"edges": "-1"}, "edges must be a whole number, got -1"),
        ({"domains": '"year"'}, "domains must be a list of names, got 'year'"),
        ({"shifts": "[]"}, r"shifts must be a list of names, got \[\]"),
        ({"shifts": "[1]"}, r"shifts must be a list of names, got \[1\]"),
        ({"metric": "3"}, "metric must be a text, got 3"),
        ({"setting": '"inductiv"'}, "unknown setting 'inductiv'; .*did you mean 'inductive'"),
        ({"name": '"a/b"'}, "name must consist of letters, digits"),
        ({"naem": '"x"'}, "unknown key 'naem'; .*did you mean 'name'"),
        ({"split": "1"}, "split must be a table, got 1"),
        ({"file": '"../secret"'}, "file must be in the folder of graph.toml, got '../secret'"),
        ({"file": '"/etc/passwd"'}, "file must be in the folder of graph.toml, got '/etc/passwd'"),
        ({"file": '"."'}, "file must be in the folder of graph.toml, got '.'"),
        ({"file": '"link"'}, "file must be in the folder of graph.toml, got 'link'"),
        ({"file": '"absent.safetensors"'}, "file = 'absent.safetensors', but the folder has no such file"),
        ({"name": "not toml"}, "graph.toml is not valid TOML: Invalid value"),
    ],
)
def test_a_bad_card_is_one_error(tmp_path: Path, change: dict[str, str | None], message: str) -> None:
    folder = save_dataset(shifted(), tmp_path / "mine")
    (tmp_path / "secret").touch()
    os.symlink(tmp_path / "secret", folder / "link")
    lines = dict(line.split(" = ", 1) for line in (folder / "graph.toml").read_text().splitlines())
    lines |= change  # type: ignore[arg-type]
    (folder / "graph.toml").write_text("\n".join(f"{key} = {value}" for key, value in lines.items() if value))
    with pytest.raises(MarioError, match=message) as caught:
        find(folder)
    assert str(folder / "graph.toml") in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("desending = true", r"unknown key of \[split\] 'desending'; .*did you mean 'descending'"),
        ("descending = 1", r"descending of \[split\] must be true or false, got 1"),
        ("environments = true", r"environments of \[split\] must be a whole number, got True"),
        ("cuts = 3", r"cuts of \[split\] must be a list of numbers, got 3"),
        ('cuts = ["a", "b"]', r"cuts of \[split\] must be a list of numbers, got \['a', 'b'\]"),
        ("cuts = [0.8, 0.6]", "SplitRule takes at least one environment and increasing cuts"),
        ("held_out = 3", r"held_out of \[split\] must be a name, got 3"),
    ],
)
def test_a_bad_split_is_one_error(tmp_path: Path, split: str, message: str) -> None:
    folder = save_dataset(ring(), tmp_path / "mine", domains="year")
    with (folder / "graph.toml").open("a") as file:
        file.write(split)
    with pytest.raises(MarioError, match=message):
        find(folder)


def test_masks_and_a_split_table_exclude_each_other(tmp_path: Path) -> None:
    with_masks = save_dataset(shifted(), tmp_path / "masks")
    with (with_masks / "graph.toml").open("a") as file:
        file.write("[split]\n")
    with pytest.raises(MarioError, match=r"the graph has masks, so graph\.toml must have no \[split\]"):
        load_dataset(with_masks)
    without = save_dataset(ring(), tmp_path / "none", domains=("year",))
    (without / "graph.toml").write_text((without / "graph.toml").read_text().replace("[split]\n", ""))
    note = load_dataset(without, shift="covariate").split_note
    assert note.startswith("graph.toml has no [split], so the graph is split by year (the smallest 60 % train")


def test_a_graph_that_is_not_the_cards_is_refused(tmp_path: Path) -> None:
    folder = save_dataset(shifted(), tmp_path / "mine")
    (folder / "graph.toml").write_text((folder / "graph.toml").read_text().replace("nodes = 60", "nodes = 61"))
    with pytest.raises(MarioError, match=r"graph\.toml says nodes = 61, but graph\.safetensors has 60; save the graph"):
        load_dataset(folder)
    (folder / "graph.safetensors").write_bytes(b"\x80\x04not a graph")
    with pytest.raises(MarioError, match="is not a graph that mario wrote"):
        load_dataset(folder)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"name": "a b"}, "name must consist of letters"),
        ({"rule": SplitRule()}, "rule is for a graph without masks"),
        ({"shifts": ("covariate", "")}, r"shifts must be a list of names, got \['covariate', ''\]"),
    ],
)
def test_saving_checks_its_arguments(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        save_dataset(shifted(), tmp_path / "mine", **given)
    assert not (tmp_path / "mine").exists()


def test_saving_refuses_what_could_not_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(MarioError, match="domains must name the attributes to split by"):
        save_dataset(ring(), tmp_path / "mine")
    save_dataset(shifted(), tmp_path / "mine")
    with pytest.raises(MarioError, match="already holds a dataset; give a new folder"):
        save_dataset(shifted(), tmp_path / "mine")


def test_the_commands_take_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save_dataset(shifted(), "mine")
    identity = (tmp_path / "mine").resolve().as_posix()

    def call(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output

    facts = json.loads(call("data", "show", "./mine", "--json"))
    assert (facts["name"], facts["where"], facts["nodes"], facts["files"]) == ("mine", identity, 60, 1)
    (split,) = facts["splits"]
    assert (split["domain"], split["shift"], split["domains"]) == ("year", "covariate", 10)
    assert "files: here in" in call("data", "show", "./mine")
    assert f"1 file in {identity}" in call("data", "fetch", "./mine").replace("\n", "")
    quick = ("--set", "checkpoints=1", "--set", "probe_epochs=1")
    call("run", "./mine", "--method", "random-init", *quick, "--out", "run")
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["dataset"], result["domain"], result["shift"]) == (identity, "year", "covariate")
    assert 0 <= result["scores"]["ood_test"] <= 1


def test_a_study_and_a_search_take_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mario.lab.case import Case
    from mario.lab.studies.plan import missing_data
    from mario.lab.tune.plan import Tuning

    monkeypatch.chdir(tmp_path)
    save_dataset(shifted(), "mine")
    identity = (tmp_path / "mine").resolve().as_posix()
    case = Case.find("./mine")
    assert case.dataset == identity
    assert missing_data(case) is None
    assert Tuning.plan(case, "grace", trials=2).name == "mine-year-covariate-grace"
    (tmp_path / "study.toml").write_text(
        'rows = ["random-init"]\nreference = ""\nsubject = ""\n[[cases]]\ndataset = "./mine"\n'
    )
    done = CliRunner().invoke(app, ["reproduce", "study.toml", "--dry-run"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "mine-covariate" in done.output


def test_a_declared_split_is_saved_with_the_graph(tmp_path: Path) -> None:
    data = ring()
    data.y[::2] = -1
    folder = save_dataset(data, tmp_path / "mine", split={"by": "year", "train": 0.5, "validation": 0.2})
    card, *case = find_case(folder)
    assert (case, card.domains) == (["year", "covariate", "transductive"], ("year", "degree"))
    made = load_dataset(folder)
    assert made.year[made.train_mask].max() < made.year[made.ood_val_mask].min()
    assert made.num_classes == 3
    with pytest.raises(MarioError, match="'yaer' is neither a column of the graph"):
        save_dataset(data, tmp_path / "other", split={"by": "yaer"})
    with pytest.raises(MarioError, match="domains, shifts and rule cannot be given with it"):
        save_dataset(data, tmp_path / "other", split={"by": "year"}, domains="year")
    with pytest.raises(MarioError, match="split is for a graph without masks"):
        save_dataset(shifted(), tmp_path / "other", split={"by": "year"})
    assert not (tmp_path / "other").exists()


def test_graphs_of_a_set_are_split_by_size(tmp_path: Path) -> None:
    graphs = [
        Data(x=torch.ones(n, 2), edge_index=torch.zeros(2, 0).long(), y=torch.tensor([n % 2])) for n in range(2, 22)
    ]
    folder = save_dataset(stack_graphs(graphs), tmp_path / "mine", split={"by": "size"})
    assert find(folder).card.domains == ("size", "degree")
    made = load_dataset(folder, setting="inductive")
    assert [int(made[f"{part}_mask"].sum()) for part in PARTS] == [10, 1, 1, 4, 4]


def test_a_column_that_is_a_feature_splits_too(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = [(f"p{i}", i % 7, ("yes", "no", "")[i % 3], ("red", "blue", "green")[i % 3], i) for i in range(60)]
    lines = ["name,pages,open,color,size"] + [f"{a},{b if b else ''},{c},{d},{e}" for a, b, c, d, e in rows]
    (tmp_path / "nodes.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"p{i},p{i + 1}\n" for i in range(59)))
    words = ["graph", "build", "--nodes", str(tmp_path / "nodes.csv"), "--edges", str(tmp_path / "edges.csv")]
    words += ["--id", "name", "--kind", "open=boolean", "--kind", "pages=numeric", "-o", str(tmp_path / "mine")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    card = find(tmp_path / "mine")
    for by, names, values in (
        ("pages", None, [float("nan") if not row[1] else float(row[1]) for row in rows]),
        ("open", ("no", "yes"), [(1, 0, -1)[i % 3] for i in range(60)]),
        ("color", ("blue", "green", "red"), [(2, 0, 1)[i % 3] for i in range(60)]),
    ):
        data = card.read()
        found = with_column(data, card.graph_card, by)
        assert found.get(by) == names
        assert torch.equal(data[by].isnan(), torch.tensor(values).isnan())
        assert data[by].nan_to_num().tolist() == torch.tensor(values).nan_to_num().tolist()
    done = CliRunner().invoke(app, ["graph", "split", str(tmp_path / "mine"), "--by", "color", "--leave-out", "red"])
    assert done.exit_code == 0, done.output
    made = load_dataset(tmp_path / "mine")
    assert made.ood_test_mask.nonzero().view(-1).tolist() == list(range(0, 60, 3))
