"""Ranks: nothing alone, and over two the sums, rows and errors of both."""

import os
import re
import time
import unittest.mock
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

import forked
from mario import ranks
from mario.errors import MarioError, RunFailedError
from two_ranks import on_two_ranks


class TestAlone:
    def test_everything_is_the_identity(self) -> None:
        x = torch.arange(6.0).view(3, 2).requires_grad_()
        assert (ranks.size(), ranks.rank()) == (1, 0)
        assert ranks.sum_(x) is x
        assert torch.equal(ranks.rows(x), x)
        assert not ranks.rows(x).requires_grad
        assert ranks.stacked(x).shape == (1, 3, 2)
        assert ranks.row_counts(3) == [3]
        assert ranks.objects("a") == ["a"]
        assert ranks.first(lambda: 7) == 7
        x.grad = torch.ones(3, 2)
        ranks.sum_gradients([x], 5.0)  # type: ignore[list-item]
        assert torch.equal(x.grad, torch.ones(3, 2))

    def test_errors_of_first_are_raised(self) -> None:
        def fail() -> None:
            raise KeyError("x")

        with pytest.raises(KeyError):
            ranks.first(fail)

    def test_running_without_torchrun_joins_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("RANK", raising=False)
        monkeypatch.setenv("WORLD_SIZE", "2")  # as some schedulers set it
        with ranks.running():
            assert ranks.size() == 1

    def test_a_job_of_one_is_alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
            monkeypatch.setenv(name, value)
        with ranks.running():
            assert ranks.size() == 1


def collect(rank: int) -> dict[str, object]:
    own = torch.arange(6.0, dtype=torch.float64).view(3, 2)[: 2 + rank] + 10 * rank
    crossed = torch.arange(6.0).view(2, 3).t()  # not contiguous
    ranks.sum_(crossed)
    long = torch.arange(90_000.0).view(300, 300).t()  # nor is this, and it is too long for a gather
    assert long.numel() * long.element_size() > ranks._SHORT
    ranks.sum_(long)
    return {
        "size": (ranks.size(), ranks.rank()),
        "sum": ranks.sum_(torch.full((2,), 1.0 + rank)),
        "crossed": crossed,
        "long": long,
        "rows": ranks.rows(own.requires_grad_()),
        "counted": ranks.rows(own, [2, 3]),
        "labels": ranks.rows(torch.tensor([True, False])[rank:]),
        "none": ranks.rows(own[: 2 * rank]),
        "stacked": ranks.stacked(torch.tensor([rank])),
        "objects": ranks.objects({"rank": rank}),
        "first": ranks.first(lambda: f"of {rank}"),
    }


def test_over_two() -> None:
    first, second = on_two_ranks(collect)
    assert (first.pop("size"), second.pop("size")) == ((2, 0), (2, 1))
    rows = torch.tensor([[0.0, 1], [2, 3], [10, 11], [12, 13], [14, 15]], dtype=torch.float64)
    expected = {
        "sum": torch.full((2,), 3.0),
        "crossed": 2 * torch.arange(6.0).view(2, 3).t(),
        "long": 2 * torch.arange(90_000.0).view(300, 300).t(),
        "rows": rows,
        "counted": rows,
        "labels": torch.tensor([True, False, False]),
        "none": rows[2:4],
        "stacked": torch.tensor([[0], [1]]),
    }
    for found in (first, second):
        for name, value in expected.items():
            assert torch.equal(found[name], value), name
            assert not found[name].requires_grad
        assert found["objects"] == [{"rank": 0}, {"rank": 1}]
        assert found["first"] == "of 0"


def gradients(rank: int) -> list[Tensor | None]:
    torch.manual_seed(0)
    p = [nn.Parameter(torch.zeros(2, 3)), nn.Parameter(torch.zeros(4)), nn.Parameter(torch.zeros(1))]
    p.append(nn.Parameter(torch.zeros(2, dtype=torch.float64)))
    p[0].grad = torch.full((3, 2), 1.0 + rank).t()
    if rank == 1:
        p[1].grad = torch.arange(4.0)
    p[3].grad = torch.full((2,), 0.1 + rank, dtype=torch.float64)
    ranks.sum_gradients(p, 2.0)
    return [q.grad for q in p]


def test_gradients_that_only_one_rank_has() -> None:
    for found in on_two_ranks(gradients):
        torch.testing.assert_close(found[0], torch.full((2, 3), 1.5))
        torch.testing.assert_close(found[1], torch.arange(4.0) / 2)
        assert found[2] is None
        torch.testing.assert_close(found[3], torch.full((2,), 0.6, dtype=torch.float64))


def equalized(rank: int) -> list[Tensor]:
    tensors = [torch.full((2, 2), float(rank)), torch.tensor(rank + 5), torch.arange(6).view(2, 3).t() * (rank + 1)]
    ranks.equalize_(tensors)
    return tensors


def test_all_have_the_values_of_rank_0() -> None:
    for found in on_two_ranks(equalized):
        assert torch.equal(found[0], torch.zeros(2, 2))
        assert found[1] == 5
        assert torch.equal(found[2], torch.arange(6).view(2, 3).t())


def failing(rank: int) -> list[str]:
    def wrong() -> None:
        raise MarioError("holds another run")

    def odd() -> None:
        raise ZeroDivisionError("no")

    said = []
    for work in (wrong, odd):
        try:
            ranks.first(work)
        except Exception as error:
            said.append(f"{type(error).__name__}: {error}")
    return [*said, ranks.first(lambda: "still together")]


