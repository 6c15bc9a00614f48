"""The engine's smaller promises: its words, what a caller may look at, and the shell-HTTP policy in a guard."""

from __future__ import annotations

import pytest

from breaker.engine import Breaker, Decision, Hit
from breaker.failure import Failure
from breaker.kinds import measure_rank
from breaker.measures import Call
from breaker.rulesets import DEFAULT_RULESET, RULESETS
from breaker.settings import Settings

CURL = Call("bash", {"command": "curl https://a.example/"})
LIST = Call("bash", {"command": "ls"})


def guard(*, shell_http: bool = True, ruleset: str = DEFAULT_RULESET.name, **config: object) -> Breaker:
    rules = RULESETS[ruleset]
    return Breaker(Settings.from_config(config, rules), rules, shell_http=shell_http)


def test_a_decision_says_only_what_it_is_given() -> None:
    decision = Decision(action="allow")
    assert (decision.hits, decision.blocking, decision.advisory) == ((), (), None)
    assert (decision.refused, decision.shell_http, decision.withheld) == (False, False, False)
    assert all(Decision(action=action).withheld for action in ("deny", "ask-declined", "deny-shell-http"))
    assert not any(Decision(action=action).withheld for action in ("allow", "ask-approved", "observed"))
    assert Hit("exact:a", 2, 2.0, "occurrence").failure is None


def test_a_shell_fetch_is_refused_before_anything_is_counted() -> None:
    breaker = guard()
    call = breaker.measure(CURL)
    decision = breaker.guard(call)
    assert (decision.action, decision.shell_http, decision.withheld) == ("deny-shell-http", True, True)
    assert (decision.hits, decision.blocking) == ((), ())
    assert (breaker.window_records, breaker.commits) == (0, 0)
    assert breaker.guard(breaker.measure(LIST)).action == "allow"


@pytest.mark.parametrize(
    "breaker",
    [guard(shell_http=False), guard(blockShellHttp=False), guard(ruleset="0.5.2"), Breaker()],
    ids=["without its tool", "switched off", "in a release without it", "as it is made"],
)
def test_a_shell_fetch_is_let_through_where_the_policy_is_not_engaged(breaker: Breaker) -> None:
    call = breaker.measure(CURL)
    assert not breaker.refuses_shell_http(call)
    assert breaker.guard(call).action == "allow"


def test_the_policy_can_be_engaged_later_and_looks_at_tracked_shell_calls_only() -> None:
    breaker = guard(shell_http=False, exclude=["pwsh"])
    breaker.engage_shell_http()
    assert breaker.refuses_shell_http(breaker.measure(CURL))
    fetch = breaker.measure(Call("web_fetch", {"url": "https://a.example/"}))
    untracked = breaker.measure(Call("pwsh", {"command": "curl https://a.example/"}))
    assert not breaker.refuses_shell_http(fetch)
    assert not breaker.refuses_shell_http(untracked)
    assert breaker.guard(untracked).action == "allow"


def test_an_approval_that_a_refusal_overtakes_is_lost() -> None:
    breaker = guard(shell_http=False, limits={"cmd": 2, "exact": None, "net": None, "host": None})
    call = breaker.measure(CURL)
    breaker.guard(call)
    ask = breaker.ask(call)
    assert ask is not None
    (hit,) = ask.blocking
    breaker.engage_shell_http()
    decision = breaker.guard(call, ask)
    assert (decision.action, decision.hits, decision.blocking) == ("deny-shell-http", ask.hits, ask.blocking)
    assert breaker.is_refused(hit.measure)
    assert not breaker.is_exempt(hit.measure)


def test_under_observation_a_refusal_is_told_and_the_call_counts() -> None:
    breaker = guard()
    decision = breaker.observe(breaker.measure(CURL))
    assert (decision.action, decision.shell_http, decision.withheld) == ("observed", True, False)
    assert breaker.commits == 1
    calm = breaker.observe(breaker.measure(LIST))
    assert (calm.action, calm.shell_http) == ("allow", False)


