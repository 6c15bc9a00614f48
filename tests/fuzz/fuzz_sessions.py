"""Replay many damaged logs, and hold after each that nothing is raised, hidden or made up.

    python -m tests.fuzz.fuzz_sessions --count 200000 --state fuzz.json

Files are numbered; the same seed and number give the same file. With `--state` a later run goes on where the last one
ended. The work is done in processes of their own, under a limit on memory and a watchdog for each file; what fails is
kept, with its number, and the run goes on.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import msgspec

from tests.fuzz.bases import gather
from tests.fuzz.invariants import ROOMY, TIGHT, hold
from tests.fuzz.mutations import Base, Mutant, mutant

__all__ = ["Figures", "Fuzzer", "main"]

RECORDED = Path(__file__).parents[3] / "shared" / "corpus"
PATIENCE = 20.0
"""Seconds one file may take."""
MEMORY = 1 << 30
"""Bytes of address space a worker may use."""
TIGHT_EVERY = 4
"""Of so many files one is read under limits it runs into."""
RENDER_EVERY = 5
"""Of so many files one is shown as documents, too."""
BATCH = 5000
"""Files one worker process takes."""
SUMMARY = "summary.json"
CURRENT = "current"


@dataclass
class Figures:
    """What a run saw."""

    seed: int = 0
    next: int = 0
    files: int = 0
    input_bytes: int = 0
    kinds: dict[str, int] = field(default_factory=dict[str, int])
    states: dict[str, int] = field(default_factory=dict[str, int])
    faults: list[str] = field(default_factory=list[str])
    longest_seconds: float = 0.0
    longest_file: int = -1
    peak_kilobytes: int = 0
    seconds: float = 0.0

    def add(self, other: Figures) -> None:
        """Add what a worker saw."""
        self.next = max(self.next, other.next)
        self.files += other.files
        self.input_bytes += other.input_bytes
        count(self.kinds, other.kinds)
        count(self.states, other.states)
        self.faults += other.faults
        if other.longest_seconds > self.longest_seconds:
            self.longest_seconds, self.longest_file = other.longest_seconds, other.longest_file
        self.peak_kilobytes = max(self.peak_kilobytes, other.peak_kilobytes)
        self.seconds += other.seconds

    @property
    def text(self) -> str:
        """The figures as JSON."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode()

    @classmethod
    def read(cls, path: Path) -> Figures:
        """Read figures back."""
        return msgspec.json.decode(path.read_bytes(), type=cls)


def count(counts: dict[str, int], added: Mapping[str, int]) -> None:
    """Add counts to counts."""
    for name, more in added.items():
        counts[name] = counts.get(name, 0) + more


class _Noted:
    """Keeps a fault from ending the run."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None


class Fuzzer:
    """Makes mutants and looks at each, in this process."""

    def __init__(self, bases: list[Base], seed: int, work: Path, kept: Path | None = None) -> None:
        self.figures = Figures(seed=seed)
        self._bases = bases
        self._work = work
        self._kept = kept

    def take(self, number: int) -> None:
        """Make the mutant of that number and look at it; a fault is noted, not raised."""
        figures = self.figures
        made = mutant(self._bases, figures.seed, number)
        path = self._work / "--p--" / "session" / made.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.data)
        begun = time.perf_counter()
        state = "fault"
        with _Noted() as noted:
            limits = TIGHT if number % TIGHT_EVERY == 0 else ROOMY
            state = hold(path, limits, render=number % RENDER_EVERY == 0)
        if noted.error is not None:
            self._note(number, made, noted.error)
        path.unlink()
        taken = time.perf_counter() - begun
        if taken > figures.longest_seconds:
            figures.longest_seconds, figures.longest_file = taken, number
        figures.next = number + 1
        figures.files += 1
        figures.input_bytes += len(made.data)
        count(figures.kinds, dict.fromkeys(made.kinds, 1))
        count(figures.states, {state: 1})
        figures.seconds += taken

    def _note(self, number: int, made: Mutant, error: Exception) -> None:
        place = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        self.figures.faults.append(f"{number} [{', '.join(made.kinds)}] {told}")
        if self._kept is not None:
            folder = self._kept / str(number)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / made.name).write_bytes(made.data)
            trace = "".join(traceback.format_exception(error))
            (folder / "traceback.txt").write_text(trace, encoding="utf-8", errors="replace")


def _work(options: argparse.Namespace) -> None:
    """Take a range of numbers under the watchdog and the limit on memory."""
    folder = Path(options.worker)
    bases = gather(RECORDED if RECORDED.is_dir() else None)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    fuzzer = Fuzzer(bases, options.seed, folder, Path(options.kept))
    for number in range(options.start, options.start + options.count):
        (folder / CURRENT).write_text(str(number), encoding="ascii")
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        fuzzer.take(number)
        faulthandler.cancel_dump_traceback_later()
        fuzzer.figures.peak_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if fuzzer.figures.files % 200 == 0 or number == options.start + options.count - 1:
            (folder / SUMMARY).write_text(fuzzer.figures.text, encoding="utf-8")


def _batch(seed: int, start: int, count: int, kept: Path) -> Figures:
    """Let a worker take a range; what it dies of is a fault of the file it was at."""
    with TemporaryDirectory(prefix="fuzz-") as work:
        arguments = ["--seed", str(seed), "--start", str(start), "--count", str(count), "--kept", str(kept)]
        command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, "--worker", work, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        summary = Path(work) / SUMMARY
        figures = Figures.read(summary) if summary.exists() else Figures(seed=seed, next=start)
        if done.returncode:
            number = int((Path(work) / CURRENT).read_text(encoding="ascii"))
            figures.faults.append(f"{number} worker died ({done.returncode}): {done.stderr[-2000:]}")
            figures.next = number + 1
    return figures


def main() -> int:
    """Run as told on the command line; 1 where anything failed."""
    parser = argparse.ArgumentParser(description="Replay many damaged logs.")
    parser.add_argument("--count", type=int, default=10_000, help="How many files.")
    parser.add_argument("--start", type=int, default=0, help="Number of the first.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="Figures so far; the run goes on from there.")
    parser.add_argument("--kept", type=Path, default=Path("fuzz-faults"), help="Folder for files that failed.")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options)
        return 0
    figures = Figures(seed=options.seed, next=options.start)
    if options.state and options.state.exists():
        figures = Figures.read(options.state)
    end = options.start + options.count
    while figures.next < end:
        figures.add(_batch(figures.seed, figures.next, min(BATCH, end - figures.next), options.kept))
        if options.state:
            options.state.write_text(figures.text, encoding="utf-8")
        print(f"{figures.files} files, {len(figures.faults)} faults", file=sys.stderr, flush=True)
    print(figures.text)
    return 1 if figures.faults else 0


if __name__ == "__main__":
    sys.exit(main())
