"""A PostgreSQL of our own, which can be killed and started again."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

USER, PASSWORD = "mario", "open-sesame"


def initdb() -> str | None:
    """Where PostgreSQL is installed, if it is."""
    return max(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=shutil.which("initdb"))


class Postgres:
    """A server on loopback with its files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._as_user: list[str] = []
        if os.geteuid() == 0:  # which PostgreSQL refuses to be
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            self._as_user = ["runuser", "-u", "postgres", "--"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "password").write_text(PASSWORD)
        words = ["--username", USER, "--pwfile", str(folder / "password"), "--auth", "scram-sha-256", "--no-sync"]
        self._call("initdb", "--pgdata", str(folder / "data"), *words, "--no-instructions")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}/postgres"

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{PASSWORD}@{self.address}"

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        words = ["--log", str(self.folder / "log"), "--options", options, "--wait", "start"]
        self._call("pg_ctl", "--pgdata", str(self.folder / "data"), *words)

    def stop(self) -> None:
        self._call("pg_ctl", "--pgdata", str(self.folder / "data"), "--mode", "immediate", "--wait", "stop")

    def kill(self) -> None:
        """``kill -9`` of the server and of all its processes."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        others = [pid for pid, parent in _parents().items() if parent == first]
        for pid in (first, *others):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(Path(f"/proc/{pid}").exists() for pid in (first, *others)):
            time.sleep(0.05)

    def _call(self, name: str, *words: str) -> None:
        tool = initdb()
        assert tool is not None
        command = [*self._as_user, str(Path(tool).with_name(name)), *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=120)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"


@contextmanager
def running() -> Iterator[Postgres]:
    """A server that ends with this context."""
    folder = Path(tempfile.mkdtemp(prefix="mario-postgres-", dir="/tmp"))  # one that its user can get to
    try:
        server = Postgres(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            found[int(file.parent.name)] = int(file.read_text().rpartition(")")[2].split()[1])
    return found
