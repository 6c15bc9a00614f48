"""Work for the pool's tests, importable by its workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

POISON = -1
TOO_LARGE = -2
BROKEN = -3
SLOW = -4


def squared(item: int, on_bytes: Callable[[int], None]) -> int:
    """Square a number; some numbers stand for faults."""
    if item == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    if item == TOO_LARGE:
        raise MemoryError
    if item == BROKEN:
        message = "not for anybody's input"
        raise ValueError(message)
    if item == SLOW:
        time.sleep(60)
    on_bytes(1024 * 1024)
    return item * item


class Unsendable:
    """Work that a worker cannot even receive."""

    def __call__(self, item: int, on_bytes: Callable[[int], None]) -> int:
        """Return the item."""
        return item

    def __reduce__(self) -> tuple[object, tuple[()]]:
        """Fail where it arrives."""
        return fail, ()


def fail() -> None:
    """Fail."""
    message = "cannot arrive"
    raise ImportError(message)
