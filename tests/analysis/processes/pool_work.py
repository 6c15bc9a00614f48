"""Work for the pool's tests, importable by its workers."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

POISON = -1
TOO_LARGE = -2
BROKEN = -3
SLOW = -4
LONG = -5


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


@dataclass(frozen=True)
class Noted:
    """Works on numbers, and notes in a folder what is begun and what is running; a fault happens once only."""

    folder: Path

    def __call__(self, item: int, on_bytes: Callable[[int], None]) -> tuple[int, int]:
        """Return the number, and for one begun again how many others are running, for SLOW how many are begun; or 0."""
        running = self.folder / f"{os.getpid()}.running"
        running.touch()
        others = [path for path in self.folder.glob("*.running") if path != running and _lives(int(path.stem))]
        with (self.folder / "begun").open("a") as begun:
            begun.write(f"{item}\n")
        first = self._begun().count(item) == 1
        if first and item == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        if first and item == TOO_LARGE:
            running.unlink()
            raise MemoryError
        if item == SLOW:
            self._wait_until_nothing_is_begun()
        if item == LONG:
            self._wait_for_another_try()
        running.unlink()
        return item, len(self._begun()) if item == SLOW else 0 if first else len(others)

    def _begun(self) -> list[int]:
        return [int(word) for word in (self.folder / "begun").read_text().split()]

    def _wait_until_nothing_is_begun(self) -> None:
        begun = 0
        while (now := len(self._begun())) != begun:
            begun = now
            time.sleep(1)

    def _wait_for_another_try(self) -> None:
        end = time.monotonic() + 3
        while self._begun().count(POISON) + self._begun().count(TOO_LARGE) < 2 and time.monotonic() < end:
            time.sleep(0.01)


def children() -> set[int]:
    """Return the processes this one has started that still run."""
    found: set[int] = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, *_ = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.add(int(status.parent.name))
    return found


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


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


@dataclass(frozen=True)
class Killed:
    """Work whose first receivers are killed, each before it has begun."""

    folder: Path
    receivers: int

    def __call__(self, item: int, on_bytes: Callable[[int], None]) -> int:
        """Return the item."""
        return item

    def __reduce__(self) -> tuple[object, tuple[Path, int]]:
        """Be killed where it arrives."""
        return arrive, (self.folder, self.receivers)


def arrive(folder: Path, receivers: int) -> Killed:
    """Arrive in a worker, if not too early."""
    with (folder / "arrived").open("a") as arrived:
        arrived.write("here\n")
    if len((folder / "arrived").read_text().split()) <= receivers:
        os.kill(os.getpid(), signal.SIGKILL)
    return Killed(folder, receivers)


def killed_again(folder: Path) -> KilledAgain:
    """Be killed if somebody arrived twice before."""
    with (folder / "arrived").open("a") as arrived:
        arrived.write("here\n")
    if len((folder / "arrived").read_text().split()) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return KilledAgain(folder)


@dataclass(frozen=True)
class KilledAgain:
    """Work on numbers that is killed by POISON once, and then the process that would try it again as it starts."""

    folder: Path

    def __call__(self, item: int, on_bytes: Callable[[int], None]) -> int:
        """Return the number."""
        if item == POISON and not (self.folder / "poisoned").exists():
            (self.folder / "poisoned").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        """Arrive in a worker."""
        return killed_again, (self.folder,)


def talking(item: int, on_bytes: Callable[[int], None]) -> tuple[int, str, list[str]]:
    """Say something on the way, and return what there was to read, and the arguments."""
    print(f"at {item}", flush=True)
    return item, sys.stdin.read(), sys.argv


def as_many_bytes(item: int, on_bytes: Callable[[int], None]) -> bytes:
    """Return as many bytes as the number says."""
    return b"x" * item


def named(item: int, on_bytes: Callable[[int], None]) -> int:
    """Return the number of the process."""
    return os.getpid()


def leaving_another(item: int, on_bytes: Callable[[int], None]) -> int:
    """Leave a process behind that holds all this one has open, and return its number."""
    child = os.fork()
    if not child:
        time.sleep(1000)
    return child


class Counted:
    """A result that tells how many of its kind are there."""

    there = 0

    def __init__(self) -> None:
        Counted.there += 1

    def __del__(self) -> None:
        Counted.there -= 1

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Arrive as a number."""
        return int, (Counted.there,)


def counted(item: int, on_bytes: Callable[[int], None]) -> Counted:
    """Return a result that tells how many are there when it is sent."""
    return Counted()


def flags(item: int, on_bytes: Callable[[int], None]) -> tuple[int, ...]:
    """Return what the interpreter was told."""
    return sys.flags.optimize, sys.flags.dont_write_bytecode, sys.flags.utf8_mode, sys.flags.no_user_site


class TooLargeToSend:
    """A result for which there is no memory once it is to be sent."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        """Have no memory."""
        raise MemoryError


def made_too_large(item: int, on_bytes: Callable[[int], None]) -> object:
    """Return the number, or what cannot be sent."""
    return TooLargeToSend() if item == TOO_LARGE else item


def unsendable_result(item: int, on_bytes: Callable[[int], None]) -> object:
    """Return what cannot be sent."""
    return sys.stdin


def working_for_ever(item: int, on_bytes: Callable[[int], None]) -> int:
    """Tell of nothing, and never end."""
    while True:
        item += 1
