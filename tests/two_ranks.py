"""Two processes that speak by gloo, started once and shared by all tests of what happens over ranks."""

import atexit
import importlib.util
import inspect
import io
import multiprocessing.connection
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import forked


def on_two_ranks(work: Callable[..., Any], *arguments: Any, seconds: float = 120.0) -> list[Any]:
    """What ``work(rank, *arguments)``, a function at the top of its file, returns on each of two ranks."""
    pool = _Pool.current()
    try:
        return pool.run(work, arguments, seconds)
    except BaseException:
        pool.stop()  # the other rank may be waiting for ever
        raise


class _Pool:
    _shared: "_Pool | None" = None

    @classmethod
    def current(cls) -> "_Pool":
        if cls._shared is not None and not all(process.is_alive() for process in cls._shared.processes):
            cls._shared.stop()  # a test may end a rank, or the system, short of memory
        if cls._shared is None:
            cls._shared = cls()
            atexit.register(cls._shared.stop)
        return cls._shared

    def __init__(self) -> None:
        context = forked.context()
        store = tempfile.mkdtemp(prefix="two-ranks-")
        self.pipes: list[multiprocessing.connection.Connection] = []
        self.processes = []
        for rank in range(2):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, f"{store}/store", theirs), daemon=True)
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.processes.append(process)

    def run(self, work: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> list[Any]:
        for pipe in self.pipes:
            pipe.send_bytes(_packed((inspect.getsourcefile(work), work.__qualname__, arguments)))
        results: dict[int, Any] = {}
        while len(results) < 2:
            waiting = [pipe for rank, pipe in enumerate(self.pipes) if rank not in results]
            ready = multiprocessing.connection.wait(waiting, timeout=seconds)
            if not ready:
                raise TimeoutError(f"ranks {sorted({0, 1} - set(results))} did not answer within {seconds} s")
            for pipe in ready:
                rank = self.pipes.index(pipe)  # type: ignore[arg-type]
                fine, value = _unpacked(pipe.recv_bytes())  # type: ignore[union-attr]
                if not fine:
                    raise AssertionError(f"rank {rank}:\n{value}")
                results[rank] = value
        return [results[0], results[1]]

    def stop(self) -> None:
        type(self)._shared = None
        for process in self.processes:
            process.kill()
            process.join()


def _serve(rank: int, store: str, pipe: multiprocessing.connection.Connection) -> None:
    torch.set_num_threads(1)
    sys.path.insert(0, str(Path(__file__).parent))
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    while True:
        try:
            file, name, arguments = _unpacked(pipe.recv_bytes())
        except EOFError:
            return
        try:
            answer = (True, getattr(_module(file), name)(rank, *arguments))
        except BaseException:
            answer = (False, traceback.format_exc())
        pipe.send_bytes(_packed(answer))


def _module(file: str) -> Any:
    name = "on_ranks_" + "_".join(Path(file).with_suffix("").parts[-2:])
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _packed(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _unpacked(content: bytes) -> Any:
    return torch.load(io.BytesIO(content), weights_only=False)
