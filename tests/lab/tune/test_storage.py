"""Where trials are kept, and what is said when that cannot be reached."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest
import sqlalchemy.exc

from mario.errors import MarioError, RunFailedError
from mario.lab.tune import storage as tune_storage
from mario.lab.tune.storage import open_storage, storage_url, without_password


def open_at(url: str) -> optuna.storages.RDBStorage:
    return open_storage(url, heartbeat=10, lost=lambda study, trial: None)


def test_a_file_is_made_with_its_folder(tmp_path: Path) -> None:
    url = storage_url(tmp_path / "deep" / "down" / "trials.db")
    open_at(url).create_new_study([optuna.study.StudyDirection.MAXIMIZE], "mine")
    assert (tmp_path / "deep" / "down" / "trials.db").exists()
    assert [study.study_name for study in open_at(url).get_all_studies()] == ["mine"]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host:5/db", "postgresql://me@host:5/db"),
        ("postgresql://me:sec@ret:x@host/db?password=secret", "postgresql://me@host/db"),
        ("postgresql://host/db", "postgresql://host/db"),
        ("postgresql://me:SEC?RET@h/db", "postgresql://***"),
        ("postgresql://me:SEC#RET@h/db", "postgresql://***"),
        ("postgresql://me:SEC/RET@h/db", "postgresql://me@h/db"),
        ("postgresql://me@h/db?password=SEC@RET", "postgresql://***"),
        ("postgresql://me:SECRET/db", "postgresql://***"),
        ("postgresql://SECRET@@h/db", "postgresql://***"),
        ("sqlite:////tmp/me@home/a.db", "sqlite:////tmp/me@home/a.db"),
        ("sqlite:////tmp/a.db", "sqlite:////tmp/a.db"),
    ],
)
def test_no_password_is_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_database_that_cannot_be_reached_is_named_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refuse(url: str, **_: object) -> None:
        tried.append(url)
        cause = Exception("connection refused for me:secret\nIs the server running?")
        raise sqlalchemy.exc.OperationalError("select", {}, cause)

    monkeypatch.setattr(tune_storage, "Storage", refuse)
    monkeypatch.setattr(tune_storage.time, "sleep", lambda seconds: None)
    with pytest.raises(RunFailedError) as told:
        open_at("postgresql+psycopg://me:secret@127.0.0.1:1/db")
    assert str(told.value) == (
        "cannot reach the storage postgresql+psycopg://me@127.0.0.1:1/db: connection refused for me:***"
    )
    assert len(tried) == tune_storage.ATTEMPTS, "two workers that both make the tables: the second tries again"


@pytest.mark.parametrize("secret", ["SEC?RET", "SEC@RET", "SEC#RET", "SEC/RET", "SEC%3FRET", "SEC:RET"])
@pytest.mark.parametrize("form", ["postgresql://me:{}@127.0.0.1:1/db", "postgresql://h/db?password={}"])
def test_no_part_of_a_password_is_said(secret: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, **_: object) -> None:
        raise sqlalchemy.exc.OperationalError("select", {}, Exception(f"cannot reach {url}, that is {secret}"))

    url = storage_url(form.format(secret))
    monkeypatch.setattr(tune_storage.time, "sleep", lambda seconds: None)
    for pretended in (True, False):
        if pretended:
            monkeypatch.setattr(tune_storage, "Storage", refuse)
        else:
            monkeypatch.undo()
            monkeypatch.setattr(tune_storage, "ATTEMPTS", 1)
        with pytest.raises(MarioError) as told:
            open_at(url)
        for part in ("SEC", "RET"):
            assert part not in str(told.value)


def test_a_driver_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(url: str, **_: object) -> None:
        raise ImportError("No module named 'psycopg'")

    monkeypatch.setattr(tune_storage, "Storage", missing)
    with pytest.raises(MarioError, match=r"pip install 'mario-gcl\[postgres\]'"):
        open_at("postgresql+psycopg://me:secret@host/db")


def test_what_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(MarioError, match="nosuch://here/db is neither a file nor a database URL"):
        open_at("nosuch://here/db")
    (tmp_path / "file").write_text("x" * 2000)
    with pytest.raises(RunFailedError, match=r"cannot reach the storage .*file: file is not a database"):
        open_at(storage_url(tmp_path / "file"))
    with pytest.raises(RunFailedError, match="cannot reach the storage"):
        open_at(storage_url(tmp_path / "file" / "below.db"))


def test_a_file_has_all_tables_or_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trials.db"
    (tmp_path / ".trials.db.1f.part-journal").write_text("of a process that was killed")
    replace, seen = os.replace, []

    def look(part: str, name: Path) -> None:
        with closing(sqlite3.connect(part)) as database:
            made = database.execute("select name from sqlite_master where sql like 'CREATE UNIQUE INDEX%'").fetchall()
            seen.append((name, ("ix_studies_study_name",) in made, path.exists()))
        replace(part, name)

    monkeypatch.setattr("os.replace", look)
    open_at(storage_url(path))
    assert seen == [(path, True, False)]
    assert sorted(file.name for file in tmp_path.iterdir()) == [".trials.db.lock", "trials.db"]


def test_a_heartbeat_that_fails_is_followed_by_another(tmp_path: Path) -> None:
    storage = open_at(storage_url(tmp_path / "trials.db"))
    study = storage.create_new_study([optuna.study.StudyDirection.MAXIMIZE], "mine")
    trial = storage.create_new_trial(study)
    with closing(sqlite3.connect(tmp_path / "trials.db")) as database:
        database.execute("alter table trial_user_attributes rename to hidden")
        storage.record_heartbeat(trial)
        database.execute("alter table hidden rename to trial_user_attributes")
    assert "worker" not in storage.get_trial(trial).user_attrs
    storage.record_heartbeat(trial)
    assert storage.get_trial(trial).user_attrs["worker"].endswith(f" {os.getpid()}")


def test_a_worker_signs_a_trial_with_its_first_sign_of_life(tmp_path: Path) -> None:
    storage = open_at(storage_url(tmp_path / "trials.db"))
    study = storage.create_new_study([optuna.study.StudyDirection.MAXIMIZE], "mine")
    trial, ended = storage.create_new_trial(study), storage.create_new_trial(study)
    assert "worker" not in storage.get_trial(trial).user_attrs
    storage.record_heartbeat(trial)
    assert storage.get_trial(trial).user_attrs["worker"].endswith(f" {os.getpid()}")
    storage.set_trial_state_values(ended, optuna.trial.TrialState.FAIL)
    storage.record_heartbeat(ended)
    assert "worker" not in storage.get_trial(ended).user_attrs
