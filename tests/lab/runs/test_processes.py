import os

import pytest

from mario.lab.runs.processes import context, one_thread


def test_one_thread_is_for_what_is_started_within(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with one_thread():
        assert [os.environ["OMP_NUM_THREADS"], os.environ["OPENBLAS_NUM_THREADS"]] == ["1", "1"]
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


def test_without_a_fork_server_every_process_is_a_new_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    assert context("mario.errors").get_start_method() == "spawn"