def test_an_error_on_rank_0_is_raised_on_all() -> None:
    first, second = on_two_ranks(failing)
    assert first == ["MarioError: holds another run", "ZeroDivisionError: no", "still together"]
    assert second == [
        "MarioError: holds another run",
        "RunFailedError: ZeroDivisionError('no')",
        "still together",
    ]


def torchrun(script: Path) -> tuple[int | None, str]:
    """How a job of two ranks ended, and what it said."""
    words = ["--standalone", "--nproc-per-node", "2", str(script)]
    process = forked.start("torch.distributed.run", *words, said=script.parent)
    process.join(timeout=100)
    return process.exitcode, "".join((script.parent / name).read_text() for name in ("out", "err"))


LOSING = """
import os, sys, torch
from mario import ranks
with ranks.running():
    ranks.sum_(torch.ones(1))
    if ranks.rank() == 1:
        os._exit(0)
    try:
        with ranks.telling(lambda: "at step 7"):
            ranks.sum_(torch.ones(1))
    except ranks.RankLostError as error:
        print(error)
"""


def test_a_lost_rank_is_told(tmp_path: Path) -> None:
    (tmp_path / "losing.py").write_text(LOSING)
    _, said = torchrun(tmp_path / "losing.py")
    assert "rank lost at step 7: rank 0 of 2 lost the connection to another (" in said
    assert "torchrun --max-restarts resumes from the checkpoint" in said


TOLD_TO_END = """
import os, signal, time
from mario import ranks
with ranks.running():
    try:
        with ranks.telling(lambda: "at step 7"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
    except ranks.RankLostError as error:
        print(error)
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""


def test_torchruns_signal_to_end_is_told_as_well(tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(TOLD_TO_END)
    code, said = torchrun(tmp_path / "told.py")
    assert code == 0, said
    for rank in range(2):
        assert f"rank lost at step 7: rank {rank} of 2 was told to end, as torchrun does when another" in said


CLEANING_UP = """
import os, signal, time, torch
from mario import ranks
with ranks.running():
    ranks.sum_(torch.ones(1))
    if ranks.rank() == 1:
        os._exit(0)
    try:
        try:
            with ranks.telling(lambda: "at step 7"):
                ranks.sum_(torch.ones(1))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
    except ranks.RankLostError as error:
        print(error)
"""


def test_torchruns_signal_does_not_replace_the_error_of_a_rank_that_cleans_up(tmp_path: Path) -> None:
    (tmp_path / "cleaning.py").write_text(CLEANING_UP)
    _, said = torchrun(tmp_path / "cleaning.py")
    assert "rank lost at step 7: rank 0 of 2 lost the connection to another (" in said


BETWEEN_EPOCHS = """
import os, signal, time
from mario import ranks
def epochs():
    with ranks.telling(lambda: "at step 7"):
        yield
with ranks.running():
    try:
        for _ in epochs():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
    except ranks.RankLostError as error:
        print(error)
"""


def test_a_rank_that_is_told_to_end_between_two_epochs_says_where(tmp_path: Path) -> None:
    (tmp_path / "between.py").write_text(BETWEEN_EPOCHS)
    _, said = torchrun(tmp_path / "between.py")
    assert said.count("rank lost at step 7: rank") == 2, said


def test_a_job_that_cannot_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "nowhere"}
    for name, value in environment.items():
        monkeypatch.setitem(os.environ, name, value)
    with pytest.raises(RunFailedError, match=r"rank 0 of 2 cannot join the others at localhost:nowhere: .*standalone"):
        ranks.running().__enter__()


def test_a_restart_meets_in_a_part_of_the_store_that_the_start_before_did_not_use() -> None:
    """torchrun hands the store on, with addresses of ranks that are gone; whoever is early must not read them."""
    store = dist.HashStore()
    met: list[list[bytes]] = []
    for _ in range(3):
        with ThreadPoolExecutor(2) as pool:
            early = pool.submit(ranks._fresh, store, 1, 2)
            time.sleep(0.1)
            assert not early.done()
            parts = [pool.submit(ranks._fresh, store, 0, 2).result(timeout=10), early.result(timeout=10)]
        assert not parts[1].check(["address"])
        parts[0].set("address", str(len(met)))
        met.append([part.get("address") for part in parts])
    assert met == [[b"0", b"0"], [b"1", b"1"], [b"2", b"2"]]


def unpicklable(rank: int) -> list[str]:
    """Ranks exchange JSON and tensors; what is neither is an error on all ranks, and they stay together."""
    said = []
    with unittest.mock.patch("pickle.dumps", side_effect=AssertionError("pickled")):
        assert ranks.objects({"rank": rank, "loss": float("inf"), "é": [None, True]})[rank]["loss"] == float("inf")
        try:
            ranks.first(object)
        except Exception as error:
            said.append(type(error).__name__)
        said.append(ranks.first(lambda: "x" * 100_000)[-1])
    return said


def test_nothing_is_pickled_between_ranks() -> None:
    assert on_two_ranks(unpicklable) == [["TypeError", "x"], ["RunFailedError", "x"]]


def test_no_source_of_ours_exchanges_pickles() -> None:
    source = Path(ranks.__file__).parent
    texts = "".join(path.read_text(encoding="utf-8") for path in source.rglob("*.py"))
    assert not re.search("all_gather_object|broadcast_object_list|gather_object|scatter_object", texts)
