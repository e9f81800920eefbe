"""The processes (ranks) that train one model together, started by ``torchrun``.

All ranks have to call these functions in the same order, with tensors of the same shape unless stated otherwise. In a
single process all functions are no-ops.
"""

import functools
import json
import os
import re
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed import DistStoreError
from torch.distributed.rendezvous import rendezvous

from mario.errors import MarioError, RunFailedError

T = TypeVar("T")

# How long a rank waits for another. Rank 0 evaluates alone, which may take hours on a large graph; a rank that died is
# noticed at once, as its connections close.
_PATIENCE = timedelta(days=1)
# How long a rank waits for an answer at the rendezvous before it checks whether rank 0 has been restarted.
_ANSWER = timedelta(seconds=1)
# Up to this many ranks and bytes, a sum is a gather.
_FEW, _SHORT = 4, 2**17
# Seconds that this process waits for a message before it sleeps; `running` sets it.
_awake = 0.0
# Where this process is, innermost last; see `telling`.
_places: list[Callable[[], str]] = []
_ENVIRONMENT = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class RankLostError(RunFailedError):
    """Another rank has died: the job cannot continue without it."""

    def __init__(self, detail: str, where: str = "") -> None:
        super().__init__(
            f"rank lost{where and f' {where}'}: {detail}. torchrun --max-restarts resumes from the checkpoint"
        )


def size() -> int:
    """The number of ranks; 1 in a single process.

    Example:
        >>> size(), rank()
        (1, 0)
    """
    return dist.get_world_size() if _joined() else 1


def rank() -> int:
    """The number of this rank, from 0."""
    return dist.get_rank() if _joined() else 0


def sum_(tensor: Tensor) -> Tensor:
    """The sum over all ranks, in place; it carries no gradient."""
    if size() == 1:
        return tensor
    if size() <= _FEW and tensor.numel() * tensor.element_size() <= _SHORT:
        # Every rank receives all parts and adds them in the same order: one exchange, where a reduction takes two.
        return tensor.copy_(stacked(tensor).sum(0))
    same = tensor.detach().contiguous()
    with _noticing_loss():
        _arrive(dist.all_reduce(same, async_op=True))
    if same.data_ptr() != tensor.data_ptr():
        tensor.copy_(same)
    return tensor


def stacked(tensor: Tensor) -> Tensor:
    """The tensors of all ranks, [ranks, \\*shape], without a gradient.

    Example:
        >>> stacked(torch.tensor([1.0, 2.0]))
        tensor([[1., 2.]])
    """
    tensor = tensor.detach()
    if size() == 1:
        return tensor.unsqueeze(0)
    out = tensor.new_empty((size(), *tensor.shape))
    with _noticing_loss():
        _arrive(dist.all_gather(list(out.unbind()), tensor.contiguous(), async_op=True))
    return out


def rows(z: Tensor, counts: list[int] | None = None) -> Tensor:
    """The rows of all ranks, in the order of ranks; their numbers of rows may differ. Without a gradient.

    ``counts``, the number of rows of each rank, saves one exchange if it is known.
    """
    z = z.detach()
    if size() == 1:
        return z
    counts = row_counts(z.size(0)) if counts is None else counts
    padded = z.new_zeros((max(counts), *z.shape[1:]))
    padded[: z.size(0)] = z
    return torch.cat([part[:count] for part, count in zip(stacked(padded), counts, strict=True)])


def row_counts(count: int) -> list[int]:
    """``count`` of every rank."""
    return [count] if size() == 1 else stacked(torch.tensor([count], device=_device())).view(-1).tolist()


def objects(value: T) -> list[T]:
    """The values of all ranks; any value that JSON has. Nothing is pickled."""
    if size() == 1:
        return [value]
    own = _bytes(json.dumps(value))
    counts = row_counts(own.numel())
    return [json.loads(_text(part)) for part in rows(own, counts).split(counts)]


