"""Limits: names, exact numbers, and what they are compared with."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.corpus import replay_corpus
from analysis.regress import number_names
from analysis.regress._numbers import SessionView, View, nearest_number, number_named
from analysis.regress._rules import parse_bound
from analysis.replay import POLICIES, Policy, ReplayPlan
from analysis.synth import write_corpus
from tests.analysis.regress.conftest import Good
from tests.analysis.regress.known_good import found, verdict


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5%", Fraction(1, 20)),
        ("1/20", Fraction(1, 20)),
        (Decimal("0.05"), Fraction(1, 20)),
        (0.05, Fraction(1, 20)),
        ("0.05", Fraction(1, 20)),
        ("2.5 %", Fraction(1, 40)),
        (0, Fraction(0)),
        (1, Fraction(1)),
    ],
)
def test_a_rate_is_read_exactly(written: object, value: Fraction) -> None:
    assert parse_bound(written, "rate") == value


@pytest.mark.parametrize(
    "written",
    [
        True,
        "five",
        "1/0",
        "-1",
        5,
        "500%",
        [],
        {},
        Decimal("NaN"),
        Decimal("Infinity"),
        Decimal("1e999999999"),
        "1" * 99,
    ],
)
def test_what_is_no_rate_is_refused(written: object) -> None:
    assert isinstance(parse_bound(written, "rate"), str)


@pytest.mark.parametrize("written", [True, "5", "5%", Decimal("0.5"), -1, None])
def test_a_count_is_a_whole_number(written: object) -> None:
    assert isinstance(parse_bound(written, "count"), str)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_ratio_and_its_exact_decimal_are_one(part: int, whole: int) -> None:
    part = min(part, whole)
    assert parse_bound(f"{part}/{whole}", "rate") == Fraction(part, whole)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_numbers_are_those_of_a_replay(policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp(policy)
    write_corpus(folder, "demo")
    corpus = replay_corpus([folder], ReplayPlan(policy=policy, keep_events=True))
    view = View(corpus, tuple(SessionView(row, tuple(row.replay.events)) for row in corpus.sessions))
    totals = corpus.totals
    expected = {
        "turns": totals.turns,
        "calls": totals.calls,
        "tracked": totals.tracked,
        "ok": totals.outcomes["ok"],
        "failed": totals.outcomes["failed"],
        "not_run": totals.outcomes["not-run"],
        "settled": totals.settled,
        "asks": totals.asks,
        "denials": totals.denials,
        "false_rejections": totals.false_rejections,
        "sessions_with_false_rejection": totals.sessions_with_false_rejection,
        "sessions": len(corpus.sessions),
        "torn": corpus.read_counts["torn"],
        "sessions_with_streak_3": totals.streaks[3],
        "streaks.5": totals.streaks[5],
        **totals.stages,
        **{f"sessions_by_stage.{stage}": count for stage, count in totals.sessions_by_stage.items()},
        **{
            f"by_kind.{kind}.{stage}": count
            for kind, stages in totals.stages_by_kind.items()
            for stage, count in stages.items()
        },
        **{f"by_kind.{kind}.sessions": count for kind, count in totals.sessions_by_kind.items()},
    }
    measured = {name: number.value(view) for name in expected if (number := number_named(name)) is not None}
    assert measured == expected


def test_every_listed_name_is_known_and_nothing_else() -> None:
    assert all(number_named(name) is not None for name in number_names())
    assert number_named("gates") is None
    assert (nearest_number("gates"), nearest_number("sesions_min")) == ("gate", "sessions_min")


def test_a_bound_that_is_reached_exactly_holds(good: Good) -> None:
    text = '[check]\nsessions = ["good"]\nbaseline = false\n[check.limits]\n'
    rate = {str(one.measured) for one in verdict(good.folder, text + "failure_rate = 1").limits}
    assert len(rate) == 1
    exact = rate.pop()
    assert verdict(good.folder, text + f'failure_rate = "{exact}"').outcome == "passed"
    part, _, whole = exact.partition("/")
    less = f"{int(part) * 10**9 - 1}/{int(whole) * 10**9}"
    result = verdict(good.folder, text + f'failure_rate = "{less}"')
    assert found(result) == [("limit", "failure_rate")]
    assert exact in result.failures[0].message


def test_lower_bounds_and_dotted_names(good: Good) -> None:
    text = '[check]\nsessions = ["good"]\nbaseline = false\n[check.limits]\nsessions_min = 7\nby_kind.host.gate = 0\n'
    result = verdict(good.folder, text)
    assert found(result) == [("limit", "sessions_min")]
    assert result.failures[0].message == "sessions_min is 6, must be at least 7"


def test_a_limit_names_the_sessions_it_fails_for(good: Good) -> None:
    text = 'warnAt = 6\n[check]\nsessions = ["good"]\nbaseline = false\n[check.limits]\nsessions_warned = 0\n'
    failure = verdict(good.folder, text).failures[0]
    assert {place.session for place in failure.places} <= set(good.ids)
    place = failure.places[0]
    assert (place.stage, place.count, place.threshold) == ("warn", 6, 6)
    assert place.explain == f"breaker explain {place.path} --call {place.call} --config breaker.toml"


def test_a_limit_on_labelled_sessions_needs_some(good: Good) -> None:
    text = '[check]\nsessions = ["good"]\nbaseline = false\n[check.limits]\nstuck_caught_min = 1\ngood_touched = 0\n'
    result = verdict(good.folder, text)
    assert result.outcome == "not-enough"
    assert [one.message.split(": ")[1] for one in result.shortages] == [
        "no session is labelled stuck",
        "no session is labelled good",
    ]
