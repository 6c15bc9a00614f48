from __future__ import annotations

from collections.abc import Sequence

import pytest

from breaker.engine import Advisory, Breaker, Decision, FailureAdvisory, Hit, Settlement
from breaker.failure import Failure
from breaker.kinds import measure_rank
from breaker.measures import Call, MeasuredCall
from breaker.rulesets import DEFAULT_RULESET, RULESETS
from breaker.settings import Settings

RULESET = RULESETS["0.5.2"]
FAILED = Failure("exit", "1")
NOT_FOUND = Failure("http", "404")


def shell(command: str) -> Call:
    return Call("bash", {"command": command})


def fetch(url: str) -> Call:
    return Call("web_fetch", {"url": url})


class Agent:
    """One agent under the guard, with an operator who answers every question alike."""

    def __init__(self, *, approves: bool = False, **config: object) -> None:
        self.breaker = Breaker(Settings.from_config(config, RULESET), RULESET)
        self.approves = approves
        self.asked = 0

    def offer(self, call: Call) -> tuple[MeasuredCall, Decision]:
        measured = self.breaker.measure(call)
        ask = self.breaker.ask(measured)
        if ask is None:
            return measured, self.breaker.guard(measured)
        self.asked += 1
        if self.approves:
            return measured, self.breaker.guard(measured, ask)
        return measured, self.breaker.decline(measured, ask)

    def run(self, call: Call, failure: Failure | None = None) -> Decision:
        return self.outcome(call, failure)[0]

    def outcome(self, call: Call, failure: Failure | None = None) -> tuple[Decision, Settlement | None]:
        measured, decision = self.offer(call)
        return decision, None if decision.withheld else self.breaker.settle(measured, failure)


def told(decision: Decision) -> tuple[str, str, int] | None:
    advisory = decision.advisory
    return advisory and (advisory.stage, advisory.measure, advisory.count)


def hits(shown: Sequence[Hit]) -> list[tuple[str, int, float]]:
    return [(hit.measure, hit.count, hit.cap) for hit in shown]


def actions(decisions: Sequence[Decision]) -> list[str]:
    return [decision.action for decision in decisions]


def advisories(decisions: Sequence[Decision]) -> dict[int, tuple[str, str, int] | None]:
    """What was said, by call number from 1."""
    return {number: told(decision) for number, decision in enumerate(decisions, 1) if decision.advisory}


# -- the released guard's traces -----------------------------------------------------------------------------------


def test_fourteen_identical_reads() -> None:
    agent = Agent()
    decisions = [agent.run(Call("read", {"path": "/x"})) for _ in range(14)]
    measure = 'exact:read:{"path":"/x"}'
    assert advisories(decisions) == {7: ("warn", measure, 7), 11: ("summarize", measure, 11)}
    assert actions(decisions) == ["allow"] * 11 + ["ask-declined"] + ["deny"] * 2
    assert [hits(decision.blocking) for decision in decisions[11:]] == [
        [(measure, 12, 12)],
        [(measure, 13, 12)],
        [(measure, 14, 12)],
    ]
    assert [decision.refused for decision in decisions[11:]] == [False, True, True]
    assert agent.asked == 1


def test_two_addresses_of_one_host_in_turns() -> None:
    agent = Agent()
    urls = ["https://a.com/1", "https://a.com/2"]
    decisions = [agent.run(shell(f"curl -s {urls[number % 2]}")) for number in range(20)]
    assert advisories(decisions) == {
        7: ("warn", "host:a.com", 7),
        11: ("summarize", "host:a.com", 11),
        13: ("warn", "net:a.com/1", 7),
        14: ("warn", "net:a.com/2", 7),
    }
    assert actions(decisions) == ["allow"] * 15 + ["ask-declined"] + ["deny"] * 4
    assert [hits(decision.blocking) for decision in decisions[15:]] == [
        [("host:a.com", 16, 16)],
        *([[("host:a.com", 17, 16)]] * 4),
    ]