def first(work: Callable[[], T]) -> T:
    """The result of ``work``, which runs on rank 0 only; an error there is raised on all ranks.

    The result is a value that JSON has. Of errors, the name of the type and the message are sent: a `MarioError` or a
    `RunFailedError` is raised as such on the other ranks, any other as a `RunFailedError`.
    """
    if size() == 1:
        return work()
    failure: Exception | None = None
    message = torch.empty(0, dtype=torch.uint8, device=_device())
    if rank() == 0:
        try:
            message = _bytes(json.dumps({"value": work()}))
        except Exception as error:
            failure = error
            known = type(error) in (MarioError, RunFailedError)
            told = [type(error).__name__, str(error)] if known else ["RunFailedError", repr(error)]
            message = _bytes(json.dumps({"error": told}))
    length = torch.tensor([message.numel()], device=_device())
    equalize_([length])
    if rank():
        message = message.new_empty(int(length))
    equalize_([message])
    if failure is not None:
        raise failure
    outcome = json.loads(_text(message))
    if "error" in outcome:
        kind, said = outcome["error"]
        raise (MarioError if kind == "MarioError" else RunFailedError)(said)
    value: T = outcome["value"]
    return value


@torch.no_grad()
def equalize_(tensors: Iterable[Tensor]) -> None:
    """Give all ranks the values of rank 0, in place, with one message per dtype."""
    if size() == 1:
        return
    by_type: dict[torch.dtype, list[Tensor]] = {}
    for tensor in tensors:
        by_type.setdefault(tensor.dtype, []).append(tensor)
    for group in by_type.values():
        buffer = torch.cat([tensor.detach().reshape(-1).to(_device()) for tensor in group])
        with _noticing_loss():
            dist.broadcast(buffer, src=0)
        for tensor, part in zip(group, buffer.split([tensor.numel() for tensor in group]), strict=True):
            tensor.copy_(part.view_as(tensor))


@torch.no_grad()
def sum_gradients(parameters: Iterable[nn.Parameter], share: float | None = None, *, sound: bool = True) -> bool:
    """Sum the gradients of ``parameters`` over all ranks, in one message; with a ``share``, their mean by shares.

    A rank without training data has share 0. A parameter that has a gradient on some ranks gets the sum on all; one
    without any keeps none. Returns whether ``sound``, sent in the same message, was true on all ranks.
    """
    every = list(parameters)
    if size() == 1 or not every:
        return sound
    dtype = functools.reduce(torch.promote_types, (p.dtype for p in every), torch.float32)
    facts = [not sound, 1.0 if share is None else share, *(p.grad is not None for p in every)]
    told = torch.tensor(facts, dtype=dtype, device=every[0].device)
    by = 1.0 if share is None else share
    parts = [torch.zeros_like(p) if p.grad is None else p.grad * by for p in every]
    buffer = sum_(torch.cat([told, *(part.reshape(-1).to(dtype) for part in parts)]))
    unsound, shares, *held = buffer[: told.numel()].tolist()
    buffer = buffer[told.numel() :].div_(1.0 if share is None or not shares else shares)
    for p, part, anywhere in zip(every, buffer.split([p.numel() for p in every]), held, strict=True):
        if anywhere:
            p.grad = part.view_as(p).to(p.dtype)
    return not unsound


@contextmanager
def running(device: str = "auto", *, awake: float = 0.0) -> Iterator[None]:
    """Join the other ranks that ``torchrun`` started, and leave them at the end; without ``torchrun`` a no-op.

    With GPUs, unless ``device`` is ``cpu``, ranks use nccl and the GPU of their local rank; otherwise gloo.

    Args:
        device: ``auto``, ``cpu`` or ``cuda``.
        awake: Seconds to wait for a message of another rank with the core kept busy, before sleeping. A core that
            sleeps between two messages of a step wakes up late, up to milliseconds on a virtual machine. For processes
            that have their core to themselves, such as ``mario run``.

    Example:
        >>> with running():
        ...     size()
        1
    """
    global _awake
    if _joined() or any(name not in os.environ for name in _ENVIRONMENT) or os.environ["WORLD_SIZE"] == "1":
        yield
        return
    on_gpu = device != "cpu" and torch.cuda.is_available()
    if on_gpu:
        local = int(os.environ.get("LOCAL_RANK", "0"))
        if local >= torch.cuda.device_count():
            raise MarioError(
                f"there are {torch.cuda.device_count()} GPUs here and this is local rank {local}: "
                "start as many ranks per machine as it has GPUs, or use --device cpu"
            )
        torch.cuda.set_device(local)
    try:
        store, rank_, size_ = next(rendezvous("env://", timeout=_PATIENCE))
        dist.init_process_group(
            "nccl" if on_gpu else "gloo",
            store=_fresh(store, rank_, size_),
            rank=rank_,
            world_size=size_,
            timeout=_PATIENCE,
        )
    except (RuntimeError, ValueError) as error:
        rank_, size_, address, port = (os.environ[name] for name in _ENVIRONMENT)
        raise RunFailedError(
            f"rank {rank_} of {size_} cannot join the others at {address}:{port}: {_line(error)}. "
            f"On one machine, torchrun --standalone --nproc-per-node {size_} finds a free port"
        ) from error
    _awake = awake
    try:
        with _ending_in_words():
            yield
    except BaseException:
        if not on_gpu:  # nccl would wait for the ranks that died
            dist.destroy_process_group()
        raise
    finally:
        _awake = 0.0
    dist.destroy_process_group()


