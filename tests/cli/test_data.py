import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from elliptic_files import write_elliptic
from mario.cli.data import app
from mario.datasets import CATALOG
from mario.errors import MarioError


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARIO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MARIO_DATA", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_list_says_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    result = run("list")
    assert result.exit_code == 0
    for name, card in CATALOG.items():
        (line,) = [line for line in result.output.splitlines() if line.strip().startswith((f"{name} ", f"{name}*"))]
        assert f"{card.nodes:,}" in line
        assert ("absent" in line) == bool(card.files)
        assert ("made at first use" in line) == name.startswith("shifting")
    assert "faulty at its source" in result.output


def test_list_as_json_with_files_present(tmp_path: Path) -> None:
    for file in CATALOG["webkb"].files:
        (tmp_path / file.path).parent.mkdir(exist_ok=True)
        (tmp_path / file.path).touch()
    rows = {row["name"]: row for row in json.loads(run("list", "--json", "--root", tmp_path).output)}
    assert rows["webkb"]["where"] == str(tmp_path)
    assert rows["good-twitch"]["where"] == "absent"
    assert rows["good-cbas"]["where"] == "generated"
    assert rows["webkb"]["domains"] == ["university", "cornell", "texas", "washington", "wisconsin"]
    assert rows["good-cora"]["bytes"] is None
    assert len(rows["good-webkb"]["faults"]) == 1


def test_show_cbas_has_the_sizes_of_every_split() -> None:
    facts = json.loads(run("show", "good-cbas", "--json").output)
    sizes = {split["shift"]: [split[part] for part in list(split)[2:7]] for split in facts["splits"]}
    assert sizes == {"covariate": [420, 70, 70, 70, 70], "concept": [140] * 5, "no_shift": [420, 70, 70, 70, 70]}
    assert facts["splits"][0]["environments"] == 5
    text = run("show", "good-cbas").output
    assert "700 nodes, 3,962 edges" in text
    assert "files: none needed" in text


def test_show_of_absent_files_is_no_error() -> None:
    result = run("show", "good-webkb")
    assert result.exit_code == 0
    assert "files: absent" in result.output
    assert "mario data fetch good-webkb" in result.output
    assert "fault: GOOD-WebKB is faulty" in result.output


def test_show_of_real_data(mario_data: Path) -> None:
    result = run("show", "good-webkb", "--root", mario_data)
    assert result.exit_code == 0
    (line,) = [line for line in result.output.splitlines() if "covariate " in line and "244" in line]
    assert line.split() == ["university", "covariate", "244", "61", "61", "125", "126", "3", "2"]
    webkb = json.loads(run("show", "webkb", "--json", "--root", mario_data).output)
    assert [split["domain"] for split in webkb["splits"]].count("texas") == 1


def test_show_of_many_graphs_has_no_id_sets_and_says_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARIO_UNVERIFIED", "1")
    root = write_elliptic(tmp_path, layout="kaggle", nodes=12)
    (split,) = json.loads(run("show", "elliptic", "--json", "--root", root).output)["splits"]
    assert (split["domain"], split["shift"], split["id_val"], split["id_test"]) == ("time", "label", None, None)
    assert (split["domains"], split["environments"]) == (49, 5)
    assert min(split["train"], split["ood_val"], split["ood_test"]) > 0
    text = run("show", "elliptic", "--root", root).output
    assert "setting: inductive by default" in text
    (line,) = [line for line in text.splitlines() if line.strip().startswith("time ")]
    assert line.split()[3:5] == ["none", "none"]
    unknown = run("verify", "elliptic", "--root", root)
    assert unknown.exit_code == 1
    assert unknown.output.count("UNKNOWN") == 3
    assert "checksums are not known" in unknown.output


def test_show_and_verify_of_amazon_photo(mario_data: Path) -> None:
    (split,) = json.loads(run("show", "amazon-photo", "--json", "--root", mario_data).output)["splits"]
    assert [split[part] for part in ("train", "ood_val", "ood_test")] == [7650, 7650, 61200]
    assert run("verify", "amazon-photo", "--root", mario_data).exit_code == 0