def test_a_host_that_keeps_failing() -> None:
    agent = Agent()
    outcomes = [agent.outcome(fetch(f"https://a.com/{number}"), NOT_FOUND) for number in range(8)]
    decisions = [decision for decision, _ in outcomes]
    said = [settlement.advisory if settlement else None for _, settlement in outcomes]
    assert said == [None, None, FailureAdvisory("host:a.com", 3, NOT_FOUND), *([None] * 5)]
    assert actions(decisions) == ["allow"] * 5 + ["ask-declined"] + ["deny"] * 2
    assert decisions[5].blocking == (Hit("host:a.com", 5, 5, "failure", NOT_FOUND),)
    assert [decision.refused for decision in decisions[6:]] == [True, True]
    assert agent.run(fetch("https://b.com/")).action == "allow"
    assert agent.breaker.streak("host:a.com") == 5


def test_a_host_that_keeps_failing_and_is_approved() -> None:
    agent = Agent(approves=True)
    decisions = [agent.run(fetch(f"https://a.com/{number}"), NOT_FOUND) for number in range(9)]
    assert actions(decisions) == ["allow"] * 5 + ["ask-approved"] + ["allow"] * 3
    assert hits(decisions[7].hits) == [("host:a.com", 5, 5)]
    assert decisions[7].blocking == ()
    assert (agent.breaker.streak("host:a.com"), agent.asked) == (5, 1)


def test_one_refused_measure_beside_one_that_was_never_asked() -> None:
    agent = Agent()
    for number in range(6):
        agent.run(fetch(f"https://a.com/{number}"), NOT_FOUND)
    assert agent.asked == 1
    for number in range(5):
        agent.run(fetch(f"https://b.com/{number}"), NOT_FOUND)
    both = agent.run(shell("curl https://a.com/x https://b.com/y"))
    assert (both.action, both.refused, agent.asked) == ("deny", False, 1)
    assert hits(both.blocking) == [("host:a.com", 5, 5), ("host:b.com", 5, 5)]
    alone = agent.run(shell("curl https://b.com/z"))
    assert (alone.action, agent.asked) == ("ask-declined", 2)


def test_both_tracks_may_speak_on_one_call() -> None:
    agent = Agent(warnAt=3)
    outcomes = [agent.outcome(shell("false"), FAILED) for _ in range(3)]
    decision, settlement = outcomes[2]
    assert told(decision) == ("warn", "cmd:false:false", 3)
    assert settlement is not None
    assert settlement == Settlement(FAILED, FailureAdvisory("cmd:false:false", 3, FAILED))


def test_an_exempt_measure_speaks_again_as_it_slides_out() -> None:
    agent = Agent(approves=True)
    decisions = [agent.run(shell("ls /x")) for _ in range(40)]
    measure = "cmd:ls:ls /x"
    assert advisories(decisions) == {
        7: ("warn", measure, 7),
        11: ("summarize", measure, 11),
        18: ("summarize", measure, 11),
        22: ("warn", measure, 7),
    }
    assert actions(decisions) == ["allow"] * 11 + ["ask-approved"] + ["allow"] * 28
    assert agent.asked == 1
    assert agent.breaker.next_count(measure) == 1
    assert agent.breaker.next_count("verb:ls") == 17


def test_a_measure_that_hits_on_both_tracks_is_recorded_twice() -> None:
    agent = Agent(onLimit="deny")
    decisions = [agent.run(shell("false"), FAILED) for _ in range(30)]
    assert actions(decisions) == ["allow"] * 5 + ["deny"] * 25
    assert hits(decisions[5].blocking) == [('exact:bash:{"command":"false"}', 5, 5), ("cmd:false:false", 5, 5)]
    counts = [
        next(
            (hit.count for hit in decision.hits if (hit.track, hit.measure) == ("occurrence", "cmd:false:false")), None
        )
        for decision in decisions
    ]
    assert counts == [None] * 11 + [12, 14, 16, 18, 20, *range(22, 33), 33, 33, 33]
    assert decisions[12].blocking[1].track == "failure"
    assert [hit.measure for hit in decisions[12].blocking] == ['exact:bash:{"command":"false"}', "cmd:false:false"] * 2


def test_the_largest_count_without_duplicates_is_the_window_and_one() -> None:
    agent = Agent(onLimit="deny", limits={"exact": None, "cmd": 17})
    decisions = [agent.run(shell("ls")) for _ in range(18)]
    assert actions(decisions) == ["allow"] * 16 + ["deny"] * 2
    assert [hits(decision.hits) for decision in decisions[16:]] == [[("cmd:ls:ls", 17, 17)]] * 2


