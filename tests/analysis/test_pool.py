"""Work in several processes: order, dead workers, faults, interrupts."""

from __future__ import annotations

import multiprocessing

import pytest

from analysis.pool import Lost, WorkerFault, run_files
from tests.analysis.pool_work import BROKEN, POISON, SLOW, TOO_LARGE, Unsendable, squared


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


def test_a_fault_that_is_no_input_s_is_raised_with_its_traceback() -> None:
    with pytest.raises(WorkerFault, match="not for anybody's input"):
        run([1, BROKEN])


def test_closing_the_iterator_ends_every_worker() -> None:
    results = run_files([1, SLOW, SLOW], squared, sizes=[9, 1, 1], jobs=3, on_bytes=lambda count: None)
    assert next(results) == 1
    results.close()
    assert multiprocessing.active_children() == []


def test_workers_that_cannot_start_are_a_fault_and_no_loss_of_files(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WorkerFault, match="cannot be started"):
        list(run_files([1, 2, 3], Unsendable(), sizes=[1, 1, 1], jobs=2, on_bytes=lambda count: None))
    assert "cannot arrive" in capfd.readouterr().err
