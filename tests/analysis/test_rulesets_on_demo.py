"""Replaying another release changes exactly the sessions planted for the difference."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from analysis import ReplayPlan, replay_corpus
from analysis.documents import JsonObject, replay_document
from analysis.synth import Truth, write_corpus
from breaker import RULESETS, Settings


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, write_corpus(folder, "demo")


def sessions_under(folder: Path, ruleset: str) -> dict[str, JsonObject]:
    rules = RULESETS[ruleset]
    plan = ReplayPlan(settings=Settings.from_config({}, rules), ruleset=rules, policy="observe", keep_events=True)
    corpus = replay_corpus([folder], plan)
    document = replay_document(corpus, events=True)
    return {str(row["id"]): row for row in cast("list[JsonObject]", document["sessions"])}


@pytest.mark.parametrize(
    ("older", "newer", "planted"),
    [
        ("0.5.0", "0.5.2", {"text-rules", "endpoint-guesser"}),
        ("0.5.2", "0.5.3", {"write-out-probes", "endpoint-guesser"}),
        ("0.8.7", "0.8", {"write-out-probes", "endpoint-guesser"}),
        ("0.5.2", "0.6.1", {"odd-urls"}),
        ("0.8.3", "0.8.7", set[str]()),
    ],
)
def test_two_rulesets_differ_in_exactly_the_sessions_planted_for_it(
    demo: tuple[Path, Truth], older: str, newer: str, planted: set[str]
) -> None:
    folder, truth = demo
    names = {session.id: session.name for session in truth.sessions}
    before, after = sessions_under(folder, older), sessions_under(folder, newer)
    assert before.keys() == after.keys() == names.keys()
    assert {names[session] for session in before if before[session] != after[session]} == planted
