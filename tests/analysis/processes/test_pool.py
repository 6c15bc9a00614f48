"""Work in several processes: order, dead workers, faults, interrupts."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from io import RawIOBase
from pathlib import Path
from subprocess import Popen
from threading import Thread, get_ident

import pytest

from analysis.processes.pool import Lost, WorkerFault, is_sendable, run_files
from analysis.processes.serving import read_frame
from analysis.processes.worker import workers_ahead
from tests.analysis.processes.pool_work import (
    BROKEN,
    LONG,
    POISON,
    SLOW,
    TOO_LARGE,
    Killed,
    KilledAgain,
    Noted,
    Unsendable,
    as_many_bytes,
    children,
    counted,
    leaving_another,
    made_too_large,
    named,
    squared,
    talking,
    unsendable_result,
)


def run(items: list[int], *, jobs: int = 2, told: list[int] | None = None) -> list[object]:
    sizes = [abs(item) for item in items]
    heard = told if told is not None else []
    return list(run_files(items, squared, sizes=sizes, jobs=jobs, on_bytes=heard.append))


def test_results_come_in_the_order_of_the_items_whatever_their_size() -> None:
    told: list[int] = []
    items = [5, 1, 9, 2, 7, 3]
    assert run(items, told=told) == [25, 1, 81, 4, 49, 9]
    assert sum(told) == len(items) * 1024 * 1024


def test_more_workers_than_items_do_no_harm() -> None:
    assert run([3], jobs=8) == [9]
    assert run([], jobs=2) == []


def noted(folder: Path, items: list[int], *, sizes: list[int] | None = None, jobs: int = 2) -> list[object]:
    given = sizes or [1] * len(items)
    return list(run_files(items, Noted(folder), sizes=given, jobs=jobs, on_bytes=lambda count: None))


def begun(folder: Path) -> list[int]:
    """Return the items in the order they were begun, those begun again twice."""
    return [int(word) for word in (folder / "begun").read_text().split()]


# Order


def test_the_largest_at_hand_is_begun_first(tmp_path: Path) -> None:
    items = list(range(40))
    assert noted(tmp_path, items, sizes=items, jobs=1) == [(item, 0) for item in items]
    assert begun(tmp_path) == [*range(31, -1, -1), *range(39, 31, -1)]


def test_a_large_part_of_the_whole_is_begun_early_wherever_it_stands(tmp_path: Path) -> None:
    items = list(range(100))
    sizes = [1] * 99 + [20]
    assert noted(tmp_path, items, sizes=sizes, jobs=1) == [(item, 0) for item in items]
    assert begun(tmp_path) == [99, *range(99)]


def test_results_that_wait_for_an_earlier_one_are_bounded_in_number(tmp_path: Path) -> None:
    items = [SLOW, *range(1, 200)]
    assert noted(tmp_path, items) == [(SLOW, 63), *((item, 0) for item in items[1:])]


def test_results_that_wait_for_an_earlier_one_are_bounded_in_bytes_of_files(tmp_path: Path) -> None:
    items = [SLOW, *range(1, 40)]
    assert noted(tmp_path, items, sizes=[10 << 20] * 40) == [(SLOW, 13), *((item, 0) for item in items[1:])]


def test_large_files_that_were_done_early_widen_no_bound(tmp_path: Path) -> None:
    items = [1, 2, SLOW, *range(10, 49)]
    sizes = [140 << 20, 900 << 20, *[10 << 20] * 40]
    results = noted(tmp_path, items, sizes=sizes)
    assert results == [(1, 0), (2, 0), (SLOW, 15), *((item, 0) for item in items[3:])]


# Workers that die


def test_a_killed_worker_costs_its_item_and_no_other() -> None:
    assert run([1, POISON, 3, POISON, 5, 6]) == [
        1,
        Lost("the process that read it died (killed by SIGKILL)"),
        9,
        Lost("the process that read it died (killed by SIGKILL)"),
        25,
        36,
    ]


def test_an_item_too_large_for_the_memory_is_lost_alone() -> None:
    assert run([2, TOO_LARGE, 4]) == [4, Lost("it took more memory than there is"), 16]


def test_a_result_too_large_for_the_memory_is_lost_alone() -> None:
    results = run_files([2, TOO_LARGE, 4], made_too_large, sizes=[1, 1, 1], jobs=2, on_bytes=lambda count: None)
    assert list(results) == [2, Lost("it took more memory than there is"), 4]


def test_poison_everywhere_comes_to_an_end() -> None:
    assert run([POISON] * 5, jobs=3) == [Lost("the process that read it died (killed by SIGKILL)")] * 5


@pytest.mark.parametrize("fault", [POISON, TOO_LARGE])
def test_what_ended_a_worker_once_is_tried_again_alone_and_counts(tmp_path: Path, fault: int) -> None:
    items = [LONG, fault, 1, 2]
    assert noted(tmp_path, items) == [(item, 0) for item in items]
    assert sorted(begun(tmp_path)) == sorted([*items, fault])


def test_a_worker_killed_while_it_starts_costs_nothing(tmp_path: Path) -> None:
    results = run_files([1, 2, 3], Killed(tmp_path, 2), sizes=[1, 1, 1], jobs=2, on_bytes=lambda count: None)
    assert list(results) == [1, 2, 3]


def test_workers_that_are_killed_whenever_they_start_are_a_fault(tmp_path: Path) -> None:
    with pytest.raises(WorkerFault, match=r"cannot be started \(killed by SIGKILL\)"):
        list(run_files([1, 2, 3], Killed(tmp_path, 99), sizes=[1, 1, 1], jobs=2, on_bytes=lambda count: None))
    assert children() == set()


def test_a_worker_killed_while_it_starts_to_try_something_again_costs_nothing(tmp_path: Path) -> None:
    work = KilledAgain(tmp_path)
    results = run_files([1, POISON, 3, 4], work, sizes=[1] * 4, jobs=2, on_bytes=lambda count: None)
    assert list(results) == [1, POISON, 3, 4]
    assert len((tmp_path / "arrived").read_text().split()) > 3


def test_a_worker_killed_while_it_waits_for_work_costs_nothing() -> None:
    before = children()
    results = run_files([1, 2, 3, 4], squared, sizes=[4, 3, 2, 1], jobs=1, on_bytes=lambda count: None)
    assert next(results) == 1
    (worker,) = children() - before
    os.kill(worker, signal.SIGKILL)
    while worker in children():
        time.sleep(0.01)
    assert list(results) == [4, 9, 16]


def test_a_fault_that_is_no_input_s_is_raised_with_its_traceback() -> None:
    with pytest.raises(WorkerFault, match="not for anybody's input"):
        run([1, BROKEN])


def test_a_result_that_cannot_be_sent_is_a_fault() -> None:
    with pytest.raises(WorkerFault, match="pickle"):
        list(run_files([1, 2], unsendable_result, sizes=[1, 1], jobs=2, on_bytes=lambda count: None))


def test_closing_the_iterator_ends_every_worker() -> None:
    results = run_files([1, SLOW, SLOW], squared, sizes=[9, 1, 1], jobs=3, on_bytes=lambda count: None)
    assert next(results) == 1
    results.close()
    assert children() == set()


def test_workers_that_cannot_start_are_a_fault_and_no_loss_of_files(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorkerFault, match="cannot be started"):
        list(run_files([1, 2, 3], Unsendable(), sizes=[1, 1, 1], jobs=2, on_bytes=lambda count: None))
    assert 0 < capfd.readouterr().err.count("cannot arrive") <= 2


# What a worker is


def test_what_work_prints_is_an_error_s_place_and_there_is_nothing_to_read(capfd: pytest.CaptureFixture[str]) -> None:
    results = run_files([1, 2], talking, sizes=[1, 1], jobs=1, on_bytes=lambda count: None)
    assert list(results) == [(1, "", ["-c"]), (2, "", ["-c"])]
    assert capfd.readouterr() == ("", "at 1\nat 2\n")


def test_a_worker_holds_one_result_at_a_time() -> None:
    results = run_files([1, 2, 3], counted, sizes=[1] * 3, jobs=1, on_bytes=lambda count: None)
    assert list(results) == [1, 1, 1]


def test_a_worker_runs_as_its_parent_does() -> None:
    code = (
        "from analysis.processes.pool import run_files\n"
        "from tests.analysis.processes.pool_work import flags\n"
        "print(*run_files([1], flags, sizes=[1], jobs=1, on_bytes=print))\n"
    )
    told = [sys.executable, "-OO", "-B", "-s", "-Xutf8", "-c", code]
    assert subprocess.run(told, capture_output=True, text=True, check=True).stdout == "(2, 1, 1, 1)\n"


def test_a_result_there_is_no_memory_to_hear_is_lost_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(pipe: RawIOBase) -> bytearray | None:
        frame = read_frame(pipe)
        if frame is not None and len(frame) > 1000:
            raise MemoryError
        return frame

    monkeypatch.setattr("analysis.processes.worker.read_frame", no_memory)
    results = run_files([1, 5000, 3], as_many_bytes, sizes=[1] * 3, jobs=2, on_bytes=lambda count: None)
    assert list(results) == [b"x", Lost("it took more memory than there is"), b"xxx"]


def test_an_interrupt_while_a_worker_is_started_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while signals are held back, and is felt where the worker is known already."""

    def interrupted(command: list[str], *, stdin: int, stdout: int, bufsize: int) -> Popen[bytes]:
        started = Popen(command, stdin=stdin, stdout=stdout, bufsize=bufsize)
        signal.pthread_kill(get_ident(), signal.SIGINT)
        return started

    monkeypatch.setattr("analysis.processes.worker.Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([1, 2, 3])
    assert children() == set()
    with pytest.raises(KeyboardInterrupt), workers_ahead("tests.analysis.processes.pool_work", 2):
        raise AssertionError
    assert children() == set()


def test_where_no_thread_can_be_had_that_is_told_and_no_worker_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(self: Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr("analysis.processes.worker.Thread.start", none_left)
    with pytest.raises(WorkerFault, match=r"cannot be started \(can't start new thread\)"):
        run([1, 2, 3])
    assert children() == set()


def test_a_worker_killed_while_it_waits_to_try_something_again_costs_nothing(tmp_path: Path) -> None:
    """The item that ended a worker waits until nobody works; the fresh worker dies meanwhile."""
    before = children()
    results = run_files([LONG, POISON], Noted(tmp_path), sizes=[1, 1], jobs=2, on_bytes=lambda count: None)
    killer = Thread(target=kill_the_idle, args=(tmp_path, before))
    killer.start()
    assert list(results) == [(LONG, 0), (POISON, 0)]
    killer.join()
    assert begun(tmp_path).count(POISON) == 2


def kill_the_idle(folder: Path, before: set[int]) -> None:
    """Kill the worker that was started in the place of one, once it waits."""
    while not (folder / "begun").exists() or POISON not in begun(folder):
        time.sleep(0.01)
    busy = {int(path.stem) for path in folder.glob("*.running")}
    while not (idle := children() - before - busy):
        time.sleep(0.01)
    time.sleep(0.5)
    os.kill(idle.pop(), signal.SIGKILL)


def test_what_work_leaves_running_keeps_nobody_waiting() -> None:
    (child,) = run_files([1], leaving_another, sizes=[1], jobs=1, on_bytes=lambda count: None)
    assert isinstance(child, int)
    os.kill(child, signal.SIGKILL)  # it is there still


def test_what_is_printed_before_a_worker_begins_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('welcome to', __name__)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run([1, 2, 3]) == [1, 4, 9]
    out, err = capfd.readouterr()
    assert (out, set(err.splitlines())) == ("", {"welcome to sitecustomize"})


def test_a_worker_that_never_comes_to_its_first_word_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('x' * 100_000, flush=True)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(WorkerFault, match="cannot be started"):
        run([1, 2, 3])
    assert children() == set()


def test_with_its_errors_closed_work_prints_nowhere() -> None:
    code = (
        "import os; os.close(2)\n"
        "from analysis.processes.pool import run_files\n"
        "from tests.analysis.processes.pool_work import talking\n"
        "print(*run_files([1, 2], talking, sizes=[1, 1], jobs=1, on_bytes=print))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "(1, '', ['-c']) (2, '', ['-c'])\n"


def test_where_fewer_processes_can_be_had_fewer_work(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def two_at_most(command: list[str], *, stdin: int, stdout: int, bufsize: int) -> Popen[bytes]:
        if len(started) == 2:
            raise OSError(errno.EMFILE, "Too many open files")
        started.append(command)
        return Popen(command, stdin=stdin, stdout=stdout, bufsize=bufsize)

    monkeypatch.setattr("analysis.processes.worker.Popen", two_at_most)
    assert run([1, 2, 3, 4], jobs=4) == [1, 4, 9, 16]
    assert len(started) == 2


class OfThisProgram:
    """What only the program that runs knows."""


def test_what_only_the_running_program_knows_cannot_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_sendable(squared)
    monkeypatch.setattr(OfThisProgram, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "OfThisProgram", OfThisProgram, raising=False)
    assert not is_sendable(OfThisProgram())


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 3_000_000])
def test_results_of_every_size_arrive(size: int) -> None:
    results = run_files([size] * 3, as_many_bytes, sizes=[1] * 3, jobs=2, on_bytes=lambda count: None)
    assert list(results) == [b"x" * size] * 3


# Workers that were started ahead


def test_workers_that_were_started_ahead_do_the_work() -> None:
    with workers_ahead("tests.analysis.processes.pool_work", 2):
        ready = children()
        assert len(ready) == 2
        results = run_files([1, 2, 3, 4], named, sizes=[1] * 4, jobs=2, on_bytes=lambda count: None)
        assert set(results) <= ready
    assert children() == set()


def test_more_are_started_where_fewer_were_than_wanted_and_others_stay_for_other_work() -> None:
    with workers_ahead("tests.analysis.processes.pool_work", 1), workers_ahead("analysis.reading", 1):
        ready = children()
        results = run_files([LONG, LONG], named, sizes=[1] * 2, jobs=2, on_bytes=lambda count: None)
        next(results)
        assert len(children() - ready) == 1
        results.close()
        assert len(children()) == 1
    assert children() == set()


def test_workers_nobody_needs_are_ended_also_after_a_fault() -> None:
    with pytest.raises(KeyboardInterrupt), workers_ahead("tests.analysis.processes.pool_work", 2):
        raise KeyboardInterrupt
    assert children() == set()


def test_a_worker_that_was_started_ahead_and_died_costs_nothing() -> None:
    with workers_ahead("tests.analysis.processes.pool_work", 2):
        os.kill(min(children()), signal.SIGKILL)
        assert run([1, 2, 3]) == [1, 4, 9]


def test_where_no_process_can_be_had_ahead_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with workers_ahead("tests.analysis.processes.pool_work", 2):
        assert children() == set()
    with pytest.raises(WorkerFault, match="cannot be started \\(No such file or directory\\)"):
        run([1, 2])


# What is left


def test_workers_end_with_their_parent_also_in_the_middle_of_work() -> None:
    code = (
        "import os, signal, time\n"
        "from analysis.processes.pool import run_files\n"
        "from tests.analysis.processes.pool_work import children\n"
        "from tests.analysis.processes.pool_work import working_for_ever\n"
        "from threading import Thread\n"
        "def die():\n"
        "    while len(children()) < 2: time.sleep(0.01)\n"
        "    print(*children(), flush=True)\n"
        "    time.sleep(1)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Thread(target=die).start()\n"
        "list(run_files([1, 2], working_for_ever, sizes=[1, 1], jobs=2, on_bytes=print))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGKILL, "")
    workers = [Path("/proc", pid) for pid in done.stdout.split()]
    assert len(workers) == 2
    end = time.monotonic() + 60
    while any(worker.exists() for worker in workers):
        assert time.monotonic() < end
        time.sleep(0.01)