def test_fetch_finds_or_explains(mario_data: Path, tmp_path: Path) -> None:
    assert "needs no files" in run("fetch", "good-cbas").output
    found = run("fetch", "webkb", "--root", mario_data)
    assert found.exit_code == 0
    assert f"8 files in {mario_data}" in found.output


def test_fetch_offline_is_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("urllib.request.OpenerDirector.open", no_network)
    result = run("fetch", "coauthor-cs")
    assert isinstance(result.exception, MarioError)
    assert "Coauthor/CS/raw/ms_academic_cs.npz" in str(result.exception)


def test_verify_names_each_file(mario_data: Path, tmp_path: Path) -> None:
    sound = run("verify", "webkb", "--root", mario_data)
    assert sound.exit_code == 0
    assert sound.output.count("OK") == 8

    shutil.copytree(mario_data / "WebKB-LINQS", tmp_path / "copy" / "WebKB-LINQS")
    changed = tmp_path / "copy/WebKB-LINQS/texas.cites"
    changed.chmod(0o644)
    changed.write_text("changed")
    result = run("verify", "webkb", "--root", tmp_path / "copy")
    assert result.exit_code == 1
    (line,) = [line for line in result.output.splitlines() if line.startswith("MISMATCH")]
    assert line.endswith(str(changed))
    assert result.output.count("OK") == 7
    changed.unlink()
    result = run("verify", "webkb", "--root", tmp_path / "copy", "--json")
    assert result.exit_code == 1
    states = {file["path"]: file["state"] for file in json.loads(result.output)["files"]}
    assert states["WebKB-LINQS/texas.cites"] == "absent"
    assert list(states.values()).count("OK") == 7


def test_verify_without_files_or_checksums(tmp_path: Path) -> None:
    assert run("verify", "good-cbas").exit_code == 0
    absent = run("verify", "good-cora")
    assert absent.exit_code == 1
    assert absent.output.startswith("absent")
    path = tmp_path / "CitationFull/cora/raw/cora.npz"
    path.parent.mkdir(parents=True)
    path.touch()
    unknown = run("verify", "good-cora", "--root", tmp_path)
    assert unknown.exit_code == 1
    assert unknown.output.startswith("UNKNOWN")


@pytest.mark.parametrize("command", ["show", "fetch", "verify"])
def test_unknown_names_are_explained(command: str) -> None:
    result = run(command, "good-cabs")
    assert isinstance(result.exception, MarioError)
    assert "did you mean 'good-cbas'" in str(result.exception)


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["verify", "good-cbas"], ["fetch", "good-cbas"]])
def test_torch_is_not_imported(arguments: list[str]) -> None:
    code = "import sys; from mario.cli.data import app; app(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    assert "mario.datasets.files" in done.stdout.split()
    assert "torch" not in done.stdout.split()


def test_a_generated_graph_is_made_by_fetch_and_not_by_show(tmp_path: Path) -> None:
    before = run("show", "shifting-10k")
    assert before.exit_code == 0
    assert "files: made at first use" in before.output
    assert "mario data fetch shifting-10k" in before.output
    assert "7.1 MB" in before.output
    assert not (tmp_path / "cache" / "graphs").exists()
    assert f"made in {tmp_path / 'cache'}" in run("fetch", "shifting-10k").output.replace("\n", "")
    (split,) = json.loads(run("show", "shifting-10k", "--json").output)["splits"]
    assert (split["train"], split["domains"], split["environments"]) == (30, 10, 6)
    assert "files: made in" in run("show", "shifting-10k").output
    made = sum(path.stat().st_size for path in (tmp_path / "cache" / "graphs").rglob("*.npy"))
    assert made == pytest.approx(CATALOG["shifting-10k"].cached, rel=0.001)
