"""A worker from inside: a fresh interpreter that does one kind of work on one item after another.

It and its parent talk through pipes in frames: a length of eight bytes, then a pickle. First comes the work, then the
items. It ends with its parent, however that ended. It has one thread: a second one, though it only waited, would make
all work slower by two to four hundredths, since memory is then handed out under locks.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from importlib import import_module
from io import RawIOBase
from time import monotonic
from typing import Final, Literal, TypeAlias, cast

__all__ = ["ENDING_SIGNALS", "TOO_LARGE", "Telling", "mask", "read_frame", "serve", "skip_to", "write_frame"]

Telling: TypeAlias = Literal["began", "bytes", "done", "lost", "fault"]
"""What a worker tells of: that it has its work, how many bytes it read since, how an item ended, or its own fault.

A result comes with the bytes that are untold yet.
"""

_Work: TypeAlias = Callable[[object, Callable[[int], None]], object]

ENDING_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)})
_LENGTH: Final = 8
_SMALL: Final = 64 * 1024
"""Bytes up to which a frame is put together before it is written."""
_MOST_BEFORE: Final = 64 * 1024
"""Bytes that may be printed before a worker's first word."""
_SILENCE: Final = 0.1
"""Seconds for which a worker says nothing of the bytes it reads: who is told is interrupted in other work."""
_LOOK_EVERY: Final = 0.5
"""Seconds after which a worker looks whether its parent is still there."""
TOO_LARGE: Final = "it took more memory than there is"


class _ParentGone(BaseException):
    """Nobody is left to tell anything to."""


def mask(how: str, signals: Iterable[int]) -> set[int]:
    """Hold signals back or let them through, and return what was held back before; nothing where no system can."""
    if not hasattr(signal, "pthread_sigmask"):
        return set()
    return set(map(int, signal.pthread_sigmask(getattr(signal, how), signals)))


def write_frame(pipe: RawIOBase, payload: bytes) -> None:
    """Write one frame, and wait until the other side has taken all but what the pipe holds.

    Raises:
        OSError: the other side is no more.
    """
    length = len(payload).to_bytes(_LENGTH, "little")
    for part in (length + payload,) if len(payload) <= _SMALL else (length, payload):
        left = memoryview(part)
        while left:
            left = left[pipe.write(left) or 0 :]


def skip_to(pipe: RawIOBase, mark: str) -> bytes | None:
    """Read on behind a mark, and return what stood before it; None where the other side is no more.

    Raises:
        ValueError: very much came, and no mark.
    """
    before = b""
    while not before.endswith(mark.encode()):
        if len(before) > _MOST_BEFORE:
            message = "no mark"
            raise ValueError(message)
        byte = _read(pipe, 1)
        if byte is None:
            return None
        before += byte
    return before.removesuffix(mark.encode())


def read_frame(pipe: RawIOBase) -> bytearray | None:
    """Return the next frame, None where the other side is no more."""
    length = _read(pipe, _LENGTH)
    return None if length is None else _read(pipe, int.from_bytes(length, "little"))


def _read(pipe: RawIOBase, count: int) -> bytearray | None:
    data = bytearray(count)
    left = memoryview(data)
    while left:
        try:
            got = pipe.readinto(left)
        except OSError:
            return None
        if not got:
            return None
        left = left[got:]
    return data


def serve(module: str, parent: int, mark: str) -> None:
    """Be a worker: an interrupt is the parent's to handle, and a parent that is gone ends it.

    Args:
        module: what the work is made of; loaded while the work is still awaited.
        parent: the number of the process that started this one.
        mark: what is said before the first frame; what came before it was printed by who knows what at the start.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    mask("SIG_UNBLOCK", ENDING_SIGNALS)
    asked, answers = _take_pipes()
    with suppress(_ParentGone):
        with _heard():
            answers.write(mark.encode())
        import_module(module)
        work = cast("_Work", _next(asked))
        _tell(answers, "began", None)
        _work_on(work, asked, answers)


def _end_with(parent: int) -> None:
    """End this process soon after its parent, also in the middle of work.

    Where the system has no such clock it ends when it next has something to tell, at the latest of its item's end.
    """
    if not hasattr(signal, "setitimer"):
        return

    def look(number: int, frame: object) -> None:
        del number, frame
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_EVERY, _LOOK_EVERY)


def _take_pipes() -> tuple[RawIOBase, RawIOBase]:
    """Keep the pipes for the parent alone: what work prints goes where its errors go, and it has nothing to read."""
    try:
        os.fstat(2)
    except OSError:  # closed: what is opened next would take its place
        os.open(os.devnull, os.O_RDWR)
    asked, answers = (os.fdopen(os.dup(stream), mode, buffering=0) for stream, mode in ((0, "rb"), (1, "wb")))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(2, 1)
    os.close(nowhere)
    return cast("RawIOBase", asked), cast("RawIOBase", answers)


def _next(asked: RawIOBase) -> object:
    frame = read_frame(asked)
    if frame is None:
        raise _ParentGone
    return pickle.loads(frame)  # noqa: S301


def _work_on(work: _Work, asked: RawIOBase, answers: RawIOBase) -> None:
    untold = 0
    told = monotonic()

    def on_bytes(count: int) -> None:
        nonlocal untold, told
        untold += count
        now = monotonic()
        if now - told >= _SILENCE:
            _tell(answers, "bytes", untold)
            untold, told = 0, now

    while True:
        try:
            result = work(_next(asked), on_bytes)
            _tell(answers, "done", (untold, result))
            del result  # before the next one comes to be
            untold = 0
        except MemoryError:
            _tell(answers, "lost", TOO_LARGE)
        except Exception:  # noqa: BLE001
            _tell(answers, "fault", _trace())


def _trace() -> str:
    import traceback

    return traceback.format_exc()


def _tell(answers: RawIOBase, what: Telling, content: object) -> None:
    payload = pickle.dumps((what, content), pickle.HIGHEST_PROTOCOL)
    with _heard():
        write_frame(answers, payload)


@contextmanager
def _heard() -> Generator[None]:
    try:
        yield
    except OSError:
        raise _ParentGone from None