# -- counting ------------------------------------------------------------------------------------------------------


def test_eleven_run_and_the_twelfth_is_gated() -> None:
    agent = Agent(onLimit="deny")
    assert actions([agent.run(shell("ls")) for _ in range(12)]) == ["allow"] * 11 + ["deny"]


@pytest.mark.parametrize(("cap", "gated"), [(2, 2), (4, 4), (5, 5), (6, None), (2.5, 3), (None, None)])
def test_caps_below_at_and_above_a_window_of_four(cap: float | None, gated: int | None) -> None:
    agent = Agent(onLimit="deny", window=4, limits={"exact": None, "cmd": cap}, warnAt=None, summarizeAt=0)
    decisions = [agent.run(shell("ls")) for _ in range(20)]
    first = next((number for number, decision in enumerate(decisions, 1) if decision.withheld), None)
    assert first == gated


def test_a_cap_for_one_measure_alone() -> None:
    agent = Agent(onLimit="deny", limits={"net:a.com/x": 3, "verb:rm": 2, "exact": None, "cmd": None})
    assert actions([agent.run(shell("curl https://a.com/x")) for _ in range(3)]) == ["allow", "allow", "deny"]
    assert actions([agent.run(shell("curl https://a.com/y")) for _ in range(3)]) == ["allow"] * 3
    assert actions([agent.run(shell(f"rm {name}")) for name in "ab"]) == ["allow", "deny"]


def test_a_measure_without_a_cap_takes_part_in_neither_track() -> None:
    agent = Agent(limits={"exact": None, "cmd": None}, warnAt=2, failWarnAt=1)
    outcomes = [agent.outcome(shell("ls"), FAILED) for _ in range(20)]
    assert {decision.action for decision, _ in outcomes} == {"allow"}
    assert {settlement.advisory if settlement else FAILED for _, settlement in outcomes} == {None}
    assert all(decision.advisory is None and decision.hits == () for decision, _ in outcomes)
    assert agent.breaker.streaks(agent.breaker.measure(shell("ls"))) == {}
    assert agent.breaker.next_count("cmd:ls:ls") == 17


def test_the_window_slides_and_a_stage_can_speak_again() -> None:
    agent = Agent(window=4, warnAt=3, summarizeAt=None, limits={"exact": None})
    commands = ["ls"] * 3 + ["a", "b"] + ["ls"] * 2
    decisions = [agent.run(shell(command)) for command in commands]
    assert advisories(decisions) == dict.fromkeys((3, 6, 7), ("warn", "cmd:ls:ls", 3))
    assert agent.breaker.window_records == 4


def test_an_untracked_call_is_transparent() -> None:
    agent = Agent(warnAt=2, onLimit="deny", limits={"exact": 3})
    todo = Call("todo_write", {"x": 1})
    measured = agent.breaker.measure(todo)
    assert [agent.run(todo, FAILED) for _ in range(20)] == [Decision("allow")] * 20
    assert agent.breaker.window_records == 0
    assert agent.breaker.streaks(measured) == {}
    assert agent.breaker.observe(measured) == Decision("allow")
    assert agent.breaker.settle(measured, FAILED, "text") == Settlement(None, None)
    assert agent.breaker.last_result == ""
    agent.run(Call("read", {}))
    assert told(agent.run(Call("read", {}))) == ("warn", "exact:read:{}", 2)


def test_two_agents_share_nothing() -> None:
    one, other = Agent(warnAt=2), Agent(warnAt=2)
    assert [told(agent.run(shell("ls"))) for agent in (one, other)] == [None, None]


def test_a_human_message_clears_everything() -> None:
    agent = Agent(resultPreviewChars=5)
    for _ in range(12):
        agent.run(shell("false"), FAILED)
    breaker = agent.breaker
    measured = breaker.measure(shell("false"))
    breaker.settle(measured, FAILED, "output")
    assert agent.run(shell("false")).refused
    breaker.turn()
    assert (breaker.window_records, breaker.streaks(measured), breaker.last_result) == (0, {}, "")
    assert agent.run(shell("false")) == Decision("allow")


