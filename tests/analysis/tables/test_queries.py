"""The queries of the documentation, run over the tables of the demo corpus."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, cast

import duckdb
import polars as pl
import pytest

from analysis.synth import write_corpus
from tests.analysis.tables.exports import Gathered

QUERIES = Path(__file__).parents[3] / "docs" / "queries.md"
FENCED = re.compile(r"^```(sql|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Gathered:
    corpus = tmp_path_factory.mktemp("demo")
    write_corpus(corpus, "demo")
    return Gathered(corpus, privacy="shape")


@pytest.fixture(scope="module")
def tables(demo: Gathered, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out")
    demo.export(out)
    return out


def answers(tables: Path, number: int) -> list[tuple[Any, ...]]:
    """Run the query of that number inside the folder of the tables."""
    kind, text = cast("list[tuple[str, str]]", FENCED.findall(QUERIES.read_text(encoding="utf-8")))[number - 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tables)
        if kind == "sql":
            return duckdb.connect().execute(text).fetchall()
        names: dict[str, object] = {}
        exec(text, names)  # the documentation's own words
        return cast("pl.DataFrame", names["answer"]).rows()


def test_there_are_five_queries() -> None:
    assert [kind for kind, _ in FENCED.findall(QUERIES.read_text(encoding="utf-8"))] == ["sql"] * 3 + ["python"] * 2


def test_failures_by_tool_add_up_to_those_of_the_replay(tables: Path, demo: Gathered) -> None:
    totals = demo.corpus.totals
    rows = answers(tables, 1)
    assert sum(row[1] for row in rows) == totals.settled
    assert sum(row[2] for row in rows) == totals.outcomes["failed"] > 0
    assert sum(row[3] for row in rows) == totals.failed_text_only > 0
    assert all(row[4] == round(row[2] / row[1], 3) for row in rows)


def test_sessions_a_limit_would_touch_are_those_whose_measures_peak_there(tables: Path, demo: Gathered) -> None:
    reached: set[tuple[str, int, int]] = set()
    for row in demo.rows("measures"):
        for limit in (6, 8, 12, 16):
            if (row["peak"] or 0) >= limit:
                reached.add((row["kind"], limit, row["session_index"]))
    rows = answers(tables, 2)
    assert {(kind, limit): sessions for kind, limit, sessions in rows if sessions} == Counter(
        (kind, limit) for kind, limit, _ in reached
    )


def test_what_sessions_did_after_their_first_gate_is_the_first_trip(tables: Path, demo: Gathered) -> None:
    gated = [row for row in demo.corpus.sessions if "gate" in row.replay.first_trips]
    rows = answers(tables, 3)
    assert {row[0]: row[2:7] for row in rows} == {
        row.session_id: (
            row.replay.first_trips["gate"].call,
            row.replay.calls,
            row.replay.first_trips["gate"].calls_after,
            row.replay.first_trips["gate"].seconds_after,
            row.replay.first_trips["gate"].tokens_after,
        )
        for row in gated
    }
    assert len(rows) == len(gated) > 0


def test_turns_with_many_failures_come_worst_first(tables: Path, demo: Gathered) -> None:
    rows = answers(tables, 4)
    wanted = [row for row in demo.rows("turns") if row["failed"] >= 3]
    assert len(rows) == len(wanted) > 0
    assert [row[3] for row in rows] == sorted((row["failed"] for row in wanted), reverse=True)


def test_measures_that_stop_good_calls_account_for_every_false_rejection(tables: Path, demo: Gathered) -> None:
    rows = answers(tables, 5)
    assert sum(row[2] for row in rows) == demo.corpus.totals.false_rejections > 0
