"""Waivers: what they cover, and that they end."""

from __future__ import annotations

from datetime import date

import pytest

from analysis.regress.reports.words import counts_line
from tests.analysis.regress.conftest import Good
from tests.analysis.regress.known_good import found, verdict
from tests.analysis.regress.test_baseline import approve, document, rewrite

EXPIRES = date(2026, 6, 30)


def waiver(target: str, *, stage: str = "") -> str:
    staged = f'stage = "{stage}"\n' if stage else ""
    return f'[[check.waiver]]\n{target}\n{staged}reason = "known"\nexpires = {EXPIRES}\n'


def limits(limit: str) -> str:
    return f'limits.host = 8\n[check]\nsessions = ["good"]\nbaseline = false\n[check.limits]\n{limit}\n'


@pytest.mark.parametrize("target", ['measure = "host:*"', 'session = "good"', 'measure = "host:rows.*"\nsession = "*"'])
@pytest.mark.parametrize("limit", ["gate = 0", "sessions_gated = 0", "false_rejections = 0", "denials = 0", "asks = 0"])
def test_what_is_waived_counts_for_no_limit(good: Good, target: str, limit: str) -> None:
    assert found(verdict(good.folder, limits(limit)))
    result = verdict(good.folder, limits(limit) + waiver(target, stage="gate"), today=EXPIRES)
    assert result.outcome == "passed"
    assert result.waivers[0].covered > 0


def test_it_holds_through_its_last_day_and_fails_after_it(good: Good) -> None:
    text = limits("gate = 0") + waiver('measure = "host:*"')
    assert verdict(good.folder, text, today=EXPIRES).outcome == "passed"
    result = verdict(good.folder, text, today=date(2026, 7, 1))
    assert [rule for rule, _ in found(result)] == ["limit", "waiver/expired"]
    assert "expired on 2026-06-30" in result.failures[1].message


@pytest.mark.parametrize("target", ['measure = "net:*"', 'session = "nobody"'])
def test_an_unused_one_fails(good: Good, target: str) -> None:
    result = verdict(good.folder, limits("gate = 100") + waiver(target))
    assert [rule for rule, _ in found(result)] == ["waiver/unused"]


def test_another_stage_is_not_covered(good: Good) -> None:
    result = verdict(good.folder, limits("gate = 0") + waiver('measure = "host:*"', stage="summarize"))
    assert [rule for rule, _ in found(result)] == ["limit", "waiver/unused"]


def test_it_covers_what_no_expectation_names(good: Good) -> None:
    first = good.ids[0]
    text = f'[check]\nsessions = ["good"]\nbaseline = false\n[[check.expect]]\nsession = "{first}"\nevents = []\n'
    assert found(verdict(good.folder, text))
    assert verdict(good.folder, text + waiver(f'session = "{first}"', stage="warn")).outcome == "passed"


def test_it_covers_differences_from_the_baseline_and_tells_them(good: Good) -> None:
    text = '[check]\nsessions = ["good"]\nbaseline = "base.json"\n'
    approve(good.folder, text)
    changed = document(good.folder)
    changed["sessions"][good.ids[0]]["events"] = {}
    rewrite(good.folder, changed)
    result = verdict(good.folder, text + waiver('measure = "host:*"', stage="warn"))
    assert result.outcome == "passed"
    assert [(one.rule, one.fails) for one in result.findings] == [("baseline/newly-firing", False)]


def test_the_line_of_counts_tells_one_and_several_apart(good: Good) -> None:
    text = limits("gate = 0")
    one = verdict(good.folder, text + waiver('measure = "host:*"'), today=EXPIRES)
    covered = one.waivers[0].covered
    assert f" · 1 of 1 limit holds · no baseline · 1 waiver covers {covered}" in counts_line(one)
    two = verdict(good.folder, text + waiver('measure = "host:*"') + waiver('session = "good"'), today=EXPIRES)
    assert f"2 waivers cover {sum(result.covered for result in two.waivers)}" in counts_line(two)