def test_streaks_start_anew_after_a_human_message() -> None:
    agent = Agent()
    for _ in range(4):
        agent.run(fetch("https://a.com/1"), NOT_FOUND)
    agent.breaker.turn()
    for _ in range(2):
        agent.run(fetch("https://a.com/1"), NOT_FOUND)
    assert agent.breaker.streak("host:a.com") == 2


# -- the choice of what is said ------------------------------------------------------------------------------------


def call_of(*measures: str) -> MeasuredCall:
    return MeasuredCall("tool", measures, tracked=True, local=False)


ALL = ("exact:e", "verb:v", "family:f", "cmd:c", "net:n", "site:s", "host:h", "sink:k")
EQUAL_CAPS = dict.fromkeys(("exact", "verb", "family", "cmd", "net", "site", "host", "sink"), 9)


def breaker_of(**config: object) -> Breaker:
    return Breaker(Settings.from_config({"limits": EQUAL_CAPS, **config}))


def test_ranks() -> None:
    ordered = ["host:h", "net:n", "site:s", "sink:k", "cmd:c", "exact:e"]
    assert sorted(ALL, key=measure_rank)[:6] == ordered
    assert measure_rank("verb:v") == measure_rank("family:f") == measure_rank("odd") == 6


@pytest.mark.parametrize("best", range(6))
def test_equal_counts_are_settled_by_rank(best: int) -> None:
    ordered = ["host:h", "net:n", "site:s", "sink:k", "cmd:c", "exact:e"]
    left = [measure for measure in ALL if measure not in ordered[:best]]
    breaker = breaker_of(warnAt=1, failWarnAt=1)
    decision = breaker.guard(call_of(*left))
    assert decision.advisory == Advisory("warn", ordered[best], 1)
    assert breaker.settle(call_of(*left), FAILED).advisory == FailureAdvisory(ordered[best], 1, FAILED)


def test_equal_ranks_are_settled_by_place() -> None:
    for measures in (("verb:v", "family:f"), ("family:f", "verb:v"), ("host:b", "host:a")):
        breaker = breaker_of(warnAt=1, failWarnAt=1)
        assert told(breaker.guard(call_of(*measures))) == ("warn", measures[0], 1)
        advisory = breaker.settle(call_of(*measures), FAILED).advisory
        assert advisory is not None
        assert advisory.measure == measures[0]


def test_a_higher_stage_goes_before_rank_and_count() -> None:
    breaker = breaker_of(warnAt=3, summarizeAt=2)
    breaker.guard(call_of("host:h", "exact:e"))
    breaker.guard(call_of("host:h"))
    assert told(breaker.guard(call_of("host:h", "exact:e"))) == ("summarize", "exact:e", 2)


def test_equal_stages_speak_as_the_second() -> None:
    breaker = breaker_of(warnAt=2, summarizeAt=2)
    breaker.guard(call_of("host:h"))
    assert told(breaker.guard(call_of("host:h"))) == ("summarize", "host:h", 2)


def test_a_stage_at_the_cap_never_speaks() -> None:
    agent = Agent(onLimit="deny", limits={"exact": None, "cmd": 4}, warnAt=4, summarizeAt=5)
    decisions = [agent.run(shell("ls")) for _ in range(10)]
    assert advisories(decisions) == {}


def test_stages_that_are_off_say_nothing() -> None:
    agent = Agent(warnAt=None, summarizeAt=0, failWarnAt=-1)
    outcomes = [agent.outcome(shell("false"), FAILED) for _ in range(5)]
    assert all(decision.advisory is None for decision, _ in outcomes)
    assert all(settlement is not None and settlement.advisory is None for _, settlement in outcomes)


# -- streaks -------------------------------------------------------------------------------------------------------


def test_a_success_clears_its_own_measures_only() -> None:
    agent = Agent()
    agent.run(fetch("https://a.com/1"), NOT_FOUND)
    agent.run(fetch("https://a.com/2"), NOT_FOUND)
    agent.run(fetch("https://a.com/1"))
    measured = agent.breaker.measure(fetch("https://a.com/2"))
    assert agent.breaker.streaks(measured) == {measured.measures[0]: 1, "net:a.com/2": 1}
    assert agent.breaker.streak("host:a.com") == 0


