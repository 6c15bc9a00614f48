"""Expectations: what must show, and that nothing else may."""

from __future__ import annotations

import pytest

from tests.analysis.regress.conftest import Good
from tests.analysis.regress.known_good import found, verdict

HEAD = '[check]\nsessions = ["good"]\nbaseline = false\n'


def expect(session: str, events: str, more: str = "") -> str:
    return f'[[check.expect]]\nsession = "{session}"\nevents = {events}\n{more}\n'


def test_an_empty_list_means_that_none_may_show(good: Good) -> None:
    result = verdict(good.folder, HEAD + expect("*", "[]"))
    assert result.outcome == "failed"
    assert {rule for rule, _ in found(result)} == {"expectation/unexpected"}
    first = result.failures[0]
    assert first.places[0].stage == "warn"
    assert "no event may show" in first.message
    quiet = [session for session in result.sessions if not session.row.replay.events]
    assert quiet
    assert not any(session.fails for session in quiet)


@pytest.mark.parametrize(
    ("events", "more", "rules"),
    [
        ('["warn"]', "", []),
        ('["warn host:*"]', "", []),
        ('[{ stage = "warn", measure = "host:rows*", count = 7, times = 1 }]', "", []),
        ('[{ measure = "host:*" }]', "", []),
        ('[{ stage = "warn", count = 8 }]', "", ["expectation/unexpected", "expectation/missing"]),
        ('[{ stage = "warn", count = 8 }]', "others = true", ["expectation/missing"]),
        ('[{ stage = "warn", times = 2 }]', "", ["expectation/times"]),
        ('["warn", "gate"]', "", ["expectation/missing"]),
        ('["gate"]', "", ["expectation/unexpected", "expectation/missing"]),
        ("[]", "others = true", []),
    ],
)
def test_stages_measures_and_counts(good: Good, events: str, more: str, rules: list[str]) -> None:
    first = good.ids[0]
    result = verdict(good.folder, HEAD + expect(first, events, more))
    assert [rule for rule, _ in found(result)] == rules


def test_of_several_the_last_that_matches_holds(good: Good) -> None:
    first = good.ids[0]
    text = HEAD + expect("*", "[]", "others = true") + expect(first, '["gate"]', "others = true")
    assert found(verdict(good.folder, text)) == [("expectation/missing", first)]
    assert (
        found(verdict(good.folder, text + expect("good", '["warn"]', "others = true")))[0][0] == "expectation/missing"
    )


def test_a_glob_that_matches_no_session_is_not_enough(good: Good) -> None:
    result = verdict(good.folder, HEAD + expect("nobody*", "[]"))
    assert result.outcome == "not-enough"
    assert result.shortages[0].message == "no session matches the expectation 'nobody*' (breaker.toml:4)"


def test_a_session_that_cannot_be_read_fails_what_is_expected_of_it(good: Good) -> None:
    first = good.ids[0]
    next((good.folder / "good" / first).iterdir()).write_bytes(b"{}\n")
    result = verdict(good.folder, HEAD + expect(f"good/{first}", "[]"))
    assert found(result) == [("expectation/unreadable", first)]
