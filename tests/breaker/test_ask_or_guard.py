"""Asking and deciding in one step comes to what the two steps come to, whatever went before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from breaker.engine import Ask, Breaker, Decision
from breaker.failure import Failure
from breaker.measures import MeasuredCall
from breaker.rulesets import DEFAULT_RULESET
from breaker.settings import Settings

FAILED = Failure("exit", "1")
COMMANDS = st.sampled_from([None, "ls", "curl https://a.com/x"])
CALLS = st.builds(
    MeasuredCall,
    name=st.just("bash"),
    measures=st.lists(st.sampled_from(["exact:e", "cmd:c", "cmd:d", "host:h", "verb:v"]), max_size=4).map(tuple),
    tracked=st.booleans() | st.just(True),
    local=st.just(False),
    command=COMMANDS,
)
STEPS = st.lists(st.tuples(CALLS, st.sampled_from(["approve", "decline", "turn"]), st.booleans()), max_size=25)
CAPS = st.integers(2, 4) | st.none()
CONFIGS: st.SearchStrategy[dict[str, object]] = st.fixed_dictionaries(
    {
        "limits": st.fixed_dictionaries({"exact": CAPS, "cmd": CAPS, "host": st.just(3)}),
        "onLimit": st.sampled_from(["ask", "deny"]),
        "failLimit": st.integers(2, 3) | st.none(),
        "warnAt": st.integers(2, 3),
        "window": st.integers(4, 6),
    }
)


def in_two_steps(guard: Breaker, call: MeasuredCall) -> Ask | Decision:
    return guard.ask(call) or guard.guard(call)


@given(CONFIGS, STEPS, st.booleans())
def test_one_step_comes_to_the_same_as_two(
    config: dict[str, object], steps: list[tuple[MeasuredCall, str, bool]], shell_http: bool
) -> None:
    settings = Settings.from_config(config)
    one, two = (Breaker(settings, DEFAULT_RULESET, shell_http=shell_http) for _ in range(2))
    for call, reply, fails in steps:
        if reply == "turn":
            one.turn()
            two.turn()
        answer = one.ask_or_guard(call)
        assert answer == in_two_steps(two, call)
        for guard in (one, two):
            decision = answer
            if isinstance(decision, Ask):
                decision = guard.guard(call, decision) if reply == "approve" else guard.decline(call, decision)
            if not decision.withheld:
                guard.settle(call, FAILED if fails else None)
        assert one.window_contents == two.window_contents
        assert (one.streaks(call), one.commits) == (two.streaks(call), two.commits)


def test_every_answer_is_met() -> None:
    settings = Settings.from_config({"limits": {"exact": 2}})
    call = MeasuredCall("bash", ("exact:e",), tracked=True, local=False, command="curl https://a.com/x")
    plain, refusing = Breaker(settings), Breaker(settings, shell_http=True)
    assert plain.ask_or_guard(call) == Decision(action="allow")
    question = plain.ask_or_guard(call)
    assert isinstance(question, Ask)
    assert [hit.measure for hit in question.blocking] == ["exact:e"]
    plain.decline(call, question)
    denied = plain.ask_or_guard(call)
    assert isinstance(denied, Decision)
    assert (denied.action, denied.refused) == ("deny", True)
    assert refusing.ask_or_guard(call) == Decision(action="deny-shell-http", shell_http=True)