def test_the_failure_advisory_is_given_once_per_streak() -> None:
    agent = Agent(failLimit=None)
    said: list[int] = []
    for number in range(1, 13):
        _, settlement = agent.outcome(fetch(f"https://a.com/{number}"), None if number == 6 else NOT_FOUND)
        assert settlement is not None
        if settlement.advisory:
            said.append(number)
    assert said == [3, 9]


def test_the_advisory_tells_the_latest_failure() -> None:
    breaker = breaker_of(failWarnAt=2)
    breaker.settle(call_of("cmd:c"), FAILED)
    advisory = breaker.settle(call_of("cmd:c"), NOT_FOUND).advisory
    assert advisory == FailureAdvisory("cmd:c", 2, NOT_FOUND)


def test_a_failure_limit_with_a_fraction_acts_as_the_next_integer() -> None:
    agent = Agent(onLimit="deny", failLimit=2.5)
    decisions = [agent.run(fetch(f"https://a.com/{number}"), NOT_FOUND) for number in range(5)]
    assert actions(decisions) == ["allow"] * 3 + ["deny"] * 2
    assert hits(decisions[3].hits) == [("host:a.com", 3, 2.5)]


def test_without_a_failure_limit_nothing_is_gated_by_failures() -> None:
    agent = Agent(failLimit=None)
    assert actions([agent.run(fetch(f"https://a.com/{number}"), NOT_FOUND) for number in range(15)]) == ["allow"] * 15


def test_own_denials_do_not_lengthen_a_streak_and_cannot_end_it() -> None:
    agent = Agent(onLimit="deny")
    for number in range(20):
        agent.run(fetch(f"https://a.com/{number}"), NOT_FOUND if number < 5 else None)
    assert agent.breaker.streak("host:a.com") == 5


def test_parallel_calls_are_guarded_before_their_results() -> None:
    agent = Agent()
    batch = [agent.offer(fetch(f"https://a.com/{number}")) for number in range(6)]
    assert actions([decision for _, decision in batch]) == ["allow"] * 6
    said = [agent.breaker.settle(measured, NOT_FOUND).advisory for measured, _ in batch]
    assert [number for number, advisory in enumerate(said, 1) if advisory] == [3]
    decision = agent.run(fetch("https://a.com/7"))
    assert decision.action == "ask-declined"
    assert hits(decision.blocking) == [("host:a.com", 6, 5)]


def test_results_settle_in_their_own_order() -> None:
    agent = Agent()
    (one, _), (two, _), (three, _) = (agent.offer(fetch(f"https://a.com/{number}")) for number in range(3))
    agent.breaker.settle(three, NOT_FOUND)
    agent.breaker.settle(one, NOT_FOUND)
    agent.breaker.settle(two, None)
    assert agent.breaker.streak("host:a.com") == 0
    assert agent.breaker.streak("net:a.com/2") == 1


# -- the gate ------------------------------------------------------------------------------------------------------


def test_a_declined_call_records_only_what_blocked() -> None:
    agent = Agent(limits={"exact": 3, "cmd": None})
    for _ in range(3):
        agent.run(shell("ls"))
    assert agent.breaker.next_count('exact:bash:{"command":"ls"}') == 4
    assert agent.breaker.next_count("cmd:ls:ls") == 3
    assert agent.breaker.window_records == 3


def test_an_approval_frees_exactly_what_blocked() -> None:
    agent = Agent(approves=True, limits={"exact": 3, "cmd": 4}, warnAt=None, summarizeAt=None)
    decisions = [agent.run(shell("ls"), FAILED) for _ in range(5)]
    assert actions(decisions) == ["allow", "allow", "ask-approved", "ask-approved", "allow"]
    assert [[hit.measure for hit in decision.blocking] for decision in decisions[2:]] == [
        ['exact:bash:{"command":"ls"}'],
        ["cmd:ls:ls"],
        [],
    ]
    assert agent.breaker.streak('exact:bash:{"command":"ls"}') == 2
    assert agent.breaker.streak("cmd:ls:ls") == 3
    assert agent.breaker.next_count("verb:ls") == 6