@contextmanager
def telling(where: Callable[[], str]) -> Iterator[None]:
    """Add ``where`` it was noticed, such as "at step 7", to the error for a lost rank; also while a generator waits."""
    _places.append(where)
    try:
        yield
    finally:
        _places.remove(where)


def _lost(detail: str) -> RankLostError:
    """The error for a lost rank. One message is enough: torchrun's signal is ignored from now on.

    It may come at any moment, and must not replace this error while the process cleans up.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return RankLostError(f"rank {rank()} of {size()} {detail}", _places[-1]() if _places else "")


def _end(*_: object) -> None:
    raise _lost("was told to end, as torchrun does when another has failed")


@contextmanager
def _ending_in_words() -> Iterator[None]:
    """Turn torchrun's termination signal, which may come before a lost rank is noticed, into the same error."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    except BaseException:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this process is ending, and one message is enough
        raise
    signal.signal(signal.SIGTERM, before)


def _fresh(store: Store, rank_: int, size_: int) -> Store:
    """A part of ``store`` that no earlier start of the same job has written to.

    After a restart torchrun may pass on the store of the start before, with the addresses of ranks that are gone. Rank
    0 names a new part, the others announce themselves in it, and rank 0 answers each of them. A name from an earlier
    start gets no answer, so the rank looks for a new one.
    """
    me = uuid.uuid4().hex
    if rank_ == 0:
        store.set("mario/part", me)
        announced = [f"mario/{me}/{other}" for other in range(1, size_)]
        store.wait(announced, _PATIENCE)
        for key in announced:
            store.set(f"mario/{me}/{store.get(key).decode()}", "")
        return PrefixStore(f"mario/{me}", store)
    while True:
        store.wait(["mario/part"], _PATIENCE)
        part = store.get("mario/part").decode()
        store.set(f"mario/{part}/{rank_}", me)
        with suppress(DistStoreError):
            store.wait([f"mario/{part}/{me}"], _ANSWER)
            return PrefixStore(f"mario/{part}", store)


def _joined() -> bool:
    return dist.is_available() and dist.is_initialized()


def _device() -> torch.device:
    """The device of tensors that are sent to other ranks."""
    if _joined() and dist.get_backend() == "nccl":
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).to(_device())


def _text(message: Tensor) -> str:
    return message.cpu().numpy().tobytes().decode()


def _arrive(message: dist.Work) -> None:
    """Wait for ``message``. The GPU waits for those of nccl while this process goes on."""
    if _awake and dist.get_backend() == "gloo":
        until = time.monotonic() + _awake
        while not message.is_completed() and time.monotonic() < until:
            os.sched_yield()
    message.wait()


@contextmanager
def _noticing_loss() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo's own errors have no type of their own
        raise _lost(f"lost the connection to another ({_line(error)})") from error


def _line(error: Exception) -> str:
    """The message of an error, without the location in gloo's source and its advice."""
    said = re.sub(r"^\[[^]]*\] ", "", (str(error).strip() or type(error).__name__).splitlines()[0])
    return said.split(". ")[0]