def test_what_a_caller_may_look_at() -> None:
    breaker = guard(limits={"cmd": 2, "exact": None})
    call = breaker.measure(LIST)
    assert breaker.window_contents == ()
    breaker.guard(call)
    assert (breaker.window_contents, breaker.commits) == ((call.measures,), 1)
    ask = breaker.ask(call)
    assert ask is not None
    measure = ask.blocking[0].measure
    assert not breaker.is_exempt(measure)
    assert not breaker.is_refused(measure)
    breaker.guard(call, ask)
    assert breaker.is_exempt(measure)
    assert not breaker.is_refused(measure)
    assert (breaker.commits, len(breaker.window_contents)) == (2, 2)
    breaker.turn()
    assert (breaker.commits, breaker.window_contents, breaker.is_exempt(measure)) == (0, (), False)
    breaker.guard(call)
    ask = breaker.ask(call)
    assert ask is not None
    breaker.decline(call, ask)
    assert breaker.is_refused(measure)
    assert not breaker.is_exempt(measure)


def test_a_result_without_text_keeps_the_one_before() -> None:
    breaker = guard()
    call = breaker.measure(LIST)
    breaker.settle(call, None, "first")
    breaker.settle(call, Failure("exit", "1"))
    assert breaker.last_result == "first"
    breaker.turn()
    assert breaker.last_result == ""
    breaker.settle(call, None)
    assert breaker.last_result == ""


def test_a_shell_result_is_classified_by_its_command_and_another_tool_by_none() -> None:
    breaker = guard(ruleset="0.5.3")
    printed = {"content": [{"type": "text", "text": "404"}]}
    status = Call("bash", {"command": "curl -s -o /dev/null -w '%{http_code}' https://a.example/"})
    assert breaker.classify(status, printed).failure == Failure("http", "404", "text")
    assert breaker.classify(LIST, printed).failure is None
    assert breaker.classify(Call("read", {"command": status}), printed).failure is None


def test_the_order_of_kinds_in_ties() -> None:
    kinds = ("host", "net", "site", "sink", "cmd", "exact", "family")
    ranks = [measure_rank(f"{kind}:a") for kind in kinds]
    assert ranks == sorted(set(ranks))
    assert measure_rank("family:a") == measure_rank("verb:a")


@pytest.mark.parametrize("verb", ["curl", "wget", "http", "httpie"])
def test_every_fetching_verb_is_of_one_family(verb: str) -> None:
    measured = guard().measure(Call("bash", {"command": f"{verb} https://a.example/"}))
    assert "family:http-fetch" in measured.measures


@pytest.mark.parametrize(
    "call",
    [
        Call("read", {"path": "/x"}),
        Call("web_fetch", "https://127.0.0.1/"),
        Call("web_fetch", {"url": "no address"}),
        Call("web_fetch", {}),
        LIST,
    ],
    ids=["no fetch", "no object", "no address", "nothing", "a shell"],
)
def test_what_names_no_address_is_not_local(call: Call) -> None:
    assert guard().measure(call).local is False


def test_a_star_takes_any_character_but_a_line_end() -> None:
    breaker = guard(exclude=["mcp*tool"])
    names = ("mcp~tool", "mcp^tool", "mcp]tool", "mcptool", "mcp a tool", "mcp\ntool", "mcp\u2028tool")
    assert [breaker.measurer.is_tracked(name) for name in names] == [False] * 5 + [True] * 2


def test_names_of_ignored_arguments_that_are_no_text_are_passed_over() -> None:
    breaker = guard(ignoreArgs={"*": [["a"], {"b": 1}, 7, "note"]})
    first, second = (breaker.measure(Call("read", {"path": "/x", "note": note})) for note in ("a", "b"))
    assert first.measures == second.measures
