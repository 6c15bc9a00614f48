"""Most results are plain, and are decided without a look at what can only be elsewhere: that must change nothing."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.sessions import outcomes
from analysis.sessions.events import ResultEvent
from analysis.sessions.outcomes import CallSigns, outcome_of
from breaker.measures import Call
from breaker.rulesets import RULESETS, Ruleset

WORDS = st.sampled_from(
    [
        *("", " ", "done", "404", ")", "</NOTE>", "[exit code: 2]", "[exit code: 0]", "[killed by signal: 9]"),
        *("(HTTP 503)", "HTTP Error 500: no", "Fetched https://example.com (HTTP 404)", "curl: (7) refused"),
        *("Traceback (most recent call last)", "ValueError: no", "started background job 3"),
        "[still running after 9ms; moved to background job 3]",
        "(Omitted 9 bytes. Full formatted result stored at: /tmp/x)",
        "<response clipped><NOTE>cut</NOTE>",
    ]
)
TEXTS = st.lists(WORDS, max_size=4).map("\n".join)
META = st.sampled_from([{}, {"exitCode": 3}, {"statusCode": 500}, {"opsShell": {"exitCode": 4}}, {"bytes": 7}])
CALLS = st.sampled_from(
    [
        Call("bash", {"command": "make"}),
        Call("bash", {"command": "curl -s -w '%{http_code}' https://example.com"}),
        Call("read", {"path": "a"}),
        Call("web_fetch", {"url": "https://example.com"}),
    ]
)


def result(texts: list[str], meta: dict[str, object]) -> ResultEvent:
    return ResultEvent("c", "m", False, 1, 1, False, None, False, meta, tuple(texts))


@given(CALLS, st.lists(TEXTS, min_size=1, max_size=2), META, st.sampled_from(list(RULESETS.values())))
def test_the_short_way_comes_to_the_same(
    call: Call, texts: list[str], meta: dict[str, object], ruleset: Ruleset
) -> None:
    settled = result(texts, meta)
    short = outcome_of(call, CallSigns(), settled, ruleset)
    with (
        patch.object(outcomes, "_is_plainly_fine", return_value=False),
        patch.object(outcomes, "_is_bare_output", return_value=False),
    ):
        assert outcome_of(call, CallSigns(), settled, ruleset) == short


@pytest.mark.parametrize(("name", "text"), [("read", "whole"), ("bash", "built\n"), ("bash", "")])
def test_plain_results_do_go_the_short_way(name: str, text: str) -> None:
    with patch.object(outcomes, "_of_the_body", side_effect=AssertionError):
        outcome = outcome_of(Call(name, {}), CallSigns(), result([text], {}), RULESETS["0.8.7"])
    assert outcome.kind == "ok"