def test_an_exempt_measure_is_neither_failed_nor_cleared() -> None:
    agent = Agent(approves=True, failLimit=2)
    outcomes: list[Failure | None] = [NOT_FOUND, NOT_FOUND, NOT_FOUND, None, NOT_FOUND]
    decisions = [agent.run(fetch(f"https://a.com/{number}"), failure) for number, failure in enumerate(outcomes)]
    assert actions(decisions) == ["allow", "allow", "ask-approved", "allow", "allow"]
    assert agent.breaker.streak("host:a.com") == 2


def test_under_deny_nobody_is_asked() -> None:
    agent = Agent(onLimit="deny", limits={"exact": 2})
    decisions = [agent.run(Call("read", {})) for _ in range(4)]
    assert (actions(decisions), agent.asked) == (["allow"] + ["deny"] * 3, 0)
    assert not any(decision.refused for decision in decisions)


def test_a_question_for_a_changed_state_is_decided_by_the_state() -> None:
    """Two parallel calls are asked about; the first is declined, so the second, approved, is freed all the same."""
    breaker = breaker_of(limits={**EQUAL_CAPS, "exact": 2, "cmd": 2})
    breaker.guard(call_of("exact:e", "cmd:c"))
    both, one = call_of("exact:e", "cmd:c"), call_of("exact:e")
    ask_both, ask_one = breaker.ask(both), breaker.ask(one)
    assert ask_both is not None
    assert ask_one is not None
    assert breaker.decline(both, ask_both).action == "ask-declined"
    assert breaker.ask(one) is None
    assert breaker.guard(one, ask_one).action == "ask-approved"
    denied = breaker.guard(both)
    assert (denied.action, denied.refused) == ("deny", True)
    assert [hit.measure for hit in denied.hits] == ["exact:e", "cmd:c"]
    assert [hit.measure for hit in denied.blocking] == ["cmd:c"]


def test_an_approval_does_not_cover_what_blocks_since() -> None:
    breaker = breaker_of(limits={**EQUAL_CAPS, "exact": 2, "cmd": 3})
    breaker.guard(call_of("exact:e", "cmd:c"))
    call = call_of("exact:e", "cmd:c")
    ask = breaker.ask(call)
    assert ask is not None
    breaker.guard(call_of("cmd:c"))
    denied = breaker.guard(call, ask)
    assert (denied.action, denied.refused, [hit.measure for hit in denied.blocking]) == ("deny", False, ["cmd:c"])


def test_an_approval_frees_what_was_asked_about_also_after_a_human_message() -> None:
    breaker = breaker_of(limits={**EQUAL_CAPS, "exact": 2, "cmd": 2})
    exact, both = call_of("exact:e"), call_of("exact:e", "cmd:c")
    breaker.guard(both)
    breaker.guard(exact, breaker.ask(exact))
    ask = breaker.ask(both)
    assert ask is not None
    assert ([hit.measure for hit in ask.hits], [hit.measure for hit in ask.blocking]) == (
        ["exact:e", "cmd:c"],
        ["cmd:c"],
    )
    breaker.turn()
    assert breaker.guard(both, ask).action == "ask-approved"
    assert (breaker.next_count("exact:e"), breaker.next_count("cmd:c")) == (2, 1)


def test_asking_changes_nothing() -> None:
    breaker = breaker_of(limits={**EQUAL_CAPS, "exact": 2})
    breaker.guard(call_of("exact:e"))
    first, second = breaker.ask(call_of("exact:e")), breaker.ask(call_of("exact:e"))
    assert first == second is not None
    assert (breaker.window_records, breaker.next_count("exact:e")) == (1, 2)


def test_observing_lets_everything_pass_and_says_what_would_not_have() -> None:
    breaker = breaker_of(limits={**EQUAL_CAPS, "exact": 2}, warnAt=3)
    decisions = [breaker.observe(call_of("exact:e", "cmd:c")) for _ in range(4)]
    assert actions(decisions) == ["allow", "observed", "observed", "observed"]
    assert [hits(decision.blocking) for decision in decisions] == [
        [],
        [("exact:e", 2, 2)],
        [("exact:e", 3, 2)],
        [("exact:e", 4, 2)],
    ]
    assert not any(decision.withheld for decision in decisions)
    assert told(decisions[2]) == ("warn", "cmd:c", 3)
    assert breaker.next_count("cmd:c") == 5


