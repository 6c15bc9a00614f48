"""Choosing: requirements, weights, and the say of too little evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.sweep import Choosing, Sweep, SweepError, parse_objective, parse_requirement, refuse_contradictions
from analysis.sweep.front import FEWEST_STUCK, Front, find_front
from analysis.synth import Truth
from tests.analysis.sweep.corpora import swept


def front_of(sweep: Sweep, *requirements: str, objective: str = "") -> Front:
    weights = parse_objective([objective]) if objective else {}
    return find_front(sweep.rows, sweep.labels, Choosing(tuple(map(parse_requirement, requirements)), weights))


def chosen(sweep: Sweep, front: Front) -> tuple[int | None, int | None]:
    assert front.recommended is not None
    settings = sweep.plan.configs[front.recommended].settings
    return settings.warn_at, settings.fail_warn_at


def test_the_recommendation_gives_its_reasons_with_intervals(sweep: Sweep) -> None:
    front = sweep.front
    assert chosen(sweep, front) == (9, 3)
    assert "catches 16 of 16 stuck sessions (95 % interval 81% to 100%)" in front.why
    assert "touches 0 of 24 good ones (95 % interval 0% to 14%)" in front.why
    assert "--cv" in front.why


def test_a_requirement_is_kept_even_where_the_front_prefers_another(sweep: Sweep) -> None:
    front = front_of(sweep, "messages<=12")
    assert front.recommended is not None
    values = sweep.rows[front.recommended].values
    assert values["messages"] is not None
    assert values["messages"] <= 12
    assert "keeps to messages<=12" in front.why


def test_a_share_of_the_sessions(sweep: Sweep) -> None:
    front = front_of(sweep, "good_touched>=50%")
    assert front.recommended is not None
    touched = sweep.rows[front.recommended].values["good_touched"]
    assert touched is not None
    assert touched >= 12


def test_weights_decide(sweep: Sweep) -> None:
    assert chosen(sweep, front_of(sweep, objective="stuck_caught=10,good_touched=1,messages=0.01")) == (9, 3)
    quiet = front_of(sweep, objective="messages=1")
    assert quiet.recommended is not None
    least = min(row.values["messages"] or 0 for row in sweep.rows)
    assert sweep.rows[quiet.recommended].values["messages"] == least
    assert f"the least weighted cost, {least:g} = 1 x messages" in quiet.why


@pytest.mark.parametrize(
    ("requirements", "told"),
    [
        (("good_gated>=1",), "no configuration keeps to good_gated>=1: the nearest has 0"),
        (("good_touched<=0", "stuck_caught<=1"), "no configuration keeps to stuck_caught<=1"),
        (
            ("gate_calls<999", "stuck_caught=16", "messages<=13"),
            "keeps to stuck_caught=16 (31 configurations) and mess",
        ),
    ],
)
def test_requirements_nothing_keeps_to_are_named(sweep: Sweep, requirements: tuple[str, ...], told: str) -> None:
    front = front_of(sweep, *requirements)
    assert front.recommended is None
    assert told in (front.lacking or "")


@pytest.mark.parametrize(
    ("one", "other"),
    [("good_gated=0", "good_gated>=1"), ("messages<5", "messages>5"), ("messages=4", "messages=5")],
)
def test_requirements_that_contradict_each_other_are_named(one: str, other: str) -> None:
    with pytest.raises(SweepError, match=r"contradict each other") as fault:
        refuse_contradictions([parse_requirement(one), parse_requirement(other)])
    assert one in str(fault.value)
    assert other in str(fault.value)


@pytest.mark.parametrize(
    ("one", "other"),
    [("messages<=5", "messages>=5"), ("messages>3", "messages<9"), ("messages=5", "asks=6"), ("asks<9", "asks<3")],
)
def test_requirements_that_go_together_pass(one: str, other: str) -> None:
    refuse_contradictions([parse_requirement(one), parse_requirement(other)])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("good_gate=0", "did you mean good_gated?"),
        ("good_gated", "must be METRIC=NUMBER"),
        ("good_gated=x", "must be METRIC=NUMBER"),
        ("messages<=5%", "counts no sessions"),
    ],
)
def test_a_requirement_that_is_none(text: str, told: str) -> None:
    with pytest.raises(SweepError) as fault:
        parse_requirement(text)
    assert told in str(fault.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mesages=1", "did you mean messages?"),
        ("messages=0", "must be a number above 0"),
        ("messages=nan", "must be a number above 0"),
        ("messages", "must be a number above 0"),
        ("messages=1,messages=2", "given twice"),
    ],
)
def test_a_weight_that_is_none(text: str, told: str) -> None:
    with pytest.raises(SweepError) as fault:
        parse_objective([text])
    assert told in str(fault.value)


def test_too_few_sessions_say_how_many_are_missing(planted: tuple[Path, Truth]) -> None:
    folder, truth = planted
    good = [one for one in truth.sessions if one.label == "good"]
    stuck = [one for one in truth.sessions if one.label == "stuck"]
    few = swept(folder, [*good[:7], *stuck[:1]]).front
    assert (few.recommended, few.leading is None) == (None, False)
    assert "12 more sessions labelled good are needed (7 of 19" in few.why
    assert "3 more labelled stuck are needed (1 of 4: catching all of them would leave a true rate of 21%" in few.why
    enough = swept(folder, [*good[:19], *stuck[:FEWEST_STUCK]]).front
    assert enough.recommended is not None
    lenient = swept(folder, [*good[:7], *stuck[:FEWEST_STUCK]], choosing=Choosing(alpha=0.2)).front
    assert lenient.recommended is not None