def test_what_is_withheld() -> None:
    withheld = {"deny", "ask-declined", "deny-shell-http"}
    for action in ("allow", "ask-approved", "ask-declined", "deny", "deny-shell-http", "observed"):
        assert Decision(action).withheld is (action in withheld)


# -- the rest ------------------------------------------------------------------------------------------------------


def test_the_last_result_is_cut_at_units_and_kept_over_empty_ones() -> None:
    breaker = breaker_of(resultPreviewChars=3)
    breaker.settle(call_of("cmd:c"), None, "ab\U0001f600d")
    assert breaker.last_result == "ab\ud83d"
    breaker.settle(call_of("cmd:c"), FAILED, "")
    assert breaker.last_result == "ab\ud83d"
    breaker.settle(call_of("cmd:c"), FAILED, "x")
    assert breaker.last_result == "x"


def test_a_live_result_is_classified_under_the_guards_ruleset() -> None:
    call = shell("curl -s -o /dev/null -w '%{http_code}' https://a.com")
    result = {"isError": False, "value": {"exitCode": 0}, "content": [{"type": "text", "text": "404"}]}
    answers = {
        name: Breaker(ruleset=RULESETS[name]).classify(call, result).failure is not None
        for name in ("0.5.2", "0.5.3", "0.6.1", "0.7.0", "0.8.2", "0.8.3", "0.8.7", "0.8")
    }
    assert [name for name, failed in answers.items() if failed] == ["0.5.3", "0.8"]


def test_only_shells_are_read_for_signs_of_failure() -> None:
    breaker = Breaker()
    result = {"content": [{"text": "ValueError: x"}]}
    assert breaker.classify(shell("python x"), result).failure is not None
    assert breaker.classify(Call("Bash", {"command": "python x"}), result).failure is None


def test_a_guard_without_settings_has_its_rulesets_defaults() -> None:
    assert Breaker().ruleset is DEFAULT_RULESET
    assert Breaker().settings == Settings.from_config()
    assert Breaker(ruleset=RULESET).settings == Settings.from_config({}, RULESET)
    assert Breaker().cap("verb:curl") is None
    assert Breaker().cap("host:a.com") == 16


def test_a_guard_keeps_no_measure_of_an_earlier_turn() -> None:
    breaker = Breaker()

    def held() -> int:
        return sum(len(vars(breaker)[name]) for name in vars(breaker) if isinstance(vars(breaker)[name], dict))

    breaker.turn()
    before = held()
    for number in range(100):
        breaker.guard(call_of(f"exact:{number}"))
        breaker.turn()
    assert held() == before


def test_an_edit_and_test_loop_is_stopped_by_its_test() -> None:
    agent = Agent(onLimit="deny")
    seen: list[tuple[str, str]] = []
    for number in range(9):
        agent.run(Call("edit", {"path": "a.py", "new": str(number)}))
        decision, settlement = agent.outcome(shell("pytest -q"), FAILED)
        if settlement and settlement.advisory:
            seen.append((f"test {number + 1}", settlement.advisory.measure))
        if decision.withheld:
            seen.append((f"test {number + 1}", decision.action))
    assert seen == [("test 3", "cmd:pytest:pytest -q"), *((f"test {number}", "deny") for number in range(6, 10))]


def test_alternating_calls_count_apart() -> None:
    agent = Agent()
    decisions = [agent.run(shell(command)) for command in ["a", "b"] * 8]
    assert advisories(decisions) == {13: ("warn", "cmd:a:a", 7), 14: ("warn", "cmd:b:b", 7)}
    assert actions(decisions) == ["allow"] * 16


def test_a_sweep_of_one_endpoint_meets_the_cap_of_its_host() -> None:
    agent = Agent()
    decisions = [agent.run(fetch(f"https://a.com/items?page={page}")) for page in range(164)]
    assert advisories(decisions) == {7: ("warn", "host:a.com", 7), 11: ("summarize", "host:a.com", 11)}
    assert actions(decisions) == ["allow"] * 15 + ["ask-declined"] + ["deny"] * 148
